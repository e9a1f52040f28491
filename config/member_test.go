package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

// A member is added, replaced and removed without a change of the rest of the text.
func TestSetMember(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		path       []string
		want       string
	}{
		{"no text", "", []string{"list"}, "{\n  \"list\": {\n    \"one\": {\n      \"url\": \"x\"\n    }\n  }\n}\n"},
		{"comments", "{\n\t// mine\n\t\"a\": 1, // one\n}\n", nil, "{\n\t// mine\n\t\"a\": 1, // one\n\t\"one\": {\n\t\t\"url\": \"x\"\n\t},\n}\n"},
		{"a list", "{\n  \"list\": {\n    \"b\": {}\n  }, \"z\": [ 1,2 ]\n}", []string{"list"}, "{\n  \"list\": {\n    \"b\": {},\n    \"one\": {\n      \"url\": \"x\"\n    }\n  }, \"z\": [ 1,2 ]\n}"},
		{"it is there", "{\"list\": {\"one\": {\"old\": true}, \"b\": 1}}", []string{"list"}, "{\"list\": {\"one\": {\"url\": \"x\"}, \"b\": 1}}"},
		{"windows", "{\r\n  \"a\": 1\r\n}\r\n", nil, "{\r\n  \"a\": 1,\r\n  \"one\": {\r\n    \"url\": \"x\"\r\n  }\r\n}\r\n"},
	} {
		got, err := config.SetMember("f.json", []byte(tt.text), json.RawMessage(`{"url":"x"}`), "one", tt.path...)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, got, tt.want)
			continue
		}
		if again, err := config.SetMember("f.json", got, json.RawMessage(`{"url":"x"}`), "one", tt.path...); err != nil || string(again) != string(got) {
			t.Errorf("%s: the second time %v\n%q", tt.name, err, again)
		}
		back, err := config.RemoveMember("f.json", got, "one", tt.path...)
		if err != nil || strings.Contains(string(back), "one\":") {
			t.Errorf("%s: removed: %v\n%q", tt.name, err, back)
		}
		if (tt.name == "comments" || tt.name == "a list" || tt.name == "windows") && string(back) != tt.text {
			t.Errorf("%s: removed: %q, want %q", tt.name, back, tt.text)
		}
	}
}

func TestSetMemberFaults(t *testing.T) {
	for text, want := range map[string]string{
		`[1]`:         "f.json is not a JSON object",
		`{"list": 1}`: `f.json: "list" is not an object`,
		"{\n  a\n}":   "f.json:2:3: ",
		`{"a": 1} x`:  "f.json:1:10: ",
		"{\n \"a\": ": "f.json:2:",
	} {
		if _, err := config.SetMember("f.json", []byte(text), json.RawMessage("1"), "one", "list"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := config.RemoveMember("f.json", []byte(`{"list": {}}`), "one", "list"); err == nil || !strings.Contains(err.Error(), `f.json has no "one"`) {
		t.Errorf("an absent member: %v", err)
	}
	if _, err := config.AppendElement("f.json", []byte(`{"inputs": {}}`), json.RawMessage("1"), "inputs"); err == nil || !strings.Contains(err.Error(), "not an array") {
		t.Errorf("no array: %v", err)
	}
}
