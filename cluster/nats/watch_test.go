package nats_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestWatchEndsWhileItBeginsAnew sees that a watch ends with its context also while NATS does not let it go on: here its stream is gone, so that the client of
// NATS tries to make its consumer again, with pauses of seconds.
func TestWatchEndsWhileItBeginsAnew(t *testing.T) {
	t.Parallel()
	s := servers(t, 1)[0]
	c := open(t, s, "watched")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var begun, ended sync.WaitGroup
	for range 10 {
		begun.Add(1)
		ended.Go(func() {
			for change, err := range c.Watch(ctx, "some") {
				if err != nil {
					t.Error(err)
					return
				}
				if change.Key == "" {
					begun.Done()
				}
			}
		})
	}
	begun.Wait()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3500 * time.Millisecond) // in the third pause, of four seconds: there is no event for it
	began := time.Now()
	stop()
	ended.Wait()
	if took := time.Since(began); took > time.Second {
		t.Errorf("the watches ended after %v", took)
	}
}
