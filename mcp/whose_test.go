package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// scripted is a server of 2025-11-25 on a pipe that answers no call by itself.
type scripted struct {
	t     *testing.T
	conn  jsonrpc.Conn
	calls chan string // ids of the calls that arrive, with the name of the tool: "3 x"
	heard chan string // what the client answers and cancels
}

// behind opens a session by c with a scripted server that asks early as soon as it has answered
// initialize.
func behind(t *testing.T, c *mcp.Client, early ...string) (*scripted, *mcp.Session) {
	t.Helper()
	near, far := jsonrpc.Pipe()
	sc := &scripted{t, far, make(chan string, 100), make(chan string, 100)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			m, _ := jsonrpc.Decode(frame, jsonrpc.Limits{})
			id := string(m.ID.AppendJSON(nil))
			switch m.Method {
			case "initialize":
				sc.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`, id)
				for _, q := range early {
					sc.ask(q)
				}
			case "tools/call", "prompts/get":
				name, _ := m.Param("name")
				sc.calls <- id + " " + strings.Trim(string(name), `"`)
			case "notifications/cancelled":
				raw, _ := m.Param("requestId")
				sc.heard <- "cancelled " + string(raw)
			case "":
				if m.Error != nil {
					sc.heard <- fmt.Sprint(id, " ", m.Error.Code, " ", m.Error.Message)
				} else {
					sc.heard <- id + " " + string(m.Result)
				}
			}
		}
	}()
	c.Revisions = []mcp.Revision{mcp.V2025_11_25}
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); far.Close(); <-served })
	return sc, s
}

func (sc *scripted) send(format string, args ...any) {
	sc.conn.Write(fmt.Appendf(nil, format, args...))
}

// ask sends a question with the id "q", which is also what it says.
func (sc *scripted) ask(q string) {
	sc.send(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":{"message":%q,"requestedSchema":{"type":"object","properties":{}}}}`, q, q)
}

// settle waits until nothing happens any more without more time than questions are gathered in.
func settle() {
	synctest.Wait()
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
}

// call waits for the call of a tool and returns its id.
func (sc *scripted) call(tool string) string {
	sc.t.Helper()
	settle()
	select {
	case c := <-sc.calls:
		id, name, _ := strings.Cut(c, " ")
		if name != tool {
			sc.t.Fatalf("the server gets a call of %q, want %q", name, tool)
		}
		return id
	default:
		sc.t.Fatalf("the server has no call of %q", tool)
		return ""
	}
}

// none fails if the server has got a call.
func (sc *scripted) none() {
	sc.t.Helper()
	settle()
	if len(sc.calls) > 0 {
		sc.t.Errorf("the server gets %q, want no call", <-sc.calls)
	}
}

func (sc *scripted) done(id string) {
	sc.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, id)
}

func (sc *scripted) hears(want string) {
	sc.t.Helper()
	settle()
	select {
	case got := <-sc.heard:
		if !strings.Contains(got, want) {
			sc.t.Errorf("the server is told %q, want %q", got, want)
		}
	default:
		sc.t.Errorf("the server is told nothing, want %q", want)
	}
}

// beholder is a user who is shown questions, and answers when the test says so.
type beholder struct {
	mu    sync.Mutex
	shown []string
	reply chan string // action
}

func (u *beholder) client() *mcp.Client {
	return &mcp.Client{Name: "c", Version: "1", Limits: mcp.Limits{CallTimeout: -1}, OnElicit: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		u.mu.Lock()
		u.shown = append(u.shown, r.Message)
		u.mu.Unlock()
		select {
		case action := <-u.reply:
			return &mcp.ElicitResult{Action: action, Content: map[string]any{}}, nil
		case <-ctx.Done():
			u.mu.Lock()
			u.shown = append(u.shown, r.Message+" withdrawn")
			u.mu.Unlock()
			return nil, context.Cause(ctx)
		}
	}}
}

func (u *beholder) sees(t *testing.T, want ...string) {
	t.Helper()
	settle()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Equal(u.shown, want) {
		t.Errorf("the user is shown %q, want %q", u.shown, want)
	}
}

