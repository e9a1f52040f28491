package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// A recorder sees an HTTP exchange below the protocol: the bytes of both bodies as they pass,
// even invalid ones. Of each exchange it reports
//
//   - the request, when its body has been read to the end or, if it never is, when the answer
//     begins;
//   - the answer with its body; or its head, and then each event of its stream.

// maxRecorded bounds the bytes kept of a body, or of one event, until it is reported. The rest is
// counted.
const maxRecorded = 32 << 20

// exchange is one HTTP exchange being recorded. Its frames have the number n.
type exchange struct {
	tap   *engine.Tap
	n     int
	cause trace.Cause // of all its frames; zero: the tap knows the cause of each message

	mu   sync.Mutex
	conn string // empty: the tap knows; guarded by mu
}

func (x *exchange) tell(f trace.Frame) {
	x.mu.Lock()
	f.Conn = x.conn
	x.mu.Unlock()
	if f.HTTP == nil {
		f.HTTP = &trace.HTTP{}
	}
	f.HTTP.Exchange, f.For = x.n, x.cause
	x.tap.Frame(f)
}

// body is the recorded part of a body.
type body struct {
	kept []byte
	size int
}

func (b *body) Write(p []byte) (int, error) {
	b.size += len(p)
	b.kept = append(b.kept, p[:min(len(p), maxRecorded-len(b.kept))]...)
	return len(p), nil
}

// frame returns the frame of a body in a direction.
func (b *body) frame(dir trace.Dir, head *trace.HTTP) trace.Frame {
	f := trace.Frame{Dir: dir, HTTP: head, Size: b.size, Cut: b.size - len(b.kept)}
	if f.Cut > 0 {
		f.Raw = b.kept
	} else {
		f.Msg = b.kept
	}
	return f
}

// sink gets the bytes of a body, and reports them.
type sink interface {
	io.Writer
	end() // called once, after the last Write
}

// reader reports a body when its reading ends. It may be closed while it is read.
type reader struct {
	io.ReadCloser

	mu    sync.Mutex
	sink  sink // guarded by mu
	ended bool // its end was called; guarded by mu
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.sink.Write(p[:n])
	}
	if err != nil {
		r.endLocked()
	}
	return n, err
}

func (r *reader) Close() error {
	r.end()
	return r.ReadCloser.Close()
}

// end reports the part that was read, unless that was done before.
func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
}

func (r *reader) endLocked() {
	if !r.ended {
		r.ended = true
		r.sink.end()
	}
}

// isStream reports whether an answer is a stream of events.
func isStream(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// recordingTransport records the exchanges of a client.
type recordingTransport struct {
	base http.RoundTripper
	tap  *engine.Tap
	last atomic.Int64
}

func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.tap.On() {
		return t.base.RoundTrip(req)
	}
	x := &exchange{tap: t.tap, n: int(t.last.Add(1)), cause: engine.CauseOf(req.Context())}
	var sent body
	if req.GetBody != nil {
		if b, err := req.GetBody(); err == nil {
			_, _ = io.Copy(&sent, b)
			b.Close()
		}
	}
	if x.cause == (trace.Cause{}) {
		x.cause = t.tap.Peek(trace.Out, sent.kept)
	}
	x.tellRequest(&sent, trace.Out, &trace.HTTP{Method: req.Method, Path: req.URL.RequestURI()}, req.Header, req.URL.Host)
	res, err := t.base.RoundTrip(req)
	if err != nil {
		x.tell(trace.Frame{Kind: trace.KindClose, Dir: trace.In, Note: err.Error()})
		return nil, err
	}
	head := &trace.HTTP{Status: res.StatusCode, Headers: res.Header}
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols, res.Body == http.NoBody, res.ContentLength == 0:
		x.tell(trace.Frame{Dir: trace.In, HTTP: head})
	case isStream(res.Header):
		x.tell(trace.Frame{Dir: trace.In, HTTP: head})
		res.Body = &reader{ReadCloser: res.Body, sink: &eventTap{x: x, dir: trace.In}}
	default:
		res.Body = &reader{ReadCloser: res.Body, sink: &answer{x: x, head: head}}
	}
	return res, nil
}

// answer is an answer that a client reads.
type answer struct {
	body
	x    *exchange
	head *trace.HTTP
}

func (a *answer) end() { a.x.tell(a.frame(trace.In, a.head)) }

// tellRequest reports a request. Go keeps the Host header apart from the others.
func (x *exchange) tellRequest(b *body, dir trace.Dir, head *trace.HTTP, h http.Header, host string) {
	all := headers.Get().(http.Header)
	maps.Copy(all, h)
	all["Host"] = []string{host}
	head.Headers = all
	x.tell(b.frame(dir, head))
	head.Headers = nil
	clear(all)
	headers.Put(all)
}

