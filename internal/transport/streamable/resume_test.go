package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// steps is a handler that emits a notification for each value it receives, and answers when the
// channel is closed. A negative value detaches the caller.
func steps(next <-chan int) engine.Handler {
	return func(ctx context.Context, c *engine.Call) (engine.Result, error) {
		if c.Method != revision.MethodCall {
			return engine.Result{JSON: json.RawMessage(`{}`)}, nil
		}
		for n := range next {
			if n < 0 {
				c.Detach()
				continue
			}
			c.Emit("notifications/message", fmt.Appendf(nil, `{"level":"info","data":%d}`, n))
		}
		return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
	}
}

// eventIDs returns the ids of the events of a stream, in order.
func eventIDs(stream string) []string {
	var ids []string
	for line := range strings.Lines(stream) {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			ids = append(ids, strings.TrimSpace(id))
		}
	}
	return ids
}

func numbers(messages []string) []string {
	var out []string
	for _, m := range messages {
		switch _, after, ok := strings.Cut(m, `"data":`); {
		case ok:
			out = append(out, strings.TrimRight(after, "}"))
		default:
			out = append(out, "answer")
		}
	}
	return out
}

// A client whose connection broke resumes after the last event it saw, and gets each message of
// the stream once, including the answer; ids are unique and name their stream (SHTTP-25-029,
// -030, -032).
func TestStreamGoesOn(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := make(chan int)
				s := newServer(t, steps(next))
				h := open(t, s, version)
				w, done := background(s, request(toolCall(1), h...))
				next <- 1
				next <- 2
				synctest.Wait()
				ids := eventIDs(w.text())
				if primed := strings.HasPrefix(w.text(), "id: "); primed != (version == "2025-11-25") {
					t.Errorf("the stream begins with a priming event: %v\n%s", primed, w.text())
				}
				w.cut()
				next <- 3
				next <- 4
				synctest.Wait()
				resumed, over := background(s, get(append(h, "Last-Event-ID", ids[len(ids)-2])...))
				synctest.Wait()
				next <- 5
				close(next)
				if !finished(over) || !finished(done) {
					t.Fatal("the streams go on after the answer")
				}
				if got := numbers(resumed.messages()); !slices.Equal(got, []string{"2", "3", "4", "5", "answer"}) {
					t.Errorf("resumed with %q", got)
				}
				all := eventIDs(resumed.text())
				slices.Sort(all)
				if len(slices.Compact(all)) != 5 {
					t.Errorf("ids %q are not unique", all)
				}
				// Once more, when it is all over.
				again := serve(s, get(append(h, "Last-Event-ID", ids[len(ids)-1])...))
				if got := numbers(events(again.Body.String())); !slices.Equal(got, []string{"3", "4", "5", "answer"}) {
					t.Errorf("resumed after the end with %q", got)
				}
			})
		})
	}
}

// A handler detaches its caller; the client knows how to resume the stream, and does
// (2025-11-25, basic/transports).
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan int)
		s := newServer(t, steps(next))
		s.Retry = 250 * time.Millisecond
		h := open(t, s, "2025-11-25")
		w, done := background(s, request(toolCall(1), h...))
		next <- -1
		if !finished(done) {
			t.Fatal("the connection was not let go")
		}
		ids := eventIDs(w.text())
		if want := "id: " + ids[0] + "\nretry: 250\ndata: \n\n"; w.text() != want {
			t.Errorf("the stream is %q, want %q", w.text(), want)
		}
		w, done = background(s, get(append(h, "Last-Event-ID", ids[0])...))
		synctest.Wait()
		next <- 1
		next <- -1 // a second time
		if !finished(done) {
			t.Fatal("the second connection was not let go")
		}
		ids = eventIDs(w.text())
		next <- 2
		close(next)
		synctest.Wait()
		last := serve(s, get(append(h, "Last-Event-ID", ids[0])...))
		if got := numbers(events(last.Body.String())); !slices.Equal(got, []string{"2", "answer"}) {
			t.Errorf("came back for %q", got)
		}
		// Older clients cannot resume a stream; they keep their connection.
		next = make(chan int)
		s = newServer(t, steps(next))
		h = open(t, s, "2025-06-18")
		w, done = background(s, request(toolCall(1), h...))
		next <- -1
		if finished(done) {
			t.Fatal("a client of 2025-06-18 lost its connection")
		}
		close(next)
		if !finished(done) || code([]byte(w.text())) != 0 || !strings.Contains(w.text(), "result") {
			t.Errorf("answer = %q", w.text())
		}
	})
}

// SHTTP-25-032: a client gets only its own events, and a position that is no longer kept is an
// error.
func TestResumeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan int, 10)
		s := newServer(t, steps(next))
		h, other := open(t, s, "2025-11-25"), open(t, s, "2025-11-25")
		next <- 1
		close(next)
		w := serve(s, request(toolCall(1), h...))
		id := eventIDs(w.Body.String())[0]
		stream, _, _ := strings.Cut(id, "-")
		for name, r := range map[string]struct {
			headers []string
			id      string
		}{
			"another session":     {other, id},
			"garbage":             {h, "\x01%00"},
			"a stream of nobody":  {h, "AAAA-1"},
			"a negative position": {h, stream + "--1"},
			"a future position":   {h, stream + "-99"},
			"no position":         {h, stream},
			"a huge position":     {h, stream + "-99999999999999999999"},
			"a padded position":   {h, stream + "-01"},
		} {
			if w := serve(s, get(append(slices.Clone(r.headers), "Last-Event-ID", r.id)...)); w.Code != 400 {
				t.Errorf("%s: HTTP status %d %s, want 400", name, w.Code, w.Body)
			}
		}
		time.Sleep(time.Hour) // the session has ended, and its events are dropped
		if w := serve(s, get(append(h, "Last-Event-ID", id)...)); w.Code != 404 {
			t.Errorf("after the session: HTTP status %d, want 404", w.Code)
		}
	})
}

// If events were pruned, the client gets an error instead of the remaining ones.
func TestResumeOfPrunedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan int)
		s := newServer(t, steps(next))
		h := open(t, s, "2025-11-25")
		w, _ := background(s, request(toolCall(1), h...))
		next <- 1
		synctest.Wait()
		id := eventIDs(w.text())[0]
		time.Sleep(6 * time.Minute)
		next <- 2
		synctest.Wait()
		if w := serve(s, get(append(h, "Last-Event-ID", id)...)); w.Code != 400 || !strings.Contains(w.Body.String(), "Last-Event-ID") {
			t.Errorf("HTTP status %d %s, want 400", w.Code, w.Body)
		}
		close(next)
	})
}

// The later of two resumptions carries the stream; the earlier one ends.
func TestResumeTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan int)
		s := newServer(t, steps(next))
		h := open(t, s, "2025-11-25")
		w, _ := background(s, request(toolCall(1), h...))
		next <- 1
		synctest.Wait()
		h = append(h, "Last-Event-ID", eventIDs(w.text())[0])
		_, done1 := background(s, get(h...))
		synctest.Wait()
		w2, done2 := background(s, get(h...))
		if !finished(done1) || finished(done2) {
			t.Fatal("the earlier resumption goes on, or the later one does not")
		}
		next <- 2
		close(next)
		if !finished(done2) || !slices.Equal(numbers(w2.messages()), []string{"1", "2", "answer"}) {
			t.Errorf("the later one got %q", w2.messages())
		}
	})
}
