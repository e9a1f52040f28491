package nats

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/nonblock"
)

// A link is a connection of TCP between two processes. A message of a connection that passes it
// is written once and read once; over NATS it passes queues of two servers and of two clients.
//
// The answer to a Dial, which comes over NATS, says where the process listens and what it wants to hear there, so that a link is for
// members of the cluster alone, as NATS is. Where NATS speaks TLS, links do: with a certificate that the answer names. If a link
// cannot be had, because something between the machines lets the port of NATS through alone, messages go over NATS.
type link struct {
	bus     *bus
	process string // the other one; empty if that one dialled
	conn    net.Conn
	users   atomic.Int32 // connections whose messages pass it
	ended   chan struct{}

	mu      sync.Mutex
	out     []byte // waits to be written; guarded by mu
	writing bool   // a goroutine writes; guarded by mu
	err     error  // why the link is over; guarded by mu
}

const (
	// linkHeader of the answer to a Dial is the offer of a link.
	linkHeader = "Patchbay-Link"
	// linkTime bounds how long a Dial waits for a link.
	linkTime = time.Second / 2
	// linkAgain is how long after a link that failed none is tried.
	linkAgain = time.Minute
	linkIdle  = time.Minute
	// maxFrame bounds a frame in bytes: a message, and before it headSize bytes with its size and the connection it is for.
	maxFrame = 64 << 10
	headSize = 5
	// maxGuests bounds the connections that have not said the key yet.
	maxGuests = 64
)

// links are those of a process.
type links struct {
	server   *Server
	listener net.Listener // nil: no links
	key      string       // what this process wants to hear
	offer    string
	secure   *tls.Config   // nil: links are not encrypted
	idle     time.Duration // how long a link without connections stays
	guests   chan struct{}
	all      map[*link]bool      // guarded by the mutex of the bus
	to       map[string]*attempt // by process; guarded by the mutex of the bus
	ended    sync.WaitGroup
}

// attempt is a link that was tried.
type attempt struct {
	done  chan struct{} // closed when the other fields are set
	link  *link         // nil: it failed
	until time.Time     // when another attempt is made then
}

// listenLinks begins to offer links: at an address of its own, or else at any port of that of a server which listens for others.
func (b *bus) listenLinks(opts Options) error {
	k, at, secure := &b.links, opts.Listen, false
	if _, err := b.nc.TLSConnectionState(); err == nil {
		secure = true
	}
	name := "-"
	if opts.Server != nil {
		addr, ok := opts.Server.Addr().(*net.TCPAddr)
		if ok && at == "" {
			at = net.JoinHostPort(addr.IP.String(), "0")
		}
		k.server, name, secure = opts.Server, opts.Server.options.ServerName, opts.Server.options.Cluster.TLSConfig != nil
	}
	if at == "" {
		return nil
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return fmt.Errorf("connections between nodes: %w", err)
	}
	k.listener, k.key, k.idle = l, rand.Text(), linkIdle
	k.all, k.to = map[*link]bool{}, map[string]*attempt{}
	k.guests = make(chan struct{}, maxGuests)
	k.offer = strings.Join([]string{name, b.reached(l.Addr().(*net.TCPAddr)).String(), k.key}, " ")
	if secure {
		cert, err := certificate()
		if err != nil {
			l.Close()
			return fmt.Errorf("connections between nodes: %w", err)
		}
		k.secure = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
		k.offer += " " + fingerprint(cert.Certificate[0])
	}
	k.ended.Go(b.acceptLinks)
	return nil
}

// reached returns where others reach a listener: if it is at all addresses of this machine, at the one that a NATS elsewhere sees.
// Others know the address of a server of this process.
func (b *bus) reached(at *net.TCPAddr) *net.TCPAddr {
	if at.IP.IsUnspecified() && b.links.server == nil {
		if ip, err := b.nc.GetClientIP(); err == nil {
			return &net.TCPAddr{IP: ip, Port: at.Port}
		}
	}
	return at
}

// certificate returns one for this process, which others know by its fingerprint.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// acceptLinks takes links of other processes until the listener is closed.
func (b *bus) acceptLinks() {
	k := &b.links
	for {
		c, err := k.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example: too many files are open
			time.Sleep(settle)
			continue
		}
		select {
		case k.guests <- struct{}{}:
			k.ended.Go(func() {
				l := b.welcome(c)
				<-k.guests
				if l != nil {
					b.hold(l)
				}
			})
		default:
			c.Close()
		}
	}
}

