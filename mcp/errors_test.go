package mcp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The codes from -32019 to -32000 mean nothing to a receiver, except -32002
// (BASE-26-017): the error arrives as it is, and the session goes on.
func TestCodesWithoutMeaning(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for code := -32019; code <= -32000; code++ {
			if code == mcp.CodeResourceNotFound {
				continue
			}
			c := nothing()
			c.Revisions = []mcp.Revision{rev}
			calls := 0
			s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
				switch m.Method {
				case "server/discover":
					return result(m, discovered)
				case "initialize":
					return initialized(m, string(rev))
				case "tools/call":
					if calls++; calls == 1 {
						return failure(m, code, "")
					}
					return result(m, `{"content":[]}`)
				}
				return []string{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.CallTool(t.Context(), "x", nil)
			var rpc *mcp.Error
			if !errors.As(err, &rpc) || rpc.Code != code || errors.Is(err, mcp.ErrNotSupported) || errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %d arrives as %v", rev, code, err)
			}
			if calls != 1 {
				t.Errorf("%s: error %d makes %d calls", rev, code, calls)
			}
			if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
				t.Errorf("%s: the call after error %d = %v", rev, code, err)
			}
			s.Close()
		}
	}
}

// An extension that one side alone has leaves the core as it is, and its methods are
// refused (VER-26-005).
func TestExtensionOfOneSide(t *testing.T) {
	p := rawClient(t, newWorkshop().Server)
	const caps = `{"extensions":{"com.example/x":{}}}`
	p.send(modern(1, "tools/call", caps, `"name":"echo","arguments":{"text":"ok"}`))
	if m := p.answer(1); m.Error != nil {
		t.Errorf("got %s", show(&m))
	}
	p.send(modern(2, "com.example/do", caps, ""))
	wantError(t, p.answer(2), mcp.CodeMethodNotFound)

	s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
		if m.Method == "server/discover" {
			return result(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"com.example/x":{}}},"ttlMs":0,"cacheScope":"private"}`)
		}
		return result(m, `{"resultType":"complete","content":[]}`)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
		t.Error(err)
	}
}
