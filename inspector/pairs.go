package inspector

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/trace"
)

// This file decides which frames make a row of the wire screen: a request with its answer, notifications of one kind
// after each other, an HTTP exchange, or a frame by itself. It looks at each frame once, when it is recorded.

// row is a row. It is guarded by the mutex of its Frames.
type row struct {
	n      int // first frame
	last   int // last frame
	answer int // frame of the answer; zero: none
	count  int // of notifications, if more than one
	lost   int // frames that are missing before it

	conn   *conn
	dir    trace.Dir
	kind   string
	method string
	id     string // as JSON
	key    key    // of its request; in notes what they are about

	cause int // row
	depth int

	status   string
	ended    string // why there will be no answer
	canceled bool
	pending  int      // unanswered requests of a batch
	keys     []uint64 // in Frames.rows
	client   string

	nextOpen, lastOpen *row // of its connection, which wait for an answer too
}

// The kinds of rows besides those of frames.
const (
	rowRequest = "request"
	rowAnswer  = "answer" // whose request is not kept
	rowNote    = "note"
	rowBatch   = "batch"
	rowHTTP    = "http"
	rowBytes   = "bytes"
)

// The states of rows with an answer.
const (
	statusOpen     = "open"
	statusOK       = "ok"
	statusTool     = "tool error"
	statusError    = "error"
	statusCanceled = "canceled"
)

// key names what later frames refer to: a request by its id, its token of progress, or its HTTP exchange.
type key struct {
	conn string
	dir  trace.Dir // of the request
	kind byte      // 'i', 't' or 'x'
	id   string
}

// conn is what is known of a connection.
type conn struct {
	name     string
	server   string // its name in the configuration, or as it gave it; empty: the other side is a client, or not known
	ours     bool   // this program is the client
	client   string // name of the client, as it gave it
	revision string
	rows     int  // that are kept
	open     *row // the newest of the rows that wait for an answer
	last     *row // the newest row
}

const (
	maxDepth = 8
	maxConns = 4096 // that are remembered without a frame
)

// connOf returns the connection of a frame.
func (f *Frames) connOf(frame *trace.Frame) *conn {
	c := f.conns[frame.Conn]
	if c == nil {
		if f.idle >= maxConns {
			for name, old := range f.conns {
				if old.rows == 0 {
					delete(f.conns, name)
				}
			}
			f.idle = 0
		}
		f.idle++
		c = &conn{name: frame.Conn}
		if server := frame.Server(); server != "" {
			c.server, c.ours = server, true
		}
		f.conns[frame.Conn] = c
	}
	return c
}

// place puts a frame into a row.
func (f *Frames) place(e *kept) {
	frame := e.frame
	c := f.connOf(frame)
	var r *row
	switch {
	case frame.Kind != trace.KindMessage:
		r = f.placeEvent(e, c)
	case len(frame.Msg) > 0 && jsonx.KindOf(frame.Msg) == '{' && (frame.Message() || isMessage(frame.Msg)):
		r = f.placeMessage(e, c)
	case len(frame.Msg) > 0 && jsonx.KindOf(frame.Msg) == '[' && frame.Message():
		r = f.placeBatch(e, c)
	default:
		r = f.placeHTTP(e, c)
	}
	if r.lost += frame.Lost; r.n == e.n {
		e.r = r
		if c.rows++; c.rows == 1 {
			f.idle--
		}
		if h := frame.HTTP; h != nil && h.Exchange > 0 && h.Method != "" {
			if f.bind(r, key{frame.Conn, "", 'x', strconv.Itoa(h.Exchange)}); frame.Dir == trace.In {
				f.bind(r, key{"", "", 'x', strconv.Itoa(h.Exchange)})
			}
		}
		if r.status == statusOpen {
			if r.nextOpen = c.open; c.open != nil {
				c.open.lastOpen = r
			}
			c.open = r
		}
		c.last = r
		f.last = r
	} else if before := f.at(r.last); before != nil {
		before.next = e.n
	}
	e.row, r.last = r.n, e.n
}

// isMessage reports whether an object is a message, as the body of an HTTP error may be.
func isMessage(msg []byte) bool {
	_, ok := jsonx.Lookup(msg, "jsonrpc")
	return ok
}

