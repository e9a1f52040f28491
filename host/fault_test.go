package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// rigged is a session whose calls fail as wanted.
type rigged struct {
	*mcp.Session
	call func(next func() (mcp.Result, error)) (mcp.Result, error)
}

func (s rigged) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != "tools/call" {
		return s.Session.Handle(ctx, req)
	}
	res, err := s.call(func() (mcp.Result, error) { return s.Session.Handle(ctx, req) })
	if errors.Is(err, mcp.ErrClosed) || errors.As(err, new(*mcp.ExitError)) {
		s.Close()
	}
	return res, err
}

// rig makes the calls to a server go through call.
func rig(s host.Server, call func(next func() (mcp.Result, error)) (mcp.Result, error)) host.Server {
	open := s.Open
	s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		session, err := open(ctx, c)
		if err != nil {
			return nil, err
		}
		return rigged{session.(*mcp.Session), call}, nil
	}
	return s
}

// tools is a server with a tool for each kind of hint.
func tools() *mcp.Server {
	srv := &mcp.Server{Name: "s", Version: "1"}
	add := func(name string, hints *mcp.ToolAnnotations) {
		mcp.AddTool(srv, mcp.Tool{Name: name, Annotations: hints}, func(context.Context, struct {
			X int `json:"x,omitempty"`
		}) (string, error) {
			return "ok", nil
		})
	}
	add("plain", nil)
	add("read", &mcp.ToolAnnotations{ReadOnly: ptr(true)})
	add("write", &mcp.ToolAnnotations{ReadOnly: ptr(false), Destructive: ptr(true)})
	add("again", &mcp.ToolAnnotations{Idempotent: ptr(true)})
	return srv
}

// A call that may have run is retried only if its tool is read-only or idempotent and its server is
// trusted; one that has not run is retried while that may help. The model is told what to do.
func TestFaults(t *testing.T) {
	status := func(code int, header ...string) error {
		h := http.Header{}
		if len(header) > 0 {
			h.Set("Retry-After", header[0])
		}
		return fmt.Errorf("call: %w", &mcp.HTTPError{Status: code, Header: h})
	}
	tests := []struct {
		name                 string
		err                  error
		unsafe, safe         int // times that a call is made which always fails
		unsafeOut, safeOut   host.Outcome
		unsafeTold, safeTold string
	}{
		{"too many requests", status(429), 5, 5, host.Broken, host.Broken, "later", "later"},
		{"too many requests for long", status(429, "3600"), 1, 1, host.Broken, host.Broken, "later", "later"},
		{"busy, as it says", status(503, "1"), 5, 5, host.Broken, host.Broken, "later", "later"},
		{"busy", status(503), 1, 5, host.Unknown, host.Broken, "Outcome unknown", "later"},
		{"bad gateway", status(502), 1, 5, host.Unknown, host.Broken, "Outcome unknown", "later"},
		{"internal server error", status(500), 1, 1, host.Unknown, host.Broken, "Outcome unknown", "likely to fail again"},
		{"not found", status(404), 1, 1, host.Broken, host.Broken, "has not run", "has not run"},
		{"unauthorized", status(401), 1, 1, host.Broken, host.Broken, "a person has done something", "a person has done something"},
		{"wants a login", &gateway.LoginError{Do: "patchbay login s", Err: status(401)}, 1, 1, host.Broken, host.Broken, "patchbay login s", "patchbay login s"},
		{"broken off", fmt.Errorf("call: %w", io.ErrUnexpectedEOF), 1, 5, host.Unknown, host.Broken, "Outcome unknown", "later"},
		{"closed", mcp.ErrClosed, 1, 5, host.Unknown, host.Broken, "Outcome unknown", "later"},
		{"session lost", fmt.Errorf("call: %w", mcp.ErrSessionLost), 1, 1, host.Broken, host.Broken, "lost the state", "lost the state"},
		{"process ended", &mcp.ExitError{Command: "s", State: "exit status 2"}, 1, 5, host.Unknown, host.Broken, "exit status 2", "exit status 2"},
		{"nobody there", &url.Error{Op: "Post", URL: "http://127.0.0.1:1", Err: errors.New("connection refused")}, 5, 5, host.Broken, host.Broken, "later", "later"},
		{"no answer", fmt.Errorf("call: %w", context.DeadlineExceeded), 1, 2, host.Unknown, host.Broken, "Outcome unknown", "tried 2 times"},
		{"invalid params", mcp.Errorf(jsonrpc.CodeInvalidParams, "x"), 1, 1, host.Broken, host.Broken, "has not run", "has not run"},
		{"no such method", mcp.Errorf(jsonrpc.CodeMethodNotFound, "x"), 1, 1, host.Broken, host.Broken, "has not run", "has not run"},
		{"internal error", mcp.Errorf(jsonrpc.CodeInternal, "x"), 1, 1, host.Unknown, host.Broken, "Outcome unknown", "likely to fail again"},
		{"an answer that is none", mcp.Errorf(jsonrpc.CodeParse, "x"), 1, 1, host.Unknown, host.Broken, "Outcome unknown", "likely to fail again"},
		{"refused for now", &mcp.Error{Code: jsonrpc.CodeInternal, Message: "x", Data: []byte(`{"retryAfter":0.5}`)}, 5, 5, host.Broken, host.Broken, "later", "later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := func(tool string, trusted bool, times int, outcome host.Outcome, told string) {
					t.Helper()
					var made atomic.Int64
					s := rig(inMemory("s", tools()), func(func() (mcp.Result, error)) (mcp.Result, error) {
						time.Sleep(time.Minute) // one that is lost sooner, again and again, is crashing
						made.Add(1)
						return nil, tt.err
					})
					s.Trusted = trusted
					m := calls([]string{"s_" + tool + " {}"})
					h := newHost(t, &host.Host{Model: m, Person: says(host.AllowOnce)}, s)
					defer h.Close()
					d := talk(t, h)
					if got := d.outcome(t, "c1.1"); got != outcome || int(made.Load()) != times {
						t.Errorf("%s, trusted %v: %s after %d calls, want %s after %d", tool, trusted, got, made.Load(), outcome, times)
					}
					if got := m.result(t, "c1.1"); !strings.Contains(got, told) {
						t.Errorf("%s, trusted %v: the model is told %q, want %q in it", tool, trusted, got, told)
					}
					if got := len(d.of(host.Retried)); got != times-1 {
						t.Errorf("%s, trusted %v: %d events of retries, want %d", tool, trusted, got, times-1)
					}
				}
				check("plain", true, tt.unsafe, tt.unsafeOut, tt.unsafeTold)
				check("write", true, tt.unsafe, tt.unsafeOut, tt.unsafeTold)
				check("read", false, tt.unsafe, tt.unsafeOut, tt.unsafeTold) // annotations of an untrusted server do not count
				check("read", true, tt.safe, tt.safeOut, tt.safeTold)
				check("again", true, tt.safe, tt.safeOut, tt.safeTold)
			})
		})
	}
}