// front serves a handler to principals, whose sessions connect returns.
func front(t *testing.T, back mcp.Handler) (connect func(id string, rev mcp.Revision) (*mcp.Session, *beholder)) {
	return func(id string, rev mcp.Revision) (*mcp.Session, *beholder) {
		t.Helper()
		u := &beholder{reply: make(chan string)}
		near, far := jsonrpc.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			(&mcp.Server{Name: "gw", Version: "1", Handler: back}).Serve(principal.With(context.Background(), id), far)
		}()
		c := u.client()
		c.Revisions = []mcp.Revision{rev}
		s, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(); <-served })
		return s, u
	}
}

// start calls a tool and returns its end, and what gives it up.
func start(s *mcp.Session, tool string) (end chan error, giveUp context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	end = make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, tool, nil)
		end <- err
	}()
	return end, cancel
}

func middleman() *mcp.Client {
	c := &mcp.Client{Name: "middle", Version: "1", Limits: mcp.Limits{CallTimeout: -1}}
	c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "nobody to ask")
	}
	return c
}

// F1, T-39: a question that names no call gets, for calls of the API, the context of the only call
// that can have caused it.
func TestWhoseQuestion(t *testing.T) {
	type key struct{}
	for _, tt := range []struct {
		name  string
		calls []string // methods
		want  string   // which call's context the client is given
	}{
		{"none", nil, "none"},
		{"one", []string{"tools/call"}, "0"},
		{"one of another kind", []string{"custom/method"}, "0"},
		{"one beside a list", []string{"tools/list", "tools/call", "custom/method"}, "1"},
		{"two", []string{"tools/call", "prompts/get"}, "none"},
		{"two lists", []string{"tools/list", "prompts/list"}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := make(chan any, 1)
				sc, s := behind(t, &mcp.Client{Name: "c", OnElicit: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- ctx.Value(key{})
					return &mcp.ElicitResult{Action: "accept"}, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				for i, method := range tt.calls {
					go s.Raw(context.WithValue(ctx, key{}, i), method, json.RawMessage(`{"name":"x"}`))
					synctest.Wait()
				}
				sc.ask("q")
				sc.hears(`"q" {"action":"accept"`)
				got := <-asked
				if got == nil {
					got = "none"
				}
				if fmt.Sprint(got) != tt.want {
					t.Errorf("the question has the context of call %v, want %v", got, tt.want)
				}
				cancel()
			})
		})
	}
}

// F1: a question that can belong to several calls of a session goes to the session: it stays when
// one of the calls ends, and is withdrawn with the last of them.
func TestQuestionOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc, back := behind(t, middleman())
		s, user := front(t, back)("", mcp.V2025_06_18)
		a, _ := start(s, "a")
		idA := sc.call("a")
		b, giveUp := start(s, "b")
		idB := sc.call("b")
		sc.ask("first")
		user.sees(t, "first")
		sc.done(idA)
		if err := <-a; err != nil {
			t.Error(err)
		}
		user.reply <- "accept"
		sc.hears(`"first" {"action":"accept"`)

		a, _ = start(s, "a")
		idA = sc.call("a")
		sc.ask("second")
		user.sees(t, "first", "second")
		giveUp()
		<-b
		sc.hears("cancelled " + idB)
		user.sees(t, "first", "second")
		sc.done(idA)
		<-a
		user.sees(t, "first", "second", "second withdrawn")
	})
}

// F1: for callers without a session a question goes to the oldest call that has no open question,
// and to the next when that one ends first; but calls that end soon are not asked.
func TestQuestionOfAPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc, back := behind(t, middleman())
		s, user := front(t, back)("", mcp.V2026_07_28)
		short, _ := start(s, "short")
		idShort := sc.call("short")
		long, giveUp := start(s, "long")
		idLong := sc.call("long")
		asks, _ := start(s, "asks")
		idAsks := sc.call("asks")
		sc.ask("q")
		time.Sleep(100 * time.Millisecond)
		sc.done(idShort)
		if err := <-short; err != nil {
			t.Error(err)
		}
		user.sees(t)
		giveUp() // before it is asked
		<-long
		sc.hears("cancelled " + idLong)
		time.Sleep(time.Second)
		user.sees(t, "q")
		user.reply <- "accept"
		sc.hears(`"q" {"action":"accept"`)
		sc.done(idAsks)
		if err := <-asks; err != nil {
			t.Error(err)
		}
	})
}