// newRow returns a row that begins with a frame.
func (f *Frames) newRow(e *kept, c *conn, kind string) *row {
	r := &row{n: e.n, last: e.n, conn: c, dir: e.frame.Dir, kind: kind}
	if c.client != "" && c.server == "" {
		r.client = c.client
	}
	if e.frame.For != (trace.Cause{}) {
		r.causedBy(f.rowOf(key{e.frame.For.Conn, trace.In, 'i', e.frame.For.ID}))
	}
	return r
}

// causedBy makes a row the effect of another, if there is one.
func (r *row) causedBy(cause *row) {
	if cause == nil || cause == r {
		return
	}
	r.cause, r.depth = cause.n, min(cause.depth+1, maxDepth)
	if cause.client != "" {
		r.client = cause.client
	}
}

// closed takes a row out of those that wait for an answer.
func (r *row) closed() {
	switch {
	case r.lastOpen != nil:
		r.lastOpen.nextOpen = r.nextOpen
	case r.conn.open == r:
		r.conn.open = r.nextOpen
	}
	if r.nextOpen != nil {
		r.nextOpen.lastOpen = r.lastOpen
	}
	r.nextOpen, r.lastOpen = nil, nil
}

// rowOf returns the row with a key.
func (f *Frames) rowOf(k key) *row {
	if n, ok := f.rows[maphash.Comparable(f.seed, k)]; ok {
		if e := f.at(n); e != nil {
			return e.r
		}
	}
	return nil
}

// bind lets a row be found by a key.
func (f *Frames) bind(r *row, k key) {
	sum := maphash.Comparable(f.seed, k)
	f.rows[sum] = r.n
	if r.keys == nil {
		r.keys = make([]uint64, 0, 3) // its id and its HTTP exchange
	}
	r.keys = append(r.keys, sum)
}

// forget forgets a row whose first frame is dropped.
func (f *Frames) forget(r *row) {
	for _, k := range r.keys {
		if f.rows[k] == r.n {
			delete(f.rows, k)
		}
	}
	r.closed()
	if r.conn.rows--; r.conn.rows == 0 {
		f.idle++
	}
}

// placeEvent places a frame that is not a message.
func (f *Frames) placeEvent(e *kept, c *conn) *row {
	frame := e.frame
	switch frame.Kind {
	case trace.KindStart, trace.KindExit, trace.KindStderr:
		c.ours = true
	case trace.KindSession:
		rev, server, _ := strings.Cut(frame.Note, " with ")
		c.revision, _, _ = strings.Cut(rev, " ")
		if name, _, ok := strings.Cut(server, ": "); ok && c.server == "" && c.ours {
			if i := strings.LastIndexByte(name, ' '); i > 0 {
				name = name[:i] // without its version
			}
			c.server = name
		}
	case trace.KindComment:
		if last := c.last; last != nil && last.kind == string(trace.KindComment) && last.dir == frame.Dir && last.last == e.n-1 {
			last.count = max(last.count, 1) + 1
			return last
		}
	}
	if x := f.exchange(frame); x != nil && frame.Kind == trace.KindClose {
		x.canceled = x.canceled || x.method == revision.MethodListen // which ends so
		f.end(x, statusError, frame.Note)
		return x
	}
	r := f.newRow(e, c, string(frame.Kind))
	if r.cause == 0 {
		r.causedBy(f.exchange(frame))
	}
	if frame.Kind == trace.KindClose || frame.Kind == trace.KindExit {
		for open := c.open; open != nil; open = c.open {
			e.also = append(e.also, open.n)
			f.end(open, statusError, "not answered before the connection was closed")
			open.closed()
		}
		slices.Sort(e.also)
	}
	return r
}

// exchange returns the row of the HTTP request that a frame is an answer to.
func (f *Frames) exchange(frame *trace.Frame) *row {
	h := frame.HTTP
	if h == nil || h.Exchange == 0 || h.Method != "" {
		return nil
	}
	id := strconv.Itoa(h.Exchange)
	if r := f.rowOf(key{frame.Conn, "", 'x', id}); r != nil {
		return r
	}
	// A server names the connection by the session, which the request of initialize has not yet.
	if r := f.rowOf(key{"", "", 'x', id}); r != nil && r.dir != frame.Dir {
		return r
	}
	return nil
}

// end ends the wait for an answer.
func (f *Frames) end(r *row, status, why string) {
	if r.status != statusOpen {
		return
	}
	if r.status, r.ended = status, why; r.canceled && status == statusError {
		r.status = statusCanceled
	}
	r.closed()
}

