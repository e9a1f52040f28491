package mcp_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Progress names the token of a request that is being served, and none after the answer
// (PROG-26-005 to -007, -009).
func TestTokensComeBack(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			var calls []context.Context
			p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
				for _, earlier := range calls {
					mcp.Progress(earlier, 2, 3, "too late")
				}
				calls = append(calls, ctx)
				mcp.Progress(ctx, 1, 3, "")
				return "", nil
			}))
			meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
			if rev != mcp.V2026_07_28 {
				meta = `"x/y":1`
				p.initialize(rev, `{}`)
			}
			for i, token := range []string{`7`, `"7"`, ``, `0`, `null`, `{}`, `""`} {
				id := int64(i + 1)
				more := ""
				if token != "" {
					more = `,"progressToken":` + token
				}
				p.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","_meta":{%s%s}}}`, id, meta, more)
				var got []string
				m := p.read()
				for ; m.Kind() == jsonrpc.KindNotification; m = p.read() {
					back, _ := m.Param("progressToken")
					got = append(got, string(back))
				}
				want := fmt.Sprintf("[%s]", token)
				if token == `null` || token == `{}` {
					want = "[]"
				}
				if fmt.Sprint(got) != want {
					t.Errorf("a call with the token %s had progress of %q, want %s", token, got, want)
				}
			}
		})
	}
}

// Notifications of a call go out at once, in a write of their own before that of the answer, so that a
// client can read it by itself (trap 48).
func TestProgressIsWrittenAlone(t *testing.T) {
	srv := one(func(ctx context.Context, _ struct{}) (string, error) {
		for _, done := range []float64{0, 50, 100} {
			mcp.Progress(ctx, done, 100, "")
		}
		return "", nil
	})
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	near, far := io.Pipe() // open until the answer is there: its end would end the call
	out := make(chan string, 10)
	served := make(chan error, 1)
	go func() {
		served <- srv.Serve(t.Context(), jsonrpc.NewLineConn(near, writes(out), near.Close, 0))
	}()
	go far.Write([]byte(in))
	for _, want := range []string{`"progress":0,`, `"progress":50,`, `"progress":100,`, `"result":`} {
		if got := <-out; !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("one write is %q, want one line with %s", got, want)
		}
	}
	far.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// writes passes on what each Write is given.
type writes chan<- string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// Calls at the same time have tokens of their own, strings or integers (PROG-26-001,
// -002), and no id is used again in a session (BASE-25-002).
func TestTokensAndIDsAreUnique(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			const together = 20
			var waiting []string
			tokens, ids := map[string]bool{}, map[string]bool{}
			c := nothing()
			c.Revisions = []mcp.Revision{rev}
			s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
				if m.Kind() == jsonrpc.KindRequest {
					id := string(m.ID.AppendJSON(nil))
					if ids[id] {
						t.Errorf("the id %s is there twice", id)
					}
					ids[id] = true
				}
				switch m.Method {
				case "server/discover":
					return result(m, discovered)
				case "initialize":
					return initialized(m, string(rev))
				case "tools/call":
					token, _ := m.ParamIn("_meta", "progressToken")
					if _, err := jsonrpc.ParseID(token); err != nil || tokens[string(token)] {
						t.Errorf("the token %q is none, or used twice at once", token)
					}
					tokens[string(token)] = true
					waiting = append(waiting, result(m, `{"content":[]}`)...)
					if len(waiting) == together {
						answers := waiting
						waiting, tokens = nil, map[string]bool{}
						return answers
					}
				}
				return []string{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 {
				var wg sync.WaitGroup
				for range together {
					wg.Go(func() {
						if _, err := s.CallTool(t.Context(), "x", nil, mcp.OnProgress(func(float64, float64, string) {})); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}
