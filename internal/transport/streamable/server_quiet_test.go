package streamable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// A call that takes long becomes an event stream within the time of KeepAlive, with comments until its
// answer, so that proxies do not give it up (HTTP-26-020). A short one, one whose client or middleware
// takes no events, and one of a server without comments, is one JSON object.
func TestQuietCall(t *testing.T) {
	takes := func(d time.Duration) engine.Handler {
		return func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			if c.Method == revision.MethodCall {
				time.Sleep(d)
			}
			return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
		}
	}
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, tt := range []struct {
			name      string
			takes     time.Duration
			keepAlive time.Duration
			accept    string
			events    bool
		}{
			{"long", time.Minute, 15 * time.Second, "application/json, text/event-stream", true},
			{"short", 7 * time.Second, 15 * time.Second, "application/json, text/event-stream", false},
			{"without comments", time.Minute, -1, "application/json, text/event-stream", false},
			{"without events", time.Minute, 15 * time.Second, "application/json", false},
		} {
			t.Run(version+", "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, takes(tt.takes))
					s.KeepAlive = tt.keepAlive
					r := request(modernCall, modern("Accept", tt.accept)...)
					if version != "2026-07-28" {
						r = request(toolCall(7), append(open(t, s, version), "Accept", tt.accept)...)
					} else if tt.accept == "application/json" {
						t.Skip("clients of 2026-07-28 accept both")
					}
					time.Sleep(5 * time.Second)
					w, done := background(s, r)
					time.Sleep(16 * time.Second)
					w.mu.Lock()
					if begun := w.code != 0; begun != (tt.events || tt.takes < 16*time.Second) {
						t.Errorf("after 16 s the response has the status %d", w.code)
					}
					w.mu.Unlock()
					time.Sleep(time.Minute)
					if !finished(done) {
						t.Fatal("the call goes on")
					}
					got := w.text()
					kind := w.Header().Get("Content-Type")
					if tt.events != (kind == "text/event-stream") || !tt.events && kind != "application/json" || strings.Count(got, `"id":7,"result":{`) != 1 {
						t.Errorf("the answer is %s %q", kind, got)
					}
					if comments := strings.Count(got, ":\n\n"); tt.events != (comments >= 2) {
						t.Errorf("%d comments in %q", comments, got)
					}
					if primed := strings.HasPrefix(got, "id: "); primed != (tt.events && version == "2025-11-25") {
						t.Errorf("a client that could resume the answer gets %q", got)
					}
					time.Sleep(time.Minute)
					if w.text() != got {
						t.Error("something is sent after the answer")
					}
					if err := s.Shutdown(t.Context()); err != nil {
						t.Errorf("Shutdown = %v", err)
					}
				})
			})
		}
	}
}
