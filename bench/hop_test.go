package bench_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// duties are what the gateway of a hop does for a call, in the order of the names.
var duties = []string{"jwt", "counters", "telemetry", "audit", "policy"}

// hopRules are a policy whose second rule allows the calls.
const hopRules = `rules:
  - {name: administrators, effect: allow, when: '"admin" in principal.roles'}
  - {name: short messages, effect: allow, when: 'server == "s" && name == "echo" && size(arguments.message) <= 10000'}
`

// hop returns a function that calls a tool through a gateway with some duties, in front of a server
// on a pipe. The audit log does not wait for the disk.
func hop(tb testing.TB, with ...string) func() {
	tb.Helper()
	has := func(duty string) bool { return slices.Contains(with, duty) }
	var front []mcp.Middleware
	var around []func(server string) mcp.Middleware
	if has("counters") {
		c := new(metrics.Counters)
		front = append(front, c.Front())
		around = append(around, func(server string) mcp.Middleware { return c.Around(nil)(server) })
	}
	if has("telemetry") {
		collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		tb.Cleanup(collector.Close)
		e, err := otlp.New(otlp.Options{Endpoint: collector.URL})
		if err != nil {
			tb.Fatal(err)
		}
		o := &telemetry.Options{Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))}
		tb.Cleanup(func() { e.Shutdown(context.Background()) })
		front = append(front, telemetry.Server(o))
		around = append(around, func(string) mcp.Middleware { return telemetry.Client(o) })
	}
	if has("audit") {
		log, err := audit.Open(filepath.Join(tb.TempDir(), "audit.jsonl"), &audit.Options{Sync: audit.SyncNone})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { log.Close() })
		trail := &audit.Trail{Log: log}
		front = append(front, trail.Outer())
		around = append([]func(string) mcp.Middleware{trail.Around}, around...)
	}
	if has("policy") {
		set, err := rules.Parse("rules.yaml", []byte(hopRules))
		if err != nil {
			tb.Fatal(err)
		}
		around = append([]func(string) mcp.Middleware{func(server string) mcp.Middleware { return policy.Foreign(server, false, set, nil) }}, around...)
	}

	g := &gateway.Gateway{Name: "gw", Version: "1"}
	if around != nil {
		g.Middleware = func(server string) mcp.Middleware {
			return func(next mcp.Handler) mcp.Handler {
				for _, mw := range slices.Backward(around) {
					next = mw(server)(next)
				}
				return next
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	tb.Cleanup(running.Wait)
	tb.Cleanup(cancel)
	ready := make(chan struct{})
	came := sync.OnceFunc(func() { close(ready) })
	srv := newServer(tb, 1)
	running.Go(func() {
		_ = g.Run(ctx, gateway.Source{Name: "s", OnStatus: func(s gateway.Status) {
			if s.State == gateway.Ready && s.Tools == 1 {
				came()
			}
		}, Open: func(ctx context.Context) (gateway.Upstream, error) {
			near, far := jsonrpc.Pipe()
			go srv.Serve(context.WithoutCancel(ctx), far)
			c := &mcp.Client{Name: "gw", Version: "1"}
			gateway.Relay(ctx, c)
			return c.Connect(ctx, mcptest.Wire(near))
		}})
	})
	<-ready
	server := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	server.Use(front...)
	var h http.Handler = server
	token := ""
	if has("jwt") {
		h, token = guarded(tb, server)
	}
	c := modernCaller(tb, h, "tools/call", "s_echo")
	if token != "" {
		c.req.Header.Set("Authorization", "Bearer "+token)
	}
	frame := modernFrame("tools/call", strings.Replace(echoMembers(prose(100)), `"echo"`, `"s_echo"`, 1))
	if out := c.post(frame); c.status != http.StatusOK || !strings.Contains(string(out), "lazy dog") {
		tb.Fatalf("status %d, %s", c.status, out)
	}
	return func() {
		if c.post(frame); c.status != http.StatusOK {
			tb.Fatalf("status %d, %s", c.status, c.out.Bytes())
		}
	}
}

// BenchmarkHop is a call through a gateway without sockets: with none of its duties, with each, and
// with all. go run ./bench/gateway measures the program.
func BenchmarkHop(b *testing.B) {
	cases := [][]string{nil}
	for _, d := range duties {
		cases = append(cases, []string{d})
	}
	for _, with := range append(cases, duties) {
		name := strings.Join(with, "+")
		switch len(with) {
		case 0:
			name = "none"
		case len(duties):
			name = "all"
		}
		b.Run("duties="+name, func(b *testing.B) {
			call := hop(b, with...)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
