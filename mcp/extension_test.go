package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const audit = "com.example/audit"

// audited serves an extension with one method, which answers with what the caller
// declared of the extension.
func audited() *mcp.Server {
	s := &mcp.Server{Name: "audited", Version: "1", Extensions: map[string]json.RawMessage{audit: json.RawMessage(`{"depth":2}`)}}
	s.HandleMethod("com.example/audit", func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		c := mcp.CallFrom(ctx)
		if c.Capabilities.Has("extensions", "com.example/refuse") {
			return nil, mcp.Errorf(mcp.CodeMissingCapability, "no")
		}
		subject, _ := jsonx.Unquote(req.Param("subject"))
		return mcp.RawResult(`{"ttlMs":7,"cacheScope":"public","subject":` + string(jsonx.AppendString(nil, subject)) + `}`), nil
	})
	return s
}

// A server declares its extensions to every caller, and answers their methods
// (VER-26-005; Q-21: the capabilities of older revisions are open objects).
func TestExtension(t *testing.T) {
	mcptest.Every(t, audited, func() *mcp.Client { return &mcp.Client{Name: "c"} }, func(t *testing.T, s *mcp.Session) {
		caps := s.Server().Capabilities
		if !caps.Has("extensions", audit, "depth") {
			t.Errorf("the server declares %s, want the extension %s", caps["extensions"], audit)
		}
		raw, err := s.Raw(t.Context(), "com.example/audit", map[string]any{"subject": "x"})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"subject":"x"}`
		if s.Revision() == mcp.V2026_07_28 {
			want = `{"ttlMs":7,"cacheScope":"public","subject":"x"}`
		}
		if string(raw) != want {
			t.Errorf("com.example/audit = %s, want %s", raw, want)
		}
		var rpc *mcp.Error
		if _, err := s.Raw(t.Context(), "com.example/other", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("a method that nobody serves: %v, want %d", err, jsonrpc.CodeMethodNotFound)
		}
	})
}

// A method of an extension gets the envelope of 2026-07-28, and what its caller
// declared in that very request.
func TestExtensionOptsInPerRequest(t *testing.T) {
	p := rawClient(t, audited())
	p.send(modern(1, "com.example/audit", `{}`, `"subject":"y"`))
	m := p.read()
	if got := string(m.Result); !strings.HasPrefix(got, `{"resultType":"complete","ttlMs":7,"cacheScope":"public","subject":"y"`) || !strings.Contains(got, "serverInfo") {
		t.Errorf("result = %s", got)
	}
	p.send(modern(2, "com.example/audit", `{"extensions":{"com.example/refuse":{}}}`, ""))
	wantError(t, p.read(), mcp.CodeMissingCapability)
}

// Identifiers of extensions have a prefix and follow the rules of _meta keys
// (VER-26-004).
func TestExtensionIdentifiers(t *testing.T) {
	tests := []struct {
		id, settings string
		ok           bool
	}{
		{"com.example/audit", `{}`, true},
		{"io.modelcontextprotocol/ui", `{"a":[1]}`, true},
		{"x/a.b_c-d9", `{}`, true},
		{"a-1.b/c", `{}`, true},
		{"audit", `{}`, false},
		{"/audit", `{}`, false},
		{"com.example/", `{}`, false},
		{"com..example/a", `{}`, false},
		{"1com.example/a", `{}`, false},
		{"com-.example/a", `{}`, false},
		{"com.ex_ample/a", `{}`, false},
		{"com.example/-a", `{}`, false},
		{"com.example/a/b", `{}`, false},
		{"com.example/é", `{}`, false},
		{"com.example/a", `[]`, false},
		{"com.example/a", `null`, false},
		{"com.example/a", ``, false},
		{"com.example/a", `{"a":1,"a":2}`, false},
	}
	for _, tt := range tests {
		s := &mcp.Server{Name: "s", Extensions: map[string]json.RawMessage{tt.id: json.RawMessage(tt.settings)}}
		_, err := s.Handle(t.Context(), &mcp.Request{Method: "server/discover"})
		if (err == nil) != tt.ok {
			t.Errorf("Extensions[%q] = %s: %v, want ok %v", tt.id, tt.settings, err, tt.ok)
		}
	}
}

// HandleMethod refuses methods that a revision defines.
func TestHandleMethodRefusesTheCore(t *testing.T) {
	for _, method := range []string{"", "tools/call", "initialize", "ping", "server/discover", "sampling/createMessage", "notifications/x"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("HandleMethod(%q) did not panic", method)
				}
			}()
			new(mcp.Server).HandleMethod(method, nil)
		}()
	}
}
