package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

func TestDiffer(t *testing.T) {
	long := strings.Repeat("x", 400)
	for _, tt := range []struct {
		name, a, b string
		want       []Difference
	}{
		{"same", `{"a":[1,{"b":null}],"c":"x"}`, `{"c":"x","a":[1,{"b":null}]}`, nil},
		{"value", `{"a":{"b":1}}`, `{"a":{"b":2}}`, []Difference{{"a.b", "1", "2"}}},
		{"kind", `{"a":1}`, `{"a":"1"}`, []Difference{{"a", "1", `"1"`}}},
		{"null and absent", `{"a":null}`, `{}`, []Difference{{"a", "null", ""}}},
		{"null and empty", `{"a":null}`, `{"a":{}}`, []Difference{{"a", "null", "{}"}}},
		{"list and object", `{"a":[]}`, `{"a":{}}`, []Difference{{"a", "[]", "{}"}}},
		{"longer list", `{"a":[1]}`, `{"a":[1,2,3]}`, []Difference{{"a[1]", "", "2"}, {"a[2]", "", "3"}}},
		{"same number", `{"a":1.50,"b":1e2,"c":1}`, `{"a":1.5,"b":100.0,"c":1.0}`, nil},
		{"large integers", `{"a":9007199254740993}`, `{"a":9007199254740992}`, []Difference{{"a", "9007199254740993", "9007199254740992"}}},
		{"ignored", `{"a":{"at":1,"b":1}}`, `{"a":{"b":1}}`, nil},
		{"odd names", `{"a.b":{"":1}}`, `{"a.b":{"":2}}`, []Difference{{`"a.b".""`, "1", "2"}}},
		{"markup stays", `{"a":"<b>"}`, `{"a":"&"}`, []Difference{{"a", `"<b>"`, `"&"`}}},
		{"long texts", `{"a":"` + long + `1` + long + `"}`, `{"a":"` + long + `2` + long + `"}`, []Difference{{"a",
			`"…` + strings.Repeat("x", 40) + `1` + strings.Repeat("x", 109) + `…"`, `"…` + strings.Repeat("x", 40) + `2` + strings.Repeat("x", 109) + `…"`}}},
		{"times", `{"a":"2026-07-28T09:30:00Z"}`, `{"a":"2027-01-01T00:00:00.5+02:00"}`, nil},
		{"tasks and cursors", `{"taskId":"a","b":{"taskId":"a"},"nextCursor":"x"}`, `{"taskId":"b","b":{"taskId":"b"},"nextCursor":"y"}`, nil},
		{"another task", `{"taskId":"a","b":{"taskId":"a"}}`, `{"taskId":"a","b":{"taskId":"b"}}`, []Difference{{"b.taskId", `"task-1"`, `"task-2"`}}},
	} {
		d := differ{ignore: []string{"at"}}
		d.compare("", stable([][]byte{[]byte(tt.a)})[0], stable([][]byte{[]byte(tt.b)})[0])
		if diff := cmp.Diff(tt.want, d.found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	d := differ{}
	d.compare("", []any{}, make([]any, 50))
	if len(d.found) != maxDifferences || d.more != 30 {
		t.Errorf("%d differences and %d more, want %d and 30", len(d.found), d.more, maxDifferences)
	}
}

// TestDocumentsAcrossRevisions: parts that only one of two revisions can express are not
// differences.
func TestDocumentsAcrossRevisions(t *testing.T) {
	oldest, newest := revision.V20241105, revision.V20260728
	for _, tt := range []struct {
		name        string
		was, is     Exchange
		wantBetween bool // of 2024-11-05 and 2026-07-28 they are the same
	}{
		{
			"structured content",
			Exchange{Method: "tools/call", Result: json.RawMessage(`{"content":[{"type":"text","text":"{}"}]}`)},
			Exchange{Method: "tools/call", Result: json.RawMessage(`{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}`)}, true,
		},
		{
			"how long a list is good",
			Exchange{Method: "tools/list", Result: json.RawMessage(`{"tools":[]}`)},
			Exchange{Method: "tools/list", Result: json.RawMessage(`{"tools":[],"ttlMs":0,"cacheScope":"private"}`)}, true,
		},
		{
			"code of a resource that is not there",
			Exchange{Method: "resources/read", Error: &jsonrpc.Error{Code: -32002, Message: "m"}},
			Exchange{Method: "resources/read", Error: &jsonrpc.Error{Code: -32602, Message: "m"}}, true,
		},
		{
			"another text",
			Exchange{Method: "tools/call", Result: json.RawMessage(`{"content":[{"type":"text","text":"a"}]}`)},
			Exchange{Method: "tools/call", Result: json.RawMessage(`{"content":[{"type":"text","text":"b"}]}`)}, false,
		},
	} {
		same := func(mine, other *revision.Table) bool {
			d := differ{}
			d.compare("", stable([][]byte{document(&tt.was, mine, other, true)})[0], stable([][]byte{document(&tt.is, other, mine, true)})[0])
			return d.found == nil
		}
		if got := same(oldest, newest); got != tt.wantBetween {
			t.Errorf("%s: the same on other revisions: %v, want %v", tt.name, got, tt.wantBetween)
		}
		if same(newest, newest) {
			t.Errorf("%s: the same on one revision", tt.name)
		}
	}
}
