package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
)

// endless is a server with a tool that works as a task until that is cancelled.
type endless struct {
	*mcp.Server
	made  chan struct{} // a task is being made
	let   chan struct{} // closed: it may be
	ended chan struct{} // its handler returned
}

func newEndless() *endless {
	e := &endless{
		Server: &mcp.Server{Name: "endless", Version: "1", Tasks: mcp.TaskConfig{TTL: 24 * time.Hour}},
		made:   make(chan struct{}, 9), let: make(chan struct{}), ended: make(chan struct{}, 9),
	}
	e.Tasks.Store = &patientStore{endless: e}
	mcp.AddTool(e.Server, mcp.Tool{Name: "forever", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			e.ended <- struct{}{}
			return "", context.Cause(ctx)
		})
	return e
}

// patientStore keeps a task when it is let, or its caller is known to have left.
type patientStore struct {
	mapStore
	*endless
}

func (s *patientStore) PutTask(ctx context.Context, r store.Task) error {
	select {
	case s.made <- struct{}{}:
	default:
	}
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return s.mapStore.PutTask(ctx, r)
}

// gone checks that the task which a caller left behind has ended, in the time of a bubble.
func (e *endless) gone(t *testing.T) {
	t.Helper()
	select {
	case <-e.ended:
	case <-time.After(time.Minute):
		t.Error("the task that nobody knows of goes on")
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A caller that cancels a call, or disconnects, while the server makes a task of it will never
// know of the task, so the task is cancelled (CANC-26-010, -011, CANC-26-014). The same holds
// behind a session that forwards the call.
func TestTaskOfACallerWhoLeft(t *testing.T) {
	const call = `"name":"forever","arguments":{}`
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, far := range []mcp.Revision{"", mcp.V2025_11_25, mcp.V2026_07_28} {
			for _, hangsUp := range []bool{false, true} {
				synctestRun(t, fmt.Sprintf("%s on %s, hangs up %t", rev, far, hangsUp), func(t *testing.T) {
					e := newEndless()
					served := e.Server
					if far != "" {
						served = &mcp.Server{Name: "front", Version: "1", Handler: mcptest.Connect(t, e.Server, middle(t), far)}
					}
					p := rawClient(t, served)
					more := call
					if rev == mcp.V2026_07_28 {
						p.send(modern(1, "tools/call", canTask, call))
					} else {
						p.initialize(rev, `{}`)
						more += `,"task":{}`
						p.sendf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s}}`, more)
					}
					if rev == mcp.V2026_07_28 && far == mcp.V2025_11_25 {
						return // it waits for the result of such a tool (T-100)
					}
					<-e.made
					if rev == mcp.V2025_11_25 && far == mcp.V2026_07_28 {
						// A task of the session in the middle is there at once, and is cancelled so.
						id := taskOf(t, p.answer(1)).Task.TaskID
						p.sendf(`{"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":%q}}`, id)
						p.answer(2)
					} else if !hangsUp {
						p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
					}
					if hangsUp {
						p.conn.Close()
					}
					time.Sleep(time.Second)
					close(e.let)
					e.gone(t)
				})
			}
		}
	}
}

// The same over HTTP: a caller of 2026-07-28 gives up by hanging up, one of 2025-11-25 by
// the notification or the end of its session.
func TestTaskOfACallerWhoLeftOverHTTP(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, how := range []string{"hangs up", "cancels", "ends the session"} {
		t.Run(how, func(t *testing.T) {
			e := newEndless()
			srv := httptest.NewServer(e)
			t.Cleanup(srv.Close)
			t.Cleanup(func() { e.Shutdown(context.Background()) })
			rev := mcp.V2025_11_25
			if how == "hangs up" {
				rev = mcp.V2026_07_28
			}
			frame := modern(1, "tools/call", canTask, `"name":"forever","arguments":{}`)
			h := &httpShopper{t: t, url: srv.URL}
			if rev == mcp.V2025_11_25 {
				h.initialize()
				frame = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever","arguments":{},"task":{}}}`
			}
			ctx, disconnect := context.WithCancel(t.Context())
			defer disconnect()
			do := func(ctx context.Context, method, frame string) error {
				req, err := http.NewRequestWithContext(ctx, method, srv.URL, strings.NewReader(frame))
				if err != nil {
					return err
				}
				req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {string(rev)}}
				if h.session != "" {
					req.Header.Set("Mcp-Session-Id", h.session)
				} else {
					req.Header["Mcp-Method"], req.Header["Mcp-Name"] = []string{"tools/call"}, []string{"forever"}
				}
				res, err := srv.Client().Do(req)
				if err == nil {
					res.Body.Close()
				}
				return err
			}
			left := make(chan error, 1)
			go func() { left <- do(ctx, "POST", frame) }()
			<-e.made
			switch how {
			case "cancels":
				if err := do(t.Context(), "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); err != nil {
					t.Fatal(err)
				}
				<-left
			case "ends the session":
				disconnect()
				<-left
				if err := do(t.Context(), "DELETE", ""); err != nil {
					t.Fatal(err)
				}
			default:
				disconnect()
				<-left
			}
			e.gone(t)
			close(e.let)
		})
	}
}

