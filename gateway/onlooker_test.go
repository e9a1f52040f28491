package gateway_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
)

// Middleware that passes on everything unchanged sees calls, and neither lists nor subscriptions.
// Lists tells which tools callers have seen, and Owner where a name belongs.
func TestOnlooker(t *testing.T) {
	g := &gateway.Gateway{Name: "g"}
	seen := map[string]int{}
	var c metrics.Counters
	log, err := audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	around := c.Around((&audit.Trail{Log: log}).Around) // as the program does without a policy
	g.Middleware = func(server string) mcp.Middleware {
		counting := around(server)
		return func(next mcp.Handler) mcp.Handler {
			return counting(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				seen[req.Method]++
				return next.Handle(ctx, req)
			}))
		}
	}
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "echo"}, func(context.Context, struct{}) (string, error) { return "", nil })
	if err := g.Set("my_db", srv); err != nil {
		t.Fatal(err)
	}
	if g.Lists("my_db", "echo") {
		t.Error("a tool is listed before the gateway has seen a list")
	}
	for _, method := range []string{"tools/list", "prompts/list", "tools/call"} {
		res, err := g.Handle(t.Context(), &mcp.Request{Method: method, Params: []byte(`{"name":"my_db__echo","arguments":{}}`)})
		if err != nil {
			t.Error(method, err)
		} else if strings.Contains(string(res.JSON()), "cacheScope") {
			t.Errorf("%s: %s is private, although the middleware hides nothing", method, res.JSON())
		}
	}
	if n := log.Stats().Lines; n < 1 || n > 2 {
		t.Errorf("the audit log has %d lines, want that before the call and perhaps that after it", n)
	}
	if len(seen) != 1 || seen["tools/call"] != 1 {
		t.Errorf("the middleware saw %v, want one call", seen)
	}
	if !g.Lists("my_db", "echo") || g.Lists("my_db", "evil") || g.Lists("other", "echo") {
		t.Error("Lists is not what the server lists")
	}
	for name, want := range map[string][2]string{
		"my_db__echo": {"my_db", "echo"}, "my_db__": {"my_db", ""}, "my_echo": {}, "": {},
		gateway.Name("my_db", "e.x"): {"my_db", ""},
	} {
		if server, tool := g.Owner(name); server != want[0] || tool != want[1] {
			t.Errorf("Owner(%q) = %q, %q, want %q", name, server, tool, want)
		}
	}
}

// Behind counters, a policy and the audit log, a list is fetched and encoded once for a caller.
func TestListsBehindAllSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), &audit.Options{Sync: audit.SyncNone})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		var c metrics.Counters
		trail, rules, l := &audit.Trail{Log: log}, &scopes{}, &listing{}
		g := &gateway.Gateway{Name: "gw", Middleware: c.Around(func(server string) mcp.Middleware {
			decide, begin := policy.Foreign(server, false, rules, nil), trail.Around(server)
			return func(next mcp.Handler) mcp.Handler { return decide(begin(next)) }
		})}
		run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(mcp.V2025_11_25).Open})
		time.Sleep(time.Second)
		ctx := auth.With(t.Context(), &auth.Principal{ID: "ada", Scopes: []string{"whoami"}})
		list := func() []byte {
			res, err := g.Handle(ctx, &mcp.Request{Method: "tools/list"})
			if err != nil {
				t.Fatal(err)
			}
			return res.JSON()
		}
		first := list()
		l.fetched()
		if second := list(); &first[0] != &second[0] || l.fetched() != 0 || !strings.Contains(string(second), "db_whoami") {
			t.Errorf("the lists are %s and %s, want one, fetched once", first, second)
		}
	})
}
