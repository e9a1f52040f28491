package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/config"
)

// modelFields is a model whose fields a test can see.
type modelFields config.Model

func TestLoadModels(t *testing.T) {
	file, faults, _ := load(t, `{
  "patchbay": {
    "model": "fast",
    "models": {
      "fast": {"provider": "openai", "name": "gpt-5-mini", "key": "${env:KEY}", "window": 128000, "maxTokens": 4096, "effort": "High",
               "price": {"input": 0.25, "output": 2, "cached": 0.025}, "images": true, "audio": false,
               "rank": {"cost": 0.9, "speed": 1}, "hints": ["haiku"]},
      "own": {"provider": "text", "name": "llama", "baseUrl": "http://127.0.0.1:${PORT:-8080}/v1", "headers": {"X-Team": "${input:team}", "X-N": 5}}
    }
  },
  "inputs": [{"type": "promptString", "id": "team"}]
}`, map[string]string{"KEY": "planted-key"})
	if faults != nil || len(file.Warnings) > 0 {
		t.Fatal(faults, file.Warnings)
	}
	yes, no := true, false
	want := []modelFields{
		{Name: "fast", Provider: "openai", Model: "gpt-5-mini", Key: "planted-key", Window: 128000, MaxTokens: 4096, Effort: "high", Images: &yes, Audio: &no,
			Price: config.Price{Input: 0.25, Output: 2, Cached: 0.025}, Rank: config.Rank{Cost: 0.9, Speed: 1}, Hints: []string{"haiku"}},
		{Name: "own", Provider: "text", Model: "llama", BaseURL: "http://127.0.0.1:8080/v1", Headers: map[string]string{"X-Team": "${input:team}", "X-N": "5"}},
	}
	var got []modelFields
	for _, m := range file.Models {
		got = append(got, modelFields(m))
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(modelFields{}), cmpopts.IgnoreFields(modelFields{}, "Source")); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if file.Model != "fast" || !strings.HasSuffix(file.Models[1].Source, "mcp.json:8") {
		t.Errorf("the model to use is %q, the second one is from %s", file.Model, file.Models[1].Source)
	}
	if s := fmt.Sprintf("%v %+v %#v", file.Models[0], file.Models[0], file.Models); strings.Contains(s, "planted") {
		t.Errorf("a model prints its key: %s", s)
	}
	if got := file.Models[0].Secrets(func(string) bool { return false }); len(got) != 1 || got[0] != "planted-key" {
		t.Errorf("Secrets = %q", got)
	}

	own := file.Models[1]
	if in := own.Inputs(); len(in) != 1 || in[0].ID != "team" {
		t.Fatalf("Inputs = %v", in)
	}
	resolved, err := own.Resolve(func(config.Input) (string, error) { return "blue", nil })
	if err != nil || resolved.Headers["X-Team"] != "blue" || own.Headers["X-Team"] != "${input:team}" || len(resolved.Inputs()) != 0 {
		t.Errorf("resolved: %v, %v; before: %v", resolved.Headers, err, own.Headers)
	}
	if _, err := own.Resolve(func(config.Input) (string, error) { return "", os.ErrClosed }); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), `model "own"`) {
		t.Errorf("Resolve without an answer: %v", err)
	}
}

// An unset variable of a model is not a fault of the file: servers do not need it.
func TestModelsMissing(t *testing.T) {
	file, faults, _ := load(t, `{"patchbay": {"models": {
  "a": {"provider": "anthropic", "name": "x", "key": "${env:NONE}", "baseUrl": "${NONE_EITHER}/v1"},
  "b": {"provider": "openai", "name": "x", "key": "${EMPTY}"}
}}}`, map[string]string{"EMPTY": ""})
	if faults != nil || len(file.Models) != 2 {
		t.Fatal(faults, file.Models)
	}
	for i, want := range []string{
		`2:54: the environment variable NONE is not set`,
		`3:51: "key" is empty after its variables are replaced`,
	} {
		_, err := file.Models[i].Resolve(nil)
		var missing config.Problems
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) || missing[0].Model != file.Models[i].Name || missing[0].Fix == "" {
			t.Errorf("Resolve of %v: %v; want %s", file.Models[i], err, want)
		}
	}
}