// crossing is a server that answers a call with a task when the client has just given it up.
type crossing struct {
	taskStub
	slow   jsonrpc.Message
	began  chan struct{}
	cancel chan string // ids of tasks that were cancelled
}

func (c *crossing) modern(m jsonrpc.Message) []string {
	switch m.Method {
	case "tools/call":
		c.slow = m.Clone()
		close(c.began)
		return []string{}
	case "notifications/cancelled":
		return c.taskStub.modern(c.slow)
	case "tasks/cancel":
		id, _ := m.Param("taskId")
		c.cancel <- string(id)
	}
	return c.taskStub.modern(m)
}

// An answer that crosses the giving up of its call and tells of a task is not just ignored:
// the task is cancelled, also if the session is closed at once (CANC-26-013, -014,
// XTASK-26-031).
func TestTaskThatCrossesTheGivingUp(t *testing.T) {
	calls := map[string]func(context.Context, *testing.T, *mcp.Session) error{
		"CallTool": func(ctx context.Context, _ *testing.T, s *mcp.Session) error {
			_, err := s.CallTool(ctx, "slow", nil)
			return err
		},
		"StartTask": func(ctx context.Context, _ *testing.T, s *mcp.Session) error {
			_, err := s.StartTask(ctx, "slow", nil)
			return err
		},
		"forwarded": func(ctx context.Context, t *testing.T, s *mcp.Session) error {
			front := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: s}, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
			_, err := front.CallTool(ctx, "slow", nil)
			return err
		},
	}
	for name, call := range calls {
		for _, closes := range []bool{false, true} {
			synctestRun(t, fmt.Sprintf("%s, closes %t", name, closes), func(t *testing.T) {
				c := &crossing{taskStub: taskStub{state: `"status":"working"`}, began: make(chan struct{}), cancel: make(chan string, 9)}
				s := c.connect(t, &mcp.Client{Name: "c"}, c.modern)
				ctx, giveUp := context.WithCancel(t.Context())
				failed := make(chan error, 1)
				go func() { failed <- call(ctx, t, s) }()
				<-c.began
				giveUp()
				if err := <-failed; !errors.Is(err, context.Canceled) {
					t.Errorf("the call = %v", err)
				}
				if name == "forwarded" {
					time.Sleep(time.Millisecond) // the session behind has to hear of it first
				}
				if closes {
					s.Close()
				}
				synctest.Wait()
				select {
				case id := <-c.cancel:
					if id != `"T"` {
						t.Errorf("cancelled %s", id)
					}
				default:
					t.Errorf("the task goes on; sent %v", c.log())
				}
			})
		}
	}
}

// Close does not wait for the answer to a call that was given up long before, nor long for
// one that does not come.
func TestCloseAfterGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crossing{began: make(chan struct{})}
		s := c.connect(t, &mcp.Client{Name: "c"}, func(m jsonrpc.Message) []string {
			if m.Method == "notifications/cancelled" {
				return []string{}
			}
			return c.modern(m)
		})
		ctx, giveUp := context.WithCancel(t.Context())
		go func() { <-c.began; giveUp() }()
		if _, err := s.CallTool(ctx, "slow", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the call = %v", err)
		}
		begun := time.Now()
		s.Close()
		if d := time.Since(begun); d > 300*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
	})
}

