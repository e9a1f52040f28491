package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

var _ io.Writer = writerFunc(nil)

func TestWriterKeepsOrderAndWholeLines(t *testing.T) {
	const goroutines, each = 8, 200
	var out bytes.Buffer
	w := trace.NewWriter(&out, &trace.WriterOptions{MaxWait: time.Minute, MaxQueued: 16})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			buf := make([]byte, 0, 64)
			for i := range each {
				buf = fmt.Appendf(buf[:0], `{"g":%d,"i":%d}`, g, i) // reused: Record must copy
				w.Record(trace.Frame{Dir: trace.In, Msg: buf})
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	next := make(map[int]int)
	n := 0
	for f, err := range trace.Read(&out) {
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ G, I int }
		if err := json.Unmarshal(f.Msg, &m); err != nil {
			t.Fatal(err)
		}
		if m.I != next[m.G] {
			t.Fatalf("goroutine %d: frame %d written, want %d", m.G, m.I, next[m.G])
		}
		if f.Time.IsZero() {
			t.Fatal("frame without a time")
		}
		next[m.G]++
		n++
	}
	if n != goroutines*each {
		t.Errorf("read %d frames, want %d", n, goroutines*each)
	}
}

func TestWriterDropsWhenTheSinkIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var out bytes.Buffer
		w := trace.NewWriter(writerFunc(func(b []byte) (int, error) {
			<-release
			return out.Write(b)
		}), &trace.WriterOptions{MaxQueued: 2, OmitTime: true})
		start := time.Now()
		for i := range 5 {
			w.Record(trace.Frame{Dir: trace.In, Msg: fmt.Appendf(nil, "%d", i)})
		}
		if got, want := time.Since(start), 50*time.Millisecond; got != want {
			t.Errorf("three Records over the bound, of which the first may wait, took %v, want %v", got, want)
		}
		close(release)
		if err := w.Flush(); !errors.Is(err, trace.ErrDropped) {
			t.Errorf("Flush = %v, want ErrDropped", err)
		}
		w.Record(trace.Frame{Dir: trace.In, Msg: []byte("5")})
		if err := w.Close(); !errors.Is(err, trace.ErrDropped) {
			t.Errorf("Close = %v, want ErrDropped", err)
		}
		want := `{"dir":"in","msg":0}
{"dir":"in","msg":1}
{"dir":"in","lost":3,"msg":5}
`
		if out.String() != want {
			t.Errorf("trace is\n%swant\n%s", out.String(), want)
		}
	})
}

// A noisy connection loses its own frames, not those of others, and the fault names it.
func TestWriterIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var out bytes.Buffer
		var fault error
		w := trace.NewWriter(writerFunc(func(b []byte) (int, error) {
			<-release
			return out.Write(b)
		}), &trace.WriterOptions{MaxQueued: 200, MaxWait: -1, OmitTime: true, OnFault: func(err error) { fault = err }})
		for i := range 2000 {
			w.Record(trace.Frame{Dir: trace.In, Conn: "noisy", Msg: fmt.Appendf(nil, "%d", i)})
			if i%50 == 0 {
				w.Record(trace.Frame{Dir: trace.In, Conn: "quiet", Msg: fmt.Appendf(nil, "%d", i)})
			}
		}
		close(release)
		err := w.Close()
		if err == nil || fault == nil || !strings.Contains(err.Error(), "noisy") || !strings.Contains(fault.Error(), "noisy") {
			t.Errorf("Close = %v, the fault is %v; want both with the name of the connection", err, fault)
		}
		quiet, lost, all := 0, 0, 0
		for f, err := range trace.Read(&out) {
			if err != nil {
				t.Fatal(err)
			}
			all++
			lost += f.Lost
			if f.Conn == "quiet" {
				quiet++
			}
		}
		if quiet != 40 || all != 200 || lost > w.Dropped() || w.Dropped() != 2040-200 {
			t.Errorf("%d frames of 40 of the quiet connection, %d of all, %d marked and %d counted as lost", quiet, all, lost, w.Dropped())
		}
	})
}

func TestWriterBoundsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := trace.NewWriter(writerFunc(func(b []byte) (int, error) { <-release; return len(b), nil }),
			&trace.WriterOptions{MaxQueuedBytes: 100, MaxWait: -1})
		big := []byte(`"` + strings.Repeat("x", 200) + `"`)
		w.Record(trace.Frame{Dir: trace.In, Msg: big}) // one may always wait
		w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
		close(release)
		if err := w.Close(); !errors.Is(err, trace.ErrDropped) {
			t.Errorf("Close = %v, want ErrDropped", err)
		}
	})
}

// Every part that a peer can make long counts: the text of a comment on a stream, the headers of
// an answer.
func TestWriterBoundsAllThatWaits(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, f := range map[string]trace.Frame{
		"note":    {Dir: trace.In, Kind: trace.KindComment, Note: long},
		"event":   {Dir: trace.In, Event: long, Msg: []byte("1")},
		"args":    {Dir: trace.Out, Kind: trace.KindStart, Args: []string{"cat", long}},
		"path":    {Dir: trace.In, HTTP: &trace.HTTP{Path: long}},
		"headers": {Dir: trace.In, HTTP: &trace.HTTP{Status: 200, Headers: map[string][]string{"A": {"b", long}}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				w := trace.NewWriter(writerFunc(func(b []byte) (int, error) { <-release; return len(b), nil }),
					&trace.WriterOptions{MaxQueuedBytes: 100, MaxWait: -1})
				w.Record(f) // one may always wait
				w.Record(f)
				close(release)
				if err := w.Close(); !errors.Is(err, trace.ErrDropped) {
					t.Errorf("Close = %v, want ErrDropped", err)
				}
			})
		})
	}
}

