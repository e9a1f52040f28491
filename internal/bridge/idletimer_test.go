package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// exceeded is the error of a call that has reached a limit.
type exceeded struct {
	limit time.Duration
	total bool
}

func newExceeded(limit time.Duration, total bool) error { return &exceeded{limit, total} }

func (e *exceeded) Error() string { return fmt.Sprintf("%v, in total %t", e.limit, e.total) }

// One timer ends each call at its own time, however the others go on.
func TestIdleTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := idleTimers{exceeded: newExceeded}
		start := time.Now()
		type end struct {
			after time.Duration
			limit time.Duration
			total bool
		}
		ended := map[string]end{}
		calls := map[string]*idleTimer{}
		var mu sync.Mutex // guards ended
		begin := func(name string, idle, total time.Duration) {
			c := &idleTimer{}
			calls[name] = c
			c.Init(context.Background(), nil)
			context.AfterFunc(c, func() {
				mu.Lock()
				defer mu.Unlock()
				var limit *exceeded
				if !errors.As(context.Cause(c), &limit) {
					t.Errorf("%s ended with %v", name, context.Cause(c))
					return
				}
				ended[name] = end{time.Since(start), limit.limit, limit.total}
			})
			c.idle, c.total = idle, total
			all.begin(c)
		}
		const s = time.Second
		at := func(d time.Duration) {
			time.Sleep(d - time.Since(start))
			synctest.Wait()
		}
		begin("long", 10*s, 0)
		begin("short", 2*s, 0)
		begin("heard of", 3*s, 0)
		begin("heard of for long", 3*s, 7*s)
		begin("long with a question", -1, 7*s)
		begin("total", 0, 4*s)
		begin("asking", 3*s, 0)
		begin("answered", 2*s, 0)
		begin("unbounded", -1, -1)
		at(1 * s)
		calls["answered"].end()
		calls["answered"].end()
		calls["answered"].touch()
		calls["asking"].pause()
		calls["asking"].pause()
		at(2500 * time.Millisecond)
		calls["heard of"].touch()
		calls["heard of for long"].touch()
		calls["total"].touch()
		calls["asking"].resume()
		calls["asking"].touch() // still paused
		at(5 * s)
		calls["heard of for long"].touch()
		calls["long with a question"].pause()
		at(8 * s)
		calls["asking"].resume()
		calls["long with a question"].resume()
		calls["short"].pause() // its limit has passed already
		calls["short"].resume()
		begin("late", 2500*time.Millisecond, 0)
		at(60 * s)
		want := map[string]end{
			"short": {2 * s, 2 * s, false}, "heard of": {5500 * time.Millisecond, 3 * s, false}, "long": {10 * s, 10 * s, false},
			"late": {10500 * time.Millisecond, 2500 * time.Millisecond, false}, "asking": {11 * s, 3 * s, false},
			"heard of for long": {7 * s, 7 * s, true}, "total": {4 * s, 4 * s, true}, "long with a question": {10 * s, 7 * s, true},
		}
		mu.Lock()
		if !maps.Equal(ended, want) {
			t.Errorf("ended\n%v, want\n%v", ended, want)
		}
		mu.Unlock()
		for _, c := range calls {
			c.end()
		}
		if all.first != nil || all.due != 0 {
			t.Errorf("something is left: %v, due %v", all.first, all.due)
		}
		// A question that may belong to any call, also one that begins meanwhile.
		begin("before", 2*s, 0)
		all.pause()
		begin("meanwhile", 2*s, 5*s)
		at(100 * s)
		all.resume()
		at(101 * s)
		all.touch()
		at(160 * s)
		mu.Lock()
		for name, want := range map[string]time.Duration{"before": 103 * s, "meanwhile": 103 * s} {
			if ended[name].after != want {
				t.Errorf("%s ended after %v, want %v", name, ended[name].after, want)
			}
		}
		mu.Unlock()
		begin("closed", s, 0)
		all.close()
		at(200 * s)
		mu.Lock()
		defer mu.Unlock()
		if _, ok := ended["closed"]; ok {
			t.Error("the timer fires after close")
		}
	})
}

// A server is given up after consecutive calls, each begun after the one before had ended, without
// any message from it. Concurrent calls count once.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames atomic.Uint64
		gone := make(chan int, 10)
		all := idleTimers{exceeded: newExceeded}
		all.mute = mute{most: 3, frames: frames.Load, giveUp: func(calls int, limit time.Duration) {
			if limit != time.Second {
				t.Errorf("given up for the limit %v, want 1s", limit)
			}
			gone <- calls
		}}
		// call makes n calls without a message of the server, except for those that during causes.
		call := func(n int, during func()) {
			var calls []*idleTimer
			for range n {
				c := &idleTimer{}
				c.Init(context.Background(), nil)
				c.idle = time.Second
				all.begin(c)
				calls = append(calls, c)
			}
			time.Sleep(time.Second / 2)
			during()
			for _, c := range calls {
				<-c.Done()
				c.end()
			}
		}
		nothing, something := func() {}, func() { frames.Add(1) }
		for i, during := range []func(){nothing, nothing, something, nothing, nothing, something, something, nothing, nothing} {
			if call(10, during); len(gone) > 0 {
				t.Fatalf("given up after call %d, want never", i)
			}
		}
		// A server that processes one call after the other may be at work on a long one.
		long := &idleTimer{}
		long.Init(context.Background(), nil)
		long.idle = time.Minute
		all.begin(long)
		for range 5 {
			call(1, nothing)
		}
		if len(gone) > 0 {
			t.Fatal("given up while an older call was inside its limit")
		}
		long.end()
		something()
		for range 2 {
			call(1, nothing)
		}
		// Calls that came later keep nobody from counting.
		late := &idleTimer{}
		late.Init(context.Background(), nil)
		late.idle = time.Minute
		time.AfterFunc(time.Second/4, func() { all.begin(late) })
		call(1, nothing)
		late.end()
		if got := <-gone; got != 3 || len(gone) > 0 {
			t.Errorf("given up after %d calls and %d times more, want 3 and 0", got, len(gone))
		}
	})
}