// A task that a call waits for, or that was lent to a caller in front, is cancelled when the
// session closes: nobody could ask for it any more. One that StartTask has returned goes on.
func TestTasksWhenTheSessionCloses(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			srv := &taskStub{state: `"status":"working"`}
			reply := srv.modern
			if rev == mcp.V2025_11_25 {
				reply = srv.legacy(`{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`)
			}
			s := srv.connect(t, &mcp.Client{Name: "c"}, reply)
			if _, err := s.StartTask(t.Context(), "required", nil); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := s.CallTool(t.Context(), "required", nil)
				failed <- err
			}()
			front := newShopper(t, &mcp.Server{Name: "front", Version: "1", Handler: s}, mcp.V2025_11_25)
			front.begin("required", "{}")
			time.Sleep(time.Second)
			begun := time.Now()
			s.Close()
			if d := time.Since(begun); d > 0 {
				t.Errorf("Close took %v of a server that answers at once", d)
			}
			if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("the call = %v", err)
			}
			cancelled := 0
			for _, method := range srv.log() {
				if method == "tasks/cancel" {
					cancelled++
				}
			}
			if cancelled != 2 {
				t.Errorf("sent %v, want two tasks cancelled", srv.log())
			}
		})
	}
}

// A task whose handle is there, but does not reach the caller in front, is given up by who
// stands between: a session that forwarded the call.
func TestTaskLostOnTheWayToTheFront(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			e := newEndless()
			close(e.let)
			front := &mcp.Server{Name: "front", Version: "1", Handler: mcptest.Connect(t, e.Server, middle(t), rev)}
			has, let := make(chan struct{}), make(chan struct{})
			front.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					res, err := next.Handle(ctx, req)
					if req.Method == "tools/call" {
						close(has)
						<-let
					}
					return res, err
				})
			})
			p := newShopper(t, front, rev)
			more := `"name":"forever","arguments":{}`
			if rev == mcp.V2025_11_25 {
				more += `,"task":{}`
			}
			id := p.ask("tools/call", more)
			<-has
			p.sendf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
			time.Sleep(time.Second)
			close(let)
			e.gone(t)
		})
	}
}

// A handler that has asked, and detaches its caller without the answer, makes no task:
// the question is what the caller gets.
func TestDetachWithAnOpenQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "hasty", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true}},
			func(ctx context.Context, _ struct{}) (string, error) {
				if _, err := mcp.Confirm(ctx, "really?"); err == nil {
					return "confirmed", nil
				}
				mcp.Detach(ctx)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return "", context.Cause(ctx)
			})
		p := newShopper(t, s, mcp.V2026_07_28)
		m := p.get("tools/call", `"name":"hasty","arguments":{}`)
		var res struct{ ResultType string }
		if err := json.Unmarshal(m.Result, &res); err != nil || res.ResultType != "input_required" {
			t.Fatalf("got %s", show(&m))
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the task that nobody knows of goes on")
			panic("x")
		}
	})
}

// The tasks that a session of 2026-07-28 makes for callers of 2025-11-25 have the bounds of
// those that it lends, and those that are over make room.
func TestTasksMadeHereMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := mcptest.Connect(t, taskServer(), middle(t), mcp.V2026_07_28)
		p := newShopper(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, mcp.V2025_11_25)
		var ids []string
		for range 101 {
			ids = append(ids, p.begin("unwell", "{}").TaskID)
			time.Sleep(time.Second)
		}
		wantError(t, p.get("tasks/get", `"taskId":"`+ids[0]+`"`), jsonrpc.CodeInvalidParams)
		if s := p.state(ids[100]); s.Status != "failed" {
			t.Errorf("the last is %+v", s)
		}
		var busy []string
		for range 100 {
			busy = append(busy, p.begin("forever", "{}").TaskID)
		}
		wantError(t, p.get("tools/call", `"name":"forever","arguments":{},"task":{}`), jsonrpc.CodeInternal)
		for _, id := range slices.Backward(busy) {
			p.get("tasks/cancel", `"taskId":"`+id+`"`)
		}
		time.Sleep(time.Minute)
	})
}
