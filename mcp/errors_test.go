package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	wantError(t, p.answer(2), jsonrpc.CodeMethodNotFound)

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

// The code for a missing resource that 2026-07-28 gave up is still understood, from
// servers of any revision (BASE-26-021, RES-26-011), and passed on as what a client of that
// revision knows.
func TestOldCodeOfAMissingResource(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		c := nothing()
		c.Revisions = []mcp.Revision{rev}
		s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			switch m.Method {
			case "server/discover":
				return result(m, discovered)
			case "initialize":
				return initialized(m, string(rev))
			case "resources/read":
				return failure(m, mcp.CodeResourceNotFound, `{"uri":"a:b"}`)
			}
			return []string{}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadResource(t.Context(), "a:b"); !errors.Is(err, mcp.ResourceNotFound("a:b")) {
			t.Errorf("%s: read = %v", rev, err)
		}
		p := rawClient(t, &mcp.Server{Name: "front", Version: "1", Handler: s})
		p.send(modern(1, "resources/read", `{}`, `"uri":"a:b"`))
		wantError(t, p.answer(1), jsonrpc.CodeInvalidParams)
		s.Close()
	}
}

// The message of an error is one short sentence (BASE-26-033, BASE-2506-003), however long
// what is wrong; the codes are those of JSON-RPC and of MCP (BASE-26-022).
func TestMessagesOfErrors(t *testing.T) {
	s := library()
	addTools(s, 0, 1)
	long := strings.Repeat("long ", 10_000)
	methods := map[string]string{
		"tools/list": `"cursor":%s`, "tools/call": `"name":%s`, "prompts/get": `"name":%s`, "resources/read": `"uri":%s`,
		"resources/subscribe": `"uri":%s`, "logging/setLevel": `"level":%s`, "completion/complete": `"ref":{"type":%s},"argument":{"name":"x","value":"y"}`,
		"server/discover": `"x":%s`, "no/such": `"x":%s`, strings.Repeat("m", 3000): `"x":%s`,
	}
	legacy, now := rawClient(t, s), rawClient(t, s)
	legacy.initialize(mcp.V2025_11_25, `{}`)
	id := int64(0)
	for method, params := range methods {
		for _, value := range []string{quote(long), quote("two\nlines"), `7`, `{}`, `["` + long + `"]`} {
			id++
			params := fmt.Sprintf(params, value)
			legacy.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
			now.send(modern(id, method, `{}`, params))
			for _, p := range []*peer{legacy, now} {
				m := p.answer(id)
				if m.Error == nil {
					continue
				}
				if n := len(m.Error.Message); n == 0 || n > 400 || strings.ContainsAny(m.Error.Message, "\n\r") {
					t.Errorf("%.30s with %.30s: a message of %d bytes: %.600q", method, params, n, m.Error.Message)
				}
				switch m.Error.Code {
				case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, mcp.CodeResourceNotFound:
				default:
					t.Errorf("%.30s with %.30s: code %d", method, params, m.Error.Code)
				}
			}
		}
	}
}