// The model does not see faults that pass by themselves.
func TestRetrySucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		s := rig(inMemory("s", tools()), func(next func() (mcp.Result, error)) (mcp.Result, error) {
			if made++; made < 3 {
				return nil, &mcp.HTTPError{Status: 429, Header: http.Header{"Retry-After": {"7"}}}
			}
			return next()
		})
		m := calls([]string{"s_write {}"})
		h := newHost(t, &host.Host{Model: m, Person: says(host.AllowOnce)}, s)
		defer h.Close()
		start := time.Now()
		talk(t, h)
		if got := m.result(t, "c1.1"); got != "ok" || made != 3 {
			t.Errorf("%q after %d calls", got, made)
		}
		if took := time.Since(start); took < 14*time.Second || took > 20*time.Second {
			t.Errorf("took %v, the server wanted 2 × 7s", took)
		}
	})
}

// A call that may have run is repeated only if the person allows it, who is told why, even if the
// tool is allowed; without a person it is denied. The same holds in a resumed conversation.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		lossy := func() host.Server {
			return rig(inMemory("s", tools()), func(next func() (mcp.Result, error)) (mcp.Result, error) {
				res, err := next()
				if made.Add(1) == 1 {
					return nil, io.ErrUnexpectedEOF
				}
				return res, err
			})
		}
		m := calls([]string{`s_plain {"x":1}`}, []string{`s_plain { "x" : 1 }`, `s_plain {"x":2}`}, []string{`s_plain {"x":1}`})
		h := newHost(t, &host.Host{Model: m, Allow: []string{"s/*"}}, lossy())
		c := h.NewConversation()
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		h.Close()
		if got := m.result(t, "c2.1"); !strings.Contains(got, "may have happened, and there is nobody to ask") {
			t.Errorf("the same call: %q", got)
		}
		if got := m.result(t, "c2.2"); got != "ok" {
			t.Errorf("another call: %q", got)
		}
		if got := made.Load(); got != 2 {
			t.Errorf("%d calls made, want 2", got)
		}

		var asked []string
		m = calls([]string{`s_plain {"x":1}`, `s_plain {"x":1}`}, []string{`s_plain {"x":1}`})
		h = newHost(t, &host.Host{Model: m, Allow: []string{"s/*"}, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			asked = append(asked, a.Call+": "+a.Doubt)
			return host.Verdict{Answer: host.AllowOnce}, nil
		}}}, lossy())
		defer h.Close()
		resumed := h.NewConversation()
		resumed.ID, resumed.Entries = c.ID, c.Entries
		if _, err := resumed.Send(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || !strings.HasPrefix(asked[0], "c1.1: ") || !strings.Contains(asked[0], "may have happened") {
			t.Errorf("asked %q", asked)
		}
		if got := made.Load(); got != 5 { // the repetition certainly ran, so the next one is a new call
			t.Errorf("%d calls made, want 5", got)
		}
	})
}

