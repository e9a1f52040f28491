package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// narrow is a file on a disk that has room for a number of bytes.
type narrow struct {
	*os.File
	room atomic.Int64
}

func (n *narrow) WriteAt(b []byte, offset int64) (int, error) {
	room := max(0, n.room.Load()-offset)
	if int64(len(b)) <= room {
		return n.File.WriteAt(b, offset)
	}
	written, _ := n.File.WriteAt(b[:room], offset)
	return written, syscall.ENOSPC
}

// On a full disk Write is an error with the next step, and nothing of its line stays. Lines of Add
// are written when there is room again, and the chain is whole.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := &Log{path: path, urgent: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	l.options.defaults()
	w := &writer{Log: l, chain: chain{path: path, log: l}}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	disk := &narrow{File: w.file.(*os.File)}
	disk.room.Store(w.size + 700) // room for one line and a part of the next
	w.file = disk
	go w.run()
	if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "a"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "b", Reason: strings.Repeat("x", 1000)})
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "make room") {
			t.Fatalf("Write to a full disk: %v", err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(data), "\n") || strings.Contains(string(data), "xxx") {
		t.Errorf("a part of the line stays: %s, %v", data, err)
	}
	l.Add(Entry{Kind: CallEnd, Call: "c", Reason: strings.Repeat("y", 1000)})
	if s := l.Stats(); s.Err == nil {
		t.Errorf("%+v; want an error", s)
	}
	disk.room.Store(1 << 20)
	for begun := time.Now(); l.Stats().Queued > 0 || l.Stats().Err != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the line of Add is not written again")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for e, err := range Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Call)
	}
	if got := strings.Join(seen, ","); got != ",a,c," {
		t.Errorf("the log has the calls %s", got)
	}
	if r, err := Verify([]string{path}, nil); err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
}

// A full queue refuses lines at once, and a line says how many were dropped.
func TestFullQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := &Log{path: path, urgent: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	l.options.defaults()
	l.options.Sync = SyncNone
	w := &writer{Log: l, chain: chain{path: path, log: l}}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	for range maxQueued + 5 { // the goroutine has not begun
		l.Add(Entry{Kind: CallEnd})
	}
	if err := l.Write(context.Background(), Entry{Kind: CallBegin}); err == nil || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("Write with a full queue: %v", err)
	}
	go w.run()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Verify([]string{path}, nil)
	if err != nil || !r.Whole() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0].Text, "5 lines were dropped") || r.Lines != maxQueued+3 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Long lines fill the queue by their bytes, before those wait in memory.
func TestFullQueueOfLongLines(t *testing.T) {
	long.WithoutRace(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := &Log{path: path, urgent: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	l.options.defaults()
	l.options.Sync = SyncNone
	w := &writer{Log: l, chain: chain{path: path, log: l}}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	detail := []byte(`{"text":"` + strings.Repeat("x", maxDetail-20) + `"}`)
	n := maxQueuedBytes/maxDetail + 100
	for range n { // the goroutine has not begun
		l.Add(Entry{Kind: Config, Detail: detail})
	}
	if err := l.Write(context.Background(), Entry{Kind: CallBegin, Detail: detail}); err == nil || !strings.Contains(err.Error(), "lines of 63 MiB wait for "+path) {
		t.Errorf("Write with a full queue: %v", err)
	}
	s := l.Stats()
	if l.bytes > maxQueuedBytes || s.Dropped < 100 || s.Queued+int(s.Dropped) != n {
		t.Errorf("%d bytes wait, %+v", l.bytes, s)
	}
	go w.run()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify([]string{path}, nil); err != nil || !r.Whole() || r.Lines != int64(s.Queued)+3 || l.bytes != 0 {
		t.Errorf("%d bytes wait; %+v, %v", l.bytes, r, err)
	}
}

// A line costs little time of the processor.
func BenchmarkWrite(b *testing.B) {
	l, err := Open(filepath.Join(b.TempDir(), "audit.jsonl"), &Options{Sync: SyncNone})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := Entry{Kind: CallBegin, Call: "01J", Principal: &Principal{ID: "https://idp.example#ada"}, Client: &Client{Name: "desk", Revision: "2026-07-28"},
		Server: &Server{Name: "jira"}, Tool: "create", Arguments: &Arguments{Value: []byte(`{"a":1,"b":"text"}`)}}
	b.ReportAllocs()
	for b.Loop() {
		own := e
		if err := l.Write(context.Background(), own); err != nil {
			b.Fatal(err)
		}
	}
}

var _ io.WriterAt = (*narrow)(nil)
