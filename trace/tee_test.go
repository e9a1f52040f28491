package trace

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTee: each taker gets each frame once and in order, whatever the others do.
func TestTee(t *testing.T) {
	var mu sync.Mutex
	var faults []string
	tee := &Tee{OnFault: func(err error) { mu.Lock(); defer mu.Unlock(); faults = append(faults, err.Error()) }}
	if tee.Watched().Load() {
		t.Error("watched without takers")
	}
	tee.Record(Frame{Dir: In, Note: "nobody"})
	var got [2][]string
	var removes []func()
	for i := range got {
		removes = append(removes, tee.Add(func(f Frame) { got[i] = append(got[i], string(f.Msg)) }))
	}
	hang := make(chan struct{})
	tee.Add(func(Frame) { <-hang })
	tee.Add(func(f Frame) { panic("at " + string(f.Msg)) })
	var want []string
	msg := make([]byte, 0, 8)
	begun := time.Now()
	for n := range 500 {
		msg = fmt.Appendf(msg[:0], "%d", n) // the bytes are not the taker's
		tee.Record(Frame{Dir: In, Msg: msg})
		want = append(want, string(msg))
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("Record waits for a slow taker: %v", took)
	}
	for i, remove := range removes {
		remove()
		remove()
		if strings.Join(got[i], " ") != strings.Join(want, " ") {
			t.Errorf("taker %d got %d frames, want %d in order", i, len(got[i]), len(want))
		}
	}
	if !tee.Watched().Load() {
		t.Error("not watched although takers are left")
	}
	close(hang)
	tee.Close()
	tee.Add(func(Frame) { t.Error("told after Close") })
	tee.Record(Frame{Dir: In})
	if tee.Watched().Load() {
		t.Error("watched after Close")
	}
	if len(faults) != 500 || !strings.Contains(faults[0], "panicked: at 0") {
		t.Errorf("%d faults, want the 500 panics: %.100v", len(faults), faults)
	}
}

// drained waits until a taker has got everything in its queue.
func drained(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Flush(); err != nil && !errors.Is(err, ErrDropped) {
		t.Fatal(err)
	}
}

// TestTeeSlow: a taker that is too slow misses frames and is told how many; the others miss none.
func TestTeeSlow(t *testing.T) {
	tee := new(Tee)
	var slow, quick []Frame
	hang, begun := make(chan struct{}), make(chan struct{})
	var once sync.Once
	tee.Add(func(f Frame) { once.Do(func() { close(begun) }); <-hang; slow = append(slow, f) })
	tee.Add(func(f Frame) { quick = append(quick, f) })
	const n = defaultQueue + 200
	for i := range n {
		tee.Record(Frame{Dir: In, Note: "x"})
		if i == 0 {
			<-begun
		}
		if i%100 == 99 {
			drained(t, tee.takers[1].Writer)
		}
	}
	close(hang)
	drained(t, tee.takers[0].Writer)
	tee.Record(Frame{Dir: In, Note: "last"})
	tee.Close()
	lost := 0
	for _, f := range slow {
		lost += f.Lost
	}
	if len(slow)+lost < n || len(slow) >= n {
		t.Errorf("the slow taker got %d frames and %d as lost, of %d", len(slow), lost, n+1)
	}
	if len(quick) != n+1 {
		t.Errorf("the quick taker got %d frames, want %d", len(quick), n+1)
	}
}

// TestTeeOfSome: a taker of some frames gets those that are passed on, also when a later frame comes or after Record, in the
// order in which they are passed on; others get all frames.
func TestTeeOfSome(t *testing.T) {
	tee := new(Tee)
	var some, all []string
	var waits []Frame
	var queue func(Frame)
	remove := tee.AddSome(func(f Frame, to func(Frame)) {
		switch queue = to; string(f.Msg) {
		case "no":
		case "wait", "later":
			f.Msg = []byte(string(f.Msg)) // the bytes are not the taker's
			waits = append(waits, f)
		default:
			for _, w := range append(waits, f) {
				to(w)
			}
			waits = nil
		}
	}, func(f Frame) { some = append(some, string(f.Msg)) })
	end := tee.Add(func(f Frame) { all = append(all, string(f.Msg)) })
	msg := make([]byte, 0, 8)
	for _, m := range []string{"no", "a", "wait", "no", "b", "later", "no"} {
		msg = append(msg[:0], m...)
		tee.Record(Frame{Dir: In, Msg: msg})
	}
	queue(waits[0])
	remove()
	end()
	if got, want := strings.Join(some, " "), "a wait b later"; got != want {
		t.Errorf("the taker of some got %q, want %q", got, want)
	}
	if got, want := strings.Join(all, " "), "no a wait no b later no"; got != want {
		t.Errorf("the taker of all got %q, want %q", got, want)
	}
}
