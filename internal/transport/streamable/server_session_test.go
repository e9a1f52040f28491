package streamable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
)

// get makes a GET with these headers.
func get(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/mcp", nil)
	r.Header.Set("Accept", "text/event-stream")
	set(r.Header, headers)
	return r
}

// background serves a request on a goroutine; done is closed when it is over.
func background(s http.Handler, r *http.Request) (w *recorder, done chan struct{}) {
	w, done = &recorder{}, make(chan struct{})
	go func() { defer close(done); s.ServeHTTP(w, r) }()
	return w, done
}

func finished(done chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`

// toolCall is a request of a legacy session.
func toolCall(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, id)
}

// A session and its questions belong to the principal that opened it: the id alone gives no
// access (ELIC-25-010, -011).
func TestSessionIsOfItsPrincipal(t *testing.T) {
	s := newServer(t, nil)
	s.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
	h := open(t, s, "2025-11-25", "X-User", "ann")
	mallory := append([]string{"Accept", "application/json, text/event-stream"}, h...)
	mallory = append(mallory, "X-User", "mallory")
	if w := serve(s, request(ping, mallory...)); w.Code != 404 {
		t.Errorf("POST of another principal = %d, want 404 as for an unknown session", w.Code)
	}
	if w := serve(s, get(mallory...)); w.Code != 404 {
		t.Errorf("GET of another principal = %d, want 404", w.Code)
	}
	del := httptest.NewRequest("DELETE", "/mcp", nil)
	set(del.Header, mallory)
	if w := serve(s, del); w.Code != 404 {
		t.Errorf("DELETE of another principal = %d, want 404", w.Code)
	}
	if w := serve(s, request(ping, h...)); w.Code != 200 {
		t.Errorf("POST of the principal = %d, want 200", w.Code)
	}
}

// Session ids cannot be guessed from a thousand others: they have at least 128 bits, and none of
// their characters is constant or a counter (SEC-25-003, SHTTP-25-033).
func TestSessionIDsAreRandom(t *testing.T) {
	const sessions = 1000
	s := newServer(t, nil)
	s.MaxSessions = sessions
	seen := map[string]bool{}
	var at []map[byte]bool // by position, the letters that occurred
	for range sessions {
		h := open(t, s, "2025-11-25")
		id := h[len(h)-1]
		seen[id] = true
		for i := range len(id) {
			if i == len(at) {
				at = append(at, map[byte]bool{})
			}
			at[i][id[i]] = true
		}
	}
	bits := 0
	for _, letters := range at {
		if len(letters) >= 32 { // a position of 5 bits lacks a letter in one run of 10 to the 12th
			bits += 5
		}
	}
	if len(seen) != sessions || bits < 128 {
		t.Errorf("%d different ids of %d with %d random bits, want all and 128", len(seen), sessions, bits)
	}
}

func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			if c.Method == revision.MethodListen {
				<-ctx.Done()
				return engine.Result{}, ctx.Err()
			}
			<-release
			return engine.Result{JSON: json.RawMessage(`{}`)}, nil
		})
		a, b, c := open(t, s, "2025-11-25"), open(t, s, "2025-11-25"), open(t, s, "2025-11-25")
		alive := func(h []string) bool { return serve(s, request(ping, h...)).Code == 200 }

		_, called := background(s, request(toolCall(1), b...))
		ctx, leave := context.WithCancel(t.Context())
		_, streaming := background(s, get(c...).WithContext(ctx))
		time.Sleep(29 * time.Minute)
		if !alive(a) {
			t.Error("session is gone after 29 minutes")
		}
		time.Sleep(29 * time.Minute)
		if !alive(a) {
			t.Error("the last request did not begin the idle time again")
		}
		time.Sleep(30 * time.Minute)
		if alive(a) {
			t.Error("session is alive after 30 minutes without a request")
		}
		// A running call and an open stream keep theirs.
		close(release)
		leave()
		if !finished(called) || !finished(streaming) {
			t.Fatal("call and stream did not end")
		}
		time.Sleep(29 * time.Minute)
		if !alive(b) || !alive(c) {
			t.Error("session ended within 30 minutes of the end of its call or stream")
		}
		time.Sleep(31 * time.Minute)
		if alive(b) || alive(c) {
			t.Error("session is alive after 31 idle minutes")
		}
	})
}

func TestSessionCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.MaxSessions = 2
		h := open(t, s, "2025-11-25")
		serve(s, request(toolCall(1), h...))
		h = open(t, s, "2025-11-25")
		serve(s, request(toolCall(1), h...))
		w := serve(s, request(initialize))
		if w.Code != 503 || w.Header().Get("Retry-After") != "1800" || !strings.Contains(w.Body.String(), "MaxSessions") {
			t.Errorf("third initialize = %d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
		}
		del := httptest.NewRequest("DELETE", "/mcp", nil)
		set(del.Header, h)
		serve(s, del)
		open(t, s, "2025-11-25")
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		open(t, s, "2025-11-25") // replaces an idle one
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

// Trap 8: the next session of a principal that has its quarter replaces one of its own, never one
// of another principal, and never one that may have state.
func TestOnePrincipalDoesNotTakeAllSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.MaxSessions = 12
		s.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
		alive := func(h []string) bool { return serve(s, request(ping, h...)).Code == 200 }
		list := `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`
		var bob, eve [][]string
		for range 3 {
			bob = append(bob, open(t, s, "2025-11-25", "X-User", "bob"))
		}
		for range 3 {
			eve = append(eve, open(t, s, "2025-11-25", "X-User", "eve"))
			serve(s, request(list, eve[len(eve)-1]...))
			time.Sleep(time.Second)
		}
		serve(s, request(toolCall(1), eve[0]...))
		_, streaming := background(s, get(eve[2]...)) // in use
		time.Sleep(time.Second)

		eve = append(eve, open(t, s, "2025-11-25", "X-User", "eve"))
		if got := fmt.Sprint(alive(eve[0]), alive(eve[1]), alive(eve[2]), alive(eve[3])); got != "true false true true" {
			t.Errorf("alive after a fourth session: %s, want the quietest without state gone", got)
		}
		serve(s, request(toolCall(1), eve[3]...))
		w := serve(s, request(initialize, "X-User", "eve"))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "a quarter of the 12") {
			t.Errorf("one session too many = %d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
		}
		for i, h := range bob {
			if !alive(h) {
				t.Errorf("session %d of another principal is gone", i)
			}
		}
		// Unauthenticated callers are bounded only by the total.
		var nobody [][]string
		for range 6 {
			nobody = append(nobody, open(t, s, "2025-11-25"))
			serve(s, request(toolCall(1), nobody[len(nobody)-1]...))
		}
		w = serve(s, request(initialize))
		if w.Code != 503 || !strings.Contains(w.Body.String(), "there are 12 sessions") {
			t.Errorf("one session more than all = %d %s", w.Code, w.Body)
		}
		for _, h := range nobody {
			if !alive(h) {
				t.Error("a session of a caller who is not known is gone")
			}
		}
		if err := s.Shutdown(t.Context()); err != nil || !finished(streaming) {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

// TestQuestion: a request of the server travels on the stream of the call, and the answer comes
// in another POST of the same session.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			got, err := c.Ask(ctx, engine.Question{Method: revision.MethodElicit, Params: json.RawMessage(`{"message":"?"}`)})
			if err != nil {
				return engine.Result{}, err
			}
			return engine.Result{JSON: got[0]}, nil
		})
		h, other := open(t, s, "2025-11-25"), open(t, s, "2025-11-25")
		w, done := background(s, request(toolCall(1), h...))
		synctest.Wait()
		got := w.messages()
		if len(got) != 1 || !strings.Contains(got[0], `"id":1,"method":"elicitation/create"`) || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("X-Accel-Buffering") != "no" {
			t.Fatalf("stream = %q, header %v", got, w.Header())
		}
		const answer = `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`
		if w := serve(s, request(answer, other...)); w.Code != 202 {
			t.Errorf("answer in another session = %d, want 202", w.Code)
		}
		if finished(done) {
			t.Fatal("the answer of another session was taken")
		}
		if w := serve(s, request(strings.Replace(answer, `"id":1`, `"id":"1"`, 1), h...)); w.Code != 202 {
			t.Errorf("answer with another id = %d, want 202", w.Code)
		}
		if finished(done) {
			t.Fatal(`the answer with the id "1" was taken for that of 1`)
		}
		serve(s, request(answer, h...))
		if !finished(done) {
			t.Fatal("call goes on after its answer")
		}
		if got := w.messages(); len(got) != 2 || got[1] != `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}` {
			t.Errorf("stream = %q", got)
		}
		// Ids of questions are not used again, and an error is an error.
		w, done = background(s, request(toolCall(2), h...))
		synctest.Wait()
		if got := w.messages(); len(got) != 1 || !strings.Contains(got[0], `"id":2,`) {
			t.Errorf("second question = %q", got)
		}
		serve(s, request(`{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}`, h...))
		if !finished(done) || !strings.Contains(w.messages()[1], `"error":{"code":-1,"message":"no"}`) {
			t.Errorf("stream = %q", w.messages())
		}
	})
}

// TestClientThatTakesNoEvents: a client that does not accept event streams gets its answer
// without notifications.
func TestClientThatTakesNoEvents(t *testing.T) {
	s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
		c.Progress(1, 2, "")
		if _, err := c.Ask(ctx, engine.Question{Method: revision.MethodElicit, Params: json.RawMessage(`{"message":"?"}`)}); err == nil {
			t.Error("a client that takes no event stream was asked")
		}
		return engine.Result{JSON: json.RawMessage(`{}`)}, nil
	})
	h := open(t, s, "2025-11-25")
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}`
	w := serve(s, request(body, append(h, "Accept", "application/json")...))
	if w.Code != 200 || w.Body.String() != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("answer = %d %s", w.Code, w.Body)
	}
	w = serve(s, request(ping, append(h, "Accept", "text/event-stream")...))
	if got := events(w.Body.String()); len(got) != 1 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("answer to a client that takes only events = %v %s", w.Header(), w.Body)
	}
}

func TestCancelAndDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return engine.Result{}, cause
		})
		h, other := open(t, s, "2025-11-25"), open(t, s, "2025-11-25")
		w, done := background(s, request(toolCall(1), h...))
		synctest.Wait()
		if w := serve(s, request(toolCall(1), h...)); w.Code != 400 || code(w.Body.Bytes()) != -32600 {
			t.Errorf("same id = %d %s, want 400 with -32600", w.Code, w.Body)
		}
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}`
		serve(s, request(cancel, other...))
		serve(s, request(strings.Replace(cancel, "1", `"1"`, 1), h...))
		serve(s, request(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, h...))
		if finished(done) {
			t.Fatal("cancelled from another session, or by another id")
		}
		if w := serve(s, request(cancel, h...)); w.Code != 202 {
			t.Errorf("cancelled = %d, want 202", w.Code)
		}
		if !finished(done) || !errors.Is(cause, streamable.ErrCancelled) || !strings.Contains(cause.Error(), "bored") {
			t.Fatalf("cause = %v, want ErrCancelled with the reason", cause)
		}
		if got := w.messages(); len(got) != 0 || w.code != 200 {
			t.Errorf("answer to a cancelled call = %d %q, want none", w.code, got)
		}
		// DELETE and Shutdown end a call too.
		w, done = background(s, request(toolCall(2), h...))
		synctest.Wait()
		del := httptest.NewRequest("DELETE", "/mcp", nil)
		set(del.Header, h)
		serve(s, del)
		if !finished(done) || !errors.Is(cause, streamable.ErrSessionEnded) || code([]byte(w.text())) != -32603 {
			t.Errorf("call of an ended session: cause %v, answer %q", cause, w.text())
		}
	})
}

// TestBrokenConnection: SHTTP-25-020, a call of a session goes on when its
// connection breaks.
func TestBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, alive := make(chan struct{}), false
		s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			select {
			case <-release:
				alive = true
			case <-ctx.Done():
			}
			return engine.Result{JSON: json.RawMessage(`{}`)}, nil
		})
		h := open(t, s, "2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		w, done := background(s, request(toolCall(1), h...).WithContext(ctx))
		synctest.Wait()
		leave()
		w.cut()
		if !finished(done) {
			t.Fatal("the exchange goes on without its client")
		}
		close(release)
		synctest.Wait()
		if !alive {
			t.Error("the call did not go on")
		}
	})
}

// listHandler emits what is put on the channel to every listen that wants it.
type listHandler struct {
	topic   chan string
	updates atomic.Int64
}

func (l *listHandler) handle(ctx context.Context, c *engine.Call) (engine.Result, error) {
	if c.Method != revision.MethodListen {
		return engine.Result{JSON: json.RawMessage(`{}`)}, nil
	}
	c.Emit(revision.NoteAcknowledged, json.RawMessage(`{"notifications":{}}`))
	for {
		select {
		case method := <-l.topic:
			if method == revision.NoteResourceUpdated {
				c.Emit(method, fmt.Appendf(nil, `{"uri":"a:%d"}`, l.updates.Add(1)))
				continue
			}
			c.Emit(method, nil)
		case <-ctx.Done():
			return engine.Result{}, context.Cause(ctx)
		}
	}
}

// A GET stream resumes after the last event that its client saw; messages that could not be sent
// are sent once, whether the client resumes or opens a new stream (SHTTP-25-025, -027, -032).
func TestResumeGET(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listHandler{topic: make(chan string)}
		s := newServer(t, l.handle)
		h := open(t, s, "2025-11-25")
		w1, done1 := background(s, get(h...))
		synctest.Wait()
		for range 3 {
			l.topic <- revision.NoteResourceUpdated
		}
		synctest.Wait()
		ids := eventIDs(w1.text())
		if len(ids) != 3 {
			t.Fatalf("ids = %q", ids)
		}
		// The client saw only the first, and resumes before the server notices the disconnect.
		w2, done2 := background(s, get(append(h, "Last-Event-ID", ids[0])...))
		if !finished(done1) {
			t.Error("the old connection goes on")
		}
		l.topic <- revision.NoteResourceUpdated
		synctest.Wait()
		if got := uris(w2.messages()); got != "2 3 4" || len(w1.messages()) != 3 {
			t.Errorf("resumed with %q", got)
		}
		w2.cut()
		l.topic <- revision.NoteResourceUpdated // no stream gets it
		if !finished(done2) {
			t.Error("the broken connection goes on")
		}
		l.topic <- revision.NoteResourceUpdated
		synctest.Wait() // or it may overtake the backlog
		ids = eventIDs(w2.text())
		w3, _ := background(s, get(append(h, "Last-Event-ID", ids[len(ids)-1])...))
		synctest.Wait()
		if got := uris(w3.messages()); got != "5 6" {
			t.Errorf("resumed with %q", got)
		}
		// Streams that are not resumed are dropped for new ones.
		var first string
		for range 70 {
			ctx, leave := context.WithCancel(t.Context())
			w, done := background(s, get(h...).WithContext(ctx))
			synctest.Wait()
			l.topic <- revision.NoteResourceUpdated
			synctest.Wait()
			leave()
			if !finished(done) {
				t.Fatal("GET goes on without its client")
			}
			if first == "" {
				first = eventIDs(w.text())[0]
			}
		}
		if late := serve(s, get(append(h, "Last-Event-ID", first)...)); late.Code != 400 {
			t.Errorf("status = %d, want 400 for a stream that was dropped", late.Code)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

// uris returns the numbers of the resources that messages of a listHandler name.
func uris(messages []string) string {
	var out []string
	for _, m := range messages {
		_, after, _ := strings.Cut(m, `"a:`)
		n, _, _ := strings.Cut(after, `"`)
		out = append(out, n)
	}
	return strings.Join(out, " ")
}

