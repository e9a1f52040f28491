package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// answer is a handler that gives the same answer to every request.
func answer(res mcp.Result, err error) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, err })
}

// call is a request that calls a tool.
func call(tool string) *mcp.Request {
	return &mcp.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool))}
}

// unlogged is an error such as that of package audit.
type unlogged struct{ error }

func (unlogged) Unlogged() bool { return true }

// Each outcome of a call has a kind.
func TestKindOf(t *testing.T) {
	live := t.Context()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	slow, cancelSlow := context.WithCancelCause(t.Context())
	cancelSlow(&mcp.LimitError{Limit: time.Second})
	failed := mcp.RawResult(`{"content":[],"isError":true}`)
	rpc := mcp.Errorf(-32602, "no tool")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		res  mcp.Result
		err  error
		want metrics.Kind
	}{
		{"a result", live, mcp.RawResult(`{"content":[]}`), nil, metrics.OK},
		{"isError is false", live, mcp.RawResult(`{"content":[],"isError":false}`), nil, metrics.OK},
		{"isError in the content", live, mcp.RawResult(`{"content":[{"isError":true}]}`), nil, metrics.OK},
		{"a result after the end", gone, mcp.RawResult(`{}`), nil, metrics.OK},
		{"isError", live, failed, nil, metrics.ToolError},
		{"isError of a function", live, &mcp.ToolResult{IsError: true}, nil, metrics.ToolError},
		{"isError after the end", gone, failed, nil, metrics.Canceled},
		{"isError after a limit", slow, failed, nil, metrics.TimedOut},
		{"a question", live, nil, fmt.Errorf("x: %w", mcp.ErrPending), metrics.OK},
		{"a JSON-RPC error", live, nil, rpc, metrics.ProtocolError},
		{"another error", live, nil, errors.New("x"), metrics.ProtocolError},
		{"not supported", live, nil, mcp.ErrNotSupported, metrics.ProtocolError},
		{"canceled", gone, nil, rpc, metrics.Canceled},
		{"callTimeout", live, nil, &mcp.LimitError{Limit: time.Second}, metrics.TimedOut},
		{"a deadline", live, nil, fmt.Errorf("x: %w", context.DeadlineExceeded), metrics.TimedOut},
		{"a deadline of the network", live, nil, &url.Error{Op: "Post", Err: context.DeadlineExceeded}, metrics.TimedOut},
		{"a rate limit", live, nil, &limit.Error{What: "more", RetryAfter: time.Second}, metrics.Limited},
		{"the process ended", live, nil, &mcp.ExitError{State: "exit status 1"}, metrics.TransportError},
		{"closed", live, nil, fmt.Errorf("x: %w", mcp.ErrClosed), metrics.TransportError},
		{"the session ended", live, nil, mcp.ErrSessionLost, metrics.TransportError},
		{"HTTP 502", live, nil, &mcp.HTTPError{Status: 502}, metrics.TransportError},
		{"refused", live, nil, &net.OpError{Op: "dial", Err: errors.New("x")}, metrics.TransportError},
		{"cut off", live, nil, io.ErrUnexpectedEOF, metrics.TransportError},
		{"the audit log", live, nil, fmt.Errorf("x: %w", unlogged{rpc}), metrics.Unlogged},
		{"a failing server", live, nil, &gateway.UnavailableError{State: gateway.Failing, Err: rpc}, metrics.TransportError},
	} {
		if got := metrics.KindOf(tt.ctx, tt.res, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Quantiles are near the durations that were measured, at any size.
func TestQuantiles(t *testing.T) {
	for _, d := range []time.Duration{time.Microsecond * 2, 17 * time.Microsecond, time.Millisecond, 33 * time.Millisecond, 999 * time.Millisecond, 61 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := new(metrics.Counters)
			h := c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				time.Sleep(d)
				return mcp.RawResult(`{}`), nil
			}))
			for range 3 {
				h.Handle(t.Context(), call("t"))
			}
			got := c.Read(metrics.Total).Servers[0]
			for _, q := range []metrics.Latency{got.P50, got.P95, got.P99} {
				if ratio := float64(q.Duration) / float64(d); ratio < 0.93 || ratio > 1.07 {
					t.Errorf("a quantile of %v is %v", d, q)
				}
			}
		})
	}
}