// placeMessage places a frame with one message.
func (f *Frames) placeMessage(e *kept, c *conn) *row {
	frame := e.frame
	m := headOf(frame.Msg)
	switch {
	case m.method != "" && m.id != "":
		return f.placeRequest(e, c, m)
	case m.method != "":
		return f.placeNote(e, c, m)
	}
	k := key{frame.Conn, opposite(frame.Dir), 'i', m.id}
	r := f.rowOf(k)
	if r == nil {
		if x := f.exchange(frame); x != nil && (x.id == m.id || m.id == "" || m.id == "null") {
			if r = x; x.conn != c && x.method == revision.MethodInitialize { // its session has begun
				c.client, c.ours = x.conn.client, x.conn.ours
			}
		}
	}
	if r == nil {
		r = f.newRow(e, c, rowAnswer)
		r.id = m.id
		r.status = m.status()
		return r
	}
	f.answered(r, e, m)
	if r.method == revision.MethodInitialize && m.status() == statusOK {
		opened(c, frame.Msg)
		if r.conn != c {
			opened(r.conn, frame.Msg)
		}
	}
	return r
}

// answered notes an answer to a row.
func (f *Frames) answered(r *row, e *kept, m head) {
	if r.kind == rowBatch {
		if r.pending--; r.pending > 0 {
			return
		}
	}
	status := m.status()
	if r.canceled && status == statusError {
		status = statusCanceled
	}
	if r.status == statusOpen || r.answer == 0 {
		r.status, r.answer, r.ended = status, e.n, ""
		r.closed()
	}
}

// opened learns from the answer to initialize.
func opened(c *conn, msg []byte) {
	if v := textAt(msg, "result", "protocolVersion"); v != "" {
		c.revision = v
	}
	if name := textAt(msg, "result", "serverInfo", "name"); name != "" && c.server == "" && c.ours {
		c.server = name
	}
}

// serverMethods are the requests that a server sends.
var serverMethods = []string{revision.MethodElicit, revision.MethodSample, revision.MethodRoots}

func (f *Frames) placeRequest(e *kept, c *conn, m head) *row {
	frame := e.frame
	if !slices.Contains(serverMethods, m.method) && m.method != "ping" {
		c.ours = frame.Dir == trace.Out
	}
	meta, _ := jsonx.LookupPath(frame.Msg, "params", "_meta")
	if client := m.client(frame.Msg, meta); client != "" {
		c.client = f.shared(client)
	}
	r := f.newRow(e, c, rowRequest)
	r.method, r.id, r.status = f.shared(m.method), m.id, statusOpen
	r.key = key{frame.Conn, frame.Dir, 'i', m.id}
	f.bind(r, r.key)
	if token, ok := jsonx.Lookup(meta, "progressToken"); ok && len(token) <= maxID {
		f.bind(r, key{frame.Conn, frame.Dir, 't', string(token)})
	}
	if r.cause == 0 { // a question on the stream of a call
		r.causedBy(f.exchange(frame))
	}
	return r
}

func (f *Frames) placeNote(e *kept, c *conn, m head) *row {
	frame := e.frame
	about := key{}
	switch m.method {
	case revision.NoteProgress:
		token, _ := jsonx.LookupPath(frame.Msg, "params", "progressToken")
		about = key{frame.Conn, opposite(frame.Dir), 't', string(token)}
	case revision.NoteCancelled:
		id, _ := jsonx.LookupPath(frame.Msg, "params", "requestId")
		about = key{frame.Conn, frame.Dir, 'i', string(id)}
	case "notifications/resources/updated":
		about = key{id: textAt(frame.Msg, "params", "uri")}
	}
	// The same again is one row with a count, unless its text differs each time.
	if last := c.last; last != nil && last.kind == rowNote && last.method == m.method && last.dir == frame.Dir && last.key == about && m.method != revision.NoteMessage && m.method != revision.NoteCancelled {
		last.count = max(last.count, 1) + 1
		return last
	}
	r := f.newRow(e, c, rowNote)
	r.method, r.key = f.shared(m.method), about
	if r.cause == 0 {
		r.causedBy(f.exchange(frame))
	}
	if about.kind != 0 {
		target := f.rowOf(about)
		r.causedBy(target)
		if target != nil && m.method == revision.NoteCancelled {
			target.canceled = true
			e.also = append(e.also, target.n)
			f.end(target, statusCanceled, "")
		}
	}
	return r
}

// maxBatch bounds the messages of a batch that are looked at.
const maxBatch = 1000