func TestLoadModelFaults(t *testing.T) {
	_, faults, _ := load(t, `{"patchbay": {
  "model": "fsat",
  "models": {
    "fast": {"provider": "opnai", "name": "x", "key": 5},
    "b": {"apiKey": "planted", "key": "${input:none}"},
    "c": {"provider": "openai", "name": "", "baseUrl": "ftp://planted", "window": "128k", "maxTokens": 0},
    "d": {"provider": "openai", "name": "x", "price": {"input": -1, "in": 1}, "images": "yes", "rank": {"cost": 2}, "hints": "x", "headers": []},
    "e/f": {}, "g": 7, "h": {"provider": "openai", "name": "x", "key": "planted-key"},
    "h": {"provider": "openai", "name": "y"}, "i": {"provider": "openai", "provider": "text", "name": "x"}
  }
}, "mcpServers": {"s": {"command": "x"}}}`, nil)
	want := []string{
		`2:12: there is no model "fsat"`,
		`4:26: "provider" has an unknown value`,
		`4:55: "key" is not a string`,
		`5:5: the model "b" has no provider`,
		`5:5: the model "b" has no name`,
		`5:39: there is no input "none"`,
		`6:41: "name" of a model is not a string`,
		`6:56: "baseUrl" is not an http or https URL`,
		`6:83: "window" is not a number of tokens`,
		`6:104: "maxTokens" is not a number of tokens`,
		`7:65: "input" of "price" is out of range`,
		`7:89: "images" is not true or false`,
		`7:113: "cost" of "rank" is out of range`,
		`7:126: "hints" is not a list`,
		`7:142: "headers" is not an object`,
		`8:5: the name of the model "e/f" is empty or has a / in it`,
		`8:21: the model "g" is not an object`,
		`9:5: the model "h" is here twice, first in line 8`,
		`9:75: the member "provider" is here twice, first in line 9`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestInspectModelFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	text := `{"patchbay": {"model": "openai/gpt-5", "models": {"a": {"provider": "openai"}, "b": {"provider": "openai", "name": "x", "api_key": "planted-key", "key": "planted-too"}}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, faults, err := config.Inspect(path, nil)
	if err != nil || len(faults) != 1 || faults[0].Model != "a" || faults[0].Server != "" {
		t.Fatalf("faults %v, %v; want one of a", faults, err)
	}
	if len(file.Models) != 1 || file.Models[0].Name != "b" || file.Model != "openai/gpt-5" {
		t.Errorf("models %v, to use %q; want b", file.Models, file.Model)
	}
	if len(file.Warnings) != 2 || file.Warnings[0].Model != "b" || strings.Contains(fmt.Sprint(file.Warnings), "planted") {
		t.Errorf("warnings %v; want one of api_key and one of the key in the file", file.Warnings)
	}
}

func TestLoadHostSettings(t *testing.T) {
	file, faults, _ := load(t, `{"mcpServers": {
  "a": {"command": "x", "patchbay": {"trusted": true, "required": true, "group": "work", "cache": "5m", "tools": {"disabled": ["delete_*", "drop"]}}},
  "b": {"command": "x", "patchbay": {"tools": {"enabled": ["*read*"]}}},
  "c": {"command": "x"}
}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	if a := file.Servers[0]; !a.Trusted || !a.Required || a.Group != "work" || a.Cache != 5*time.Minute {
		t.Errorf("trusted %v, group %q, cache %v", a.Trusted, a.Group, a.Cache)
	}
	for _, tt := range []struct {
		tool    string
		offered [3]bool // by a, b and c
	}{
		{"delete_all", [3]bool{false, false, true}},
		{"delete", [3]bool{true, false, true}},
		{"drop", [3]bool{false, false, true}},
		{"drop2", [3]bool{true, false, true}},
		{"thread_list", [3]bool{true, true, true}},
		{"read", [3]bool{true, true, true}},
	} {
		for i, s := range file.Servers {
			if got := s.Offers(tt.tool); got != tt.offered[i] {
				t.Errorf("%s.Offers(%s) = %v", s.Name, tt.tool, got)
			}
		}
	}
	_, faults, _ = load(t, `{"mcpServers": {"a": {"command": "x", "patchbay": {"trusted": 1, "required": "yes", "group": "", "cache": "never", "tools": {"disabled": "x", "enabled": [1]}}}}}`, nil)
	if len(faults) != 6 {
		t.Errorf("faults %q, want six", faults)
	}
}

func TestEditModels(t *testing.T) {
	const before = `{
  // mine
  "mcpServers": {"a": {"command": "x"}} // a
}
`
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := config.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) error {
		return doc.AddModel(config.Entry{Name: name, Object: []byte(`{"provider":"openai","name":"m","key":"${env:K}"}`)})
	}
	for _, name := range []string{"one", "two"} {
		if err := add(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("one"); err == nil {
		t.Error("a model can be added twice")
	}
	if err := doc.UseModel("three"); err == nil {
		t.Error("a model that is not there can be used")
	}
	for _, name := range []string{"two", "one"} {
		if err := doc.UseModel(name); err != nil {
			t.Fatal(err)
		}
	}
	want := `{
  // mine
  "mcpServers": {"a": {"command": "x"}}, // a
  "patchbay": {
    "models": {
      "one": {
        "provider": "openai",
        "name": "m",
        "key": "${env:K}"
      },
      "two": {
        "provider": "openai",
        "name": "m",
        "key": "${env:K}"
      }
    },
    "model": "one"
  }
}
`
	if diff := cmp.Diff(want, string(doc.Bytes())); diff != "" {
		t.Errorf("the text (-want +got):\n%s", diff)
	}
	if got := doc.Models(); len(got) != 2 || got[1].Name != "two" || doc.Model() != "one" {
		t.Errorf("Models = %v, Model = %q", got, doc.Model())
	}
	if err := doc.RemoveModel("one"); err != nil {
		t.Fatal(err)
	}
	if got := doc.Models(); len(got) != 1 || got[0].Name != "two" || doc.Model() != "" {
		t.Errorf("after that Models = %v, Model = %q", got, doc.Model())
	}
	if err := doc.RemoveModel("one"); err == nil {
		t.Error("a model can be removed twice")
	}
}

// Members for sampling become members of the API; "parameters" are passed as they are.
func TestLoadSampling(t *testing.T) {
	file, faults, _ := load(t, `{"patchbay": {"models": {
  "chat": {"provider": "openai", "name": "x", "temperature": 0.70, "topP": 1, "topK": 40, "seed": -7, "stop": "END", "presencePenalty": -0.5, "frequency_penalty": 2,
           "parameters": {"reasoning_effort": "low", "logit_bias": {"5": 1}, /* as it is */ "x": null}},
  "claude": {"provider": "anthropic", "name": "x", "temperature": 1, "top_p": 0.5, "stop_sequences": ["a", "b"]},
  "responses": {"provider": "openai-responses", "name": "x", "temperature": 2},
  "mistral": {"provider": "mistral", "name": "x", "seed": 3}
}}}`, nil)
	if faults != nil || len(file.Warnings)+len(file.Unread) > 0 {
		t.Fatal(faults, file.Warnings, file.Unread)
	}
	for i, want := range []string{
		`{"frequency_penalty":2,"logit_bias":{"5":1},"presence_penalty":-0.5,"reasoning_effort":"low","seed":-7,"stop":["END"],"temperature":0.70,"top_k":40,"top_p":1,"x":null}`,
		`{"stop_sequences":["a","b"],"temperature":1,"top_p":0.5}`,
		`{"temperature":2}`,
		`{"random_seed":3}`,
	} {
		if got, err := json.Marshal(file.Models[i].Parameters); err != nil || string(got) != want {
			t.Errorf("parameters of %v are %s, %v, want %s", file.Models[i], got, err, want)
		}
	}
	_, faults, _ = load(t, `{"patchbay": {"models": {
  "a": {"provider": "openai", "name": "x", "temperature": "0.7", "topP": 1.5, "seed": 1.5, "stop": [], "topK": 0},
  "b": {"provider": "anthropic", "name": "x", "temperature": 1.5, "seed": 1},
  "c": {"provider": "openai-responses", "name": "x", "stop": "x"},
  "d": {"provider": "openai", "name": "x", "topP": 1, "top_p": 1, "seed": 1, "parameters": {"seed": 2, "a": 1, "a": 2}},
  "e": {"provider": "openai", "name": "x", "parameters": []}
}}}`, nil)
	want := []string{
		`2:59: "temperature" of a model has a wrong value`,
		`2:74: "topP" of a model has a wrong value`,
		`2:87: "seed" of a model has a wrong value`,
		`2:100: "stop" of a model has a wrong value`,
		`2:112: "topK" of a model has a wrong value`,
		`3:62: "temperature" of a model has a wrong value`,
		`3:75: the API of "anthropic" has no "seed"`,
		`4:62: the API of "openai-responses" has no "stop"`,
		`5:64: "topP" and "top_p" set the same`,
		`5:93: "seed" and "parameters.seed" set the same`,
		`5:112: the parameter "a" is here twice, first in line 5`,
		`6:58: "parameters" is not an object`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
