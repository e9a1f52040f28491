package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// An approval shows edits line by line after the exact arguments, with signs that need no colour. A text
// cannot look like another line of the edit.
func TestEdits(t *testing.T) {
	plain := &look{width: 40}
	for _, tt := range []struct {
		name string
		args any
		want []string // lines; nil: no edits
	}{
		{"an edit", map[string]any{"path": "x", "edits": []any{map[string]any{"oldText": "a\nb\nc\nd\ne\nf", "newText": "a\nb\nc\nD\tx\ne\nf"}}},
			[]string{"@@", " b", " c", "-d", "+D    x", " e", " f"}},
		{"two edits", []any{map[string]any{"old_string": "a", "new_string": ""}, map[string]any{"old_str": "b", "new_str": "b\nc"}},
			[]string{"@@", "-a", "+", "@@", " b", "+c"}},
		{"a diff", map[string]any{"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-  one\n+\x1b[31mtwo\u202e\n"},
			[]string{"--- a/x", "+++ b/x", "@@ -1 +1 @@", "-  one", "+␛[31mtwo⟨U+202E⟩"}},
		{"a long line", map[string]any{"search": "", "replace": strings.Repeat("x", 37) + "-y"},
			[]string{"@@", "-", "+" + strings.Repeat("x", 37), "  -y"}},
		{"no edit", map[string]any{"oldText": "a", "text": "a\n+b"}, nil},
	} {
		raw, err := json.Marshal(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(tt.want, "\n")
		if tt.want != nil {
			want = "\nThe edits in it:\n" + want
		}
		if got := strings.Join(plain.edits(editsOf(raw)), "\n"); got != want {
			t.Errorf("%s: edits(%s) =\n%s\nwant\n%s", tt.name, raw, got, want)
		}
	}
	long, err := json.Marshal(map[string]string{"oldText": "", "newText": strings.Repeat("x\n", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	if got := plain.edits(editsOf(long)); len(got) > maxEditLines+3 || !strings.HasSuffix(got[len(got)-1], " more lines)") {
		t.Errorf("a long edit has %d lines", len(got))
	}
	if got := strings.Join((&look{width: 40, color: true}).edits(editsOf([]byte(`{"oldText": "a", "newText": "b"}`))), "\n"); !strings.Contains(got, "\x1b[31m-a") || !strings.Contains(got, "\x1b[32m+b") {
		t.Errorf("in colour: %q", got)
	}
}

// The arguments stay in the dialog as they are sent, before the edits.
func TestApprovalOfEdit(t *testing.T) {
	a := newApproval(&host.Approval{Server: "files", Tool: &mcp.Tool{Name: "edit"}, Arguments: []byte(`{"path":"x","oldText":"one","newText":"two"}`)})
	want := "{\n  \"path\": \"x\",\n  \"oldText\": \"one\",\n  \"newText\": \"two\"\n}\n\nThe edits in it:\n@@\n-one\n+two"
	if got := strings.Join(a.show(&look{width: 60}).body, "\n"); got != want {
		t.Errorf("the dialog has\n%s\nwant\n%s", got, want)
	}
}
