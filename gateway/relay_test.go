package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// rootsAtStart is a server that asks for roots when it is initialized, outside of calls, and
// returns them in each call.
func rootsAtStart(t *testing.T, conn jsonrpc.Conn, told chan<- struct{}) {
	roots := "none"
	reply := func(id, result string) {
		if err := conn.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,` + result + `}`)); err != nil {
			t.Log(err)
		}
	}
	for {
		raw, err := conn.Read(nil)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Error(err)
			return
		}
		switch id := string(m.ID); m.Method {
		case "initialize":
			reply(id, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
		case "notifications/initialized":
			if err := conn.Write([]byte(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)); err != nil {
				t.Error(err)
			}
		case "tools/list":
			reply(id, `"result":{"tools":[{"name":"roots","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			text, _ := json.Marshal(roots)
			reply(id, `"result":{"content":[{"type":"text","text":`+string(text)+`}]}`)
		case "":
			roots = string(m.Result)
			close(told)
		default:
			if m.ID != nil {
				reply(id, `"error":{"code":-32601,"message":"no such method"}`)
			}
		}
	}
}

// A server that asks for roots at once receives those of the session that its connection serves.
func TestRootsAtStart(t *testing.T) {
	for _, front := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25} {
		synctest.Test(t, func(t *testing.T) {
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "old", Open: func(ctx context.Context) (gateway.Upstream, error) {
				near, far := jsonrpc.Pipe()
				told := make(chan struct{})
				go rootsAtStart(t, far, told)
				c := &mcp.Client{Name: "gw", Version: "1"}
				gateway.Relay(ctx, c)
				s, err := c.Connect(ctx, mcptest.Wire(near))
				<-told // before there is a call that the question could belong to
				return s, err
			}})
			var asked []string
			s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, frontClient(&asked), front)
			if res, err := s.CallTool(t.Context(), "old_roots", nil); err != nil || !strings.Contains(res.Text(), "file:///home") {
				t.Errorf("%s: the server is told %v, %v", front, res, err)
			}
		})
	}
}
