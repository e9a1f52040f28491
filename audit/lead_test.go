package audit

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
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
	w := opened(t, Options{})
	if !w.disk.ready() {
		finished(t, w, 0)
		t.Skip("the kernel does not take requests: " + runtime.GOOS)
	}
	ask := w.start
	asked := make(chan struct{})
	w.start = func() bool { close(asked); return true } // and the disk does not answer
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client is gone")
	got := make(chan error)
	go func() { got <- w.Write(ctx, Entry{Kind: CallBegin, Call: "a"}) }()
	<-asked
	cancel(gone)
	if err := <-got; !errors.Is(err, gone) {
		t.Errorf("Write: %v, want %v", err, gone)
	}
	if !ask() { // now it answers
		t.Fatal("the kernel refuses")
	}
	w.start = ask
	finished(t, w, 1)
}

// Callers, lines of Add and the goroutine take turns, and no line is lost.
func TestLeadTogether(t *testing.T) {
	l, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const callers, calls = 16, 50
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
	if r, err := Verify([]string{l.path}, nil); err != nil || !r.Whole() || r.Lines != 2*callers*calls+2 {
		t.Errorf("%+v, %v", r, err)
	}
}
