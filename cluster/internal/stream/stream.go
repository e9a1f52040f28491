// Package stream makes a net.Conn of messages that arrive in order: the bytes between two nodes of a cluster. The receiver
// says how many bytes it has room for, so that a slow reader slows its peer down and nobody keeps more than a [Window].
package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// Window bounds the bytes that one side has sent and the other one's reader has not taken.
	Window = 256 << 10
	// chunk bounds the bytes of a message.
	chunk = 32 << 10
	// kept bounds the memory for messages that a quiet connection keeps, in each direction: most requests and answers need no other.
	kept = 4 << 10
)

// Kinds of messages, their first byte. After it stands the number of the message, so that one that is missing is noticed.
const (
	kindData   = 'd'
	kindCredit = 'c' // room for so many more bytes
	kindEnd    = 'e' // the other end is closed
	kindReset  = 'r' // the connection is over, with the reason
)

var errEnded = errors.New("closed by the other node")

// Conn is one end of a connection. Feed it what arrives from the other end.
type Conn struct {
	send          func(message []byte) error
	local, remote net.Addr
	closed        func() // called once, at the end of the connection

	mu         sync.Mutex
	changed    *sync.Cond // of mu
	in         []byte     // arrived, and not read; in spare, if that is large enough
	spare      []byte     // room for in
	out        []byte     // room for a message
	taken      int        // bytes that were read since the last credit
	begun      bool       // the other end has sent data, or said that it begins
	ended      bool       // the other end is closed
	room       int        // what the other end has room for
	err        error      // why the connection is over
	over       bool       // closed was called
	sent, seen uint64     // numbers of the last messages
	read       deadline
	write      deadline
}

// deadline is guarded by the mutex of its Conn.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// New returns an end whose messages send carries to the other one, in order. Send must not wait for the other end, and does not
// retain messages. Closed is called when the connection is over on this side.
func New(send func(message []byte) error, local, remote net.Addr, closed func()) *Conn {
	c := &Conn{send: send, local: local, remote: remote, closed: closed, room: Window}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Feed takes a message of the other end. It does not retain it.
func (c *Conn) Feed(message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if len(message) == 0 {
		c.fail(errors.New("empty message"), true)
		return
	}
	kind := message[0]
	number, n := binary.Uvarint(message[1:])
	if n <= 0 {
		c.fail(errors.New("message without a number"), true)
		return
	}
	body := message[1+n:]
	if c.seen++; number != c.seen && kind != kindReset {
		c.fail(fmt.Errorf("message %d came in place of %d", number, c.seen), true)
		return
	}
	switch kind {
	case kindData:
		if len(c.in)+len(body) > Window {
			c.fail(errors.New("the other end sends more than there is room for"), true)
			return
		}
		if len(c.in) == 0 {
			c.in = c.spare
		}
		c.in, c.begun = append(c.in, body...), true
		if n := cap(c.in); n <= kept && n > cap(c.spare) {
			c.spare = c.in[:0]
		}
	case kindCredit:
		credit, n := binary.Uvarint(body)
		if n <= 0 || credit > Window {
			c.fail(errors.New("credit is not a number"), true)
			return
		}
		c.room += int(credit)
	case kindEnd:
		c.ended = true
	case kindReset:
		c.fail(fmt.Errorf("ended by the other node: %s", body), false)
	default:
		c.fail(fmt.Errorf("unknown message %q", kind), true)
		return
	}
	c.changed.Broadcast()
}

// Sent returns the number of messages that were sent, and whether the other end still has to get them.
func (c *Conn) Sent() (n uint64, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.err == nil && !c.ended
}

// Seen returns the number of messages that have come from the other end.
func (c *Conn) Seen() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Live reports whether the connection is open at both ends, and nothing waits to be read.
func (c *Conn) Live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.ended && len(c.in) == 0
}

// Fail ends the connection for a reason of this side. The other one is told, if it is there.
func (c *Conn) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err, true)
}

// Begin sends a message without data.
func (c *Conn) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.message(kindData, nil)
}

// Await waits until the other end has begun, or returns why it has not: the connection is over, or ctx is.
func (c *Conn) Await(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.begun:
			return nil
		case c.err != nil:
			return c.err
		case c.ended:
			return errEnded
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		c.changed.Wait()
	}
}

// fail ends the connection. The caller holds mu.
func (c *Conn) fail(err error, tell bool) {
	if c.err != nil {
		return
	}
	c.err = err
	if tell {
		_ = c.message(kindReset, []byte(err.Error())) // the other end may be gone
	}
	c.changed.Broadcast()
	if !c.over {
		c.over = true
		go c.closed()
	}
}

// message sends one. The caller holds mu.
func (c *Conn) message(kind byte, body []byte) error {
	c.sent++
	m := binary.AppendUvarint(append(c.out[:0], kind), c.sent)
	if m = append(m, body...); cap(m) <= kept {
		c.out = m
	}
	return c.send(m)
}

// Read implements [net.Conn]. Bytes that arrived before the end of the connection are read first.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case errors.Is(c.err, net.ErrClosed):
			return 0, c.failed("read", c.err)
		case c.read.passed():
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case len(c.in) > 0:
			return c.take(b), nil
		case c.ended:
			return 0, io.EOF
		case c.err != nil:
			return 0, c.failed("read", c.err)
		}
		c.changed.Wait()
	}
}

// take reads what has arrived, and gives credit for it in portions. The caller holds mu.
func (c *Conn) take(b []byte) int {
	n := copy(b, c.in)
	c.in = c.in[n:]
	if len(c.in) == 0 {
		c.in = nil // a quiet connection keeps little memory
	}
	c.taken += n
	if c.taken >= Window/4 && c.err == nil {
		credit := binary.AppendUvarint(nil, uint64(c.taken))
		c.taken = 0
		if err := c.message(kindCredit, credit); err != nil {
			c.fail(err, false)
		}
	}
	return n
}

// Write implements [net.Conn]. It waits while the other end has no room.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.err != nil:
			return n, c.failed("write", c.err)
		case c.write.passed():
			return n, c.failed("write", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return n, nil
		case c.ended:
			return n, c.failed("write", errEnded)
		case c.room == 0:
			c.changed.Wait()
			continue
		}
		part := b[:min(len(b), c.room, chunk)]
		if err := c.message(kindData, part); err != nil {
			c.fail(err, false)
			return n, c.failed("write", err)
		}
		c.room -= len(part)
		n += len(part)
		b = b[len(part):]
	}
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, net.ErrClosed) {
		return nil
	}
	if c.err == nil {
		_ = c.message(kindEnd, nil) // the other end may be gone
	}
	c.fail(net.ErrClosed, false)
	c.err, c.in = net.ErrClosed, nil
	for _, d := range []*deadline{&c.read, &c.write} {
		d.stop()
	}
	return nil
}

func (c *Conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error { return c.set(t, &c.read, &c.write) }

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(t, &c.read) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(t, &c.write) }

func (c *Conn) set(t time.Time, list ...*deadline) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, net.ErrClosed) {
		return c.failed("set", net.ErrClosed)
	}
	for _, d := range list {
		d.stop()
		d.at = t
		if left := time.Until(t); left > 0 { // one that is over needs no timer: http.Server sets such for each request
			d.timer = time.AfterFunc(left, c.wake)
		}
	}
	c.changed.Broadcast()
	return nil
}

func (c *Conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
