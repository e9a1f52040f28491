package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
)

// watcher sends numbered updates to the listeners of a server, synchronously.
type watcher struct {
	tell func(method string, params json.RawMessage) error
	n    int
}

// newWatched makes a server with a session that had a GET stream and closed it.
func newWatched(t *testing.T) (*streamable.Server, []string, *watcher) {
	w := &watcher{}
	s := newServer(t, nil)
	s.Engine.Watch = func(_ string, tell func(string, json.RawMessage) error) func() {
		w.tell = tell
		return func() {}
	}
	h := open(t, s, "2025-11-25")
	ctx, leave := context.WithCancel(t.Context())
	_, done := background(s, get(h...).WithContext(ctx))
	synctest.Wait()
	leave()
	<-done
	return s, h, w
}

func (w *watcher) update() {
	w.n++
	_ = w.tell(revision.NoteResourceUpdated, fmt.Appendf(nil, `{"uri":"a:%d"}`, w.n))
}

func (w *watcher) updates(times int) {
	for range times {
		w.update()
	}
}

// fromTo lists the numbers from a to b.
func fromTo(a, b int) string {
	var out []string
	for i := a; i <= b; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return strings.Join(out, " ")
}

// hook calls itself for each record.
type hook func(message string)

func (hook) Enabled(context.Context, slog.Level) bool        { return true }
func (h hook) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h hook) WithGroup(string) slog.Handler                 { return h }
func (h hook) Handle(_ context.Context, r slog.Record) error { h(r.Message); return nil }

// Messages that arrive while a new stream gets the backlog come after it (SHTTP-25-027), whether
// the loss of messages is being logged or the first message is being written.
func TestNewsDoesNotOvertakeTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, news := newWatched(t)
		s.Logger = slog.New(hook(func(message string) {
			if message == "notifications dropped" {
				news.update()
			}
		}))
		news.updates(65)
		ctx, leave := context.WithCancel(t.Context())
		w, done := background(s, get(h...).WithContext(ctx))
		synctest.Wait()
		if got, want := uris(w.messages()), fromTo(2, 66); got != want {
			t.Errorf("the stream has %s, want %s", got, want)
		}
		leave()
		<-done

		news.updates(20)
		told := make(chan struct{})
		slow := &frail{whole: 1000, first: func() { go func() { defer close(told); news.updates(20) }() }}
		ctx, leave = context.WithCancel(t.Context())
		done = make(chan struct{})
		go func() { defer close(done); s.ServeHTTP(slow, get(h...).WithContext(ctx)) }()
		<-told
		synctest.Wait()
		if got, want := uris(slow.messages()), fromTo(67, 106); got != want {
			t.Errorf("the stream has %s, want %s", got, want)
		}
		leave()
		<-done
	})
}

// frail is a recorder that calls first before its first event and loses its connection
// after whole events.
type frail struct {
	recorder
	whole, events int
	first         func()
}

func (f *frail) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("event: message")) {
		if f.events++; f.events == 1 && f.first != nil {
			f.first()
		}
		if f.events > f.whole {
			return 0, errors.New("connection reset")
		}
	}
	return f.recorder.Write(p)
}

// If the connection of a new stream breaks while it gets the backlog, the next stream gets the
// rest, before newer messages.
func TestBacklogOfABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, news := newWatched(t)
		news.updates(10)
		told := make(chan struct{})
		w := &frail{whole: 4, first: func() { go func() { defer close(told); news.updates(5) }() }}
		s.ServeHTTP(w, get(h...))
		<-told
		if got, want := uris(w.messages()), fromTo(1, 4); got != want {
			t.Errorf("the broken stream has %s, want %s", got, want)
		}
		ctx, leave := context.WithCancel(t.Context())
		next, done := background(s, get(h...).WithContext(ctx))
		synctest.Wait()
		if got, want := uris(next.messages()), fromTo(5, 15); got != want {
			t.Errorf("the next stream has %s, want %s", got, want)
		}
		leave()
		<-done
	})
}
