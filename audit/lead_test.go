package audit

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// opened returns a log whose goroutine has not begun, although callers can lead.
func opened(t *testing.T, o Options) *writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := &Log{path: path, options: o, urgent: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	l.options.defaults()
	w := &writer{Log: l, chain: chain{path: path, log: l}}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	w.lendable()
	return w
}

// finished starts the goroutine, closes the log, and verifies that it has these calls.
func finished(t *testing.T, w *writer, calls int) {
	t.Helper()
	go w.run()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Verify([]string{w.Log.path}, nil)
	if err != nil || !r.Whole() || r.Lines != int64(calls)+2 {
		t.Errorf("%+v, %v; want %d calls, a start and a stop", r, err, calls)
	}
}

// A caller that finds nobody writing writes its own line, and those that wait.
func TestLead(t *testing.T) {
	for name, sync := range map[string]Sync{"group": SyncGroup, "none": SyncNone} {
		t.Run(name, func(t *testing.T) {
			w := opened(t, Options{Sync: sync})
			w.several = false // a lone caller gives its lines to the goroutine, which has not begun, after holdTime
			w.looks = true    // and each caller after leadTime, but for this
			if sync == SyncGroup && !w.disk.ready() {
				finished(t, w, 0) // Windows does not remove an open file
				t.Skip("the kernel does not take requests: " + runtime.GOOS)
			}
			for range 3 {
				w.Add(Entry{Kind: CallEnd, Call: "a"})
				if err := w.Write(t.Context(), Entry{Kind: CallBegin, Call: "b"}); err != nil {
					t.Fatal(err)
				}
			}
			if s := w.Stats(); s.Lines != 6 || s.Queued != 0 || w.busy || len(w.handed) > 0 {
				t.Errorf("%+v, busy %v", s, w.busy)
			}
			w.Add(Entry{Kind: CallEnd, Call: "c"})
			<-w.urgent // of the timer, although lines before have been written meanwhile
			finished(t, w, 7)
		})
	}
}

// A caller does not wait for a slow disk longer than its context lasts, and its line is written later.
func TestLeadSlowDisk(t *testing.T) {
	for name, lag := range map[string]time.Duration{"slow before": time.Second, "quick before": 1} {
		t.Run(name, func(t *testing.T) {
			w := opened(t, Options{})
			if !w.disk.ready() {
				finished(t, w, 0)
				t.Skip("the kernel does not take requests: " + runtime.GOOS)
			}
			w.several = true
			w.lag.Store(int64(lag))
			ask := w.start
			asked := make(chan bool, 1)
			w.start = func(lone bool) bool { asked <- lone; return true } // and the disk does not answer
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the client is gone")
			got := make(chan error)
			go func() { got <- w.Write(ctx, Entry{Kind: CallBegin, Call: "a"}) }()
			lone := <-asked
			if lone != (lag == 1) {
				t.Errorf("a caller waits alone: %v", lone)
			}
			cancel(gone)
			if err := <-got; !errors.Is(err, gone) {
				t.Errorf("Write: %v, want %v", err, gone)
			}
			if !ask(lone) { // now it answers
				t.Fatal("the kernel refuses")
			}
			w.start = ask
			finished(t, w, 1)
		})
	}
}

// A caller keeps its thread only for a disk that was quick, only if nobody waits with it, and only if others can run.
func TestLone(t *testing.T) {
	w := opened(t, Options{})
	defer finished(t, w, 0)
	own, add := queued{waiter: new(waiter)}, queued{}
	for _, tt := range []struct {
		name    string
		lag     time.Duration
		several bool
		sync    Sync
		group   []queued
		want    bool
	}{
		{"quick disk", holdTime, true, SyncGroup, []queued{add, own}, true},
		{"slow disk", holdTime + 1, true, SyncGroup, []queued{add, own}, false},
		{"unknown disk", 0, true, SyncGroup, []queued{own}, false},
		{"another caller", holdTime, true, SyncGroup, []queued{own, own}, false},
		{"one processor", holdTime, false, SyncGroup, []queued{own}, false},
		{"no wait for the disk", holdTime, true, SyncNone, []queued{own}, false},
	} {
		w.lag.Store(int64(tt.lag))
		w.several, w.options.Sync = tt.several, tt.sync
		if got := w.lone(tt.group); got != tt.want {
			t.Errorf("%s: lone is %v, want %v", tt.name, got, tt.want)
		}
	}
	w.options.Sync = SyncGroup
}

// Callers, lines of Add and the goroutine take turns, and no line is lost.
func TestLeadTogether(t *testing.T) {
	for _, callers := range []int{1, 2, 16} {
		t.Run(strconv.Itoa(callers), func(t *testing.T) { leadTogether(t, callers, 320/callers) })
	}
}

func leadTogether(t *testing.T, callers, calls int) {
	l, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "a"}); err != nil {
					t.Error(err)
				}
				l.Add(Entry{Kind: CallEnd, Call: "a"})
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify([]string{l.path}, nil); err != nil || !r.Whole() || r.Lines != int64(2*callers*calls+2) {
		t.Errorf("%+v, %v", r, err)
	}
}
