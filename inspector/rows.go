package inspector

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	texts "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// wireRow is a row of the wire screen as the page gets it: Row of ui/types.ts.
type wireRow struct {
	N      int      `json:"n"`
	At     float64  `json:"at"`
	Conn   string   `json:"conn"`
	Server string   `json:"server"`
	Client string   `json:"client,omitempty"`
	Dir    string   `json:"dir"`
	Kind   string   `json:"kind"`
	Method string   `json:"method,omitempty"`
	Target string   `json:"target,omitempty"`
	ID     string   `json:"id,omitempty"`
	Cause  int      `json:"cause,omitempty"`
	Depth  int      `json:"depth"`
	Bytes  int      `json:"bytes"`
	Back   int      `json:"back,omitempty"`
	Ms     *float64 `json:"ms,omitempty"`
	Status string   `json:"status"`
	Text   string   `json:"text,omitempty"`
	Count  int      `json:"count,omitempty"`
	Lost   int      `json:"lost,omitempty"`
}

// append appends the row in JSON. A page that follows the wire gets thousands of rows a second.
func (w *wireRow) append(out []byte) []byte {
	text := func(name, s string, always bool) {
		if s != "" || always {
			out = jsonx.AppendString(append(out, name...), s)
		}
	}
	out = appendCount(out, `{"n":`, w.N)
	out = strconv.AppendFloat(append(out, `,"at":`...), w.At, 'f', -1, 64)
	text(`,"conn":`, w.Conn, true)
	text(`,"server":`, w.Server, true)
	text(`,"client":`, w.Client, false)
	text(`,"dir":`, w.Dir, true)
	text(`,"kind":`, w.Kind, true)
	text(`,"method":`, w.Method, false)
	text(`,"target":`, w.Target, false)
	text(`,"id":`, w.ID, false)
	out = appendCount(out, `,"cause":`, w.Cause)
	out = strconv.AppendInt(append(out, `,"depth":`...), int64(w.Depth), 10)
	out = strconv.AppendInt(append(out, `,"bytes":`...), int64(w.Bytes), 10)
	out = appendCount(out, `,"back":`, w.Back)
	if w.Ms != nil {
		out = strconv.AppendFloat(append(out, `,"ms":`...), *w.Ms, 'f', -1, 64)
	}
	text(`,"status":`, w.Status, true)
	text(`,"text":`, w.Text, false)
	out = appendCount(out, `,"count":`, w.Count)
	out = appendCount(out, `,"lost":`, w.Lost)
	return append(out, '}')
}

// appendCount appends a member with a number, unless it is zero.
func appendCount(out []byte, name string, n int) []byte {
	if n == 0 {
		return out
	}
	return strconv.AppendInt(append(out, name...), int64(n), 10)
}

// snapshot is a row with what is shown of it, copied so that it can be read without the mutex of Frames. Its frames are
// those that were recorded, not redacted.
type snapshot struct {
	row
	server, revision string
	begin            time.Time // of the recording
	first            *trace.Frame
	end              *trace.Frame // the newest of the row, if it is not the first
	reply            *trace.Frame // the answer; nil: none
}

// snap copies a row. The caller holds mu.
func (f *Frames) snap(r *row) snapshot {
	s := snapshot{row: *r, server: r.conn.server, revision: r.conn.revision, begin: f.start}
	if s.server == "" && r.conn.ours {
		s.server = cmp.Or(r.conn.name, "server")
	}
	s.conn, s.keys, s.nextOpen, s.lastOpen = nil, nil, nil, nil
	if e := f.at(r.n); e != nil {
		s.first = e.packed.frame()
	}
	if e := f.at(r.last); e != nil && r.last != r.n {
		s.end = e.packed.frame()
	}
	switch e := f.at(r.answer); {
	case e == nil || r.answer == r.n:
	case r.answer == r.last:
		s.reply = s.end
	default:
		s.reply = e.packed.frame()
	}
	s.row.conn = &conn{name: r.conn.name}
	return s
}

