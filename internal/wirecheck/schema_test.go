package wirecheck

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The methods of each revision as the specification lists them. The checker reads them from the
// schemas; this table is the expected result.
func TestMethods(t *testing.T) {
	legacy := map[string]string{
		"initialize": "InitializeResult", "ping": "EmptyResult",
		"tools/list": "ListToolsResult", "tools/call": "CallToolResult",
		"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult",
		"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult",
		"resources/read": "ReadResourceResult", "resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult",
		"completion/complete": "CompleteResult", "logging/setLevel": "EmptyResult",
	}
	tasks := map[string]string{
		"tasks/get": "GetTaskResult", "tasks/result": "GetTaskPayloadResult", "tasks/cancel": "CancelTaskResult", "tasks/list": "ListTasksResult",
	}
	ofServer := map[string]string{"ping": "EmptyResult", "sampling/createMessage": "CreateMessageResult", "roots/list": "ListRootsResult"}
	elicit := map[string]string{"elicitation/create": "ElicitResult"}
	modern := maps.Clone(legacy)
	for _, method := range []string{"initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"} {
		delete(modern, method)
	}
	all := func(maps_ ...map[string]string) map[string]string {
		out := make(map[string]string)
		for _, m := range maps_ {
			maps.Copy(out, m)
		}
		return out
	}
	want := map[string][2]map[string]string{
		rev2411: {legacy, ofServer},
		rev2503: {legacy, ofServer},
		rev2506: {legacy, all(ofServer, elicit)},
		rev2511: {all(legacy, tasks), all(ofServer, elicit, tasks)},
		rev2607: {all(modern, map[string]string{"server/discover": "DiscoverResult", "subscriptions/listen": "SubscriptionsListenResult",
			"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult"}), {}},
	}
	notifications := map[string][2]int{rev2411: {4, 7}, rev2503: {4, 7}, rev2506: {4, 7}, rev2511: {5, 9}, rev2607: {1, 9}}
	for _, revision := range revisions {
		s := specs[revision]()
		for sender := range 2 {
			got := make(map[string]string)
			for method, def := range s.requests[sender] {
				got[method] = s.resultOf(def)
			}
			if diff := cmp.Diff(want[revision][sender], got); diff != "" {
				t.Errorf("%s, requests of the %v (-want +got):\n%s", revision, side(sender), diff)
			}
			if got, want := len(s.notifications[sender]), notifications[revision][sender]; got != want {
				t.Errorf("%s has %d notifications of the %v, want %d", revision, got, side(sender), want)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(specs[rev2607]().errorsByCode)); !slices.Equal(got, []int64{-32700, -32603, -32602, -32601, -32600, -32022, -32021, -32020}) {
		t.Errorf("typed errors of 2026-07-28: %v", got)
	}
}

// Every definition compiles, and "integer" is corrected to "number" wherever the copies of the
// schemas are known to be wrong.
func TestSchemasCompile(t *testing.T) {
	for _, revision := range revisions {
		s := specs[revision]()
		for def := range s.defs {
			if _, err := s.compile(def); err != nil {
				t.Error(err)
			}
		}
	}
	fraction := map[string]any{"action": "accept", "content": map[string]any{"n": 0.5}}
	for _, revision := range revisions[2:] {
		if err := specs[revision]().validate("ElicitResult", "", fraction); err != nil {
			t.Error(err)
		}
		bounds := map[string]any{"type": "number", "minimum": 0.5, "maximum": 1.5, "default": 0.75}
		if err := specs[revision]().validate("NumberSchema", "", bounds); err != nil {
			t.Error(err)
		}
	}
	for _, v := range []any{nil, 0.5, "x", true, []any{nil, 0.5}, map[string]any{"a": nil}} {
		if err := specs[rev2607]().validate("JSONValue", "", v); err != nil {
			t.Errorf("JSONValue %v: %v", v, err)
		}
	}
}

// The examples published with 2026-07-28 fit their types.
func TestPublishedExamples(t *testing.T) {
	const dir = "schemas/examples-2026-07-28"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 100 {
		t.Errorf("%d examples, want the published 129", len(entries))
	}
	s := specs[rev2607]()
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		def, _, _ := strings.Cut(entry.Name(), ".")
		if err := s.validate(def, "", value); err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
}
