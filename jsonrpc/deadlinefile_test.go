package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// contextWriter is the method that the connections of this package have besides those of Conn.
type contextWriter interface {
	WriteContext(ctx context.Context, frame []byte) (sent bool, err error)
}

var errEnough = errors.New("waited long enough")

// A peer that does not read blocks a writer only until the writer's context ends, and a frame
// that was begun arrives whole if the peer reads later.
func TestWriteContextToAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	conn := jsonrpc.NewLineConn(strings.NewReader(""), w, w.Close, 0)
	defer conn.Close()
	big := bytes.Repeat([]byte("x"), 1<<20)
	ctx, cancel := context.WithCancelCause(t.Context())
	type outcome struct {
		sent bool
		err  error
	}
	outcomes := make(chan outcome)
	for range 2 { // one writes, the other waits for its turn
		go func() {
			sent, err := conn.(contextWriter).WriteContext(ctx, big)
			outcomes <- outcome{sent, err}
		}()
	}
	cancel(errEnough)
	want := 0
	for range 2 {
		o := <-outcomes
		if o.err != errEnough {
			t.Errorf("WriteContext = %v, want the cause of its context", o.err)
		}
		if o.sent {
			want++
		}
	}
	last := make(chan error, 1)
	go func() { last <- conn.Write([]byte("last")) }()
	peer := jsonrpc.NewLineConn(r, nil, r.Close, 0)
	defer peer.Close()
	var buf []byte
	for got := 0; ; got++ {
		if buf, err = peer.Read(buf); err != nil {
			t.Fatal(err)
		}
		if string(buf) == "last" {
			if got != want {
				t.Errorf("%d frames came before the last one, want the %d that were told to be sent", got, want)
			}
			break
		}
		if !bytes.Equal(buf, big) {
			t.Fatalf("a frame of %d bytes came that nobody wrote", len(buf))
		}
	}
	if err := <-last; err != nil {
		t.Errorf("the last Write = %v", err)
	}
	if sent, err := conn.(contextWriter).WriteContext(t.Context(), []byte("1")); !sent || err != nil {
		t.Errorf("WriteContext = %v, %v; want it sent", sent, err)
	}
}

// In a full Pipe, a frame whose context ends is not sent.
func TestWriteContextInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		for range 16 {
			if err := a.Write([]byte("1")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			sent, err := a.(contextWriter).WriteContext(ctx, []byte("2"))
			if sent {
				t.Error("WriteContext says that it sent what it could not")
			}
			done <- err
		}()
		synctest.Wait()
		cancel(errEnough)
		if err := <-done; err != errEnough {
			t.Errorf("WriteContext = %v, want the cause of its context", err)
		}
		a.Close()
		for range 16 {
			if f, err := b.Read(nil); string(f) != "1" || err != nil {
				t.Errorf("Read = %q, %v", f, err)
			}
		}
	})
}