// wireRow returns what the page gets of a row, redacted.
func (f *Frames) wireRow(s *snapshot) wireRow {
	w := wireRow{
		N: s.n, Conn: shown(s.conn.name), Server: shown(s.server), Client: shown(s.client), Dir: string(s.dir), Kind: s.kind,
		Cause: s.cause, Depth: s.depth, Status: s.status, Count: s.count, Lost: s.lost,
	}
	if s.first == nil {
		return w
	}
	w.At = millis(s.first.Time, s.begin)
	w.Bytes = bytesOf(s.first)
	if s.reply != nil {
		w.Back = bytesOf(s.reply)
		if !s.reply.Time.IsZero() && !s.first.Time.IsZero() {
			ms := millis(s.reply.Time, s.first.Time)
			w.Ms = &ms
		}
	}
	words := f.words(s)
	w.Method, w.Target, w.ID, w.Text = words.method, words.target, words.id, words.text
	return w
}

// millis is the time between two frames in milliseconds, with microseconds.
func millis(t, since time.Time) float64 {
	if t.IsZero() || since.IsZero() {
		return 0
	}
	return math.Round(float64(t.Sub(since))/1e3) / 1e3
}

func bytesOf(frame *trace.Frame) int {
	return cmp.Or(frame.Size, len(frame.Msg)+len(frame.Raw))
}

// words are the texts of a row.
type words struct{ method, target, id, text string }

// words returns the texts of a row: redacted, bounded, and with control characters visible. It redacts only the members
// that it shows.
func (f *Frames) words(s *snapshot) words {
	w := words{method: s.method, id: s.id}
	frame := s.first
	switch s.kind {
	case rowRequest, rowAnswer, rowNote:
		w.target = target(frame.Msg)
	case rowBatch:
		w.text = "batch of " + strconv.Itoa(s.count)
	}
	if s.kind == rowNote {
		last := cmp.Or(s.end, frame)
		if len(last.Msg) == 0 {
			last = frame
		}
		w.text = note(s.method, f.Redactor.Frame(*last).Msg)
	}
	if s.kind == rowAnswer {
		w.text = outcome(frame)
	}
	if s.reply != nil {
		w.text = cmp.Or(outcome(s.reply), w.text)
	}
	if s.ended != "" {
		w.text = s.ended
	}
	switch s.kind {
	case rowHTTP:
		if h := frame.HTTP; h != nil && h.Method != "" {
			w.method, w.target = h.Method, f.path(h)
		} else if h != nil {
			w.text = statusText(h.Status)
		}
		if s.reply != nil {
			w.text = statusText(s.reply.HTTP.Status)
		}
	case rowBytes:
		clean := f.Redactor.Frame(beginning(frame))
		w.text = "not a message: " + string(clip(clean.Raw)) + string(clip(clean.Msg))
	case string(trace.KindStart), string(trace.KindExit), string(trace.KindStderr), string(trace.KindOpen), string(trace.KindClose), string(trace.KindSession), string(trace.KindEvent), string(trace.KindComment):
		clean := f.Redactor.Frame(beginning(frame))
		w.text = strings.TrimSpace(strings.Join([]string{clean.Note, strings.Join(clean.Args, " "), string(clip(clean.Raw)), string(clip(clean.Msg))}, " "))
		return words{text: shown(w.text)}
	}
	if w == (words{}) {
		return w
	}
	// As members of a message with the same names, so that the same rules apply.
	obj := []byte(`{"method":`)
	obj = jsonx.AppendString(obj, w.method)
	obj = jsonx.AppendString(append(obj, `,"name":`...), w.target)
	obj = jsonx.AppendString(append(obj, `,"message":`...), w.text)
	obj = jsonx.AppendString(append(obj, `,"id":`...), w.id)
	clean := f.Redactor.Frame(trace.Frame{Msg: append(obj, '}')}).Msg
	for name, value := range jsonx.Members(clean) {
		s, _ := jsonx.Unquote(value)
		switch string(name) {
		case "method":
			w.method = shown(s)
		case "name":
			w.target = shown(s)
		case "message":
			w.text = shown(s)
		case "id":
			w.id = shown(s)
		}
	}
	return w
}

// beginning returns a frame with only the beginning of its bytes.
func beginning(frame *trace.Frame) trace.Frame {
	out := *frame
	if len(out.Msg) > maxBrief {
		out.Msg, out.Raw = nil, out.Msg
	}
	out.Raw = out.Raw[:min(len(out.Raw), maxBrief)]
	return out
}