// A call that is silent for too long ends, and so does one that reports progress without end.
func TestCallTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := tools()
		mcp.AddTool(srv, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		mcp.AddTool(srv, mcp.Tool{Name: "babble"}, func(ctx context.Context, _ struct{}) (string, error) {
			for i := 1.0; ctx.Err() == nil; i++ {
				mcp.Progress(ctx, i, 0, "still")
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
			return "", ctx.Err()
		})
		m := calls([]string{"s_hang {}"}, []string{"s_babble {}"}, []string{"p_hang {}"})
		patient := inMemory("p", srv)
		patient.CallTimeout = 10 * time.Minute
		h := newHost(t, &host.Host{Model: m, Person: says(host.AllowOnce)}, inMemory("s", srv), patient)
		defer time.Sleep(time.Minute) // the server lets a call that was not cancelled before the end of the wire go on for a while
		defer h.Close()
		d := talk(t, h)
		for id, want := range map[string]time.Duration{"c1.1": 2 * time.Minute, "c2.1": time.Hour, "c3.1": 10 * time.Minute} {
			if got := m.result(t, id); !strings.Contains(got, "Outcome unknown") {
				t.Errorf("%s: %q", id, got)
			}
			for _, e := range d.of(host.Resulted) {
				if e.Call.ID == id && (e.Call.Took < host.Millis(want) || e.Call.Took > host.Millis(want+time.Second) || e.Call.Outcome != host.Unknown) {
					t.Errorf("%s took %v, want %v; %s", id, e.Call.Took, want, e.Call.Outcome)
				}
			}
		}
		if n := len(d.of(host.Progress)); n < 59 {
			t.Errorf("%d events of progress", n)
		}
	})
}

// The model sees an answer that does not fit the output schema, with its content, and a call that
// changes something is not retried for it.
func TestMisfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		srv := tools()
		mcp.AddTool(srv, mcp.Tool{Name: "plain"}, func(context.Context, struct{}) (struct{ N int }, error) { return struct{ N int }{1}, nil })
		s := rig(inMemory("s", srv), func(func() (mcp.Result, error)) (mcp.Result, error) {
			made++
			return mcp.RawResult(`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"N":"one"}}`), nil
		})
		m := calls([]string{"s_plain {}"}, []string{"s_plain {}"})
		h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, s)
		defer h.Close()
		d := talk(t, h)
		got := m.result(t, "c1.1")
		if !strings.Contains(got, "It has run") || !strings.Contains(got, "does not fit") || !strings.HasSuffix(got, "ok\n"+`{"N":"one"}`) || d.outcome(t, "c1.1") != host.Broken {
			t.Errorf("%s: %q", d.outcome(t, "c1.1"), got)
		}
		if d.outcome(t, "c2.1") != host.Denied || made != 1 {
			t.Errorf("the same call once more: %s, made %d times", d.outcome(t, "c2.1"), made)
		}
	})
}

