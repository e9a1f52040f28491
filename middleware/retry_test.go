package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// begun is the error of a call that a server had begun.
type begun struct{ error }

func (begun) Begun() bool     { return true }
func (b begun) Unwrap() error { return b.error }

// The table of what is sent again, and how long that takes.
func TestRetry(t *testing.T) {
	status := func(n int, after string) error {
		h := http.Header{}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return &mcp.HTTPError{Status: n, Header: h}
	}
	busy := func(seconds string) error {
		return &mcp.Error{Code: jsonrpc.CodeInternal, Message: "busy", Data: json.RawMessage(`{"retryAfter":` + seconds + `}`)}
	}
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}
	for _, tt := range []struct {
		method, name string
		err          error
		attempts     int
		least, most  time.Duration
	}{
		{"tools/list", "", io.ErrUnexpectedEOF, 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"resources/read", "", reset, 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"prompts/get", "", status(502, ""), 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"tools/call", "reads", status(503, ""), 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"tools/call", "again", fmt.Errorf("call: %w", reset), 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"tools/call", "writes", reset, 1, 0, 0},
		{"tools/call", "unlisted", reset, 1, 0, 0},
		{"tasks/update", "", reset, 1, 0, 0},
		// These have not run.
		{"tools/call", "writes", dial, 4, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"tools/call", "writes", status(429, "2"), 4, 6 * time.Second, 10 * time.Second},
		{"tools/call", "writes", status(503, "2"), 4, 6 * time.Second, 10 * time.Second},
		{"tools/call", "writes", busy("3"), 4, 9 * time.Second, 13 * time.Second},
		{"tools/call", "reads", busy("60"), 1, 0, 0},
		// These are final.
		{"subscriptions/listen", "", reset, 1, 0, 0},
		{"tools/list", "", status(500, ""), 1, 0, 0},
		{"tools/list", "", status(401, ""), 1, 0, 0},
		{"tools/list", "", mcp.Errorf(jsonrpc.CodeInternal, "no"), 1, 0, 0},
		{"tools/call", "reads", mcp.ErrPending, 1, 0, 0},
		{"tools/call", "reads", mcp.ErrClosed, 1, 0, 0},
		{"tools/call", "reads", mcp.ErrSessionLost, 1, 0, 0},
		{"tools/call", "reads", begun{reset}, 1, 0, 0},
		{"tools/call", "reads", context.DeadlineExceeded, 1, 0, 0},
		{"tools/list", "", errors.New("other"), 1, 0, 0},
	} {
		t.Run(fmt.Sprintf("%s %s %v", tt.method, tt.name, tt.err), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				h := middleware.Retry(nil)(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
					if tt.method == "tools/call" && req.Method == "tools/list" {
						return mcp.RawResult(`{"tools":[{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"writes","inputSchema":{"type":"object"}},{"name":"again","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}]}`), nil
					}
					attempts++
					return nil, tt.err
				}))
				start := time.Now()
				_, err := h.Handle(t.Context(), &mcp.Request{Method: tt.method, Params: json.RawMessage(`{"name":"` + tt.name + `"}`)})
				if took := time.Since(start); err != tt.err || attempts != tt.attempts || took < tt.least || took > tt.most {
					t.Errorf("%d attempts in %v, error %v; want %d attempts in %v to %v, error %v", attempts, took, err, tt.attempts, tt.least, tt.most, tt.err)
				}
			})
		})
	}
}

// The waits are bounded by MaxWait, and end with the context.
func TestRetryWaits(t *testing.T) {
	down := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, io.ErrUnexpectedEOF })
	synctest.Test(t, func(t *testing.T) {
		h := middleware.Retry(&middleware.RetryOptions{Attempts: 11, Wait: time.Second, MaxWait: 2 * time.Second})(down)
		start := time.Now()
		h.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
		if took := time.Since(start); took < 9500*time.Millisecond || took > 19*time.Second {
			t.Errorf("10 waits of at most 2 s took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := middleware.Retry(&middleware.RetryOptions{Wait: time.Hour, MaxWait: time.Hour})(down)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := h.Handle(ctx, &mcp.Request{Method: "tools/list"})
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("error %v after %v, want those of the context and the attempt at the end of the context", err, time.Since(start))
		}
		if want := "context deadline exceeded; the last attempt: unexpected EOF"; err.Error() != want {
			t.Errorf("the text is %q, want %q", err, want)
		}
		cause := errors.New("the user has left")
		why, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(cause) })
		_, err = h.Handle(why, &mcp.Request{Method: "tools/list"})
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("error %v, want the cause too", err)
		}
		// An attempt that the context has ended says so by itself.
		ended := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: ctx.Err()}
		})
		_, err = middleware.Retry(nil)(ended).Handle(why, &mcp.Request{Method: "tools/list"})
		if strings.Contains(err.Error(), "attempt") || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// While the server cannot be reached, its hints are not known either; the call waits for both.
func TestRetryAsksForHintsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		h := middleware.Retry(nil)(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			log = append(log, req.Method)
			switch {
			case len(log) < 4:
				return nil, io.ErrUnexpectedEOF
			case req.Method == "tools/list" && string(req.Params) == `{}`:
				return mcp.RawResult(`{"tools":[],"nextCursor":"2"}`), nil
			case req.Method == "tools/list":
				return mcp.RawResult(`{"tools":[{"name":"x","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`), nil
			}
			return mcp.RawResult(`{"content":[]}`), nil
		}))
		_, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)})
		if got := strings.Join(log, " "); err != nil || got != "tools/call tools/list tools/list tools/list tools/list tools/call" {
			t.Errorf("error %v, requests %s", err, got)
		}
	})
}

// flaky answers the first attempt of each request body with 502.
type flaky struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]int // guarded by mu
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var m struct {
		Method string
		Params struct{ Name string }
	}
	json.Unmarshal(body, &m)
	f.mu.Lock()
	f.seen[m.Method+m.Params.Name]++
	first := f.seen[m.Method+m.Params.Name] == 1
	f.mu.Unlock()
	if first && (m.Method == "tools/call" || m.Method == "resources/read") {
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	f.next.ServeHTTP(w, r)
}

// A client of each revision goes on when a proxy in front of the server fails once, and repeats only
// what it may.
func TestRetryOverHTTP(t *testing.T) {
	yes := true
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			srv := newServer()
			mcp.AddTool(srv, mcp.Tool{Name: "reads", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, func(context.Context, struct{}) (string, error) { return "read", nil })
			f := &flaky{next: srv, seen: map[string]int{}}
			web := httptest.NewServer(f)
			defer web.Close()
			c := newClient()
			c.Revisions = []mcp.Revision{rev}
			c.Use(middleware.Retry(&middleware.RetryOptions{Wait: time.Millisecond}))
			s, err := c.Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			want := 2
			res, err := s.CallTool(t.Context(), "reads", nil)
			if rev == mcp.V2024_11_05 { // it has no hints
				want = 1
			} else if err != nil || res.Text() != "read" {
				t.Errorf("reads: %v, %v", res, err)
			}
			if _, err := s.ReadResource(t.Context(), "x://hours"); err != nil {
				t.Error(err)
			}
			var he *mcp.HTTPError
			if _, err := s.CallTool(t.Context(), "say", word{"one"}); !errors.As(err, &he) || he.Status != http.StatusBadGateway {
				t.Errorf("say: %v, want the 502, because it may have run", err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.seen["tools/callsay"] != 1 || f.seen["tools/callreads"] != want {
				t.Errorf("requests %v, want one for say and %d for reads", f.seen, want)
			}
		})
	}
}

// A call that has asked a question is final, even if its tool is read-only: the request that carries
// the answer fails, and neither the client nor a proxy asks or runs anything twice.
func TestRetryLeavesCallsThatAsked(t *testing.T) {
	yes := true
	for name, refuse := range map[string]func(http.ResponseWriter){
		"later": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"bad":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"dropped": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		for _, way := range []string{"client", "proxy", "proxy over HTTP"} {
			t.Run(name+" "+way, func(t *testing.T) {
				var charged, asked, refused atomic.Int32
				srv := &mcp.Server{Name: "s", Version: "1"}
				mcp.AddTool(srv, mcp.Tool{Name: "pay", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, func(ctx context.Context, _ struct{}) (string, error) {
					if _, err := mcp.Once(ctx, "charge", func(context.Context) (int, error) { return int(charged.Add(1)), nil }); err != nil {
						return "", err
					}
					_, err := mcp.Elicit[word](ctx, "which?")
					return "paid", err
				})
				web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Mcp-Method") == "tools/call" && asked.Load() > 0 && refused.Add(1) == 1 {
						refuse(w)
						return
					}
					srv.ServeHTTP(w, r)
				}))
				defer web.Close()
				c := newClient()
				answer := c.OnElicit
				c.OnElicit = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					return answer(ctx, req)
				}
				retry := middleware.Retry(&middleware.RetryOptions{Wait: time.Millisecond})
				s := dialThrough(t, web.URL, way, c, retry)
				_, err := s.CallTool(t.Context(), "pay", nil)
				var begun mcp.BegunError
				if !errors.As(err, &begun) || charged.Load() != 1 || asked.Load() != 1 || refused.Load() != 1 {
					t.Errorf("CallTool = %v; charged %d times, asked %d times, %d requests after the question; want a BegunError, and each once",
						err, charged.Load(), asked.Load(), refused.Load())
				}
			})
		}
	}
}

// dialThrough opens a session with the server at url, through middleware of the client itself or of a
// proxy in between.
func dialThrough(t *testing.T, url, way string, c *mcp.Client, mw mcp.Middleware) *mcp.Session {
	t.Helper()
	opened := func(s *mcp.Session, err error) *mcp.Session {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	if way == "client" {
		c.Use(mw)
		return opened(c.Dial(t.Context(), url))
	}
	proxy := &mcp.Server{Name: "proxy", Version: "1", Handler: opened(newClient().Dial(t.Context(), url))}
	proxy.Use(mw)
	if way == "proxy" {
		return opened(c.Open(t.Context(), proxy))
	}
	web := httptest.NewServer(proxy)
	t.Cleanup(web.Close)
	return opened(c.Dial(t.Context(), web.URL))
}