func (f *Frames) path(h *trace.HTTP) string {
	return f.Redactor.Frame(trace.Frame{HTTP: &trace.HTTP{Path: h.Path}}).HTTP.Path
}

func statusText(status int) string {
	return strings.TrimSpace("HTTP " + strconv.Itoa(status) + " " + http.StatusText(status))
}

// target returns the name or URI that a request is about.
func target(msg []byte) string {
	params, _ := jsonx.Lookup(msg, "params")
	for _, at := range [...]string{"name", "uri", "taskId"} {
		if s := brief(params, at); s != "" {
			return s
		}
	}
	for _, at := range [...]string{"name", "uri"} {
		if s := brief(params, "ref", at); s != "" {
			return s
		}
	}
	return ""
}

// maxBrief bounds a text before it is redacted. It is far more than maxText, so that no part of a secret that is cut off here
// is shown.
const maxBrief = 16 << 10

// brief returns the beginning of a string in a message.
func brief(msg []byte, path ...string) string {
	raw, ok := jsonx.LookupPath(msg, path...)
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	if len(raw) > maxBrief {
		end := maxBrief
		for end > 1 && (raw[end-1] == '\\' || raw[end-1] >= 0x80) {
			end--
		}
		cut := append(append([]byte(nil), raw[:end]...), '"')
		if s, err := jsonx.Unquote(cut); err == nil {
			return s
		}
		return ""
	}
	s, _ := jsonx.Unquote(raw)
	return s
}

// number returns the text of a number in a message; empty: there is none.
func number(msg []byte, name string) string {
	raw, _ := jsonx.Lookup(msg, name)
	if len(raw) > 30 || jsonx.KindOf(raw) != '0' {
		return ""
	}
	return string(raw)
}

// note returns what a notification says.
func note(method string, msg []byte) string {
	params, _ := jsonx.Lookup(msg, "params")
	switch method {
	case revision.NoteProgress:
		s := number(params, "progress")
		if of := number(params, "total"); of != "" {
			s += "/" + of
		}
		return strings.TrimSpace(s + " " + brief(params, "message"))
	case revision.NoteMessage:
		data := brief(params, "data")
		if data == "" {
			if raw, _ := jsonx.Lookup(params, "data"); len(raw) <= maxBrief {
				data = string(raw)
			}
		}
		return strings.TrimSpace(brief(params, "level") + " " + data)
	case revision.NoteCancelled:
		return brief(params, "reason")
	case revision.NoteTask:
		return brief(params, "status")
	}
	return ""
}

// outcome returns what an answer says in short; empty: it is a usual one.
func outcome(frame *trace.Frame) string {
	msg := frame.Msg
	if len(msg) == 0 || jsonx.KindOf(msg) != '{' || !frame.Message() && !isMessage(msg) {
		if h := frame.HTTP; h != nil && h.Status > 0 {
			return statusText(h.Status)
		}
		return ""
	}
	if e, ok := jsonx.Lookup(msg, "error"); ok {
		return strings.TrimSpace("error " + number(e, "code") + ": " + brief(e, "message"))
	}
	result, _ := jsonx.Lookup(msg, "result")
	if is, _ := jsonx.Lookup(result, "isError"); string(is) == "true" {
		content, _ := jsonx.Lookup(result, "content")
		for block := range jsonx.Elements(content) {
			if s := brief(block, "text"); s != "" {
				return s
			}
		}
		return ""
	}
	if kind := brief(result, "resultType"); kind != "" && kind != "complete" {
		return strings.ReplaceAll(kind, "_", " ")
	}
	return ""
}

const maxText = 300 // bytes of a text in a row

// clip cuts bytes for a row.
func clip(b []byte) []byte { return []byte(texts.Clip(string(b[:min(len(b), 4*maxText)]), maxText)) }

// shown makes a text that is not ours safe to show: bounded, on one line, and with control characters and changes of
// direction as the escapes of JSON.
func shown(s string) string {
	if texts.Plain([]byte(s)) && len(s) <= maxText {
		return s
	}
	s = texts.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxText)
	s = strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
	return string(texts.Escape(nil, s))
}