// F1: a question that may belong to two callers is refused, and none of them is asked. From then
// on they take turns.
func TestTurns(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			sc, back := behind(t, middleman())
			connect := front(t, back)
			ada, adasUser := connect("ada", rev)
			eve, evesUser := connect("eve", rev)
			a, _ := start(ada, "a")
			idA := sc.call("a")
			b, _ := start(eve, "b")
			idB := sc.call("b")
			if back.Asks() {
				t.Error("the server is taken for one that asks")
			}
			sc.ask("whose")
			time.Sleep(time.Second)
			sc.hears(`"whose" -32603 cannot tell whose question this is`)
			if !back.Asks() {
				t.Error("the server is not taken for one that asks")
			}
			sc.done(idA)
			sc.done(idB)
			<-a
			<-b

			a, _ = start(ada, "a")
			idA = sc.call("a")
			b, _ = start(eve, "b")
			sc.none()
			again, _ := start(ada, "again") // a session waits for its turn too, or others would never get theirs
			sc.none()
			sc.ask("of ada")
			adasUser.sees(t, "of ada")
			idAgain := sc.call("again") // the answer may need it
			adasUser.reply <- "accept"
			sc.hears(`"of ada" {"action":"accept"`)
			sc.done(idAgain)
			<-again
			sc.none()
			sc.done(idA)
			<-a
			idB = sc.call("b")
			sc.ask("of eve")
			evesUser.sees(t, "of eve")
			evesUser.reply <- "decline"
			sc.hears(`"of eve" {"action":"decline"`)
			sc.done(idB)
			if err := <-b; err != nil {
				t.Error(err)
			}
			adasUser.sees(t, "of ada")
		})
	}
}

// F1: calls that a tool makes on behalf of callers take turns in front of the client's middleware,
// whether the server's first question comes in a call, or before the middleware is there, or in an
// earlier session. Behind the middleware, a call that was given up would share a question with the
// next.
func TestTurnsOnBehalf(t *testing.T) {
	for _, first := range []string{"in a call", "at once", "earlier"} {
		synctest.Test(t, func(t *testing.T) {
			c := middleman()
			c.Use(func(next mcp.Handler) mcp.Handler { return next })
			var early []string
			if first == "at once" {
				early = []string{"early"}
			}
			sc, back := behind(t, c, early...)
			if early != nil {
				sc.hears(`"early" -32`) // nobody to ask, or before the session is open
			}
			outer := &mcp.Server{Name: "outer", Version: "1"}
			for _, name := range []string{"a", "b"} {
				mcp.AddTool(outer, mcp.Tool{Name: name}, func(ctx context.Context, _ struct{}) (string, error) {
					return mcp.CallAs[string](ctx, back, name, nil, mcp.OnBehalf())
				})
			}
			connect := front(t, outer)
			ada, adasUser := connect("ada", mcp.V2025_11_25)
			eve, evesUser := connect("eve", mcp.V2025_11_25)
			a, giveUp := start(ada, "a")
			idA := sc.call("a")
			switch first {
			case "earlier":
				back.TakeTurns()
			case "in a call":
				sc.ask("of ada")
				adasUser.sees(t, "of ada")
				adasUser.reply <- "accept"
				sc.hears(`"of ada" {"action":"accept"`)
			}
			b, _ := start(eve, "b")
			sc.none()
			if waiting, _, _ := back.Turns(); waiting != 1 || !back.Asks() {
				t.Errorf("first question %s: %d calls wait for their turn, and the server asks: %v; want 1, true", first, waiting, back.Asks())
			}
			giveUp()
			<-a
			sc.hears("cancelled " + idA)
			sc.none()
			time.Sleep(6 * time.Second)
			idB := sc.call("b")
			sc.ask("of eve")
			evesUser.sees(t, "of eve")
			evesUser.reply <- "decline"
			sc.hears(`"of eve" {"action":"decline"`)
			sc.done(idB)
			if err := <-b; err != nil {
				t.Error(err)
			}
		})
	}
}