// A hundred calls of 1 to 100 ms have the quantiles of those.
func TestQuantilesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := new(metrics.Counters), 0
		h := c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			n++
			time.Sleep(time.Duration(n) * time.Millisecond)
			return mcp.RawResult(`{}`), nil
		}))
		for range 100 {
			h.Handle(t.Context(), call("t"))
		}
		got := c.Read(metrics.Minute).Servers[0].Stats
		for want, q := range map[int]metrics.Latency{50: got.P50, 95: got.P95, 99: got.P99} {
			if ratio := float64(q.Duration) / float64(time.Duration(want)*time.Millisecond); ratio < 0.93 || ratio > 1.07 {
				t.Errorf("the quantile of %d %% is %v", want, q)
			}
		}
	})
}

// A window forgets: the minute after at most 70 seconds, the hour after at most 70 minutes, the total
// never.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(metrics.Counters)
		h := c.Server("s")(answer(mcp.RawResult(`{}`), nil))
		counts := func() (out [3]uint64) {
			for i, w := range []metrics.Window{metrics.Total, metrics.Minute, metrics.Hour} {
				out[i] = c.Read(w).Servers[0].Calls
			}
			return out
		}
		for _, step := range []struct {
			wait time.Duration
			want [3]uint64
		}{
			{0, [3]uint64{1, 1, 1}},
			{60 * time.Second, [3]uint64{2, 2, 2}},
			{70 * time.Second, [3]uint64{3, 1, 3}},
			{57 * time.Minute, [3]uint64{4, 1, 4}},
			{71 * time.Minute, [3]uint64{5, 1, 1}},
		} {
			time.Sleep(step.wait)
			h.Handle(t.Context(), call("t"))
			if got := counts(); got != step.want {
				t.Errorf("after %v: total, minute, hour = %v, want %v", step.wait, got, step.want)
			}
		}
		time.Sleep(24 * time.Hour)
		if got := counts(); got != [3]uint64{5, 0, 0} {
			t.Errorf("after a day: %v", got)
		}
	})
}

// Calls that run are open, and calls of many goroutines are all counted.
func TestConcurrentCalls(t *testing.T) {
	c := new(metrics.Counters)
	release := make(chan bool)
	h := c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		<-release
		return mcp.RawResult(`{}`), nil
	}))
	const callers, calls = 8, 200
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range calls {
				h.Handle(t.Context(), call(fmt.Sprint("t", (i+n)%5)))
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if s := c.Read(metrics.Total).Servers[0]; s.Open == callers {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %d open calls: %+v", callers, c.Read(metrics.Total))
		}
	}
	close(release)
	all.Wait()
	s := c.Read(metrics.Total).Servers[0]
	if s.Calls != callers*calls || s.Open != 0 || len(s.Tools) != 5 {
		t.Errorf("%d calls of %d tools, %d open; want %d calls of 5 tools", s.Calls, len(s.Tools), s.Open, callers*calls)
	}
}

// A handler that panics has ended.
func TestPanic(t *testing.T) {
	c := new(metrics.Counters)
	h := c.Front()(c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("x") })))
	func() {
		defer func() { _ = recover() }()
		h.Handle(t.Context(), call("t"))
	}()
	got := c.Read(metrics.Total)
	if s := got.Servers[0]; s.Open != 0 || s.Errors.Protocol != 1 || got.Requests[0].Open != 0 || got.Requests[0].Errors.Protocol != 1 {
		t.Errorf("after a panic: %+v", got)
	}
}

