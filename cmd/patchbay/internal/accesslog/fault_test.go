package accesslog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

type unlogged struct{ error }

func (unlogged) Unlogged() bool { return true }

// The line of a call that was not made for the audit log says so; that of another error does not.
func TestFaultOfAudit(t *testing.T) {
	for err, want := range map[error]bool{unlogged{errors.New("disk full")}: true, errors.New("other"): false} {
		var out bytes.Buffer
		log := New(&out, noFault(t))
		h := log.Middleware()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, err }))
		if _, got := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`)}); got == nil {
			t.Error("no error")
		}
		log.Close()
		if got := strings.Contains(out.String(), `"outcome":"error"`) && strings.Contains(out.String(), `"fault":"audit"`); got != want {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}
