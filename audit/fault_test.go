package audit_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The end of a call that failed has a word for the cause, and no text of the server.
func TestFault(t *testing.T) {
	for want, err := range map[string]error{
		"deadline":  context.DeadlineExceeded,
		"transport": mcp.ErrSessionLost,
		"protocol":  errors.New("a text of the server"),
		"unsent":    &wait.Error{Err: errors.New("a question to carl"), Late: true},
		"":          nil,
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, path, nil)
		h := (&audit.Trail{Log: l}).Outer()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return mcp.RawResult("{}"), err
		}))
		h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t"}`)})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		ends := 0
		for e := range audit.Read(path) {
			if e.Kind == audit.CallEnd {
				ends++
			}
			if e.Kind == audit.CallEnd && (e.Fault != want || e.Reason != "") {
				t.Errorf("%v: %s; want the fault %q", err, e.Line(), want)
			}
		}
		if ends != 1 {
			t.Errorf("%d lines call.end, want 1", ends)
		}
	}
}