// headers has maps for frames, which nobody keeps.
var headers = sync.Pool{New: func() any { return http.Header{} }}

// Recorder records the exchanges of a server.
type Recorder struct {
	Tap *engine.Tap
}

// exchanges counts the exchanges of the process. Several servers may write into one recording, and a name of a
// connection must stand for one of them.
var exchanges atomic.Int64

// Record returns the writer and the request for a handler to use in place of w and r, and a
// function to call when the handler has returned. The names of connections are those of sessions,
// but not their ids; an exchange without a session is a connection of its own.
//
// If no frames are wanted, Record returns w and r themselves.
func (rec *Recorder) Record(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	if !rec.Tap.On() {
		return w, r, func() {}
	}
	n := int(exchanges.Add(1))
	rw := &recordingWriter{ResponseWriter: w, x: exchange{tap: rec.Tap, n: n}}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		rw.x.conn = sessionName(id)
	} else if id := sessionOf(r.URL); id != "" {
		rw.x.conn = sessionName(id)
	} else {
		rw.x.conn = "http-" + strconv.Itoa(n)
	}
	rw.ctx = recordedContext{r.Context(), rw.x.conn}
	rw.request = recordedRequest{x: &rw.x, r: r}
	rw.in.ReadCloser, rw.in.sink = r.Body, &rw.request
	out := r.WithContext(&rw.ctx)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		rw.in.end()
	} else {
		out.Body = &rw.in
	}
	return rw, out, rw.end
}

// recordedRequest is a request that a server reads.
type recordedRequest struct {
	body
	x    *exchange
	r    *http.Request
	head trace.HTTP
}

func (q *recordedRequest) end() {
	path := q.r.RequestURI
	if path == "" {
		path = q.r.URL.RequestURI()
	}
	q.head = trace.HTTP{Method: q.r.Method, Path: path}
	q.x.tellRequest(&q.body, trace.In, &q.head, q.r.Header, q.r.Host)
	q.body = body{} // its memory may go
}

// Session records that a peer has opened a session with an id.
func (rec *Recorder) Session(id string, peer *engine.Peer) {
	f := peer.Opened()
	f.Conn = sessionName(id)
	rec.Tap.Frame(f)
}

// connKey is the context key for the name of the connection of a recorded request, a *string.
type connKey struct{}

// recordedContext is the context of a recorded request.
type recordedContext struct {
	context.Context
	conn string
}

func (c *recordedContext) Value(key any) any {
	if key == (connKey{}) {
		return &c.conn
	}
	return c.Context.Value(key)
}

// Conn returns the name in recordings of the connection of a request that came to Record with ctx;
// empty if it is not recorded.
func (rec *Recorder) Conn(ctx context.Context) string {
	if rec == nil {
		return ""
	}
	if conn, _ := ctx.Value(connKey{}).(*string); conn != nil {
		return *conn
	}
	return ""
}

// InSession returns a context in which [Recorder.Conn] returns the name of a session.
func (rec *Recorder) InSession(ctx context.Context, id string) context.Context {
	if rec == nil {
		return ctx
	}
	return &recordedContext{ctx, sessionName(id)}
}

// sessionOf returns the id of a session in the URL of HTTP+SSE; empty: there is none.
func sessionOf(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	return u.Query().Get("sessionId")
}

// sessionName returns a name for a session that does not reveal its id.
func sessionName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "session-" + hex.EncodeToString(sum[:4])
}

// recordingWriter records an answer. A [http.ResponseController] finds the writer
// behind it.
type recordingWriter struct {
	http.ResponseWriter
	x       exchange
	ctx     recordedContext
	request recordedRequest
	in      reader // of the request

	mu     sync.Mutex
	begun  bool       // the answer has a status; guarded by mu
	head   trace.HTTP // guarded by mu
	length int        // the Content-Length of the handler, -1 if none; guarded by mu
	body   body       // guarded by mu
	events *eventTap  // nil: the answer is not a stream; guarded by mu
	told   bool       // guarded by mu
}

