package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Subprotocol is the WebSocket subprotocol of MCP.
const Subprotocol = "mcp"

const (
	writeTimeout = 30 * time.Second       // of one message
	pongTimeout  = 30 * time.Second       // for the answer to a ping
	closeGrace   = 250 * time.Millisecond // for the answer to the closing handshake
	headBytes    = 512                    // of FrameTooLargeError.Head
)

// conn is one end of a connection. It owns a goroutine that pings, which ends with
// it, and one that closes, which takes little more than closeGrace.
type conn struct {
	ws     *websocket.Conn
	wire   io.Closer // below ws, whose own Close waits for a peer for 10 seconds
	max    int
	status websocket.StatusCode // of our end

	ctx    context.Context // of reads and writes
	cancel context.CancelFunc
	close  sync.Once
	done   chan struct{} // closed by Close

	over io.Reader // the rest of a message that is too large, nil: none; used by Read
	came int       // bytes of that message before it
}

var _ jsonrpc.Conn = (*conn)(nil)

// newConn takes ownership of an open connection. Only the values of ctx are used.
func newConn(ctx context.Context, ws *websocket.Conn, wire io.Closer, maxMessage int, keepAlive time.Duration, status websocket.StatusCode) *conn {
	ws.SetReadLimit(-1) // Read has its own limit, which does not end the connection
	c := &conn{ws: ws, wire: wire, max: maxMessage, status: status, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if keepAlive > 0 {
		go c.ping(keepAlive)
	}
	return c
}

// ping detects a dead peer, and keeps the connection alive in proxies. Read handles the pong.
func (c *conn) ping(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-t.C:
		}
		ctx, cancel := context.WithTimeout(c.ctx, pongTimeout)
		err := c.ws.Ping(ctx)
		cancel()
		if err != nil {
			c.Close()
			return
		}
	}
}

// Read implements jsonrpc.Conn.
func (c *conn) Read(buf []byte) ([]byte, error) {
	if c.closed() {
		return nil, jsonrpc.ErrClosed
	}
	if err := c.skip(); err != nil {
		return nil, err
	}
	kind, r, err := c.ws.Reader(c.ctx)
	if err != nil {
		return nil, c.readError(err)
	}
	if kind != websocket.MessageText {
		c.end(websocket.StatusUnsupportedData, "messages are text")
		return nil, errors.New("the peer sent a binary message")
	}
	buf = buf[:0]
	for {
		if len(buf) > c.max {
			c.over, c.came = r, len(buf) // the rest of it may never come
			return nil, &jsonrpc.FrameTooLargeError{Limit: c.max, Head: slices.Clone(buf[:min(len(buf), headBytes)])}
		}
		buf = slices.Grow(buf, 512)
		n, err := r.Read(buf[len(buf):min(cap(buf), c.max+1)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF && len(buf) <= c.max:
			return buf, nil
		case err != nil && err != io.EOF:
			return nil, c.readError(err)
		}
	}
}

// skip reads to the end of a message that is too large.
func (c *conn) skip() error {
	if c.over == nil {
		return nil
	}
	n, err := io.CopyN(io.Discard, c.over, int64(jsonrpc.EndlessFrame-1)*int64(c.max))
	switch {
	case err == nil: // there may be more
		c.end(websocket.StatusMessageTooBig, "a message does not end")
		return &jsonrpc.EndlessFrameError{Limit: c.max, Read: c.came + int(n)}
	case err != io.EOF:
		return c.readError(err)
	}
	c.over = nil
	return nil
}

// readError returns the reason why reading ended: io.EOF if the peer closed in order.
func (c *conn) readError(err error) error {
	if c.closed() {
		return jsonrpc.ErrClosed
	}
	switch status := websocket.CloseStatus(err); {
	case status == websocket.StatusNormalClosure, status == websocket.StatusGoingAway, status == websocket.StatusNoStatusRcvd:
		return io.EOF
	case status != -1:
		var ce websocket.CloseError
		errors.As(err, &ce)
		return fmt.Errorf("the peer closed the connection with status %d: %q", int(ce.Code), ce.Reason)
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // the connection ended without the closing handshake
	}
	return err
}

// Write implements jsonrpc.Conn.
func (c *conn) Write(frame []byte) error {
	if c.closed() {
		return jsonrpc.ErrClosed
	}
	ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
	defer cancel()
	err := c.ws.Write(ctx, websocket.MessageText, frame)
	switch {
	case err != nil && c.closed():
		return jsonrpc.ErrClosed
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("the peer did not read a message within %v", writeTimeout)
	}
	return err
}

// Close implements jsonrpc.Conn.
func (c *conn) Close() error {
	c.end(c.status, "")
	return nil
}

// end ends the connection in the background: a peer that answers the closing handshake
// sees an orderly end, others a broken connection.
func (c *conn) end(status websocket.StatusCode, reason string) {
	c.close.Do(func() {
		close(c.done)
		t := time.AfterFunc(closeGrace, func() { c.wire.Close() })
		go func() {
			defer t.Stop()
			defer c.cancel()
			_ = c.ws.Close(status, reason) // the peer may have disconnected
		}()
	})
}

func (c *conn) closed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
