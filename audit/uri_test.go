package audit_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Each line of a read says which resource it is about, also if Go does not parse its URI, and has the
// digest of the whole URI, but neither user, query, fragment nor what looks like a secret.
func TestReadIsNamed(t *testing.T) {
	list := []struct{ uri, name string }{
		{"evil://h/a#%zz", "evil://h/a"},
		{"evil://h/a/%zz?SECRET", "evil://h/a/%zz"},
		{"evil://h/a\x7f?token=SECRET", "evil://h/a\x7f"},
		{"file://SECRET%zz@/a", "file:///a"},
		{"evil://h/a\x1b\n?SECRET", "evil://h/a\x1b\n"},
		{"note://50%?x", "note://50%"},
		{"note://h/a?x=1", "note://h/a"},
		{"evil://h/ghp_0123456789abcdefSECRET6789abcdef0123", "evil://h/[redacted]"},
		{"evil:x;password=SECRET", "evil:x;password=[redacted]"},
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone, Arguments: audit.ContentRedacted})
	trail := &audit.Trail{Log: l}
	h := trail.Outer()(trail.Around("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil })))
	for _, tt := range list {
		params := jsonx.With(nil, nil, "uri", jsonx.AppendString(nil, tt.uri))
		if _, err := h.Handle(t.Context(), &mcp.Request{Method: "resources/read", Params: params}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := calls(t, path)
	if len(lines) != 2*len(list) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, e := range lines {
		tt := list[i/2]
		want := audit.Digest(jsonx.With(nil, nil, "uri", jsonx.AppendString(nil, tt.uri)))
		if e.Name != tt.name || e.Arguments == nil || e.Arguments.Digest != want || strings.Contains(string(e.Line()), "SECRET") {
			t.Errorf("%q: %s", tt.uri, e.Line())
		}
	}
}
