package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard is what a watch was told.
type heard struct {
	mu    sync.Mutex
	notes []string      // guarded by mu
	hold  chan struct{} // tell waits for it; nil: it does not
}

func (w *heard) tell(method string, params json.RawMessage) error {
	w.mu.Lock()
	w.notes = append(w.notes, method+string(params))
	w.mu.Unlock()
	if w.hold != nil {
		<-w.hold
	}
	return nil
}

func (w *heard) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes)
}

const toolsChanged = `notifications/tools/list_changed{}`

// A burst of changes is told once, in the order of the protocol, and nothing after stop.
func TestWatchTellsBurstsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h changeFeed
		var lists, resource heard
		stop := h.watch("", lists.tell)
		h.watch("x:a", resource.tell)
		for range 100 {
			h.changed(KindResourceTemplate)
			h.changed(KindTool)
			h.updated("x:a")
			h.updated("x:b")
		}
		if got := lists.all(); got != nil {
			t.Errorf("told %q before it settled", got)
		}
		time.Sleep(settle)
		synctest.Wait()
		if got, want := lists.all(), []string{toolsChanged, `notifications/resources/list_changed{}`}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if got, want := resource.all(), []string{`notifications/resources/updated{"uri":"x:a"}`}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		h.changed(KindTool)
		stop()
		time.Sleep(time.Second)
		if got := lists.all(); len(got) != 2 {
			t.Errorf("told %q after stop", got[2:])
		}
		if len(h.lists) != 0 || len(h.uris) != 1 {
			t.Errorf("%d watches of lists and %d of resources are left, want 0 and 1", len(h.lists), len(h.uris))
		}
	})
}

// Those that are slow to take what they are told keep neither the others nor more than a
// goroutine each, and learn afterwards that there was more.
func TestWatchSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h changeFeed
		hold := make(chan struct{})
		slow := make([]heard, 20)
		quick := make([]heard, 1000)
		for i := range slow {
			slow[i].hold = hold
			h.watch("", slow[i].tell)
		}
		for i := range quick {
			h.watch("", quick[i].tell)
		}
		before := runtime.NumGoroutine()
		for range 10 {
			h.changed(KindTool)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		for i := range quick {
			if got := quick[i].all(); len(got) != 10 {
				t.Fatalf("a quick watch was told %q, want 10 changes", got)
			}
		}
		if n := runtime.NumGoroutine() - before; n > len(slow)+2 { // the last one is about to end
			t.Errorf("%d goroutines for %d slow watches", n, len(slow))
		}
		close(hold)
		time.Sleep(time.Second)
		for i := range slow {
			if got := slow[i].all(); len(got) != 2 {
				t.Errorf("a slow watch was told %q, want the first change and one for all since", got)
			}
		}
	})
}

// BenchmarkChanged tells so many idle watches of a change.
func BenchmarkChanged(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("watches=%d", n), func(b *testing.B) {
			var h changeFeed
			told := make(chan struct{}, n)
			for i := range n {
				h.watch("", func(string, json.RawMessage) error { told <- struct{}{}; return nil })
				h.watch(fmt.Sprintf("x:%d", i), func(string, json.RawMessage) error { return nil })
			}
			b.ReportAllocs()
			for b.Loop() {
				h.changed(KindTool)
				for range n {
					<-told
				}
			}
		})
	}
}

// BenchmarkUpdated records a change of a resource that few of many listeners want.
func BenchmarkUpdated(b *testing.B) {
	var h changeFeed
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var ready sync.WaitGroup
	for i := range 1000 {
		ready.Add(1)
		go h.listen(ctx, nil, filter{URIs: []string{fmt.Sprintf("x:%d", i)}}, func() error { ready.Done(); return nil },
			func(string, json.RawMessage) error { return nil }, nil)
	}
	ready.Wait()
	b.ReportAllocs()
	for b.Loop() {
		h.updated("x:7")
	}
}
