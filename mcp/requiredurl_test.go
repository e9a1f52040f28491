package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// login is a server whose tool works once the user has logged in, and counts its runs.
func login(loggedIn func() bool, runs *atomic.Int64) *mcp.Server {
	s := &mcp.Server{Name: "login", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "files"}, func(ctx context.Context, _ struct{}) (string, error) {
		runs.Add(1)
		if !loggedIn() {
			return "", mcp.RequireURL(ctx, "Log in", fmt.Sprintf("https://example.com/login?try=%d", runs.Load()))
		}
		return "a.txt", nil
	})
	return s
}

// visitor is a client with a user who visits each page, and counts the visits.
func visitor(rev mcp.Revision, went func(url string) string) *mcp.Client {
	return &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}, OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: went(r.URL)}, nil
	}}
}

// ELIC-25-005 to -008: a call that requires a visit is refused with -32042, which lists the page
// with an id; its client asks once, retries the call, and gets the result after the visit. A
// different query does not make a different page.
func TestRequireURLIn2025(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		start := time.Now()
		srv := login(func() bool { return time.Since(start) > time.Minute }, &runs)
		asked := 0
		var errs []string
		c := visitor(mcp.V2025_11_25, func(string) string { asked++; return "accept" })
		c.OnFrame = mcptest.Check(t, mcp.V2025_11_25, true, func(f trace.Frame) {
			if f.Dir == trace.In && strings.Contains(string(f.Msg), "-32042") {
				errs = append(errs, string(f.Msg))
			}
		})
		s := unchecked(t, srv, c)
		res, err := s.CallTool(t.Context(), "files", nil)
		if err != nil || res.Text() != "a.txt" {
			t.Fatalf("call = %v, %v", res, err)
		}
		if asked != 1 || runs.Load() < 3 || runs.Load() > 12 {
			t.Errorf("asked %d times, ran %d times", asked, runs.Load())
		}
		if took := time.Since(start); took < time.Minute || took > 80*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(errs) == 0 || !strings.Contains(errs[0], `"elicitations":[{"mode":"url","message":"Log in","url":"https://example.com/login?try=1","elicitationId":"`) {
			t.Errorf("errors %q", errs)
		}
	})
}

// If a user never finishes, or a server always requires another page, the call ends with the
// server's error; if the user declines, with ErrDeclined. Every wait is bounded.
func TestVisitsEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		pages  func(n int) string
		action string
		want   error
		asked  int
		within time.Duration
	}{
		"never finished": {func(int) string { return "/login" }, "accept", &mcp.Error{Code: -32042}, 1, 11 * time.Minute},
		"declined":       {func(int) string { return "/login" }, "decline", mcp.ErrDeclined, 1, time.Second},
		"dismissed":      {func(int) string { return "/login" }, "cancel", mcp.ErrDismissed, 1, time.Second},
		"always another": {func(n int) string { return fmt.Sprintf("/%d", n) }, "accept", &mcp.Error{Code: -32042}, 16, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, asked := 0, 0
				pipe := stub(t, func(m jsonrpc.Message) []string {
					switch m.Method {
					case "initialize":
						return initialized(m, "2025-11-25")
					case "tools/call":
						n++
						return failure(m, -32042, fmt.Sprintf(`{"elicitations":[{"mode":"url","message":"m","url":"https://example.com%s","elicitationId":"%d"}]}`, tt.pages(n), n))
					}
					return []string{}
				})
				s, err := visitor(mcp.V2025_11_25, func(string) string { asked++; return tt.action }).Connect(t.Context(), pipe)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				start := time.Now()
				_, err = s.CallTool(t.Context(), "files", nil)
				if !errors.Is(err, tt.want) || asked != tt.asked {
					t.Errorf("call = %v after %d questions, want %v after %d", err, asked, tt.want, tt.asked)
				}
				if took := time.Since(start); took > tt.within {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// ELIC-25-003, -013: the server's word that a visit is complete has the call repeated at
// once. An id is opaque. One that nobody waits for is ignored.
func TestVisitIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = `"\u0000 \ud83d\ude00/\"\\"`
		var events []string
		calls := 0
		complete := func(id string) string {
			return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":` + id + `}}`
		}
		pipe := stub(t, func(m jsonrpc.Message) []string {
			switch m.Method {
			case "initialize":
				return initialized(m, "2025-11-25")
			case "tools/call":
				if calls++; calls == 1 {
					return append(failure(m, -32042, `{"elicitations":[{"mode":"url","message":"m","url":"https://example.com/","elicitationId":`+id+`}]}`), complete(`"other"`))
				}
				return append(result(m, `{"content":[]}`), complete(id))
			case "ping":
				return append([]string{complete(id), complete(`7`), complete(`"x"`)}, result(m, `{}`)...)
			}
			return []string{}
		})
		c := visitor(mcp.V2025_11_25, func(string) string { return "accept" })
		c.OnEvent = func(_ *mcp.Session, e mcp.Event) { events = append(events, e.Method) }
		s, err := c.Connect(t.Context(), pipe)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		ended := make(chan error)
		go func() {
			_, err := s.CallTool(t.Context(), "files", nil)
			ended <- err
		}()
		synctest.Wait() // it waits for the visit
		if _, err := s.Raw(t.Context(), "ping", nil); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil || calls != 2 || time.Since(start) > 0 {
			t.Errorf("the call ended after %v with %v, %d requests", time.Since(start), err, calls)
		}
		synctest.Wait()
		if len(events) != 1 {
			t.Errorf("events %q, want the one that was expected", events)
		}
	})
}

