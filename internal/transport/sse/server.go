package sse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Server opens a stream for each GET and accepts the messages of its client by POST (2024-11-05,
// basic/transports, HTTP with SSE). Its fields are set before use and not changed afterwards.
//
// [web.ReadBody] bounds the time for sending a message.
type Server struct {
	// Serve serves one stream until it or ctx, which is that of the GET, ends. It
	// closes conn.
	Serve func(ctx context.Context, conn jsonrpc.Conn, principal string) error

	// MessagePath is the path at which the Server also gets the POSTs. A path that begins with a
	// slash is announced relative to that of the stream, so that it is valid behind a proxy that
	// adds a prefix to both; any other URL is announced as it is. Empty means the path of the
	// stream.
	MessagePath string

	Guard      web.Guard
	MaxBody    int64         // bytes of a message; more is answered with 413
	MaxStreams int           // open at once, a quarter of them for one principal; a further one is answered with 503; zero means no bound
	KeepAlive  time.Duration // time after which a quiet stream gets a comment; zero means never

	// Principal returns the authenticated caller of a request, or "". If nil, no caller is
	// authenticated.
	Principal func(*http.Request) string

	// When Drain is closed, new streams are refused. It may be nil.
	Drain <-chan struct{}

	// Recorder records the exchanges, and with them the messages. It may be nil.
	Recorder *web.Recorder

	Logger *slog.Logger

	pacer    web.Pacer
	places   web.Places
	buffered sync.Once // guards the log line about middleware that buffers event streams

	mu      sync.Mutex
	streams map[string]*stream // by id; guarded by mu
}

// sessionParam is the query parameter that names a session in the URI of the
// endpoint event. Clients take the URI as it is.
const sessionParam = "sessionId"

// ServeHTTP opens a stream for a GET and serves it to its end, or passes on the message of a
// POST.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Recorder != nil {
		var end func()
		w, r, end = s.Recorder.Record(w, r)
		defer end()
	}
	pace := s.pacer.Begin(w, r)
	defer pace.End()
	if !s.Guard.Admit(w, r, "GET, POST") { // SSE-24-001
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.open(w, r)
	case http.MethodPost:
		s.post(w, r, pace)
	default:
		w.Header().Set("Allow", "GET, POST")
		refuse(w, http.StatusMethodNotAllowed, "open the event stream by GET, send messages by POST")
	}
}

func (s *Server) principal(r *http.Request) string {
	if s.Principal == nil {
		return ""
	}
	return s.Principal(r)
}

// open opens a stream and serves it.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if _, events := web.Accepts(r.Header); !events {
		refuse(w, http.StatusNotAcceptable, "Accept must list text/event-stream")
		return
	}
	if err := web.CheckFlush(w); err != nil {
		s.buffered.Do(func() { s.Logger.Warn("no client of 2024-11-05 can connect", "err", err) })
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	principal := s.principal(r)
	id := node.Stream(r.Context(), rand.Text()) // 130 bits
	st := newStream(w, principal, s.KeepAlive)
	if err := s.add(id, st); err != nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer s.remove(id, st)
	defer st.leave()
	if err := st.begin(s.endpoint(r, id)); err != nil {
		return
	}
	if err := s.Serve(s.Recorder.InSession(r.Context(), id), st, principal); err != nil && r.Context().Err() == nil {
		s.Logger.Debug("event stream ended", "err", err)
	}
}

// add registers a stream, or returns the reason why there is no room.
func (s *Server) add(id string, st *stream) error {
	select {
	case <-s.Drain:
		return errors.New("the server is shutting down")
	default:
	}
	if err := s.places.Take(st.principal, s.MaxStreams, "event streams"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	s.streams[id] = st
	return nil
}

func (s *Server) remove(id string, st *stream) {
	s.places.Leave(st.principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
}

// post passes the message from a client to its stream. A 202 means only that: errors in the message
// are answered on the stream.
func (s *Server) post(w http.ResponseWriter, r *http.Request, pace *web.Pace) {
	id := r.URL.Query().Get(sessionParam)
	if id == "" {
		// 400 makes a client that tried Streamable HTTP first fall back to GET (HTTP-26-077).
		refuse(w, http.StatusBadRequest, "post to the URI of the endpoint event; a GET opens the event stream that begins with it")
		return
	}
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	away, other := node.From(r.Context()), node.OfStream(id)
	if st != nil || away == nil || other == "" || other == away.NodeName() {
		away = nil // it is here, if anywhere
	}
	if away == nil && (st == nil || st.principal != s.principal(r)) {
		refuse(w, http.StatusNotFound, "the session does not exist, or its event stream has ended")
		return
	}
	if !web.IsJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json, sent once, and the body not compressed")
		return
	}
	b := buffer.Get()
	body, err := web.ReadBody(*b, w, r, pace, s.MaxBody)
	*b = body
	defer buffer.Put(b)
	switch {
	case err == web.ErrTooLarge:
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over the limit of %d bytes (Limits.Message)", s.MaxBody))
	case err == web.ErrSlow:
		refuse(w, http.StatusRequestTimeout, web.TooSlow)
	case err != nil:
		refuse(w, http.StatusBadRequest, "the body broke off")
	case away != nil && away.SendTo(other, w, r, body):
	case away != nil || !st.deliver(r.Context(), body):
		refuse(w, http.StatusNotFound, "the session has ended")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// endpoint returns the URI for the messages of a session, as announced to its client.
func (s *Server) endpoint(r *http.Request, id string) string {
	path, query, _ := strings.Cut(s.MessagePath, "?")
	at := r.URL.EscapedPath()
	if path == "" {
		path = at
	}
	if strings.HasPrefix(path, "/") {
		path = reference(at, path)
	}
	if query != "" {
		query += "&"
	}
	return path + "?" + query + sessionParam + "=" + id
}

// refuse answers with plain text: up to 2025-06-18 a JSON-RPC error without the id of a request
// does not exist.
func refuse(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }

// reference returns the relative reference from one absolute path to another (RFC 3986, 4.2).
func reference(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	same := 0
	for same < len(a)-1 && same < len(b)-1 && a[same] == b[same] {
		same++
	}
	ref := strings.Repeat("../", len(a)-1-same) + strings.Join(b[same:], "/")
	first, _, _ := strings.Cut(ref, "/")
	if first == "" || strings.Contains(first, ":") {
		return "./" + ref // it would be an absolute path, a scheme or nothing
	}
	return ref
}