// TestGET: SHTTP-25-001, -024, -025, -027, -028.
func TestGET(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listHandler{topic: make(chan string)}
		s := newServer(t, l.handle)
		h := open(t, s, "2025-11-25")
		ctx1, leave1 := context.WithCancel(t.Context())
		ctx2, leave2 := context.WithCancel(t.Context())
		w1, done1 := background(s, get(h...).WithContext(ctx1))
		synctest.Wait()
		l.topic <- "notifications/tools/list_changed"
		synctest.Wait()
		if got := w1.messages(); len(got) != 1 || !strings.Contains(got[0], "tools/list_changed") {
			t.Fatalf("stream = %q, want the change and no acknowledgement", got)
		}
		w2, done2 := background(s, get(h...).WithContext(ctx2))
		synctest.Wait()
		l.topic <- "notifications/prompts/list_changed"
		synctest.Wait()
		if len(w1.messages()) != 1 || len(w2.messages()) != 1 {
			t.Errorf("streams have %d and %d messages, want 1 and 1: the newest gets them", len(w1.messages()), len(w2.messages()))
		}
		leave2()
		if !finished(done2) {
			t.Fatal("GET goes on without its client")
		}
		l.topic <- "notifications/tools/list_changed"
		synctest.Wait()
		if len(w1.messages()) != 2 || len(w2.messages()) != 1 {
			t.Errorf("streams have %d and %d messages, want 2 and 1: the older takes over", len(w1.messages()), len(w2.messages()))
		}
		leave1()
		if !finished(done1) {
			t.Fatal("GET goes on without its client")
		}

		// Changes are kept for the next stream, and a list change is sent once.
		sub := serve(s, request(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:b"}}`, h...))
		if sub.Code != 200 || code(sub.Body.Bytes()) != 0 {
			t.Fatalf("subscribe = %d %s", sub.Code, sub.Body)
		}
		// Two listens run concurrently: send one change at a time, or their order is undefined.
		tell := func(method string, times int) {
			for range times {
				l.topic <- method
				synctest.Wait()
			}
		}
		tell("notifications/tools/list_changed", 63)
		tell("notifications/resources/updated", 64)
		tell("notifications/tools/list_changed", 2)
		ctx3, leave3 := context.WithCancel(t.Context())
		w3, done3 := background(s, get(h...).WithContext(ctx3))
		synctest.Wait()
		if got := w3.messages(); len(got) != 64 || !strings.Contains(got[0], `"a:2"`) || !strings.Contains(got[63], "tools/list_changed") {
			t.Errorf("next stream has %d messages, want the last 64", len(got))
		}
		// A stream whose connection is closed passes on the messages it could not send.
		w3.cut()
		serve(s, request(`{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:b"}}`, h...))
		l.topic <- "notifications/tools/list_changed"
		leave3()
		if !finished(done3) {
			t.Error("GET goes on")
		}
		// The end of the session ends the stream.
		w4, done4 := background(s, get(h...))
		synctest.Wait()
		del := httptest.NewRequest("DELETE", "/mcp", nil)
		set(del.Header, h)
		serve(s, del)
		if !finished(done4) || w4.code != 200 {
			t.Error("stream goes on after DELETE")
		}
	})
}

