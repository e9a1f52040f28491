// Package inproc measures a call within one process, without a library: two goroutines and
// two channels of bytes.
package inproc

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/bench/peers/bare"
)

type wire struct {
	calls   chan []byte
	answers chan []byte
}

func open(s *bare.Server) *wire {
	w := &wire{make(chan []byte), make(chan []byte)}
	go func() { // it ends when calls is closed
		defer close(w.answers)
		var answer []byte
		for call := range w.calls {
			answer = s.Answer(answer[:0], call)
			w.answers <- answer
		}
	}()
	return w
}

var text = strings.Repeat("x", 100)

func BenchmarkEcho(b *testing.B) {
	w := open(bare.NewServer(1))
	defer close(w.calls)
	var call []byte
	b.ReportAllocs()
	for b.Loop() {
		call = bare.AppendCall(call[:0], 1, text)
		w.calls <- call
		if got, err := bare.Text(<-w.answers); err != nil || got != text {
			b.Fatal(got, err)
		}
	}
}

// Each caller has a wire of its own, as answers cannot be told apart.
func BenchmarkEchoParallel(b *testing.B) {
	s := bare.NewServer(1)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		w := open(s)
		defer close(w.calls)
		var call []byte
		for pb.Next() {
			call = bare.AppendCall(call[:0], 1, text)
			w.calls <- call
			if got, err := bare.Text(<-w.answers); err != nil || got != text {
				b.Error(got, err)
			}
		}
	})
}