// Names of callers do not become names of counts, and the number of names is bounded.
func TestNamesAreBounded(t *testing.T) {
	t.Run("a server that refuses unknown tools", func(t *testing.T) {
		c := new(metrics.Counters)
		srv := &mcp.Server{Name: "s"}
		mcp.AddTool(srv, mcp.Tool{Name: "echo"}, func(context.Context, struct{}) (string, error) { return "", nil })
		srv.Use(c.Server("s"))
		s, err := (&mcp.Client{Name: "c"}).Open(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, tool := range []string{"evil", "echo", "ech\\o", "other", "e\u00e9"} {
			s.CallTool(t.Context(), tool, nil)
		}
		wantTools(t, c, "echo 1", "other 4")
	})
	t.Run("listed", func(t *testing.T) {
		c := &metrics.Counters{Listed: func(server, tool string) bool { return server == "s" && (tool == "a" || tool == `q"`) }}
		h := c.Server("s")(answer(mcp.RawResult(`{"isError":true}`), nil))
		for _, tool := range []string{"a", "b", `q"`, "a", `q"`} {
			h.Handle(t.Context(), call(tool))
		}
		for _, params := range []string{``, `{}`, `{"name":null}`, `{"name":1}`, `{"name":"`, `[`} {
			h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(params)})
		}
		wantTools(t, c, "a 2", `q" 2`, "other 7")
	})
	t.Run("the first call of a listed tool while it runs", func(t *testing.T) {
		c := &metrics.Counters{Listed: func(server, tool string) bool { return tool == "a" }}
		h := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			if tools := c.Read(metrics.Total).Servers[0].Tools; len(tools) != 1 || tools[0].Name != "a" || tools[0].Open != 1 {
				t.Errorf("while the call runs, the tools are %+v", tools)
			}
			return mcp.RawResult(`{}`), nil
		})
		if _, err := c.Server("s")(h).Handle(t.Context(), call("a")); err != nil {
			t.Fatal(err)
		}
		wantTools(t, c, "a 1")
	})
	t.Run("many", func(t *testing.T) {
		c := new(metrics.Counters)
		h := c.Server("s")(answer(mcp.RawResult(`{}`), nil))
		for i := range 1200 {
			h.Handle(t.Context(), call(fmt.Sprint("t", i)))
		}
		s := c.Read(metrics.Total).Servers[0]
		if last := s.Tools[len(s.Tools)-1]; len(s.Tools) != 1001 || last.Name != "other" || last.Calls != 200 {
			t.Errorf("%d tools, the last %+v", len(s.Tools), last)
		}
		for i := range 1200 {
			c.Server(fmt.Sprint("s", i))
		}
		if n := len(c.Read(metrics.Total).Servers); n != 1000 {
			t.Errorf("%d servers", n)
		}
	})
	t.Run("methods", func(t *testing.T) {
		c := new(metrics.Counters)
		h := c.Front()(answer(mcp.RawResult(`{}`), nil))
		for _, m := range []string{"tools/list", "vendor/x", "vendor/y", "notifications/roots/list_changed", "subscriptions/listen"} {
			h.Handle(t.Context(), &mcp.Request{Method: m})
		}
		got := c.Read(metrics.Total).Requests
		if len(got) != 2 || got[0].Name != "tools/list" || got[1].Name != "other" || got[1].Calls != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// wantTools checks the tools of the first server and their calls.
func wantTools(t *testing.T, c *metrics.Counters, want ...string) {
	t.Helper()
	var got []string
	for _, tool := range c.Read(metrics.Total).Servers[0].Tools {
		got = append(got, fmt.Sprint(tool.Name, " ", tool.Calls))
	}
	if !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
}

// A gateway with a rate limit and a policy counts each call at its server, whatever became of it, and
// apart from that what the server has answered.
func TestGateway(t *testing.T) {
	srv := &mcp.Server{Name: "db"}
	for _, name := range []string{"query", "fail", "secret"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) {
			if name == "fail" {
				return "", errors.New("no")
			}
			return "yes", nil
		})
	}
	mcp.AddResource(srv, mcp.Resource{URI: "db://x", Name: "x"}, func(context.Context) (string, error) { return "x", nil })
	g := &gateway.Gateway{Name: "g"}
	c := &metrics.Counters{Listed: g.Lists, Owner: g.Owner}
	deny := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name != "secret"}
	})
	g.Middleware = c.Around(func(server string) mcp.Middleware { return policy.Middleware(server, deny, nil) })
	if err := g.Set("db", srv); err != nil {
		t.Fatal(err)
	}
	front := &mcp.Server{Name: "front", Handler: g}
	front.Use(c.Front())
	front.Use((&limit.Limiter{Tools: map[string]limit.Rate{"db_query": {Count: 1, Per: time.Hour}}}).Limit)
	s := mcptest.Connect(t, front, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	tools := 0
	for _, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tools++
	}
	if tools != 2 {
		t.Errorf("%d tools, want the 2 that the policy allows", tools)
	}
	for _, tool := range []string{"db_query", "db_query", "db_fail", "db_secret", "db_unknown", "unknown"} {
		s.CallTool(t.Context(), tool, nil)
	}
	if _, err := s.ReadResource(t.Context(), "db://x"); err != nil {
		t.Error(err)
	}
	got := c.Read(metrics.Total)
	if len(got.Servers) != 1 || got.Servers[0].Name != "db" {
		t.Fatalf("servers %+v", got.Servers)
	}
	db := got.Servers[0]
	if want := (metrics.Errors{Tool: 1, Protocol: 1, Policy: 1, Limit: 1}); db.Calls != 6 || db.Errors != want {
		t.Errorf("db: %d calls, errors %+v; want 6, %+v", db.Calls, db.Errors, want)
	}
	if up := db.Upstream; up.Calls != 3 || up.Errors != (metrics.Errors{Tool: 1}) || up.Open != 0 { // not that of the unknown tool
		t.Errorf("db itself: %+v; want 3 calls and a tool error", up)
	}
	wantTools(t, c, "fail 1", "query 2", "secret 1", "other 1")
	requests := map[string]metrics.Stats{}
	for _, r := range got.Requests {
		requests[r.Name] = r.Stats
	}
	if r := requests["tools/call"]; r.Calls != 6 || r.Errors != (metrics.Errors{Tool: 1, Protocol: 2, Policy: 1, Limit: 1}) {
		t.Errorf("tools/call: %+v", r)
	}
	if requests["tools/list"].Calls != 1 || requests["resources/read"].Calls != 1 {
		t.Errorf("requests %+v", requests)
	}
}

