package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const writeTimeout = web.WriteTimeout

// response is the HTTP response to one request: one JSON object, or an event stream as soon as a
// message is sent before the end. Its methods are safe for concurrent use.
//
// Writes happen under its lock: they are bounded in time, and only the writers of this stream
// wait for them.
type response struct {
	server *Server
	w      http.ResponseWriter
	client context.Context // ends when the client disconnects

	mu       sync.Mutex
	err      error       // why the client cannot be reached; guarded by mu
	beat     *time.Timer // sends comments while the stream is quiet; guarded by mu
	events   bool        // the response is an event stream; guarded by mu
	finished bool        // no more writes; guarded by mu
	bounded  bool        // the connection has a deadline; guarded by mu

	stream   *stream // of a legacy call; nil: of a modern one
	noJSON   bool    // the client does not take JSON; guarded by mu once the handler runs
	noEvents error   // why there can be no event stream: errNoEvents, or a [web.BufferedError]
	last     bool    // an event stream here is the last that its connection has
	abrupt   bool    // a handler has ended the goroutine of net/http, which will not finish the response

	// For the stream on this response: left, if not nil, is called when the stream has released the
	// response; unwatch, if not nil, ends the watch on client; detaches reports that the handler
	// goes on after the release.
	chunked  bool // how the response is framed
	detaches bool
	left     func()
	unwatch  func() bool
}

// posted is a POST of one message, the response to it and the state for serving it, in one
// allocation.
//
// It has over 480 bytes on purpose. Smaller ones would share a size class with the connection
// state of net/http and fragment its memory: half a KiB for each open stream.
type posted struct {
	response
	work
}

var (
	errFinished = errors.New("the response is finished")
	errNoEvents = errors.New("the client does not accept text/event-stream")
)

// Shared, so that a response needs no slice of its own. Header.Set replaces them.
var (
	typeJSON   = []string{"application/json"}
	typeEvents = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
	noBuffer   = []string{"no"}
	closes     = []string{"close"}
)

// ends reports whether the connection of a stream without an end of its own should end with it. Such a stream mostly ends because the
// server does: a client that reused the connection at that moment would lose a request, which a balancer that is slow to pass on the
// end makes likely. HTTP/2 says by itself which requests were not served.
func ends(r *http.Request) bool { return r.ProtoMajor == 1 }

// open makes the response an event stream.
func (p *response) open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return errFinished
	}
	p.openLocked()
	return p.write(nil)
}

func (p *response) openLocked() {
	if p.events {
		return
	}
	p.beginEvents()
	p.w.Header()["X-Accel-Buffering"] = noBuffer // HTTP-26-019
	if p.last {
		p.w.Header()["Connection"] = closes
	}
	p.w.WriteHeader(http.StatusOK)
	if d := p.server.KeepAlive; d > 0 {
		p.beat = time.AfterFunc(d, p.comment)
	}
}

func (p *response) beginEvents() {
	p.events = true
	h := p.w.Header()
	h["Content-Type"] = typeEvents
	h["Cache-Control"] = noStore
}

// comment keeps a quiet stream alive (HTTP-26-020). It runs on the timer, which each write
// resets.
func (p *response) comment() {
	if !p.mu.TryLock() {
		return // it is not quiet
	}
	defer p.mu.Unlock()
	if !p.finished {
		_ = p.write([]byte(":\n\n")) // the next message gets the error
	}
}

// send writes one message as an event. The first one makes the response a stream.
func (p *response) send(frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.finished:
		return errFinished
	case p.err != nil:
		return p.err
	case p.noEvents != nil:
		return p.refuseEvents()
	}
	p.openLocked()
	return p.event("", frame)
}

// event writes one message. The argument id is the id under which it is kept, or "" if it is not.
func (p *response) event(id string, frame []byte) error {
	b := buffer.Get()
	defer buffer.Put(b)
	*b = appendEvent(*b, id, frame)
	return p.write(*b)
}

func appendEvent(dst []byte, id string, frame []byte) []byte {
	dst = buffer.Grow(dst, len(id)+len(frame)+40)
	dst = append(dst, "event: message\n"...)
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return append(append(append(dst, "data: "...), frame...), "\n\n"...)
}

