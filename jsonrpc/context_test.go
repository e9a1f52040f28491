package jsonrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// contextWriter is what the connections of this package have beside Conn.
type contextWriter interface {
	WriteContext(ctx context.Context, frame []byte) (sent bool, err error)
}

var errEnough = errors.New("waited long enough")

// In memory a frame that has no room is not sent when its context has ended.
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
