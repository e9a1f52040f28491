package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/patchbay-dev/patchbay/mcptest"
)

// restarting is an HTTP server that can be started anew, after which it knows no
// session any more. It counts what it gets, by method.
type restarting struct {
	make func(generation int) *mcp.Server

	now  atomic.Pointer[mcp.Server]
	mu   sync.Mutex
	gen  int            // guarded by mu
	seen map[string]int // guarded by mu
}

// startRestarting returns a server in memory, and a client for it. A session is renewed, and is told of, within
// fractions of a second, so the tests have a clock of their own.
func startRestarting(t testing.TB, newServer func(int) *mcp.Server) (*restarting, *http.Client) {
	r := &restarting{make: newServer, seen: map[string]int{}}
	r.restart()
	return r, webInMemory(t, r)
}

func (r *restarting) restart() {
	r.mu.Lock()
	r.gen++
	gen := r.gen
	r.mu.Unlock()
	if before := r.now.Swap(r.make(gen)); before != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = before.Shutdown(ctx) // which ends its streams
	}
}

func (r *restarting) count(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[method]
}

func (r *restarting) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodPost {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		if m, err := jsonrpc.Decode(body, jsonrpc.Limits{}); err == nil && m.Method != "" {
			r.mu.Lock()
			r.seen[m.Method]++
			r.mu.Unlock()
		}
	}
	r.now.Load().ServeHTTP(w, req)
}

// SHTTP-25-039: a session that the server has ended is opened again. Calls of tools that were
// refused for it fail, as the server may have kept something for the session (F3), and those after
// them run once. Calls at the same time share the new session, which has the log level and the
// subscriptions of the old.
func TestSessionIsOpenedAgain(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range []mcp.Revision{mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25} {
		synctestRun(t, string(rev), func(t *testing.T) {
			var ran, logged atomic.Int64
			r, web := startRestarting(t, func(gen int) *mcp.Server {
				s := library()
				s.Version = fmt.Sprint(gen)
				mcp.AddTool(s, mcp.Tool{Name: "run"}, func(ctx context.Context, _ struct{}) (string, error) {
					ran.Add(1)
					mcp.Log(ctx).Debug("running")
					return fmt.Sprint(gen), nil
				})
				return s
			})
			c := &mcp.Client{Name: "c", HTTPClient: web, Version: "1", Revisions: []mcp.Revision{rev}, LogLevel: slog.LevelDebug}
			s, err := c.Dial(t.Context(), "http://127.0.0.1/mcp")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			events := watching(t, t.Context(), s, "lib:text")
			call := func() string {
				res, err := s.CallTool(t.Context(), "run", nil, mcp.OnLog(func(mcp.LogMessage) { logged.Add(1) }))
				if err != nil {
					t.Errorf("call: %v", err)
					return ""
				}
				return res.Text()
			}
			if got := call(); got != "1" {
				t.Fatalf("call = %q", got)
			}
			r.restart()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if res, err := s.CallTool(t.Context(), "run", nil); !errors.Is(err, mcp.ErrSessionLost) {
						t.Errorf("call of the lost session = %v, %v", res, err)
					}
				})
			}
			wg.Wait()
			for range 8 {
				wg.Go(func() {
					if got := call(); got != "2" {
						t.Errorf("call after that = %q", got)
					}
				})
			}
			wg.Wait()
			if n := ran.Load(); n != 9 {
				t.Errorf("the tool ran %d times, want 9", n)
			}
			if n := logged.Load(); n != 9 {
				t.Errorf("%d log messages, want 9", n)
			}
			if n, l := r.count("initialize"), r.count("logging/setLevel"); n != 2 || l != 2 {
				t.Errorf("%d times initialize, %d times setLevel, want 2 of each", n, l)
			}
			if v := s.Server().Version; v != "2" {
				t.Errorf("Server().Version = %s", v)
			}
			// Possible changes in between are announced, and so are later ones.
			expect(t, events, "resources/updated lib:text", "tools/list_changed ", "prompts/list_changed ", "resources/list_changed ")
			r.now.Load().ResourceUpdated("lib:text")
			expect(t, events, "resources/updated lib:text")
		})
	}
}

