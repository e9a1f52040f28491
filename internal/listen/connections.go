package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/nonblock"
	"github.com/patchbay-dev/patchbay/limit"
)

// Bounds of one listener, and of its wait for a client that does not read. A proxy on this machine
// has one address, so the bounds per address do not hold for loopback.
const (
	maxConnections = 16 << 10         // of all addresses
	maxOfAddress   = 1 << 10          // of one address on another machine
	maxHTTP2       = 32               // of all addresses, that speak HTTP/2
	maxHTTP2Of     = maxHTTP2 / 4     // from one address on another machine, that speak HTTP/2
	writeTime      = 30 * time.Second // for one write, if no other deadline is set
)

// boundedListener closes new connections beyond the bounds, so that open ones and those of other
// addresses go on.
type boundedListener struct {
	net.Listener
	most, each int
	writeTime  time.Duration
	refused    func(from netip.Addr) // called with each refused address; may be nil

	mu    sync.Mutex
	open  places // guarded by mu
	http2 places // those of open that speak HTTP/2; guarded by mu
}

// places counts connections, in total and per address.
type places struct {
	all int
	of  map[netip.Addr]int
}

// take takes a place for an address; false if there is none.
func (p *places) take(from netip.Addr, most, each int) bool {
	if p.all >= most || from.IsValid() && !from.IsLoopback() && p.of[from] >= each {
		return false
	}
	if p.of == nil {
		p.of = map[netip.Addr]int{}
	}
	p.all++
	p.of[from]++
	return true
}

// leave gives a place back.
func (p *places) leave(from netip.Addr) {
	p.all--
	if p.of[from]--; p.of[from] <= 0 {
		delete(p.of, from)
	}
}

func boundConnections(l net.Listener, refused func(netip.Addr)) *boundedListener {
	return &boundedListener{Listener: l, most: maxConnections, each: maxOfAddress, writeTime: writeTime, refused: refused}
}

// Accept returns the next connection within the bounds.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addressOf(c.RemoteAddr())
		if tcp, ok := c.(*net.TCPConn); ok {
			c = nonblock.Conn(tcp)
		}
		if l.enter(from) {
			return &boundedConn{Conn: c, l: l, from: from}, nil
		}
		c.Close()
		if l.refused != nil {
			l.refused(from)
		}
	}
}

// addressOf returns the network that a connection comes from; the zero Addr: none.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return limit.Network(tcp.AddrPort().Addr())
}

func (l *boundedListener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open.take(from, l.most, l.each)
}

func (l *boundedListener) leave(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.leave(c.from)
	if c.http2 {
		l.http2.leave(c.from)
	}
	c.left = true
}

// mayHTTP2 reports whether a TLS connection may speak HTTP/2, and counts it if it may and will. One
// such connection can use as much memory as hundreds of HTTP/1.1 connections, before any
// authentication ([MaxStreams]). Beyond the bounds, a connection is offered HTTP/1.1, which every
// client of MCP speaks.
func mayHTTP2(hello *tls.ClientHelloInfo) bool {
	c, ok := hello.Conn.(*boundedConn)
	if !ok || !slices.Contains(hello.SupportedProtos, "h2") {
		return true
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if !c.http2 && !c.left {
		c.http2 = c.l.http2.take(c.from, maxHTTP2, maxHTTP2Of)
	}
	return c.http2
}

// boundedConn is a counted connection. Each write may take the writeTime of its listener, unless
// the server has set a deadline. A deadline for reads that is later than the one in force is set when that one passes:
// net/http moves it several times for each request.
type boundedConn struct {
	net.Conn
	l    *boundedListener
	from netip.Addr
	once sync.Once
	own  atomic.Int64 // the deadline that Write has set, in Unix nanoseconds; -1: the server has set it

	reads   sync.Mutex
	wanted  time.Time // the deadline of the server for reads; zero: none; guarded by reads
	inForce time.Time // that of Conn, not after wanted; zero: none; guarded by reads

	http2, left bool // it has a place for HTTP/2; it has returned its places; guarded by mu of l
}

// Write writes with a deadline. It sets the deadline again only when less than half of the time is
// left, so that most writes set none.
func (c *boundedConn) Write(b []byte) (int, error) {
	if own := c.own.Load(); own >= 0 {
		now := time.Now()
		if own-now.UnixNano() < int64(c.l.writeTime/2) {
			until := now.Add(c.l.writeTime)
			if err := c.Conn.SetWriteDeadline(until); err == nil {
				c.own.Store(until.UnixNano())
			}
		}
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline sets the deadline of the server. The zero time removes it; net/http does that
// with every request, even if there is no deadline.
func (c *boundedConn) SetWriteDeadline(t time.Time) error {
	switch {
	case !t.IsZero():
		c.own.Store(-1)
	case c.own.Load() >= 0:
		return nil // the deadline of Write stays
	default:
		c.own.Store(0)
	}
	return c.Conn.SetWriteDeadline(t)
}

// readLook is the time after which a connection without a deadline for reads is looked at once more. It must not be longer
// than the deadlines that net/http sets, so that these are later than the one in force.
const readLook = 5 * time.Second

// SetReadDeadline sets the deadline of the server. The zero time removes it.
func (c *boundedConn) SetReadDeadline(t time.Time) error {
	c.reads.Lock()
	defer c.reads.Unlock()
	c.wanted = t
	now := time.Now()
	if t.IsZero() {
		t = now.Add(readLook)
	}
	if !c.inForce.IsZero() && !t.Before(c.inForce) && now.Before(c.inForce) {
		return nil // readAgain sets it
	}
	c.inForce = t
	return c.Conn.SetReadDeadline(t)
}

// Read reads. It goes on after a deadline that is not the server's.
func (c *boundedConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.readAgain() {
			return n, err
		}
	}
}

// readAgain sets the deadline of the server if it has not passed. It returns false if it has.
func (c *boundedConn) readAgain() bool {
	c.reads.Lock()
	defer c.reads.Unlock()
	if !c.wanted.IsZero() && !time.Now().Before(c.wanted) {
		return false
	}
	c.inForce = c.wanted
	return c.Conn.SetReadDeadline(c.wanted) == nil
}

// SetDeadline sets both deadlines.
func (c *boundedConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite closes the writing side. Net/http calls it before it closes the connection of a client
// whose request it has not read; otherwise the client would lose the answer.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	c.once.Do(func() { c.l.leave(c) })
	return c.Conn.Close()
}