func TestTooManyGETs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listHandler{topic: make(chan string)}
		s := newServer(t, l.handle)
		h := open(t, s, "2025-11-25")
		_, first := background(s, get(h...))
		synctest.Wait()
		for range 8 {
			background(s, get(h...))
			synctest.Wait()
		}
		if !finished(first) {
			t.Error("the ninth stream did not end the first")
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listHandler{topic: make(chan string)}
		s := newServer(t, l.handle)
		h := open(t, s, "2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		w, done := background(s, get(h...).WithContext(ctx))
		time.Sleep(10 * time.Second)
		l.topic <- "notifications/tools/list_changed"
		time.Sleep(14 * time.Second)
		if strings.Contains(w.text(), ":\n\n") {
			t.Error("comment within 15 s of an event")
		}
		time.Sleep(17 * time.Second)                                                                    // 31 s
		if got := strings.Count(w.text(), "\n:\n\n") + strings.Count(w.text(), "\n\n:\n\n:"); got < 1 { // HTTP-26-020
			t.Errorf("no comments on a quiet stream: %q", w.text())
		}
		leave()
		if !finished(done) {
			t.Fatal("GET goes on")
		}
		before := w.text()
		time.Sleep(time.Minute)
		if w.text() != before {
			t.Error("comment after the end")
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}