// The errors of a gateway keep their kind. Without a policy, the counters change nothing: a bridge
// passes on names that the server does not list.
func TestGatewayFaults(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want metrics.Errors
	}{
		{&mcp.LimitError{Limit: time.Second}, metrics.Errors{Deadline: 1}},
		{&mcp.ExitError{State: "exit status 1"}, metrics.Errors{Transport: 1}},
		{mcp.Errorf(-32000, "x"), metrics.Errors{Protocol: 1}},
	} {
		g := &gateway.Gateway{Name: "g"}
		c := &metrics.Counters{Listed: g.Lists, Owner: g.Owner}
		g.Middleware = c.Around(nil)
		if err := g.Set("s", answer(nil, tt.err)); err != nil {
			t.Fatal(err)
		}
		c.Front()(g.Direct("s")).Handle(t.Context(), call("unlisted"))
		c.Front()(g.Direct("none")).Handle(t.Context(), call("x"))
		got := c.Read(metrics.Total)
		if s := got.Servers[0]; s.Errors != tt.want || s.Upstream.Errors != tt.want || len(s.Tools) != 1 || s.Tools[0].Name != "other" {
			t.Errorf("%v: %+v, want %+v", tt.err, s, tt.want)
		}
		tt.want.Transport++ // of the server that does not exist
		if r := got.Requests[0]; r.Errors != tt.want {
			t.Errorf("%v: requests %+v, want %+v", tt.err, r, tt.want)
		}
	}
}

