package duplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// stuck is a connection whose peer sends messages and reads nothing.
type stuck struct {
	frames []string
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	writing int // guarded by mu
}

var _ jsonrpc.Conn = (*stuck)(nil)

func (s *stuck) Read(buf []byte) ([]byte, error) {
	if len(s.frames) == 0 {
		<-s.closed
		return nil, jsonrpc.ErrClosed
	}
	frame := s.frames[0]
	s.frames = s.frames[1:]
	return append(buf[:0], frame...), nil
}

func (s *stuck) Write([]byte) error {
	s.mu.Lock()
	s.writing++
	s.mu.Unlock()
	<-s.closed
	return jsonrpc.ErrClosed
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// noted is an Inbox that sends the methods of notifications to a channel.
type noted chan string

func (n noted) Note(method string, _ json.RawMessage) { n <- method }

func (noted) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("nobody is here")
}

// A server that sends pings and reads no answers gets a bounded number of them, and its other
// messages are still read.
func TestRepliesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &stuck{closed: make(chan struct{})}
		for i := range 1000 {
			conn.frames = append(conn.frames, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		conn.frames = append(conn.frames, `{"jsonrpc":"2.0","method":"notifications/x"}`)
		inbox := noted(make(chan string, 1))
		c := NewClient(conn, ClientOptions{Inbox: inbox, Logger: slog.New(slog.DiscardHandler)})
		<-inbox
		synctest.Wait()
		conn.mu.Lock()
		if conn.writing != maxReplies {
			t.Errorf("%d answers are being written, want %d", conn.writing, maxReplies)
		}
		conn.mu.Unlock()
		c.Close()
	})
}
