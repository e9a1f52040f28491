package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const (
	maxSockets      = 1000             // connections of one listener
	maxAcceptFaults = 10               // in a row
	socketTimeout   = 30 * time.Second // of a connect, and of one write
)

// ServeListener serves each connection that l accepts as [Server.Serve] does, with the
// framing of stdio: one message a line. It is a custom transport, which every revision
// allows; clients dial it as unix:///run/calc.sock or tcp://127.0.0.1:7421.
//
// ServeListener returns the cause of ctx when ctx ends, [ErrClosed] after Shutdown, or the error of
// l when l fails. Before it returns, it closes l and waits for the connections to end. At most
// 1,000 connections are served at a time; further peers wait. A write that takes more than 30
// seconds fails and ends its connection.
//
// The transport has neither authentication nor encryption: anybody who connects is served. Prefer a
// Unix socket in a directory that only its user may enter (mode 0700), because some systems ignore
// the mode of the socket itself. Listen for TCP on loopback only, and note that every user of the
// machine can connect there. To serve other machines, pass a listener of package crypto/tls that
// requires client certificates.
//
// Specification: 2026-07-28, basic/transports, Custom Transports (TRAN-26-005).
func (s *Server) ServeListener(ctx context.Context, l net.Listener) error {
	if err := s.init(); err != nil {
		l.Close()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch, conns sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.stopped:
		}
		l.Close()
	})
	err := s.accept(ctx, l, &conns)
	if !errors.Is(err, ErrClosed) { // Shutdown itself ends the connections, in order
		cancel(err)
	}
	conns.Wait()
	cancel(err)
	watch.Wait()
	return err
}

// accept serves connections until the listener is over, and returns the reason.
func (s *Server) accept(ctx context.Context, l net.Listener, conns *sync.WaitGroup) error {
	places := make(chan struct{}, maxSockets)
	faults := 0
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopped:
			return ErrClosed
		}
		conn, err := l.Accept()
		if err == nil {
			faults = 0
			conns.Go(func() {
				defer func() { <-places }()
				if err := s.serve(ctx, socketConn(conn, s.Limits.Message), callerOf(ctx), s.tap(l.Addr().Network())); err != nil {
					s.eng.Logger.Debug("connection ended", "client", conn.RemoteAddr().String(), "err", err)
				}
			})
			continue
		}
		<-places
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopped:
			return ErrClosed
		default:
		}
		// A process that is out of file descriptors may soon have some again.
		if faults++; faults > maxAcceptFaults || errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept: %w", err)
		}
		s.eng.Logger.Warn("connection not accepted", "err", err)
		t := time.NewTimer(5 * time.Millisecond << faults)
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-s.stopped:
		}
		t.Stop()
	}
}

// socketConn frames a connection as stdio does.
func socketConn(conn net.Conn, maxFrame int) jsonrpc.Conn {
	bounded := boundedConn{conn}
	return jsonrpc.NewLineConn(bounded, bounded, conn.Close, maxFrame)
}

// boundedConn bounds each write, because a peer may not read.
type boundedConn struct{ net.Conn }

func (c boundedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(socketTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// dialWire opens the wire of an address that is not HTTP.
func (c *Client) dialWire(ctx context.Context, u *url.URL, tap *engine.Tap) (jsonrpc.Conn, error) {
	network, address := u.Scheme, u.Host
	switch u.Scheme {
	case "ws", "wss":
		return c.dialWebSocket(ctx, u.String(), tap)
	case "unix":
		address = u.Path
	}
	d := net.Dialer{Timeout: socketTimeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return socketConn(conn, c.Limits.Message), nil
}

// dialDuplex opens a session over a wire that is not HTTP.
func (c *Client) dialDuplex(ctx context.Context, address string, u *url.URL) (*Session, error) {
	key := origin(address)
	s, err := c.openTwice(key, func() (*Session, error) {
		tap := c.tap(ctx, strings.Replace(strings.Replace(u.Scheme, "wss", "ws", 1), "ws", "websocket", 1), nil)
		conn, err := c.dialWire(ctx, u, tap)
		if err != nil {
			return nil, err
		}
		return c.openDuplex(ctx, conn, key, nil, tap)
	})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, publicError(err))
	}
	return s, nil
}

// parseAddress checks an address for Dial.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	good := false
	switch u.Scheme {
	case "http", "https", "ws", "wss":
		good = u.Host != ""
	case "tcp":
		good = u.Port() != "" && (u.Path == "" || u.Path == "/")
	case "unix":
		good = u.Host == "" && u.Path != ""
	}
	if !good {
		return nil, fmt.Errorf("dial %q: use a URL such as http://127.0.0.1:7420/mcp, ws://127.0.0.1:7420/ws, unix:///run/calc.sock or tcp://127.0.0.1:7421", text.Short(address))
	}
	return u, nil
}