// page of rows.
type rowPage struct {
	Epoch  string    `json:"epoch"`
	Seq    int       `json:"seq"`    // the newest frame that is taken into account
	Oldest int       `json:"oldest"` // frame that is kept
	Start  string    `json:"start,omitempty"`
	Rows   []wireRow `json:"rows"`
	More   bool      `json:"more"` // there may be further rows in the same direction
	Faults []string  `json:"faults,omitempty"`
	Note   string    `json:"note,omitempty"` // what was left out, for people
}

const (
	maxRows = 1000 // in an answer
	stride  = 128  // rows that are copied at a time
)

// page returns at most limit rows that fit: those before a row, the last of all (before is 0), or with after >= 0 the first
// ones after a row. It stops early with More when stop reports true.
func (f *Frames) page(q *filter, before, after, limit int, stop func() bool) rowPage {
	f.mu.Lock()
	f.init()
	p := rowPage{Epoch: f.epoch, Seq: f.next - 1, Oldest: f.first, Rows: []wireRow{}, Faults: f.faults, Note: f.note()}
	if !f.start.IsZero() {
		p.Start = f.start.UTC().Format(time.RFC3339Nano)
	}
	at, step := f.next-1, -1
	switch {
	case after >= 0:
		at, step = max(after+1, f.first), 1
	case before > 0:
		at = min(before, f.next) - 1
	}
	for {
		var some []snapshot
		for ; len(some) < stride && f.at(at) != nil; at += step {
			if e := f.at(at); e.r != nil && q.early(e.r) {
				some = append(some, f.snap(e.r))
			}
		}
		more := f.at(at) != nil
		f.mu.Unlock()
		for i := range some {
			if w := f.wireRow(&some[i]); q.fits(f, &some[i], &w) {
				if len(p.Rows) == limit {
					p.More = true
					break
				}
				p.Rows = append(p.Rows, w)
			}
		}
		if p.More || !more {
			break
		}
		if stop() {
			p.More = true
			break
		}
		f.mu.Lock()
	}
	if step < 0 {
		slices.Reverse(p.Rows)
	}
	return p
}

// changes are the rows that frames have changed.
type changes struct {
	Rows []wireRow `json:"rows"`
	Gone []int     `json:"gone,omitempty"` // rows that the page may have, and that do not fit any more
	Seq  int       `json:"seq"`            // the newest frame that is taken into account
	Lost int       `json:"lost,omitempty"` // frames that were dropped before they could be sent

	Skipped int  `json:"skipped,omitempty"` // frames that were left out, as they were too many
	Reset   bool `json:"reset,omitempty"`   // the page has rows of another program

	Note string `json:"note,omitempty"` // what was left out before it came here, for people
}

// since returns the rows that the frames after seq have changed, as they are now, each once. New rows are only among them
// if they begin after the frame skip, and of frames after both at most maxFrames are looked at.
func (f *Frames) since(seq, skip, maxFrames int, q *filter) changes {
	f.mu.Lock()
	f.init()
	c := changes{Rows: []wireRow{}, Seq: seq, Note: f.note()}
	if c.Seq < f.first-1 {
		c.Lost = f.first - 1 - c.Seq
		c.Seq = f.first - 1
	}
	before, from := c.Seq, max(c.Seq, skip)
	c.Skipped = from - before
	c.Seq = min(from+maxFrames, f.next-1)
	seen := map[int]bool{}
	var some []snapshot
	add := func(n int) {
		if n > before && n <= from || seen[n] {
			return
		}
		if head := f.at(n); head != nil && head.r != nil {
			seen[n] = true
			some = append(some, f.snap(head.r))
		}
	}
	for n := before + 1; n <= c.Seq; n++ {
		e := f.at(n)
		add(e.row)
		for _, of := range e.also {
			add(of)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(some, func(a, b snapshot) int { return a.n - b.n })
	for i := range some {
		s := &some[i]
		if q.early(&s.row) {
			if w := f.wireRow(s); q.fits(f, s, &w) {
				c.Rows = append(c.Rows, w)
				continue
			}
		}
		if s.n <= before {
			c.Gone = append(c.Gone, s.n)
		}
	}
	return c
}