// A call that a shutdown cuts off is not one that its caller canceled.
func TestShutdown(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, http := range []bool{false, true} {
			srv, c, begun := &mcp.Server{Name: "s"}, new(metrics.Counters), make(chan struct{})
			srv.Use(c.Front(), c.Server("s"))
			mcp.AddTool(srv, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
				close(begun)
				<-ctx.Done()
				return "", ctx.Err()
			})
			client := &mcp.Client{Name: "c"}
			var s *mcp.Session
			if http {
				web := httptest.NewServer(srv)
				defer web.Close()
				client.Revisions = []mcp.Revision{revision}
				var err error
				if s, err = client.Dial(t.Context(), web.URL); err != nil {
					t.Fatal(err)
				}
				defer s.Close()
			} else {
				s = mcptest.Connect(t, srv, client, revision)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.CallTool(t.Context(), "hang", nil)
			}()
			<-begun
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			srv.Shutdown(ended)
			<-done
			got := c.Read(metrics.Total)
			if one := got.Servers[0]; one.Canceled != 0 || one.Errors != (metrics.Errors{Transport: 1}) {
				t.Errorf("%s, HTTP %t: %+v", revision, http, one)
			}
		}
	}
}

// The text has every metric, with escaped names, in the form that the request accepts.
func TestText(t *testing.T) {
	c := &metrics.Counters{Version: "1.2", Upstreams: func() []metrics.Upstream {
		return []metrics.Upstream{{Name: "a\"b\\\n\xff\x1b\u009b\u202e", State: "ready", Restarts: 2}}
	}}
	h := c.Front()(c.Server("a\"b")(answer(mcp.RawResult(`{"isError":true}`), nil)))
	h.Handle(t.Context(), call("t"))
	get := func(method, accept string) (int, http.Header, string) {
		r := httptest.NewRequest(method, "/metrics", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w.Code, w.Header(), w.Body.String()
	}
	status, header, plain := get("GET", "")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") || strings.Contains(plain, "# EOF") {
		t.Errorf("%d %v", status, header)
	}
	for _, want := range []string{
		`patchbay_call_duration_seconds_bucket{server="a\"b",mcp_method_name="tools/call",gen_ai_tool_name="t",le="1"} 1` + "\n",
		`patchbay_call_duration_seconds_bucket{server="a\"b",mcp_method_name="tools/call",gen_ai_tool_name="t",le="+Inf"} 1` + "\n",
		`patchbay_call_errors_total{server="a\"b",mcp_method_name="tools/call",gen_ai_tool_name="t",error_type="tool_error"} 1` + "\n",
		`mcp_server_operation_errors_total{mcp_method_name="tools/call",error_type="tool_error"} 1` + "\n",
		`patchbay_upstream_state{server="a\"b\\\n` + "\uFFFD" + `\\u001b\\u009b\\u202e",state="ready"} 1` + "\n",
		`# TYPE patchbay_upstream_restarts_total counter` + "\n",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("the text lacks %s\n%s", want, plain)
		}
	}
	for accept, open := range map[string]bool{
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1": true,
		"application/openmetrics-text":                            true,
		"application/openmetrics-text;q=0":                        false,
		"application/openmetrics-text;q=0.2,text/plain;q=0.5":     false,
		"application/openmetrics-text; version=2.0.0, text/plain": false,
		"text/html;q=x,;;":                                        false,
	} {
		_, header, text := get("GET", accept)
		if got := strings.HasSuffix(text, "# EOF\n"); got != open || strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text; version=1.0.0") != open {
			t.Errorf("Accept %q: OpenMetrics is %v", accept, got)
		}
		if open && (!strings.Contains(text, "# TYPE patchbay_upstream_restarts counter\n") || !strings.Contains(text, `le="1.0"`)) {
			t.Errorf("not the form of OpenMetrics:\n%s", text)
		}
	}
	for _, m := range metrics.Metrics() {
		if !strings.Contains(plain, "# HELP "+m.Name+" ") {
			t.Errorf("no %s", m.Name)
		}
	}
	if status, header, _ := get("POST", ""); status != 405 || header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", status, header)
	}
}

