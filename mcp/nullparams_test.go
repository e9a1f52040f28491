package mcp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Many peers write params that they do not have as null. A server answers as if they were absent,
// and a gateway does not send them on.
func TestNullParamsToServer(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2024_11_05, mcp.V2026_07_28} {
		lax, behind := behindLax(t, back)
		for _, front := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25} {
			p := rawClient(t, &mcp.Server{Name: "gw", Version: "1", Handler: behind})
			p.sendf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, front)
			p.answer(0)
			p.send(`{"jsonrpc":"2.0","method":"notifications/initialized","params":null}`)
			for i, method := range []string{"ping", "tools/list", "com.example/own"} {
				p.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":null}`, i+1, method)
				if m := p.answer(int64(i + 1)); m.Error != nil {
					t.Errorf("%s on %s: %s with null params: %v", front, back, method, m.Error)
				}
			}
			if seen := lax.take(); len(seen) != 2 || slices.Contains(seen, "null") {
				t.Errorf("%s on %s: the server behind saw the params %q", front, back, seen)
			}
		}
	}
}

// Over HTTP null counts as absent too; a request of 2026-07-28 always has params, so the error
// names what is missing in them.
func TestNullParamsOverHTTP(t *testing.T) {
	s := newKitchen().Server
	web := httptest.NewServer(s)
	defer web.Close()
	m := post(t, web, "", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`)
	if wantError(t, m, jsonrpc.CodeInvalidParams); m.Error != nil && !strings.Contains(m.Error.Message, "_meta") {
		t.Errorf("the error is %q, want one that names _meta", m.Error.Message)
	}
}

// A client answers requests with null params, and hears notifications with them.
func TestNullParamsToClient(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25} {
		near, far := jsonrpc.Pipe()
		p := &peer{t: t, conn: far}
		done := make(chan struct{})
		go func() {
			defer close(done)
			m := p.read()
			p.sendf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID, rev)
			p.read() // initialized
			p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}`)
			for i, method := range []string{"ping", "roots/list"} {
				p.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":null}`, i+1, method)
				if m := p.answer(int64(i + 1)); m.Error != nil || m.Result == nil {
					t.Errorf("%s: %s with null params: %s", rev, method, show(&m))
				}
			}
		}()
		changed := make(chan string, 1)
		c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev},
			Roots:   func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///a"}}, nil },
			OnEvent: func(_ *mcp.Session, e mcp.Event) { changed <- fmt.Sprintf("%s %s", e.Method, e.Params) },
		}
		s, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Fatal(err)
		}
		<-done
		if got := <-changed; got != "notifications/tools/list_changed " {
			t.Errorf("%s: the event is %q", rev, got)
		}
		s.Close()
		far.Close()
	}
}

// A question in a result of 2026-07-28 may have null params. A gateway does not send them on.
func TestNullParamsOfAQuestion(t *testing.T) {
	upstream := func() mcp.Transport {
		return stub(t, func(m jsonrpc.Message) []string {
			switch {
			case m.Method == "server/discover":
				return result(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
			case m.Method == "tools/call" && !strings.Contains(string(m.Params), "inputResponses"):
				return result(m, `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":null}}}`)
			case m.Method == "tools/call" && !strings.Contains(string(m.Params), "file:///a"):
				t.Errorf("the answer is %s", m.Params)
			}
			return result(m, `{"resultType":"complete","content":[]}`)
		})
	}
	s, err := (&mcp.Client{Name: "c", Version: "1",
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///a"}}, nil },
	}).Connect(t.Context(), upstream())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
		t.Error(err)
	}

	behind, err := (&mcp.Client{Name: "gw", Version: "1"}).Connect(t.Context(), upstream())
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	p := rawClient(t, &mcp.Server{Name: "gw", Version: "1", Handler: behind})
	p.initialize(mcp.V2025_11_25, `{"roots":{}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	frame, err := p.conn.Read(nil)
	if err != nil || !strings.Contains(string(frame), `"roots/list"`) || strings.Contains(string(frame), "null") {
		t.Fatalf("the client got %s, %v", frame, err)
	}
	m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p.sendf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a"}]}}`, m.ID)
	if m := p.answer(1); m.Error != nil {
		t.Error(m.Error)
	}
}
