package web

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// endless is a stream of comments without an end, for any number of readers.
type endless struct{ io.Closer }

func (endless) Read(p []byte) (int, error) { return copy(p, ":tick\n\n"), nil }

// A stream may be closed while it is read, as by the timer that bounds the reading of its end.
// Nothing is reported after its end.
func TestRecordedStreamIsClosedWhileItIsRead(t *testing.T) {
	var mu sync.Mutex
	var told []trace.Kind
	x := &exchange{n: 1, tap: &engine.Tap{Tell: func(f trace.Frame) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, f.Kind)
	}}}
	events := &eventTap{x: x, dir: trace.In}
	r := &reader{ReadCloser: endless{io.NopCloser(strings.NewReader(""))}, sink: events}
	var wg sync.WaitGroup
	some := make(chan struct{})
	wg.Go(func() {
		b := make([]byte, 100)
		for i := range 2000 {
			r.Read(b)
			if i == 100 {
				close(some)
			}
		}
	})
	<-some
	r.Close()
	wg.Wait()
	r.Close()
	for i, k := range told {
		if (k == trace.KindClose) != (i == len(told)-1) {
			t.Fatalf("frame %d of %d is %q", i, len(told), k)
		}
	}
}