// placeBatch places an array of messages: the requests make one row, and so do answers to them.
func (f *Frames) placeBatch(e *kept, c *conn) *row {
	r := f.newRow(e, c, rowBatch)
	var of *row // that the answers are for
	looked := 0
	for msg := range jsonx.Elements(e.frame.Msg) {
		if looked++; looked > maxBatch {
			break
		}
		m := headOf(msg)
		switch {
		case m.method != "" && m.id != "":
			r.pending++
			f.bind(r, key{e.frame.Conn, e.frame.Dir, 'i', m.id})
		case m.method == "":
			if asked := f.rowOf(key{e.frame.Conn, opposite(e.frame.Dir), 'i', m.id}); asked != nil {
				if f.answered(asked, e, m); of != nil && of != asked {
					e.also = append(e.also, of.n)
				}
				of = asked
			}
		}
	}
	if r.pending == 0 && of != nil {
		return of
	}
	r.count = looked
	if r.pending > 0 {
		r.status = statusOpen
	}
	return r
}

// placeHTTP places bytes that are not a message, and HTTP without one.
func (f *Frames) placeHTTP(e *kept, c *conn) *row {
	frame := e.frame
	h := frame.HTTP
	if x := f.exchange(frame); x != nil {
		switch failed := h != nil && h.Status >= 400; {
		case x.kind == rowHTTP && x.answer == 0 && h.Status > 0:
			if x.answer, x.status = e.n, statusOK; failed {
				x.status = statusError
			}
			x.closed()
		case failed && x.status == statusOpen:
			x.answer = e.n
			f.end(x, statusError, "")
		case failed && x.status == "":
			x.status = statusError
			x.answer = e.n
		}
		return x
	}
	kind := rowBytes
	if h != nil && (h.Method != "" || h.Status != 0) && len(frame.Raw) == 0 {
		kind = rowHTTP
	}
	r := f.newRow(e, c, kind)
	if h != nil && h.Method != "" {
		r.status = statusOpen
		c.ours = frame.Dir == trace.Out
	}
	if kind == rowBytes && h != nil && h.Method != "" {
		r.kind = rowHTTP
	}
	return r
}

func opposite(d trace.Dir) trace.Dir {
	if d == trace.In {
		return trace.Out
	}
	return trace.In
}

// maxShared bounds the texts of rows that are kept once for all of them.
const maxShared = 256

// shared returns a text that many rows have.
func (f *Frames) shared(s string) string {
	if same, ok := f.texts[s]; ok {
		return same
	}
	if len(f.texts) >= maxShared {
		clear(f.texts)
	}
	f.texts[s] = s
	return s
}

// maxID bounds ids and tokens by which rows are found.
const maxID = 256

// head is what pairing needs of a message.
type head struct {
	method string
	id     string // as JSON; empty: none
	failed bool   // it has an error
	tool   bool   // its result is an error of a tool
	more   bool   // its result is not the last: it asks something, or is a task
}

// headOf reads the top of a message in one pass.
func headOf(msg []byte) (m head) {
	for name, value := range jsonx.Members(msg) {
		switch string(name) {
		case "method":
			m.method, _ = jsonx.Unquote(value)
			if len(m.method) > maxID {
				m.method = m.method[:maxID]
			}
		case "id":
			if len(value) <= maxID {
				m.id = string(value)
			}
		case "error":
			m.failed = true
		case "result":
			for name, value := range jsonx.Members(value) {
				switch string(name) {
				case "isError":
					m.tool = string(value) == "true"
				case "resultType":
					m.more = string(value) != `"complete"`
				}
			}
		}
		if m.method != "" && m.id != "" { // a request, whose params are long
			break
		}
	}
	return m
}

func (m head) status() string {
	switch {
	case m.failed:
		return statusError
	case m.tool:
		return statusTool
	}
	return statusOK
}

// client returns the name of the client that a request gives.
func (m head) client(msg, meta []byte) string {
	if m.method == revision.MethodInitialize {
		return textAt(msg, "params", "clientInfo", "name")
	}
	return textAt(meta, "io.modelcontextprotocol/clientInfo", "name")
}

// textAt returns a string in a message, bounded; empty: there is none.
func textAt(msg []byte, path ...string) string {
	raw, ok := jsonx.LookupPath(msg, path...)
	if !ok || len(raw) > 4*maxID {
		return ""
	}
	s, _ := jsonx.Unquote(raw)
	return s
}