// finish ends the response with its last messages, none for a call that the
// client gave up. A batch is an array if it is sent as JSON.
func (p *response) finish(status int, batch bool, frames ...[]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return errFinished
	}
	defer p.endLocked()
	if p.err != nil {
		return p.err
	}
	if p.noJSON && !p.events && len(frames) > 0 {
		p.beginEvents() // all messages are here, so buffering in front of us does no harm
		p.w.WriteHeader(http.StatusOK)
		b := buffer.Get()
		defer buffer.Put(b)
		for _, f := range frames {
			*b = appendEvent(*b, "", f)
		}
		return p.whole(*b)
	}
	if len(frames) == 0 {
		p.openLocked()
	}
	if p.events {
		for _, f := range frames {
			if err := p.event("", f); err != nil {
				return err
			}
		}
		if len(frames) == 0 {
			return p.write(nil)
		}
		return nil
	}
	if !batch {
		return p.json(status, frames[0])
	}
	body := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, f...)
	}
	return p.json(status, append(body, ']'))
}

// reply ends the response with the answer to its one request.
func (p *response) reply(status int, r *engine.Reply) error {
	b := buffer.Get()
	defer buffer.Put(b)
	*b = r.Append(*b)
	if own, h := r.Denial(); own != 0 {
		status = own
		p.deny(h)
	}
	return p.finish(status, false, *b)
}

// deny sets the headers of a denial on a response that has not begun. The response is JSON then,
// whatever the client accepts.
func (p *response) deny(h http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.events && !p.finished {
		maps.Copy(p.w.Header(), h)
		p.noJSON = false
	}
}

// end closes the response without a further message.
func (p *response) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
}

func (p *response) endLocked() {
	p.finished = true
	if p.beat != nil {
		p.beat.Stop()
	}
	if p.bounded {
		// The connection may go on with other requests, of other handlers too.
		_ = http.NewResponseController(p.w).SetWriteDeadline(time.Time{})
	}
}

const wholeBytes = web.WholeBytes

func (p *response) json(status int, body []byte) error {
	h := p.w.Header()
	h["Content-Type"] = typeJSON
	if len(body) > wholeBytes || p.abrupt {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if p.abrupt {
		h["Connection"] = closes // net/http is about to
	}
	p.w.WriteHeader(status)
	return p.whole(body)
}

// whole writes a body that is sent in one piece.
func (p *response) whole(body []byte) error {
	if len(body) > wholeBytes || p.abrupt {
		return p.write(body)
	}
	_, p.err = p.w.Write(body)
	return p.err
}

// write hands bytes, and the header if there are none, to the connection, bounded
// in time.
func (p *response) write(b []byte) error {
	if p.err != nil {
		return p.err
	}
	// A writer without deadlines is not a connection and needs no bound.
	c := http.NewResponseController(p.w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	p.bounded = true
	if len(b) > 0 {
		if _, p.err = p.w.Write(b); p.err != nil {
			return p.err
		}
	}
	if err := c.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		p.err = err
		return err
	}
	if p.beat != nil {
		p.beat.Reset(p.server.KeepAlive)
	}
	return nil
}

// Notify sends a notification that belongs to the request. Where there can be no event
// stream it is dropped.
func (p *response) Notify(method string, params json.RawMessage) error {
	b := buffer.Get()
	defer buffer.Put(b)
	*b = jsonrpc.AppendNotification(*b, method, params)
	return orWithout(p.send(*b))
}

// checkEvents returns why a response cannot be an event stream. The argument asked reports whether
// the client accepts one.
func checkEvents(w http.ResponseWriter, asked bool) error {
	if !asked {
		return errNoEvents
	}
	return web.CheckFlush(w)
}

// refuseEvents returns why there is no event stream. If middleware in front of the server is the
// reason, it is logged once.
func (p *response) refuseEvents() error {
	p.server.warnBuffered(p.noEvents)
	return p.noEvents
}

func (s *Server) warnBuffered(err error) {
	if err != errNoEvents {
		s.buffered.Do(func() {
			s.Logger.Warn("progress and messages to clients are dropped, and questions to clients before 2026-07-28 fail", "err", err)
		})
	}
}

// orWithout returns err, but nil for a message that needs an event stream where there cannot be
// one.
func orWithout(err error) error {
	if _, buffered := err.(*web.BufferedError); buffered || err == errNoEvents {
		return nil
	}
	return err
}

// unsupported is the error for a version that is not served (VER-26-001).
func (s *Server) unsupported(version string) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: revision.CodeUnsupportedVersion, Message: "protocol version is not supported; data.supported lists those that are"}
	data := []byte(`{"supported":[`)
	for i, name := range revision.Names(s.Engine.Revisions) {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(append(append(data, '"'), name...), '"')
	}
	data = append(data, `],"requested":`...)
	e.Data = append(jsonx.AppendString(data, text.Short(version)), '}')
	return e
}
