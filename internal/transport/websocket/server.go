package websocket

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Server accepts connections. Its fields are set before use and not changed afterwards.
type Server struct {
	// Serve serves one connection until it or ctx, which has the values of the
	// opening request and does not end by itself, ends. It closes conn.
	Serve func(ctx context.Context, conn jsonrpc.Conn, principal string) error

	Guard      web.Guard
	MaxMessage int           // bytes; a longer message is skipped
	MaxConns   int           // open at once, a quarter of them for one principal; a further one is answered with 503; zero means no bound
	KeepAlive  time.Duration // between pings; zero means never

	// Principal returns the authenticated caller of a request, or "". If nil, no caller is
	// authenticated.
	Principal func(*http.Request) string

	// When Drain is closed, new connections are refused. It may be nil.
	Drain <-chan struct{}

	Logger *slog.Logger

	places web.Places
	hijack sync.Once // guards the log line about middleware that prevents connections
}

// ServeHTTP upgrades the request to a connection and serves it to its end.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web.BoundBody(w, r)
	if !s.Guard.Admit(w, r, "GET") {
		return
	}
	if err := web.CheckHijack(w); err != nil {
		s.hijack.Do(func() { s.Logger.Warn("no WebSocket can be opened", "err", err) })
		web.Refuse(w, http.StatusNotImplemented, jsonrpc.CodeInternal, err.Error())
		return
	}
	principal := ""
	if s.Principal != nil {
		principal = s.Principal(r)
	}
	if err := s.enter(principal); err != nil {
		w.Header().Set("Retry-After", "5")
		web.Refuse(w, http.StatusServiceUnavailable, jsonrpc.CodeInternal, err.Error())
		return
	}
	defer s.places.Leave(principal)
	h := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		InsecureSkipVerify: true, // only for Origin, which the Guard has checked
	})
	if err != nil {
		return // already answered
	}
	// net/http does not end the context of a hijacked connection; auth.Guard does, with the
	// credential.
	ctx := r.Context()
	c := newConn(ctx, ws, h.conn, s.MaxMessage, s.KeepAlive, websocket.StatusGoingAway)
	defer c.Close()
	if err := s.Serve(ctx, c, principal); err != nil {
		s.Logger.Debug("connection ended", "err", err)
	}
}

// enter registers a connection, or returns the reason why there is no room.
func (s *Server) enter(principal string) error {
	select {
	case <-s.Drain:
		return errors.New("the server is shutting down")
	default:
	}
	return s.places.Take(principal, s.MaxConns, "connections")
}

// hijacker keeps the connection that it returns.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}