// welcome returns the link of a process that says the key, else nil.
func (b *bus) welcome(c net.Conn) *link {
	quick(c)
	_ = c.SetDeadline(time.Now().Add(greeting)) // it fails if c is closed, as the next read does
	c = b.wrap(c, b.links.secure, tls.Server)
	said := make([]byte, len(b.links.key))
	_, err := io.ReadFull(c, said)
	if err == nil && subtle.ConstantTimeCompare(said, []byte(b.links.key)) != 1 {
		err = errors.New("another key")
	}
	if err == nil {
		_, err = c.Write([]byte{linkReady})
	}
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		c.Close()
		return nil
	}
	return &link{bus: b, conn: c, ended: make(chan struct{})}
}

// linkReady is what a process says to one that has said the key.
const linkReady = '!'

// wrap returns c with TLS if links are encrypted, else with calls that cost less.
func (b *bus) wrap(c net.Conn, config *tls.Config, end func(net.Conn, *tls.Config) *tls.Conn) net.Conn {
	if config != nil {
		return end(c, config)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return nonblock.Conn(tcp)
	}
	return c
}

// linked returns a link to a process, and counts as its user. Nil: messages go over NATS.
func (b *bus) linked(ctx context.Context, process, offer string) *link {
	if offer == "" || b.links.listener == nil {
		return nil
	}
	now := time.Now()
	b.mu.Lock()
	if b.ctx.Err() != nil { // Close waits for goroutines
		b.mu.Unlock()
		return nil
	}
	a := b.links.to[process]
	if a == nil || a.failed() && now.After(a.until) {
		a = &attempt{done: make(chan struct{}), until: now.Add(linkAgain)}
		for id, old := range b.links.to { // of processes that have ended, too
			if old.failed() && now.After(old.until) {
				delete(b.links.to, id)
			}
		}
		b.links.to[process] = a
		b.links.ended.Go(func() { b.dialLink(a, process, offer) })
	}
	b.mu.Unlock()
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.link == nil || b.links.to[process] != a { // it has ended since
		return nil
	}
	a.link.users.Add(1)
	return a.link
}

// failed reports whether an attempt is over, and there is none to wait for.
func (a *attempt) failed() bool {
	select {
	case <-a.done:
		return a.link == nil
	default:
		return false
	}
}

// dialLink makes an attempt.
func (b *bus) dialLink(a *attempt, process, offer string) {
	l, err := b.offered(offer)
	if err != nil {
		close(a.done)
		return
	}
	l.process, a.link = process, l
	close(a.done)
	b.hold(l)
}

// offered opens a link to the process of an offer.
func (b *bus) offered(offer string) (*link, error) {
	parts := append(strings.Split(offer, " "), "")
	if len(parts) < 4 {
		return nil, errors.New("not an offer")
	}
	name, address, key, pin := parts[0], parts[1], parts[2], parts[3]
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host = ""; b.links.server != nil {
			host = b.links.server.host(name)
		}
	}
	if host == "" { // it would be this machine
		return nil, fmt.Errorf("the address of %s is not known", name)
	}
	ctx, stop := context.WithTimeout(b.ctx, linkTime)
	defer stop()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	quick(c)
	_ = c.SetDeadline(time.Now().Add(linkTime)) // it fails if c is closed, as the next write does
	var config *tls.Config
	if b.links.secure != nil {
		config = &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			if fingerprint(s.PeerCertificates[0].Raw) != pin {
				return errors.New("another certificate than that of the offer")
			}
			return nil
		}}
	}
	c = b.wrap(c, config, tls.Client)
	ready := make([]byte, 1)
	if _, err = io.WriteString(c, key); err == nil {
		if _, err = io.ReadFull(c, ready); err == nil {
			err = c.SetDeadline(time.Time{})
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &link{bus: b, conn: c, ended: make(chan struct{})}, nil
}

// quick makes a connection that is over end soon, if the other machine has ended without a word.
func quick(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAlive(false) // beats do more
	}
}

