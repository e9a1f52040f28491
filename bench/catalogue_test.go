package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

const (
	catalogueServers = 64
	catalogueTools   = 50 // of each
)

// catalogueOf is a front before a gateway of 64 servers with 50 tools each, which speak back over
// pipes. P may be nil.
func catalogueOf(tb testing.TB, back mcp.Revision, p policy.Policy) *mcp.Server {
	tb.Helper()
	var ready sync.WaitGroup
	g := &gateway.Gateway{Name: "gw", Version: "1"}
	if p != nil {
		g.Middleware = func(server string) mcp.Middleware { return policy.Middleware(server, p, nil) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	tb.Cleanup(running.Wait)
	tb.Cleanup(cancel)
	for i := range catalogueServers {
		name := fmt.Sprintf("server%02d", i)
		srv := &mcp.Server{Name: name, Version: "1"}
		for i := range catalogueTools {
			t := mcp.Tool{Name: fmt.Sprintf("tool%04d", i), Description: strings.Repeat("Finds what there is. ", 5),
				InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"what is looked for"},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["query"]}`)}
			if err := srv.HandleTool(t, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil }); err != nil {
				tb.Fatal(err)
			}
		}
		ready.Add(1)
		came := sync.OnceFunc(ready.Done)
		running.Go(func() {
			_ = g.Run(ctx, gateway.Source{Name: name, OnStatus: func(s gateway.Status) {
				if s.State == gateway.Ready && s.Tools == catalogueTools {
					came()
				}
			}, Open: func(ctx context.Context) (gateway.Upstream, error) {
				near, far := jsonrpc.Pipe()
				go srv.Serve(context.WithoutCancel(ctx), far)
				c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{back}}
				gateway.Relay(ctx, c)
				return c.Connect(ctx, mcptest.Wire(near))
			}})
		})
	}
	ready.Wait()
	time.Sleep(300 * time.Millisecond) // the subscriptions at the servers are acknowledged
	return &mcp.Server{Name: "gw", Version: "1", Handler: g}
}

// lister requests the tools of a catalogue, and counts the bytes of the answer.
type lister struct {
	*caller
	frame []byte
	bytes int
}

// Write counts the bytes of the answer.
func (l *lister) Write(p []byte) (int, error) { l.bytes += len(p); return len(p), nil }

func (l *lister) list() {
	clear(l.header)
	l.status, l.bytes = http.StatusOK, 0
	l.body.Reset(l.frame)
	l.req.ContentLength = int64(len(l.frame))
	l.h.ServeHTTP(l, l.req)
}

// listsOf returns a function that requests the tools of a catalogue. The first answer must have all
// of them.
func listsOf(tb testing.TB, front *mcp.Server, modern bool, want int) func() {
	l := &lister{caller: modernCaller(tb, front, "tools/list", ""), frame: modernFrame("tools/list", "")}
	if !modern {
		l.caller, l.frame = sessionCaller(tb, front, "application/json, text/event-stream"), legacyFrame("tools/list", "{}")
	}
	least := 0
	if want > 0 {
		out := l.post(l.frame)
		if n := bytes.Count(out, []byte(`"inputSchema"`)); n != want {
			tb.Fatalf("status %d, %d tools, want %d: %.200s", l.caller.status, n, want, out)
		}
		least = len(out)
	}
	return func() {
		if l.list(); l.status != 200 || l.bytes < least {
			tb.Fatalf("status %d, %d bytes", l.status, l.bytes)
		}
	}
}

// catalogues are the measured combinations: a front, servers behind, and a policy.
var catalogues = []struct {
	name   string
	back   mcp.Revision
	policy func(testing.TB) policy.Policy
	want   int
}{
	{"back=modern", mcp.V2026_07_28, nil, 3200},
	{"back=legacy", mcp.V2025_11_25, nil, 3200},
	{"back=legacy/policy=rules", mcp.V2025_11_25, func(tb testing.TB) policy.Policy {
		set, err := rules.Parse("rules.yaml", []byte("default: deny\nrules:\n  - name: few\n    when: kind == \"tool\" && !name.endsWith(\"7\")\n    effect: allow\n"))
		if err != nil {
			tb.Fatal(err)
		}
		return set
	}, 64 * 45},
	{"back=legacy/policy=func", mcp.V2025_11_25, func(testing.TB) policy.Policy {
		return policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
			return policy.Decision{Allow: !strings.HasSuffix(a.Name, "7")}
		})
	}, 64 * 45},
}

// BenchmarkCatalogue is tools/list of 64 servers with 50 tools each through a gateway, from the
// HTTP request to the bytes of the answer, without changes.
func BenchmarkCatalogue(b *testing.B) {
	for _, tt := range catalogues {
		for _, modern := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/front=%s", tt.name, map[bool]string{true: "modern", false: "legacy"}[modern]), func(b *testing.B) {
				var p policy.Policy
				if tt.policy != nil {
					p = tt.policy(b)
				}
				list := listsOf(b, catalogueOf(b, tt.back, p), modern, tt.want)
				b.ReportAllocs()
				for b.Loop() {
					list()
				}
			})
		}
	}
}

// BenchmarkCatalogueCold is the first list of 30 callers at once, with servers of 2025-11-25.
func BenchmarkCatalogueCold(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		front := catalogueOf(b, mcp.V2025_11_25, nil)
		var lists []func()
		for range 30 {
			lists = append(lists, listsOf(b, front, false, 0))
		}
		runtime.GC()
		b.StartTimer()
		var all sync.WaitGroup
		for _, list := range lists {
			all.Go(list)
		}
		all.Wait()
	}
}

// findsTools is a query of a view with a search, which has all tools of a catalogue or those of some patterns. The
// index and the lists are kept from one query to the next.
func findsTools(tools []string) func(*testing.T) func() {
	return func(t *testing.T) func() {
		v := &view.View{Name: "small", Tools: tools, Search: new(view.Search)}
		h := v.Middleware()(catalogueOf(t, mcp.V2025_11_25, nil).Handler)
		req := &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"find_tools","arguments":{"query":"find what there is with tool0017 of server12"}}`)}
		return func() {
			res, err := h.Handle(t.Context(), req)
			if err != nil || !bytes.Contains(res.JSON(), []byte("server12_tool0017")) {
				t.Fatal(res, err)
			}
		}
	}
}

// listsCatalogue is a list through a gateway that has it cached.
func listsCatalogue(modern bool) func(*testing.T) func() {
	return func(t *testing.T) func() {
		return listsOf(t, catalogueOf(t, mcp.V2025_11_25, nil), modern, catalogueServers*catalogueTools)
	}
}
