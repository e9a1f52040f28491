package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Time limits of calls through the gateway (F2).

// handled is an HTTP transport that hands requests to a handler, without a network, so that its
// time is that of a synctest bubble.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, w := io.Pipe()
	out := &handledWriter{header: http.Header{}, body: w, begun: make(chan struct{})}
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:1", r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	context.AfterFunc(ctx, func() { body.CloseWithError(ctx.Err()) })
	go func() {
		h.ServeHTTP(out, in)
		out.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case <-out.begun:
		return &http.Response{StatusCode: out.status, Header: out.sent, ContentLength: -1, Request: r, Body: handledBody{body, cancel}}, nil
	case <-ctx.Done():
		body.Close()
		cancel()
		return nil, ctx.Err()
	}
}

type handledBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b handledBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

type handledWriter struct {
	header, sent http.Header
	body         *io.PipeWriter
	status       int
	once         sync.Once
	begun        chan struct{}
}

func (w *handledWriter) Header() http.Header { return w.header }

func (w *handledWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *handledWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *handledWriter) Flush() { w.WriteHeader(http.StatusOK) }

// silentServer never answers a request to a feature. Causes receives the reason why each request
// ended.
func silentServer(causes chan<- error) *mcp.Server {
	s := &mcp.Server{Name: "db", Version: "1"}
	hang := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", ctx.Err()
	}
	type in struct {
		Topic string `json:"topic"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) { return hang(ctx) })
	mcp.AddTool(s, mcp.Tool{Name: "quick"}, func(context.Context, struct{}) (string, error) { return "quick", nil })
	mcp.AddTool(s, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 5 {
			select {
			case <-time.After(4 * time.Minute):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			mcp.Progress(ctx, float64(i+1), 5, "step")
		}
		return "done", nil
	})
	slow := func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-time.After(20 * time.Minute):
			return "the job", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	mcp.AddTool(s, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, slow)
	mcp.AddTool(s, mcp.Tool{Name: "slow"}, slow)
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		c, err := mcp.Elicit[color](ctx, "which?")
		return c.Color, err
	})
	mcp.AddResource(s, mcp.Resource{URI: "db://x", Name: "x"}, hang)
	mcp.AddPrompt(s, mcp.Prompt{Name: "brief", Complete: map[string]mcp.CompleteFunc{
		"topic": func(ctx context.Context, _ string, _ map[string]string) ([]string, error) {
			_, err := hang(ctx)
			return nil, err
		},
	}}, func(ctx context.Context, _ in) (string, error) { return hang(ctx) })
	return s
}

// limitedGateway is a gateway in front of one server, as Open reaches it.
func limitedGateway(t *testing.T, open func(context.Context) (gateway.Upstream, error)) *gateway.Gateway {
	t.Helper()
	ready := make(chan struct{}, 100)
	g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready && s.Tools > 0 {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() { g.Run(ctx, gateway.Source{Name: "db", Open: open}) })
	<-ready
	return g
}

// opener connects to a server over HTTP, or a wire as of a child process.
func opener(s *mcp.Server, back mcp.Revision, overHTTP bool, limits mcp.Limits) func(context.Context) (gateway.Upstream, error) {
	return func(ctx context.Context) (gateway.Upstream, error) {
		c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{back}, Limits: limits}
		gateway.Relay(ctx, c)
		if overHTTP {
			c.HTTPClient = &http.Client{Transport: handled{s}}
			return c.Dial(ctx, "http://127.0.0.1:1/mcp")
		}
		near, far := jsonrpc.Pipe()
		go s.Serve(context.WithoutCancel(ctx), far)
		return c.Connect(ctx, mcptest.Wire(near))
	}
}

// before connects a client without limits of its own.
func before(t *testing.T, g *gateway.Gateway, c *mcp.Client, front mcp.Revision, overHTTP bool) *mcp.Session {
	t.Helper()
	c.Limits.CallTimeout = -1
	s := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	if !overHTTP {
		return mcptest.Connect(t, s, c, front)
	}
	c.Revisions, c.HTTPClient = []mcp.Revision{front}, &http.Client{Transport: handled{s}}
	session, err := c.Dial(t.Context(), "http://127.0.0.1:2/mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// silentCalls are requests of each kind that silentServer does not answer, with their limits.
var silentCalls = map[string]struct {
	limit time.Duration // by default
	make  func(context.Context, *mcp.Session) error
}{
	"tools/call": {5 * time.Minute, func(ctx context.Context, s *mcp.Session) error {
		_, err := s.CallTool(ctx, "db_hang", nil)
		return err
	}},
	"resources/read": {time.Minute, func(ctx context.Context, s *mcp.Session) error {
		_, err := s.ReadResource(ctx, "db://x")
		return err
	}},
	"prompts/get": {time.Minute, func(ctx context.Context, s *mcp.Session) error {
		_, err := s.GetPrompt(ctx, "db_brief", map[string]string{"topic": "x"})
		return err
	}},
	"completion/complete": {time.Minute, func(ctx context.Context, s *mcp.Session) error {
		_, err := s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: "db_brief"}, "topic", "", nil)
		return err
	}},
}

// everyPair runs body for 25 pairs of revisions, over HTTP and wires in front and behind: in the long
// form each pair with all four, otherwise with one of the four in turn.
func everyPair(t *testing.T, body func(t *testing.T, front, back mcp.Revision, frontHTTP, backHTTP bool)) {
	pair := 0
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			pair++
			for i := range 4 {
				if !long.On() && i != pair%4 {
					continue
				}
				frontHTTP, backHTTP := i&1 != 0, i&2 != 0
				over := func(http bool) string { return map[bool]string{true: "HTTP", false: "stdio"}[http] }
				t.Run(fmt.Sprintf("%s over %s on %s over %s", front, over(frontHTTP), back, over(backHTTP)), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { body(t, front, back, frontHTTP, backHTTP) })
				})
			}
		}
	}
}

// A silent request of any kind ends at its limit, in all pairs. The error names the server and the
// limit, the server is notified, and the next call works.
func TestSilentCallsEnd(t *testing.T) {
	everyPair(t, func(t *testing.T, front, back mcp.Revision, frontHTTP, backHTTP bool) {
		causes := make(chan error, 1)
		for _, said := range []time.Duration{0, 7 * time.Second} {
			g := limitedGateway(t, opener(silentServer(causes), back, backHTTP, mcp.Limits{CallTimeout: said}))
			for who, c := range map[string]*mcp.Client{"can be asked": frontClient(new([]string)), "cannot be asked": {Name: "c", Version: "1"}} {
				s := before(t, g, c, front, frontHTTP)
				for method, call := range silentCalls {
					limit := max(said, call.limit)
					if said > 0 {
						limit = said
					}
					start := time.Now()
					err := call.make(t.Context(), s)
					took := time.Since(start)
					var rpc *mcp.Error
					if want := fmt.Sprintf("server %q sent nothing for %v (callTimeout)", "db", limit); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || !strings.HasPrefix(rpc.Message, want) {
						t.Errorf("%s of one who %s = %v, want %s", method, who, err, want)
					}
					if took < limit || took > limit+time.Second {
						t.Errorf("%s of one who %s ended after %v, want %v", method, who, took, limit)
					}
					if cause := <-causes; cause == nil {
						t.Errorf("%s: the server's request ended without a cause", method)
					}
				}
				if got, err := mcp.CallAs[string](t.Context(), s, "db_quick", nil); err != nil || got != "quick" {
					t.Errorf("the next call = %q, %v", got, err)
				}
			}
		}
	})
}

// Progress extends a call, even if the caller did not request it, and through two gateways;
// callLimit ends the call anyway. The clocks stop while the user thinks, and for a task.
func TestCallsThatLast(t *testing.T) {
	everyPair(t, func(t *testing.T, front, back mcp.Revision, frontHTTP, backHTTP bool) {
		causes := make(chan error, 1)
		far := limitedGateway(t, opener(silentServer(causes), back, backHTTP, mcp.Limits{CallLimit: 30 * time.Minute}))
		near := limitedGateway(t, opener(&mcp.Server{Name: "far", Version: "1", Handler: far.Direct("db")}, front, backHTTP, mcp.Limits{}))
		c := frontClient(new([]string))
		c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			time.Sleep(14 * time.Minute) // longer than a call waits for its caller
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
		}
		s := before(t, near, c, front, frontHTTP)
		progress := 0
		for i, opts := range [][]mcp.CallOption{nil, {mcp.OnProgress(func(float64, float64, string) { progress++ })}} {
			res, err := s.CallTool(t.Context(), "db_steps", nil, opts...)
			if err != nil || res.Text() != "done" {
				t.Errorf("call %d of 20 minutes = %v, %v", i, res, err)
			}
		}
		if progress != 5 {
			t.Errorf("%d times progress, want 5", progress)
		}
		if elicits(front) && elicits(back) {
			if res, err := s.CallTool(t.Context(), "db_ask", nil); err != nil || res.Text() != "red" {
				t.Errorf("the call with a question = %v, %v", res, err)
			}
		}
		total := limitedGateway(t, opener(silentServer(causes), back, backHTTP, mcp.Limits{CallLimit: 10 * time.Minute}))
		s = before(t, total, &mcp.Client{Name: "c", Version: "1"}, front, frontHTTP)
		start := time.Now()
		_, err := s.CallTool(t.Context(), "db_steps", nil)
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "longer than 10m0s (callLimit)") || took > 10*time.Minute+time.Second {
			t.Errorf("the call with a limit ended after %v with %v", took, err)
		}
		var jobs []string
		if min(front, back) >= mcp.V2025_11_25 && front <= back { // otherwise the call is not a task
			jobs = append(jobs, "db_job")
		}
		if front == mcp.V2025_11_25 && back == mcp.V2026_07_28 { // the gateway makes the task
			jobs = append(jobs, "db_slow")
		}
		for _, job := range jobs {
			task, err := s.StartTask(t.Context(), job, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := task.Wait(t.Context()); err != nil || res.Text() != "the job" {
				t.Errorf("%s, a silent task = %v, %v", job, res, err)
			}
		}
		synctest.Wait() // the server is told
	})
}