func TestWriterKeepsErrorOfSink(t *testing.T) {
	full := errors.New("disk full")
	w := trace.NewWriter(writerFunc(func([]byte) (int, error) { return 0, full }), nil)
	w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
	if err := w.Flush(); !errors.Is(err, full) {
		t.Errorf("Flush = %v, want %v", err, full)
	}
	w.Record(trace.Frame{Dir: trace.In, Msg: []byte("2")}) // must not wait or panic
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close = %v, want %v", err, full)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("second Close = %v, want %v", err, full)
	}
}

func TestWriterCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		w := trace.NewWriter(writerFunc(func(b []byte) (int, error) { <-release; return len(b), nil }), nil)
		w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
		start := time.Now()
		if err := w.Close(); err == nil {
			t.Error("Close with a stuck sink gave no error")
		}
		if got, want := time.Since(start), 5*time.Second; got != want {
			t.Errorf("Close took %v, want %v", got, want)
		}
	})
}

func TestWriterAfterClose(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
	if err := w.Flush(); !errors.Is(err, trace.ErrClosed) {
		t.Errorf("Flush after Close = %v, want ErrClosed", err)
	}
	if out.Len() > 0 {
		t.Errorf("Record after Close wrote %q", out.String())
	}
}

// BenchmarkRecord measures how many frames of 1 KiB a writer takes when the
// queue is always full: redaction and encoding, not the sink.
func BenchmarkRecord(b *testing.B) {
	msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 1<<10) + `"}}}`)
	w := trace.NewWriter(io.Discard, &trace.WriterOptions{MaxWait: time.Minute})
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		w.Record(trace.Frame{Dir: trace.In, Msg: msg})
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// A sink failure is reported once, and all later frames are counted.
func TestWriterCountsWhatAFullDiskLoses(t *testing.T) {
	full := errors.New("no space left")
	var told []error
	wrote := 0
	w := trace.NewWriter(writerFunc(func(b []byte) (int, error) {
		if wrote++; wrote > 1 {
			return 0, full
		}
		return len(b), nil
	}), &trace.WriterOptions{OnFault: func(err error) { told = append(told, err) }})
	for range 2 {
		w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
	}
	w.Flush()
	start := time.Now()
	for range 1000 {
		w.Record(trace.Frame{Dir: trace.In, Msg: []byte("2")})
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a thousand Records after the fault took %v", took)
	}
	err := w.Close()
	if !errors.Is(err, full) || !errors.Is(err, trace.ErrDropped) || !strings.Contains(err.Error(), "frames dropped: 1001") {
		t.Errorf("Close = %v, want the fault and 1001 frames", err)
	}
	if len(told) != 1 || !errors.Is(told[0], full) {
		t.Errorf("OnFault was told %v, want the fault once", told)
	}
}

// A slow sink is reported once too, at the first loss.
func TestWriterTellsOfTheFirstLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		told := 0
		w := trace.NewWriter(writerFunc(func(b []byte) (int, error) { <-release; return len(b), nil }),
			&trace.WriterOptions{MaxQueued: 1, OnFault: func(err error) {
				if told++; !errors.Is(err, trace.ErrDropped) {
					t.Errorf("OnFault(%v), want ErrDropped", err)
				}
			}})
		for range 10 {
			w.Record(trace.Frame{Dir: trace.In, Msg: []byte("1")})
		}
		close(release)
		w.Close()
		if told != 1 {
			t.Errorf("OnFault was called %d times, want once", told)
		}
	})
}

// A long message is cut after redaction, between two characters.
func TestWriterCutsLongMessages(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, &trace.WriterOptions{MaxFrame: 30, OmitTime: true})
	w.Record(trace.Frame{Dir: trace.In, Msg: []byte(`{"password":"hunter2hunter2hunter2","b":1}`)})
	w.Record(trace.Frame{Dir: trace.In, Raw: []byte(strings.Repeat("ä", 20))})
	w.Record(trace.Frame{Dir: trace.In, Raw: bytes.Repeat([]byte{0x80}, 40)})
	w.Record(trace.Frame{Dir: trace.In, Msg: []byte(`{"a":"` + strings.Repeat("x", 22) + `"}`)})
	w.Close()
	want := `{"dir":"in","cut":1,"raw":"{\"password\":\"[redacted]\",\"b\":1"}
{"dir":"in","cut":10,"raw":"` + strings.Repeat("ä", 15) + `"}
{"dir":"in","cut":14,"base64":"gICAgICAgICAgICAgICAgICAgICAgICAgIA="}
{"dir":"in","msg":{"a":"` + strings.Repeat("x", 22) + `"}}
`
	if got := out.String(); got != want {
		t.Errorf("written\n%swant\n%s", got, want)
	}
}

// A writer without a destination is found when it is made.
func TestNewWriterNil(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "io.Writer is nil") {
			t.Errorf("panic %s, want one that names the io.Writer", v)
		}
	}()
	trace.NewWriter(nil, nil)
}
