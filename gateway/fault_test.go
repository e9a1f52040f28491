package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// An HTTP request whose connection ends, or whose answer is cut off, fails alone. The server stays
// in use: the next call is answered at once, and a concurrent one has its result.
func TestFailedRequestFailsAlone(t *testing.T) {
	faults := map[string]func(w http.ResponseWriter){
		"connection ends": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"jsonrpc":"2.0",`)
		},
		"half a stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: \n\ndata: {\n\n")
		},
	}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for fault, do := range faults {
			for _, share := range []gateway.Share{gateway.Shared, gateway.PerSession} {
				t.Run(fmt.Sprint(rev, "/", fault, "/", share), func(t *testing.T) {
					t.Parallel()
					failedRequestFailsAlone(t, rev, share, do)
				})
			}
		}
	}
}

func failedRequestFailsAlone(t *testing.T, rev mcp.Revision, share gateway.Share, fault func(http.ResponseWriter)) {
	server := &mcp.Server{Name: "web", Version: "1"}
	begun, gate := make(chan struct{}), make(chan struct{})
	mcp.AddTool(server, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ numbered) (string, error) {
		close(begun)
		select {
		case <-gate:
			return "waited", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	mcp.AddTool(server, mcp.Tool{Name: "echo"}, func(_ context.Context, in numbered) (string, error) { return in.Text, nil })
	var broken atomic.Bool // the next request with a body that says so
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), `"break it"`) && broken.CompareAndSwap(false, true) {
			fault(w)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	ready := make(chan struct{}, 16)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "web", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
			return (&mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}).Dial(ctx, web.URL)
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	client := func() *mcp.Session {
		return mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, mcp.V2025_11_25)
	}
	other, s := client(), client()
	waited := make(chan string, 1)
	go func() {
		waited <- text(t.Context(), other, "web_wait", "")
	}()
	<-begun
	limit, stop := context.WithTimeout(t.Context(), 40*time.Second)
	defer stop()
	if res, err := s.CallTool(limit, "web_echo", numbered{"break it"}); err == nil || limit.Err() != nil {
		t.Errorf("the call that is broken = %v, %v", res, err)
	}
	if res, err := s.CallTool(limit, "web_echo", numbered{"next"}); err != nil || res.Text() != "next" {
		t.Errorf("the next call = %v, %v", res, err)
	}
	close(gate)
	if got := <-waited; got != "waited" {
		t.Errorf("the call beside them = %q", got)
	}
}

// overUpstream answers each call with ErrClosed, and is not over before Close.
type overUpstream struct {
	over func()
	done chan struct{}
}

func (u *overUpstream) Handle(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "server/discover":
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "over"}, Capabilities: mcp.Capabilities{"tools": []byte(`{}`)}}, nil
	case "tools/list":
		return mcp.RawResult(`{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`), nil
	}
	return nil, mcp.ErrClosed
}

func (u *overUpstream) Done() <-chan struct{} { return u.done }
func (u *overUpstream) Err() error            { return nil }
func (u *overUpstream) Close() error          { u.over(); return nil }

// A connection that a call found closed is closed when Run ends, also if it has not ended by itself,
// and another one is opened.
func TestLostConnectionIsClosed(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("opened again=", again), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened, closed atomic.Int64
				g := &gateway.Gateway{Name: "gw"}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					g.Run(ctx, gateway.Source{Name: "one", Share: gateway.Shared, Open: func(context.Context) (gateway.Upstream, error) {
						opened.Add(1)
						u := &overUpstream{done: make(chan struct{})}
						u.over = sync.OnceFunc(func() { closed.Add(1); close(u.done) })
						return u, nil
					}})
				}()
				synctest.Wait()
				if _, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"one_x"}`)}); err == nil {
					t.Error("the call has no error")
				}
				if again {
					time.Sleep(10 * time.Second)
				}
				cancel()
				<-ended
				if opened.Load() != closed.Load() || again && opened.Load() < 2 {
					t.Errorf("%d connections were opened and %d closed", opened.Load(), closed.Load())
				}
			})
		})
	}
}