// Sessions, connections, waits, lists and decisions of a policy have metrics of their own.
func TestFamilies(t *testing.T) {
	c := &metrics.Counters{Audit: func() metrics.AuditLog { return metrics.AuditLog{Lag: 4 * time.Millisecond, Queued: 5, Dropped: 6} }}
	c.Team = func(context.Context) string { return "dev" }
	c.Faults = func() int { return 2 }
	c.Front()(answer(mcp.RawResult(`{"isError":true}`), nil)).Handle(t.Context(), call("t"))
	c.Closed("db", 90*time.Second)
	c.Waited("db", 3*time.Millisecond)
	c.Decided(true, "devs")
	c.Decided(true, "devs")
	c.Decided(false, "")
	c.Refused("invalid_token")
	for _, hit := range []bool{true, false, false} {
		c.Cached("db", hit)
	}
	c.Front()(answer(mcp.RawResult(`{"tools":[]}`), nil)).Handle(t.Context(), &mcp.Request{Method: "tools/list"})
	session, end := context.WithCancel(t.Context())
	c.Session(session)
	end()
	count := func(s metrics.Sample) (n uint64) {
		for _, one := range s.Counts {
			n += one
		}
		return n
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // a session is counted after its end
		got := map[string]string{}
		for _, f := range c.Families() {
			for _, s := range f.Samples {
				if len(s.Labels) != len(f.Labels) || f.Type == "histogram" && len(s.Counts) != len(f.Bounds)+1 {
					t.Fatalf("%s has the sample %+v", f.Name, s)
				}
				got[f.Name+fmt.Sprint(s.Labels)] = fmt.Sprint(s.Value, count(s))
			}
		}
		missing := ""
		for name, want := range map[string]string{
			"mcp_client_session_duration_seconds[db]":     "0 1",
			"mcp_server_session_duration_seconds[]":       "0 1",
			"patchbay_queue_duration_seconds[db]":         "0 1",
			"patchbay_team_calls_total[tool_error dev]":   "1 0",
			"patchbay_audit_lag_seconds[]":                "0.004 0",
			"patchbay_audit_lines_queued[]":               "5 0",
			"patchbay_audit_lines_dropped_total[]":        "6 0",
			"patchbay_list_bytes[tools/list]":             "12 0",
			"patchbay_config_faults[]":                    "2 0",
			"patchbay_policy_decisions_total[allow devs]": "2 0",
			"patchbay_policy_decisions_total[deny ]":      "1 0",
			"patchbay_auth_refused_total[invalid_token]":  "1 0",
			"patchbay_cache_hits_total[db]":               "1 0",
			"patchbay_cache_misses_total[db]":             "2 0",
		} {
			if got[name] != want {
				missing = fmt.Sprintf("%s is %q, want %q, in %v", name, got[name], want, got)
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(missing)
		}
	}
	for i := range 2000 {
		c.Decided(false, fmt.Sprint("rule", i))
	}
	for _, f := range c.Families() {
		if n := len(f.Samples); f.Name == "patchbay_policy_decisions_total" && n > 1001 {
			t.Errorf("%d rules are counted", n)
		}
	}
}

// A snapshot survives JSON, with latencies in milliseconds.
func TestJSON(t *testing.T) {
	in := metrics.Server{Name: "s", Stats: metrics.Stats{Calls: 3, P95: metrics.Latency{Duration: 1500 * time.Microsecond}}, Tools: []metrics.Tool{{Name: "a"}, {Name: "b", Stats: metrics.Stats{Calls: 2}}}}
	raw, err := json.Marshal(in)
	if want := `{"name":"s","calls":3,"p95Ms":1.5,"tools":[{"name":"a","calls":0},{"name":"b","calls":2}]}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
	var out metrics.Server
	if err := json.Unmarshal(raw, &out); err != nil || out.P95 != in.P95 || out.Tools[1].Calls != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"p95Ms":"x"}`), &out); err == nil || !strings.Contains(err.Error(), "milliseconds") {
		t.Errorf("%v", err)
	}
	if busy := out.Busiest(1); len(busy) != 1 || busy[0].Name != "b" {
		t.Errorf("the busiest tool is %+v", busy)
	}
}

