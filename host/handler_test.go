package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A server of a host may be any Handler: it can ask and report changes of its tools without a wire.
// All requests of the host pass the middleware; a request that the middleware refuses has not run
// and is not retried.
func TestHandlerOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
			yes, err := mcp.Confirm(ctx, "Sure?")
			if err == nil && yes {
				mcp.AddTool(srv, mcp.Tool{Name: "more"}, func(context.Context, struct{}) (string, error) { return "more of it", nil })
			}
			return fmt.Sprint(yes, err), nil
		})
		var asked []string
		m := calls([]string{"s_ask {}"})
		h := &host.Host{Model: m, Allow: []string{"*"},
			Person: &agreeable{elicit: func(_ context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
				asked = append(asked, q.Server+" "+q.Call)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}},
			Middleware: func(server string) mcp.Middleware {
				return func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						if name := req.Param("name"); req.Method == "tools/call" && string(name) == `"ask"` && len(asked) > 0 {
							return nil, mcp.Errorf(jsonrpc.CodeInternal, "once is enough at %s", server)
						}
						return next.Handle(ctx, req)
					})
				}
			}}
		defer h.Close()
		added(t, h, host.Server{Name: "s", Open: func(context.Context, *mcp.Client) (mcp.Handler, error) { return srv, nil }})
		synctest.Wait()
		began := time.Now()
		talk(t, h)
		if got := m.result(t, "c1.1"); got != "true <nil>" || len(asked) != 1 || asked[0] != "s c1.1" {
			t.Errorf("ask = %q, asked %q", got, asked)
		}
		time.Sleep(time.Second) // the host is told
		m = calls([]string{"s_more {}", "s_ask {}"})
		h.Model = m
		d := talk(t, h)
		if got := m.result(t, "c1.1"); got != "more of it" {
			t.Errorf("a tool that is new = %q", got)
		}
		if got := m.result(t, "c1.2"); !strings.Contains(got, "has not run") || !strings.Contains(got, "once is enough at s") || d.outcome(t, "c1.2") != host.Broken || len(d.of(host.Retried)) > 0 {
			t.Errorf("what the middleware refuses: %q", got)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Use applies the CallTimeout of the server, as calls of a model do.
func TestUseIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "slow"}, func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-time.After(9 * time.Minute):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		h := &host.Host{}
		defer h.Close()
		s := inMemory("s", srv)
		s.CallTimeout = 10 * time.Minute
		added(t, h, s)
		if err := h.Use(t.Context(), "s", func(s *mcp.Session) error { _, err := s.CallTool(t.Context(), "slow", nil); return err }); err != nil {
			t.Error(err)
		}
	})
}