// F3: the loss of state that a server kept for a session over HTTP is always reported, whatever
// discovers it, and no loss is reported where the server kept nothing.
func TestSessionIsNotLostInSilence(t *testing.T) {
	read := func(s *mcp.Session) error { _, err := s.ReadResource(context.Background(), "lib:text"); return err }
	run := func(s *mcp.Session) error { _, err := s.CallTool(context.Background(), "run", nil); return err }
	type step struct {
		name string
		do   func(*mcp.Session) error
		lost bool
	}
	tests := []struct {
		name          string
		before, after []step
	}{
		{"a call finds out", []step{{"run", run, false}}, []step{{"run", run, true}, {"run", run, false}, {"read", read, false}}},
		{"a read finds out", []step{{"run", run, false}}, []step{{"read", read, false}, {"run", run, true}, {"run", run, false}}},
		{"only reads before", []step{{"read", read, false}}, []step{{"run", run, false}, {"run", run, false}}},
		{"nothing before", nil, []step{{"run", run, false}}},
	}
	mcptest.LeakCheck(t)
	for _, tt := range tests {
		synctestRun(t, tt.name, func(t *testing.T) {
			r, web := startRestarting(t, func(int) *mcp.Server {
				s := library()
				mcp.AddTool(s, mcp.Tool{Name: "run"}, func(context.Context, struct{}) (string, error) { return "", nil })
				return s
			})
			c := &mcp.Client{Name: "c", HTTPClient: web, Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
			s, err := c.Dial(t.Context(), "http://127.0.0.1/mcp")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Raw(t.Context(), "completion/complete", json.RawMessage(`{}`)); err == nil {
				t.Fatal("an empty completion succeeds")
			} // the session has been of use
			for _, st := range tt.before {
				if err := st.do(s); err != nil {
					t.Fatalf("%s = %v", st.name, err)
				}
			}
			r.restart()
			for i, st := range tt.after {
				if err := st.do(s); errors.Is(err, mcp.ErrSessionLost) != st.lost || err != nil && !st.lost {
					t.Errorf("after the restart, %d: %s = %v; want a loss: %t", i, st.name, err, st.lost)
				}
			}
			if n := r.count("initialize"); n != 2 {
				t.Errorf("%d times initialize, want 2", n)
			}
		})
	}
}

// A session that only listens is opened again too, when its stream is refused.
func TestListeningSessionIsOpenedAgain(t *testing.T) {
	mcptest.LeakCheck(t)
	synctest.Test(t, func(t *testing.T) {
		r, web := startRestarting(t, func(int) *mcp.Server { return library() })
		c := &mcp.Client{Name: "c", HTTPClient: web, Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
		s, err := c.Dial(t.Context(), "http://127.0.0.1/mcp")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		events := watching(t, t.Context(), s, "lib:text")
		r.restart()
		expect(t, events, "resources/updated lib:text", "prompts/list_changed ", "resources/list_changed ") // it lacks tools
		if n, l := r.count("initialize"), r.count("resources/subscribe"); n != 2 || l != 2 {
			t.Errorf("%d times initialize, %d times subscribe, want 2 of each", n, l)
		}
		r.now.Load().ResourceUpdated("lib:text")
		expect(t, events, "resources/updated lib:text")
	})
}

// A session that is lost again before it was used ends the Session: no server makes a client
// initialize endlessly.
func TestSessionIsLostForGood(t *testing.T) {
	for name, refuse := range map[string]func(method string, session int) bool{
		"all of the new session": func(_ string, n int) bool { return n > 1 },
		"no initialize":          func(method string, n int) bool { return method == "initialize" && n > 1 },
		"only calls":             func(method string, n int) bool { return method == "tools/call" },
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.LeakCheck(t)
			var sessions, calls atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				m, err := jsonrpc.Decode(body, jsonrpc.Limits{})
				switch {
				case err != nil: // GET, DELETE
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.Method == "initialize" && !refuse(m.Method, int(sessions.Load()+1)):
					w.Header().Set("Mcp-Session-Id", fmt.Sprint(sessions.Add(1)))
					w.Header().Set("Content-Type", "application/json")
					w.Write([]byte(initialized(m, "2025-11-25")[0]))
				case calls.Load() > 0 && refuse(m.Method, int(sessions.Load())), m.Method == "tools/call":
					calls.Add(1)
					w.WriteHeader(http.StatusNotFound)
				case m.Kind() == jsonrpc.KindNotification:
					w.WriteHeader(http.StatusAccepted)
				default:
					w.Header().Set("Content-Type", "application/json")
					w.Write([]byte(result(m, `{}`)[0]))
				}
			}))
			defer srv.Close()
			c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
			s, err := c.Dial(t.Context(), srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Raw(t.Context(), "completion/complete", json.RawMessage(`{}`)); err != nil {
				t.Fatal(err) // the first session is of use
			}
			var last error
			for range 5 {
				if _, last = s.CallTool(t.Context(), "run", nil); last == nil {
					t.Fatal("a call of a lost session succeeded")
				}
			}
			if !strings.Contains(last.Error(), "the server has ended the session; connect again") {
				t.Errorf("the last call = %v", last)
			}
			<-s.Done()
			var he *mcp.HTTPError
			if !errors.As(s.Err(), &he) || he.Status != http.StatusNotFound {
				t.Errorf("Err = %v, want one with the 404 of the server", s.Err())
			}
			if n := sessions.Load(); n > 2 {
				t.Errorf("%d sessions opened", n)
			}
		})
	}
}