// Counting a call of a known tool allocates nothing.
func TestCountingAllocatesNothing(t *testing.T) {
	c := new(metrics.Counters)
	bare := answer(mcp.RawResult(`{"content":[]}`), nil)
	h := c.Front()(c.Around(nil)("s")(bare))
	req := call("t")
	h.Handle(t.Context(), req)
	if n := testing.AllocsPerRun(1000, func() { h.Handle(t.Context(), req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCall measures the three middlewares of a gateway: in front, around a server, and behind.
func BenchmarkCall(b *testing.B) {
	c := new(metrics.Counters)
	h := c.Front()(c.Around(nil)("s")(answer(mcp.RawResult(`{"content":[{"type":"text","text":"hello"}]}`), nil)))
	req := call("t")
	b.ReportAllocs()
	for b.Loop() {
		h.Handle(b.Context(), req)
	}
}

// BenchmarkText measures the text of 64 servers with 50 tools each.
func BenchmarkText(b *testing.B) {
	c := new(metrics.Counters)
	for i := range 64 {
		h := c.Around(nil)(fmt.Sprint("server", i))(answer(mcp.RawResult(`{}`), nil))
		for n := range 50 {
			h.Handle(b.Context(), call(fmt.Sprint("tool", n)))
		}
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	for b.Loop() {
		c.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// A name that is longer than the specification allows is not a label.
func TestLongNames(t *testing.T) {
	var c metrics.Counters
	h := c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult(`{}`), nil }))
	for _, n := range []int{128, 129, 1 << 20} {
		if _, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q}`, strings.Repeat("x", n))}); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text := w.Body.String(); len(text) > 20_000 || !strings.Contains(text, `gen_ai_tool_name="other"} 2`) || !strings.Contains(text, strings.Repeat("x", 128)+`"} 1`) {
		t.Errorf("%d bytes of metrics: %.2000s", len(text), text)
	}
}

// A negative number of tools is none, negative durations count as zero, and a snapshot has the same
// names in JSON as what it consists of.
func TestSnapshot(t *testing.T) {
	c := new(metrics.Counters)
	h := c.Front()(c.Server("s")(answer(mcp.RawResult(`{}`), nil)))
	h.Handle(t.Context(), call("t"))
	c.Closed("s", -time.Hour)
	c.Waited("s", -time.Hour)
	got := c.Read(metrics.Total)
	if n := len(got.Servers[0].Busiest(-1)); n != 0 {
		t.Errorf("Busiest(-1) has %d tools", n)
	}
	raw, err := json.Marshal(got)
	if err != nil || !strings.HasPrefix(string(raw), `{"requests":[{"name":"tools/call"`) || !strings.Contains(string(raw), `"servers":[{"name":"s"`) {
		t.Errorf("%s, %v", raw, err)
	}
	for _, f := range c.Families() {
		for _, s := range f.Samples {
			if s.Sum < 0 {
				t.Errorf("the sum of %s is %v", f.Name, s.Sum)
			}
		}
	}
}