// host is where the server of another name is, as this server sees it; empty: it is not connected.
func (s *Server) host(name string) string {
	routes, err := s.current.Load().Routez(&server.RoutezOptions{})
	if err != nil {
		return ""
	}
	for _, r := range routes.Routes {
		if r.RemoteName == name {
			return r.IP
		}
	}
	return ""
}

// hold passes on what comes over a link until it ends.
func (b *bus) hold(l *link) {
	b.mu.Lock()
	if b.ctx.Err() == nil {
		b.links.all[l] = true
	} else {
		l.conn.Close()
	}
	b.mu.Unlock()
	var beats sync.WaitGroup
	beats.Go(l.beat)
	err := l.receive()
	l.end(err)
	beats.Wait()
}

// receive passes on messages until the link ends, or nothing comes for a while.
func (l *link) receive() error {
	in := bufio.NewReaderSize(l, maxFrame)
	for {
		head, err := in.Peek(headSize)
		if err != nil {
			return err
		}
		text, size := headSize+int(head[0]), int(binary.BigEndian.Uint32(head[1:]))
		if size < text || size > maxFrame {
			return errors.New("what comes is not a message")
		}
		frame, err := in.Peek(size) // head is not to be used any more
		if err != nil {
			return err
		}
		if text > headSize {
			l.bus.deliver(frame[headSize:text], frame[text:], l)
		}
		if _, err := in.Discard(size); err != nil {
			return err
		}
	}
}

// Read reads from the other process, which says something at each beat.
func (l *link) Read(b []byte) (int, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(answered)); err != nil {
		return 0, err
	}
	return l.conn.Read(b)
}

// beat shows the other process that this one lives, and ends a link that nobody uses.
func (l *link) beat() {
	for used := time.Now(); ; {
		select {
		case <-l.ended:
			return
		case <-time.After(beat):
		}
		if l.users.Load() > 0 {
			used = time.Now()
		} else if l.process != "" && time.Since(used) > l.bus.links.idle && l.bus.unlink(l) {
			l.end(errors.New("nobody uses the link"))
			return
		}
		_ = l.send("", nil) // an error says that the link has ended
	}
}

// unlink makes that nobody finds a link, if it has no users.
func (b *bus) unlink(l *link) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.users.Load() > 0 {
		return false
	}
	delete(b.links.to, l.process)
	return true
}

// send sends a message to a connection; an empty name: to nobody. It does not wait for the other process.
func (l *link) send(to string, message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.out = append(l.out, byte(len(to)))
	l.out = binary.BigEndian.AppendUint32(l.out, uint32(headSize+len(to)+len(message)))
	l.out = append(append(l.out, to...), message...)
	if l.writing {
		return nil
	}
	if l.out = l.out[:copy(l.out, l.out[nonblock.TryWrite(l.conn, l.out):])]; len(l.out) > 0 {
		l.writing = true
		go l.write()
	}
	return nil
}

// write writes what waits.
func (l *link) write() {
	var out []byte
	for {
		l.mu.Lock()
		out, l.out = l.out, out[:0]
		if l.writing = len(out) > 0 && l.err == nil; !l.writing {
			if cap(out) > maxFrame {
				l.out = nil // a quiet link keeps no memory
			}
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := l.conn.Write(out); err != nil {
			l.end(err)
		}
	}
}

// end ends a link, and the connections whose messages pass it.
func (l *link) end(err error) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = fmt.Errorf("%w (%w)", cluster.ErrNoNode, err)
		close(l.ended)
	}
	l.mu.Unlock()
	if !first {
		return
	}
	l.conn.Close()
	b := l.bus
	b.mu.Lock()
	delete(b.links.all, l)
	if a := b.links.to[l.process]; a != nil && a.link == l {
		delete(b.links.to, l.process)
	}
	var conns []*conn
	for _, c := range b.conns {
		if c.link.Load() == l {
			conns = append(conns, c)
		}
	}
	b.mu.Unlock()
	for _, c := range conns {
		c.Fail(l.err)
	}
}

// closeLinks ends the links, and waits for their goroutines.
func (b *bus) closeLinks() {
	if b.links.listener == nil {
		return
	}
	b.links.listener.Close()
	b.mu.Lock()
	var list []*link
	for l := range b.links.all {
		list = append(list, l)
	}
	b.mu.Unlock()
	for _, l := range list {
		l.end(net.ErrClosed)
	}
	b.links.ended.Wait()
}
