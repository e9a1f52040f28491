package sse

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const (
	writeTimeout = web.WriteTimeout
	leaveTimeout = 5 * time.Second // of the end of a response
)

// stream is the server's end of a session. The response that it writes to lives as
// long as its handler, which ends with leave.
type stream struct {
	principal string
	incoming  chan []byte // owned by the handler of a POST until taken
	taken     chan struct{}
	done      chan struct{} // closed by Close

	w         http.ResponseWriter
	control   *http.ResponseController
	keepAlive time.Duration

	mu   sync.Mutex  // held while writing
	err  error       // of the first write that failed; guarded by mu
	beat *time.Timer // sends comments while the stream is quiet; guarded by mu

	state   sync.Mutex
	writing bool // guarded by state
	closed  bool // guarded by state
}

var _ jsonrpc.Conn = (*stream)(nil)

func newStream(w http.ResponseWriter, principal string, keepAlive time.Duration) *stream {
	return &stream{
		principal: principal, w: w, control: http.NewResponseController(w), keepAlive: keepAlive,
		incoming: make(chan []byte), taken: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin sends the endpoint event (SSE-24-005).
func (s *stream) begin(endpoint string) error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // HTTP-26-019
	h.Set("Connection", "close")     // the connection must not be reused with the stream's deadlines
	// http.Server.ReadTimeout applies to the request, not to the stream.
	_ = s.control.SetReadDeadline(time.Time{}) // a writer without deadlines has none
	s.w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepAlive > 0 {
		s.beat = time.AfterFunc(s.keepAlive, s.comment)
	}
	return s.write([]byte("event: endpoint\ndata: " + endpoint + "\n\n"))
}

// leave ends the stream: the response is not used after it.
func (s *stream) leave() {
	s.Close()
	s.mu.Lock() // a write in progress has been ended
	defer s.mu.Unlock()
	if s.beat != nil {
		s.beat.Stop()
	}
	if s.err == nil {
		_ = s.control.SetWriteDeadline(time.Now().Add(leaveTimeout))
	}
}

// deliver passes a message to the reader. It returns false if the session has ended.
func (s *stream) deliver(ctx context.Context, frame []byte) bool {
	select {
	case s.incoming <- frame:
		<-s.taken // the reader has copied it
		return true
	case <-s.done:
	case <-ctx.Done():
	}
	return false
}

// Read implements jsonrpc.Conn.
func (s *stream) Read(buf []byte) ([]byte, error) {
	select {
	case <-s.done:
		return nil, jsonrpc.ErrClosed
	default:
	}
	select {
	case frame := <-s.incoming:
		buf = append(buf[:0], frame...)
		s.taken <- struct{}{}
		return buf, nil
	case <-s.done:
		return nil, jsonrpc.ErrClosed
	}
}

// Write implements jsonrpc.Conn: it sends a message event (SSE-24-007).
func (s *stream) Write(frame []byte) error {
	b := buffer.Get()
	defer buffer.Put(b)
	*b = append(*b, "event: message\ndata: "...)
	*b = jsonx.AppendLine(*b, frame)
	*b = append(*b, "\n\n"...)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(*b)
}

// comment keeps a quiet stream alive, and detects a dead one.
func (s *stream) comment() {
	if !s.mu.TryLock() {
		return // it is not quiet
	}
	defer s.mu.Unlock()
	if s.write([]byte(":\n\n")) != nil {
		s.Close()
	}
}

// write hands bytes to the connection, bounded in time; mu is held.
func (s *stream) write(b []byte) error {
	if s.err != nil {
		return s.err
	}
	if !s.enter() {
		return jsonrpc.ErrClosed
	}
	_, err := s.w.Write(b)
	if err == nil {
		err = s.control.Flush()
	}
	if closed := s.exit(); closed && err != nil {
		err = jsonrpc.ErrClosed
	}
	s.err = err
	if s.beat != nil && err == nil {
		s.beat.Reset(s.keepAlive)
	}
	return err
}

// enter starts a write, unless the stream is closed.
func (s *stream) enter() bool {
	s.state.Lock()
	defer s.state.Unlock()
	if s.closed {
		return false
	}
	s.writing = true
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // see begin
	return true
}

func (s *stream) exit() (closed bool) {
	s.state.Lock()
	defer s.state.Unlock()
	s.writing = false
	return s.closed
}

// Close implements jsonrpc.Conn. A write in progress ends at once.
func (s *stream) Close() error {
	s.state.Lock()
	defer s.state.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	if s.writing {
		_ = s.control.SetWriteDeadline(time.Unix(1, 0))
	}
	return nil
}
