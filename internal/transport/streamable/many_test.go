package streamable_test

import (
	"encoding/json"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Ten thousand idle sessions hold no goroutine. Sessions in use go on, the others end after their
// idle time, and Shutdown ends the rest.
func TestManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.MaxSessions = 10_000
		before := runtime.NumGoroutine()
		sessions := make([][]string, 10_000)
		for i := range sessions {
			sessions[i] = open(t, s, "2025-11-25")
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("%d sessions at rest have %d goroutines", len(sessions), n)
		}
		alive := func(h []string) bool { return serve(s, request(ping, h...)).Code == 200 }
		time.Sleep(20 * time.Minute)
		for i := 0; i < len(sessions); i += 2 {
			if !alive(sessions[i]) {
				t.Fatalf("session %d is gone after 20 minutes", i)
			}
		}
		time.Sleep(20 * time.Minute)
		for i, h := range sessions {
			if got, want := alive(h), i%2 == 0; got != want {
				t.Fatalf("session %d is alive: %v, want %v", i, got, want)
			}
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if alive(sessions[0]) {
			t.Error("a session is alive after Shutdown")
		}
	})
}

// A subscription is one watch without a goroutine, and ends with unsubscribe or the session.
func TestManyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		s.MaxSessions = 10_000
		var watches atomic.Int64
		s.Engine.Watch = func(uri string, _ func(string, json.RawMessage) error) func() {
			if uri != "x:a" {
				t.Errorf("watches %q", uri)
			}
			watches.Add(1)
			return func() { watches.Add(-1) }
		}
		before := runtime.NumGoroutine()
		var h []string
		for range 1000 {
			h = open(t, s, "2025-11-25")
			for range 2 { // the second adds no watch
				if w := serve(s, request(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:a"}}`, h...)); w.Code != 200 {
					t.Fatalf("subscribe = %d %s", w.Code, w.Body)
				}
			}
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("1,000 subscriptions have %d goroutines", n)
		}
		if watches.Load() != 1000 {
			t.Errorf("%d watches, want 1,000", watches.Load())
		}
		serve(s, request(`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"x:a"}}`, h...))
		if watches.Load() != 999 {
			t.Errorf("%d watches after one was ended, want 999", watches.Load())
		}
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		if watches.Load() != 0 {
			t.Errorf("%d watches of sessions that have ended", watches.Load())
		}
	})
}
