package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
)

var update = flag.Bool("update", false, "rewrite the requests in testdata")

// Each request is sent byte for byte as testdata has it. TestProviderLibraries of the interop tests
// compares requests with those of the official libraries.
func TestRequestsOnTheWire(t *testing.T) {
	zero, warm := 0.0, 0.7
	pdf := &model.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7"), Name: "a.pdf"}
	wav := &model.Media{MIME: "audio/wav", Data: []byte("RIFF")}
	user := model.UserText
	assistant := func(parts ...model.Part) model.Message {
		return model.Message{Role: model.Assistant, Parts: parts}
	}
	results := func(results ...*model.Result) model.Message {
		m := model.Message{Role: model.User}
		for _, r := range results {
			m.Parts = append(m.Parts, model.Part{Result: r})
		}
		return m
	}
	sum := model.Part{Call: &model.Call{ID: "call_1", Name: "add", Arguments: json.RawMessage(`{"b": 2.50, "a":1}`)}}
	shot := model.Part{Call: &model.Call{ID: "call:2", Name: "take picture", Arguments: json.RawMessage(`"{a"`)}}
	closed := json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"a":{"type":"array","items":{"type":"number"}}},"additionalProperties":false}`)

	requests := map[string]*model.Request{
		"plain": {Messages: []model.Message{user("hello")}},
		"letters": {System: "Größe \U0001F600", Messages: []model.Message{user("<a href=\"x\">\u2028&amp;\t\n\x00\\/</a>\x7f\xff"),
			assistant(model.Part{Text: "A < B & \"C\"\u2029"}), user("  ")}},
		"everything": {System: "Be brief.", Messages: []model.Message{user("hello")}, Tools: []model.Tool{
			{Name: "add", Description: "Add <two> numbers & more", Schema: json.RawMessage(`{"type":"object","required":["b","a"],"properties":{"b":{"type":"number","minimum":1e2},"a":{"type":"number","description":"<a>"}},"anyOf":[{"required":["a"]}]}`)},
			{Name: "none"},
		}, Choice: model.Choice{Mode: "tool", Tool: "add"}, Parameters: model.Parameters{MaxTokens: 100, Temperature: &zero}, Stop: []string{"END", "<end>"}, Schema: closed},
		"required": {Messages: []model.Message{user("hello")}, Tools: tools, Choice: model.Choice{Mode: "required"}, Parameters: model.Parameters{Temperature: &warm, MaxTokens: 3}},
		"choice none": {Messages: []model.Message{user("hello")}, Tools: tools, Choice: model.Choice{Mode: "none"},
			Schema: json.RawMessage(`{"type":"object","properties":{"x":{"pattern":"<"}}}`)},
		"media": {Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: "see"}, {Media: png}, {Media: pdf}, {Media: wav},
			{Media: &model.Media{MIME: "application/pdf", Data: []byte("%PDF")}}, {Media: &model.Media{MIME: "video/mp4", Data: []byte("film"), Name: "a.mp4"}}}}}},
		"calls": {Tools: tools, Messages: []model.Message{user("draw"), assistant(model.Part{Text: "Well."}, sum, shot),
			results(&model.Result{ID: "call:2", Name: "take picture", Parts: []model.Part{{Text: "a cat"}, {Media: png}}},
				&model.Result{ID: "call_1", Name: "add", Error: true}),
			assistant(sum), results(&model.Result{ID: "call_1", Name: "add", Parts: []model.Part{{Text: "3"}, {Media: pdf}}}),
			assistant(), user("go on")}},
		"calls without tools": {Messages: []model.Message{user("add"), assistant(sum), results(&model.Result{ID: "call_1", Name: "add", Parts: []model.Part{{Text: "3.5"}}})}},
	}
	thoughts := map[string]string{
		"openai/x":           `{"reasoning_content":"hmm <1>"}`,
		"openai-responses/x": `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hmm <1>"}],"encrypted_content":"abc="}`,
		"anthropic/x":        `{"signature":"sig=","thinking":"hmm <1>","type":"thinking"}`,
	}
	for _, o := range []struct {
		name, id string
		options  provider.Options
	}{
		{"chat", "openai/x", provider.Options{BaseURL: "http://model.test/v1"}},
		{"chat-official", "openai/gpt-5-mini", provider.Options{Key: "k"}},
		{"responses", "openai-responses/x", provider.Options{BaseURL: "http://model.test/v1/"}},
		{"responses-official", "openai-responses/gpt-5-mini", provider.Options{Key: "k"}},
		{"messages", "anthropic/x", provider.Options{BaseURL: "http://model.test", Header: http.Header{"anthropic-beta": {"a", "b"}, "x-mine": {"mine"}}}},
		{"messages-official", "anthropic/claude-3-haiku", provider.Options{Key: "k"}},
	} {
		cases := maps.Clone(requests)
		if thought := thoughts[o.id]; thought != "" {
			api, _, _ := strings.Cut(o.name, "-")
			opaque := model.Part{Opaque: &model.Opaque{Provider: api + "@model.test", Data: json.RawMessage(thought)}}
			cases["thought"] = &model.Request{Tools: tools, Messages: []model.Message{user("add"), assistant(opaque, sum),
				results(&model.Result{ID: "call_1", Name: "add", Parts: []model.Part{{Text: "3.5"}}})}}
			redacted := model.Part{Opaque: &model.Opaque{Provider: "messages@model.test", Data: json.RawMessage(`{"type":"redacted_thinking","data":"xyz="}`)}}
			cases["thought and text"] = &model.Request{Messages: []model.Message{user("add"), assistant(opaque, redacted, model.Part{Text: "5"}, opaque), user("again")}}
		}
		t.Run(o.name, func(t *testing.T) {
			var got strings.Builder
			o.options.Env, o.options.Retry = noEnv, once
			o.options.Info = func(i *model.Info) {
				i.Images, i.Files, i.Audio, i.Window = true, true, strings.HasPrefix(o.name, "chat"), 100_000
			}
			o.options.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.ContentLength != int64(len(body)) {
					t.Errorf("a body of %d bytes was announced as %d: %v", len(body), r.ContentLength, err)
				}
				fmt.Fprintf(&got, "%s %s\n", r.Method, r.URL)
				for _, name := range slices.Sorted(maps.Keys(r.Header)) {
					fmt.Fprintf(&got, "%s: %q\n", name, r.Header[name])
				}
				fmt.Fprintf(&got, "%s\n", body)
				return nil, errors.New("enough was seen")
			})}
			m, err := provider.Open(o.id, o.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				fmt.Fprintf(&got, "# %s\n", name)
				_, _ = m.Generate(t.Context(), cases[name], nil)
			}
			file := filepath.Join("testdata", o.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