// F1: calls of one principal without a session take turns too, but a long one does not hold up the
// others. Nor do they wait behind calls of their own that have a question open.
func TestTurnsOfOnePrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc, back := behind(t, middleman())
		back.TakeTurns()
		s, user := front(t, back)("ada", mcp.V2026_07_28)
		long, _ := start(s, "long")
		idLong := sc.call("long")
		asks, _ := start(s, "asks")
		sc.none()
		time.Sleep(2 * time.Second)
		idAsks := sc.call("asks")
		sc.ask("q")
		time.Sleep(time.Second)
		user.sees(t, "q")
		another, _ := start(s, "another")
		time.Sleep(2 * time.Second)
		sc.done(sc.call("another"))
		user.reply <- "accept"
		sc.hears(`"q" {"action":"accept"`)
		sc.done(idAsks)
		sc.done(idLong)
		for _, end := range []chan error{long, asks, another} {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
	})
}

// F1: a call that waits for its turn ends with its context, with the connection, and after 5
// minutes with an error that says why. Those behind it come before its time.
func TestWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc, back := behind(t, middleman())
		connect := front(t, back)
		back.TakeTurns()
		ada, _ := connect("ada", mcp.V2025_11_25)
		eve, _ := connect("eve", mcp.V2025_11_25)
		a, _ := start(ada, "a")
		idA := sc.call("a")
		left, leave := start(eve, "left")
		late, _ := start(eve, "late")
		sc.none()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that is cancelled = %v", err)
		}
		begun := time.Now()
		time.Sleep(time.Minute)
		next, _ := start(eve, "next")
		var rpc *mcp.Error
		if err := <-late; !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || !strings.Contains(rpc.Message, "take turns") || time.Since(begun) < 4*time.Minute {
			t.Errorf("the call that waits in vain = %v after %v", err, time.Since(begun))
		}
		sc.none()
		sc.done(idA)
		<-a
		sc.call("next")
		back.Close()
		if err := <-next; err == nil {
			t.Error("the call of a closed session succeeds")
		}
	})
}

// F1: the server may still ask on behalf of a call that was cancelled. Another caller waits for a
// moment, so that such a question reaches nobody else.
func TestTurnOfACancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc, back := behind(t, middleman())
		connect := front(t, back)
		back.TakeTurns()
		ada, _ := connect("ada", mcp.V2025_11_25)
		eve, user := connect("eve", mcp.V2025_11_25)
		_, giveUp := start(ada, "a")
		id := sc.call("a")
		b, _ := start(eve, "b")
		giveUp()
		sc.hears("cancelled " + id)
		sc.none()
		sc.ask("late")
		sc.hears(`"late" -32603`)
		time.Sleep(6 * time.Second)
		sc.done(sc.call("b"))
		if err := <-b; err != nil {
			t.Error(err)
		}
		user.sees(t)
	})
}

// F1: a question that names no call goes to the session that its connection is for. If that has
// ended, or does not answer in time, the server gets an error, and never a decline.
func TestQuestionOfNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sc *scripted
		handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" {
				c := middleman()
				c.Front = ctx
				sc, _ = behind(t, c)
			}
			return mcp.RawResult(`{"content":[]}`), nil
		})
		user := &beholder{reply: make(chan string)}
		s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: handler}, user.client(), mcp.V2025_06_18)
		if _, err := s.CallTool(t.Context(), "open", nil); err != nil {
			t.Fatal(err)
		}
		sc.ask("one")
		user.sees(t, "one")
		user.reply <- "cancel"
		sc.hears(`"one" {"action":"cancel"`)
		sc.ask("two")
		user.sees(t, "one", "two")
		time.Sleep(16 * time.Minute)
		sc.hears(`"two" -32603 the caller has not answered within 15m0s`)
		sc.ask("three")
		synctest.Wait()
		s.Close()
		time.Sleep(2 * time.Second)
		sc.hears(`"three" -32603 the caller's session has ended`)
		sc.ask("four")
		time.Sleep(2 * time.Second)
		sc.hears(`"four" -32603 the caller's session has ended`)
	})
}