func (w *recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recordingWriter) WriteHeader(status int) {
	w.mu.Lock()
	w.begin(status)
	w.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

// begin records the head of the answer. The caller holds mu.
func (w *recordingWriter) begin(status int) {
	if w.begun || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.in.end()
	h := w.Header()
	w.begun, w.head, w.length = true, trace.HTTP{Status: status, Headers: h}, -1 // handlers don't change it from now on
	if s := h.Get("Content-Length"); s != "" {
		if n, err := strconv.Atoi(s); err == nil {
			w.length = n
		}
	}
	if isStream(h) {
		w.x.tell(trace.Frame{Dir: trace.Out, HTTP: &w.head})
		w.told = true
		w.events = &eventTap{x: &w.x, dir: trace.Out}
	}
}

func (w *recordingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.begin(http.StatusOK)
	switch n := len(p); {
	case w.events != nil:
		w.events.Write(p)
	case w.length >= 0 && n == w.length && w.body.size == 0 && n <= maxRecorded: // all of it; the frame is not kept
		w.body = body{kept: p, size: n}
		w.tell()
		w.body.kept = nil
	default:
		w.body.Write(p)
		if w.length >= 0 && w.body.size >= w.length {
			w.tell() // before the client gets it and continues
		}
	}
	w.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

// tell reports the answer, once. The caller holds mu.
func (w *recordingWriter) tell() {
	if !w.told {
		w.told = true
		w.x.tell(w.body.frame(trace.Out, &w.head))
	}
}

// end is called when the handler has returned.
func (w *recordingWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(http.StatusOK)
	if w.events != nil {
		w.events.end()
	}
	w.tell()
}

// eventTap reports the events of a stream whose bytes are written to it (WHATWG HTML, 9.2). It is
// used by one goroutine at a time.
type eventTap struct {
	x   *exchange
	dir trace.Dir

	line    body
	afterCR bool
	begun   bool // a line was read: no byte order mark any more
	data    body
	hasData bool
	name    string
	id      string
	hasID   bool
}

func (e *eventTap) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		if e.afterCR && rest[0] == '\n' {
			rest = rest[1:]
			e.afterCR = false
			continue
		}
		e.afterCR = false
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			e.line.Write(rest)
			break
		}
		e.line.Write(rest[:end])
		e.afterCR = rest[end] == '\r'
		rest = rest[end+1:]
		e.field()
	}
	return len(p), nil
}

// keptLine is the capacity of the longest line whose memory is reused.
const keptLine = 64 << 10

// field handles a line.
func (e *eventTap) field() {
	line, cut := string(e.line.kept), e.line.size-len(e.line.kept)
	e.line = body{kept: e.line.kept[:0]}
	if cap(e.line.kept) > keptLine {
		e.line.kept = nil
	}
	if !e.begun {
		e.begun = true
		line = strings.TrimPrefix(line, "\xef\xbb\xbf")
	}
	if line == "" {
		e.dispatch()
		return
	}
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "":
		e.x.tell(trace.Frame{Kind: trace.KindComment, Dir: e.dir, Note: value})
	case "data":
		if e.hasData {
			e.data.Write([]byte{'\n'})
		}
		e.hasData = true
		e.data.Write([]byte(value))
		e.data.size += cut
	case "event":
		e.name = value
	case "id":
		if !strings.Contains(value, "\x00") {
			e.id, e.hasID = value, true
		}
	}
}

// dispatch reports the event that a blank line ends.
func (e *eventTap) dispatch() {
	f := e.data.frame(e.dir, nil)
	f.Event = e.id
	switch {
	case e.name != "" && e.name != "message":
		if e.name == "endpoint" {
			e.endpoint(string(e.data.kept))
		}
		f.Kind, f.Note = trace.KindEvent, e.name
		e.x.tell(f)
	case len(e.data.kept) > 0:
		e.x.tell(f)
	case e.hasID: // it primes the client for a resumption
		f.Kind = trace.KindEvent
		e.x.tell(f)
	}
	e.data, e.hasData, e.name, e.id, e.hasID = body{}, false, "", "", false
}

// endpoint gives the exchange the name of the session in the endpoint event of HTTP+SSE.
func (e *eventTap) endpoint(uri string) {
	u, err := url.Parse(uri)
	if err != nil || sessionOf(u) == "" {
		return
	}
	e.x.mu.Lock()
	defer e.x.mu.Unlock()
	if e.x.conn != "" {
		e.x.conn = sessionName(sessionOf(u))
	}
}

// end reports an unfinished event.
func (e *eventTap) end() {
	e.afterCR = false
	if e.line.size > 0 || e.hasData {
		f := e.data.frame(e.dir, nil)
		f.Raw = append(append(f.Raw, f.Msg...), e.line.kept...)
		f.Msg, f.Kind, f.Note, f.Size = nil, trace.KindEvent, "the stream ended within an event", f.Size+e.line.size
		e.x.tell(f)
	}
	e.x.tell(trace.Frame{Kind: trace.KindClose, Dir: e.dir, Note: "end of the stream"})
	e.line, e.data, e.hasData = body{}, body{}, false
}