// A call may have run if it fails after the server asked a question or made a task: neither the
// host nor the model repeats it without asking.
func TestRefusedAfterAll(t *testing.T) {
	forNow := &mcp.Error{Code: jsonrpc.CodeInternal, Message: "x", Data: []byte(`{"retryAfter":0.5}`)}
	tests := []struct {
		name  string
		from  mcp.Revision
		asks  func(context.Context) error
		task  mcp.TaskSupport
		err   error
		begun bool
		runs  int64 // of two calls
	}{
		{"at once", "", nil, "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), false, 2},
		{"at once, for now", "", nil, "", forNow, false, 10},
		{"after a question", "", roots, "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), true, 1},
		{"after a question, for now", "", roots, "", forNow, true, 1},
		{"after a form", mcp.V2025_06_18, confirm, "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), true, 1},
		{"after a question without an answer", "", complete, "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), true, 1},
		{"in a task", mcp.V2025_11_25, nil, mcp.TaskRequired, mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), true, 1},
	}
	for _, rev := range mcp.Revisions() {
		for _, tt := range tests {
			if rev < tt.from {
				continue
			}
			t.Run(string(rev)+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var runs atomic.Int64
					srv := tools()
					mcp.AddTool(srv, mcp.Tool{Name: "refuses", Execution: mcp.ToolExecution{TaskSupport: tt.task}}, func(ctx context.Context, _ struct{}) (string, error) {
						if mcp.CallFrom(ctx).Round == 0 {
							runs.Add(1)
						}
						if tt.asks != nil {
							tt.asks(ctx)
						}
						return "", tt.err
					})
					s := inMemory("s", srv)
					open := s.Open
					s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
						c.Revisions = []mcp.Revision{rev}
						return open(ctx, c)
					}
					m := calls([]string{"s_refuses {}"}, []string{"s_refuses {}"})
					h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Person: agreeing{says(host.Deny)}, Roots: []mcp.Root{}}, s)
					defer h.Close()
					d := talk(t, h)
					first, second := d.outcome(t, "c1.1"), d.outcome(t, "c2.1")
					if begun := second == host.Denied && first != host.Broken; begun != tt.begun || runs.Load() != tt.runs {
						t.Errorf("%s, then %s, after %d runs, want %d; the model is told %q and %q", first, second, runs.Load(), tt.runs, m.result(t, "c1.1"), m.result(t, "c2.1"))
					}
				})
			})
		}
	}
}

func roots(ctx context.Context) error   { _, err := mcp.Roots(ctx); return err }
func confirm(ctx context.Context) error { _, err := mcp.Confirm(ctx, "Sure?"); return err }
func complete(ctx context.Context) error {
	_, err := mcp.Sample(ctx, &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5})
	return err
}

// agreeing is a person who accepts forms and refuses sampling.
type agreeing struct{ approver }

func (agreeing) Elicit(context.Context, *host.Elicitation) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
}

func (agreeing) ReviewRequest(context.Context, *host.Sampling) (*mcp.SampleRequest, error) {
	return nil, mcp.ErrDeclined
}

// A call that was in progress when the program ended may have run: it is not repeated without
// asking, even after Undo, unless it is safe to repeat.
func TestLostCall(t *testing.T) {
	wanted := func(texts ...string) host.Entry {
		m := model.Message{Role: model.Assistant}
		for _, text := range texts {
			name, args, _ := strings.Cut(text, " ")
			m.Parts = append(m.Parts, model.Part{Call: &model.Call{ID: text, Name: name, Arguments: json.RawMessage(args)}})
		}
		return host.Entry{Message: m, Turn: 1}
	}
	came := model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: `s_plain {"x":2}`, Name: "s_plain"}}}}
	for _, undo := range []bool{false, true} {
		t.Run(fmt.Sprintf("undo=%v", undo), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := calls([]string{`s_plain { "x": 1 }`, `s_again {"x":1}`, `s_plain {"x":2}`, `s_plain {"x":3}`, `s_plain {"x":4}`}, []string{`s_plain {"x":4}`})
				s := inMemory("s", tools())
				s.Trusted = true
				h := newHost(t, &host.Host{Model: m, Allow: []string{"s/*"}}, s)
				defer h.Close()
				h.Tools(t.Context())
				c, d := h.NewConversation(), &diary{}
				c.OnEvent = d.note
				c.Entries = []host.Entry{
					{Message: model.UserText("go"), Turn: 1},
					wanted(`s_plain {"x":1}`, `s_again {"x":1}`, `s_plain {"x":2}`), {Message: came, Turn: 1},
					wanted(`s_plain {"x":3}`),
				}
				if undo {
					if _, err := c.Undo(t.Context()); err != nil || len(c.Entries) > 0 {
						t.Fatalf("Undo = %v; %d entries are left", err, len(c.Entries))
					}
				}
				if _, err := c.Send(t.Context(), "go on"); err != nil {
					t.Fatal(err)
				}
				for id, want := range map[string]host.Outcome{"c1.1": host.Denied, "c1.2": host.Succeeded, "c1.3": host.Succeeded, "c1.4": host.Denied, "c1.5": host.Succeeded, "c2.1": host.Succeeded} {
					if got := d.outcome(t, id); got != want {
						t.Errorf("%s: %s, want %s; the model is told %q", id, got, want, m.result(t, id))
					}
				}
			})
		})
	}
}
