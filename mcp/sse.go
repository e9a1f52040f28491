package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/duplex"
	"github.com/patchbay-dev/patchbay/internal/transport/sse"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// SSE returns a handler for HTTP with server-sent events, the HTTP transport of revision
// 2024-11-05, for clients that support only that. It serves both endpoints: a GET opens the event
// stream, and a POST to messagePath, on the same host, takes the messages from its client:
//
//	h := srv.SSE("/messages")
//	mux.Handle("/sse", h)
//	mux.Handle("/messages", h)
//	mux.Handle("/mcp", srv) // and Streamable HTTP for everybody else
//
// Clients get messagePath relative to the path of the stream, so that a proxy, or
// [http.StripPrefix], may serve both below a prefix.
//
// The session is the stream: it ends when the stream ends and on Shutdown. [HTTPConfig] applies as
// for Streamable HTTP; MaxSessions bounds the streams of each SSE handler. Every revision that has
// initialize can be spoken, and a stream is served like any connection of [Server.Serve].
//
// Specification: 2024-11-05, basic/transports, HTTP with SSE; deprecated since
// 2025-03-26.
func (s *Server) SSE(messagePath string) http.Handler {
	return s.lazy(func() http.Handler {
		rec := s.recorder("sse")
		return &sse.Server{
			Serve: func(ctx context.Context, conn jsonrpc.Conn, principal string) error {
				var tap *engine.Tap // the exchanges have the messages
				if rec != nil {
					tap = &engine.Tap{Conn: rec.Conn(ctx), Watched: rec.Tap.Watched}
				}
				return s.serve(ctx, conn, engine.Caller{Principal: principal}, tap)
			},
			MessagePath: messagePath,
			Guard:       s.guard(),
			MaxBody:     int64(s.http.MaxBody),
			MaxStreams:  s.http.MaxSessions,
			KeepAlive:   s.http.KeepAlive,
			Principal:   s.principalOf,
			Drain:       s.stopped,
			Recorder:    rec,
			Logger:      s.eng.Logger,
		}
	})
}

// lazy returns a handler that is created on the first request, because the fields of the server are
// read when serving starts.
func (s *Server) lazy(handler func() http.Handler) http.Handler {
	made := sync.OnceValue(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.init(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.serveWeb(made(), w, r)
	})
}

func (s *Server) guard() web.Guard {
	return web.Guard{AllowedHosts: s.HTTP.AllowedHosts, AllowedOrigins: s.HTTP.AllowedOrigins}
}

// initializeHTTP opens a legacy session with an HTTP server over Streamable HTTP or, if the server
// answers as 2024-11-05 servers do, over HTTP+SSE.
func (s *Session) initializeHTTP(ctx context.Context, address string, legacy *revision.Table) error {
	err := s.initialize(ctx, legacy)
	if !mayBeSSE(err) {
		return err
	}
	sseErr := s.initializeSSE(ctx, address, legacy)
	switch {
	case sseErr == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	why := " (" + publicError(sseErr).Error() + ")"
	if err = publicError(err); strings.Contains(why, err.Error()) {
		why = ""
	}
	return fmt.Errorf("%w: the server answers neither server/discover nor initialize, and has no event stream of 2024-11-05%s; is this the MCP endpoint?", err, why)
}

// mayBeSSE reports whether the answer to a posted initialize may come from a server that expects a
// GET: 400, 404 or 405, without an error of the modern era (HTTP-26-077, SHTTP-25-045).
func mayBeSSE(err error) bool {
	var he *engine.HTTPError
	if !errors.As(err, &he) {
		return false
	}
	switch he.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return false
	}
	if he.RPC != nil {
		switch he.RPC.Code {
		case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion, jsonrpc.CodeMethodNotFound:
			return false
		}
	}
	return true
}

// initializeSSE opens a legacy session over HTTP+SSE. If that fails, it leaves the session as it
// was.
func (s *Session) initializeSSE(ctx context.Context, address string, legacy *revision.Table) error {
	c := s.client
	tap := c.tap(ctx, "sse", &s.remote)
	conn, err := sse.Dial(ctx, sse.ClientOptions{URL: address, HTTP: c.HTTPClient, Header: c.Header, MaxMessage: orDefault(c.Limits.Message, 16<<20), Tap: tap})
	if err != nil {
		return err
	}
	before, how, httpTap := s.remote.Wire, s.how, s.tap
	s.tap = tap
	s.remote.Wire = duplex.NewClient(conn, duplex.ClientOptions{Inbox: &s.remote, MaxDepth: s.limits.Depth, Tap: tap.Unrecorded(), Logger: s.log})
	s.remote.HTTP = false
	s.how = "initialize over HTTP+SSE, as the server answers no initialize by POST"
	if err := s.initialize(ctx, legacy); err != nil {
		s.remote.Wire.Close()
		s.remote.Wire, s.remote.HTTP, s.how, s.tap = before, true, how, httpTap
		return err
	}
	before.Close()
	c.known().spoke(sseKey(address), true)
	return nil
}

// sseKey is the key for remembering that a server has only HTTP+SSE.
func sseKey(address string) string { return "sse " + origin(address) }
