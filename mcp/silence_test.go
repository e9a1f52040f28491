package mcp

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One timer ends each call at its own time, however the others go on.
func TestSilences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all silences
		start := time.Now()
		ended := map[string]time.Duration{}
		calls := map[string]*silence{}
		var mu sync.Mutex // guards ended
		begin := func(name string, most time.Duration) {
			calls[name] = &silence{}
			all.begin(calls[name], most, func(cause error) {
				mu.Lock()
				defer mu.Unlock()
				if cause != errNoAnswer {
					t.Errorf("%s ended with %v", name, cause)
				}
				ended[name] = time.Since(start)
			})
		}
		at := func(d time.Duration) {
			time.Sleep(d - time.Since(start))
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
		}
		begin("long", 10*time.Second)
		begin("short", 2*time.Second)
		begin("heard of", 3*time.Second)
		begin("asking", 3*time.Second)
		begin("answered", 2*time.Second)
		begin("unbounded", -1)
		at(time.Second)
		calls["answered"].end()
		calls["answered"].end()
		calls["answered"].touch()
		calls["asking"].pause()
		calls["asking"].pause()
		at(2500 * time.Millisecond)
		calls["heard of"].touch()
		calls["asking"].resume()
		calls["asking"].touch() // still paused
		at(8 * time.Second)
		calls["asking"].resume()
		begin("late", 2500*time.Millisecond)
		at(time.Minute)
		want := map[string]time.Duration{
			"short": 2 * time.Second, "heard of": 5500 * time.Millisecond, "long": 10 * time.Second,
			"late": 10500 * time.Millisecond, "asking": 11 * time.Second,
		}
		for name, d := range want {
			if ended[name] != d {
				t.Errorf("%s ended after %v, want %v", name, ended[name], d)
			}
		}
		if len(ended) != len(want) {
			t.Errorf("ended: %v", ended)
		}
		for _, s := range calls {
			s.end()
		}
		if all.first != nil || !all.due.IsZero() {
			t.Errorf("something is left: %v, due %v", all.first, all.due)
		}
		begin("after all", time.Second)
		at(2 * time.Minute)
		if ended["after all"] != time.Minute+time.Second {
			t.Errorf("the last one ended after %v", ended["after all"])
		}
		begin("closed", time.Second)
		all.close()
		at(3 * time.Minute)
		if _, ok := ended["closed"]; ok {
			t.Error("the timer fires after close")
		}
	})
}