// ELIC-25-001, -002: who was asked to visit a page while its call waits is told that the
// visit is complete, with the id of the question, and nobody else.
func TestElicitURLIsCompleted(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "pay"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "paid", mcp.ElicitURL(ctx, "Pay", "https://example.com/pay")
	})
	frames := func(rev mcp.Revision, action string) (ids, completed []string) {
		c := visitor(rev, func(string) string { return action })
		c.OnFrame = func(f trace.Frame) {
			_, id, found := strings.Cut(string(f.Msg), `"elicitationId":"`)
			if !found {
				return
			}
			id, _, _ = strings.Cut(id, `"`)
			if strings.Contains(string(f.Msg), "elicitation/complete") {
				completed = append(completed, id)
			} else {
				ids = append(ids, id)
			}
		}
		s := unchecked(t, srv, c)
		other := unchecked(t, srv, &mcp.Client{Name: "other", Revisions: c.Revisions, OnFrame: func(f trace.Frame) {
			if strings.Contains(string(f.Msg), "elicitation/complete") {
				t.Errorf("another client gets %s", f.Msg)
			}
		}})
		_, _ = s.CallTool(t.Context(), "pay", nil)
		_, _ = other.CallTool(t.Context(), "pay", nil)
		return ids, completed
	}
	if ids, completed := frames(mcp.V2025_11_25, "accept"); len(ids) != 1 || fmt.Sprint(ids) != fmt.Sprint(completed) {
		t.Errorf("asked %q, completed %q", ids, completed)
	}
	if _, completed := frames(mcp.V2025_11_25, "decline"); len(completed) > 0 {
		t.Errorf("a visit that was declined is complete: %q", completed)
	}
	if ids, completed := frames(mcp.V2026_07_28, "accept"); len(ids)+len(completed) > 0 {
		t.Errorf("2026-07-28 has ids: %q, %q", ids, completed)
	}
}

// A server that requires a page tells each caller so (T-26, T-41): directly, and behind
// a Session that forwards from 2025-11-25.
func TestRequireURLForEveryCaller(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		for _, able := range []bool{true, false} {
			for _, forwarded := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/able=%t/forwarded=%t", rev, able, forwarded), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var in atomic.Bool
						var runs atomic.Int64
						srv := login(in.Load, &runs)
						if forwarded {
							back := unchecked(t, srv, visitor(mcp.V2025_11_25, func(string) string { panic("nobody is here") }))
							srv = &mcp.Server{Name: "front", Version: "1", Handler: back}
						}
						c := nothing()
						if able {
							c = visitor(rev, func(string) string {
								time.AfterFunc(10*time.Second, func() { in.Store(true) })
								return "accept"
							})
						}
						c.Revisions = []mcp.Revision{rev}
						s := unchecked(t, srv, c)
						res, err := s.CallTool(t.Context(), "files", nil)
						text := ""
						if err == nil {
							text = res.Text()
						}
						newer := rev == mcp.V2025_11_25 || rev == mcp.V2026_07_28
						switch {
						case able && newer && (rev == mcp.V2025_11_25 || forwarded):
							if text != "a.txt" {
								t.Errorf("call = %q, %v", text, err)
							}
						case able && newer: // agreed, but not finished
							if err != nil || !res.IsError || !strings.Contains(text, "finish at https://example.com/login?try=") {
								t.Errorf("call = %q, %v", text, err)
							}
							time.Sleep(20 * time.Second)
							if res, err := s.CallTool(t.Context(), "files", nil); err != nil || res.Text() != "a.txt" {
								t.Errorf("the call after the visit = %v, %v", res, err)
							}
						case rev == mcp.V2026_07_28:
							if !errors.Is(err, &mcp.Error{Code: mcp.CodeMissingCapability}) {
								t.Errorf("call = %q, %v; want %d", text, err, mcp.CodeMissingCapability)
							}
						default:
							if err != nil || !res.IsError || !strings.Contains(text, "Log in: visit https://example.com/login?try=") {
								t.Errorf("call = %q, %v", text, err)
							}
						}
					})
				})
			}
		}
	}
}
