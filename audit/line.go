package audit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// line is an [Entry] as it will stand in a file, without what joins it to the chain.
type line struct {
	text            []byte // without the member hash, and with no values of prev and seq
	hash, prev, seq int    // where in text the member and the values belong
	other           bool   // of kind CheckpointOther
}

// rooms are the arrays of texts of lines that have been written. They are of one size, so that few bytes wait in
// memory for a slow disk.
var rooms = sync.Pool{New: func() any { return new([lineRoom]byte) }}

// free lets another line use the memory of l.
func (l *line) free() {
	if cap(l.text) == lineRoom {
		rooms.Put((*[lineRoom]byte)(l.text[:lineRoom]))
	}
	l.text = nil
}

// encode returns the line of an entry. It writes what [jsonx.Marshal] writes, with escapes, in less time.
func (e *Entry) encode() (l line, err error) {
	if y := e.Time.Year(); y < 0 || y > 9999 {
		return l, errors.New("the year of the time is not in 0 to 9999")
	}
	b := append(rooms.Get().(*[lineRoom]byte)[:0], '{')
	if a := e.Arguments; a != nil {
		b = append(name(b, "arguments"), '{')
		b = number(b, "bytes", a.Bytes)
		b = jsonx.AppendString(name(b, "digest"), a.Digest)
		b = append(raw(b, "value", a.Value), '}')
	}
	b = number(b, "attempt", e.Attempt)
	b = number(b, "bytes", e.Bytes)
	if e.Cached {
		b = append(name(b, "cached"), "true"...)
	}
	b = str(b, "call", e.Call)
	if s := e.Checkpoint; s != nil {
		b = append(name(b, "checkpoint"), '{')
		b = jsonx.AppendString(name(b, "hash"), s.Hash)
		b = jsonx.AppendString(name(b, "key"), s.Key)
		b = strconv.AppendInt(name(b, "seq"), s.Seq, 10)
		b = append(name(b, "signature"), '"')
		b = append(base64.StdEncoding.AppendEncode(b, s.Signature), '"', '}')
	}
	if c := e.Client; c != nil {
		b = append(name(b, "client"), '{')
		b = str(b, "ip", c.IP)
		b = str(b, "name", c.Name)
		b = str(b, "revision", c.Revision)
		b = str(b, "session", c.Session)
		b = str(b, "version", c.Version)
		b = append(str(b, "via", c.Via), '}')
	}
	b = number(b, "code", e.Code)
	b = str(b, "conversation", e.Conversation)
	if d := e.Decision; d != nil {
		b = append(name(b, "decision"), '{')
		b = str(b, "budget", d.Budget)
		b = str(b, "by", d.By)
		b = str(b, "effect", d.Effect)
		b = strs(b, "guards", d.Guards)
		b = str(b, "policy", d.Policy)
		b = str(b, "rule", d.Rule)
		b = append(str(b, "ticket", d.Ticket), '}')
	}
	b = str(b, "definition", e.Definition)
	b = raw(b, "detail", e.Detail)
	b = str(b, "event", e.Event)
	b = str(b, "fault", e.Fault)
	if l.hash = len(b); l.hash > len("{") {
		l.hash++ // behind the comma that follows
	}
	b = jsonx.AppendString(name(b, "kind"), string(e.Kind))
	b = str(b, "method", e.Method)
	b = number(b, "more", e.More)
	if e.Millis != 0 {
		if b, err = appendFloat(name(b, "ms"), e.Millis); err != nil {
			return line{}, err
		}
	}
	b = str(b, "name", e.Name)
	b = jsonx.AppendString(name(b, "node"), e.Node)
	b = str(b, "outcome", e.Outcome)
	b = append(name(b, "prev"), '"')
	l.prev = len(b)
	b = append(b, '"')
	if p := e.Principal; p != nil {
		b = append(name(b, "principal"), '{')
		b = str(b, "client", p.Client)
		b = jsonx.AppendString(name(b, "id"), p.ID)
		b = append(str(b, "issuer", p.Issuer), '}')
	}
	b = str(b, "reason", e.Reason)
	b = str(b, "result", e.Result)
	b = name(b, "seq")
	l.seq = len(b)
	if s := e.Server; s != nil {
		b = append(name(b, "server"), '{')
		b = str(b, "identity", s.Identity)
		b = str(jsonx.AppendString(name(b, "name"), s.Name), "replica", s.Replica)
		b = append(b, '}')
	}
	b = str(b, "shared", e.Shared)
	b = str(b, "team", e.Team)
	b = e.Time.AppendFormat(append(name(b, "time"), '"'), time.RFC3339Nano) // as encoding/json does
	b = append(b, '"')
	b = str(b, "tool", e.Tool)
	b = str(b, "trace", e.Trace)
	b = strconv.AppendInt(name(b, "v"), int64(e.V), 10)
	l.text = append(b, '}')
	l.escape()
	return l, nil
}

// escape makes the line safe to show on a terminal: [text.Escape].
func (l *line) escape() {
	if text.Plain(l.text) {
		return
	}
	out, from := make([]byte, 0, len(l.text)+64), 0
	for _, at := range []*int{&l.hash, &l.prev, &l.seq} {
		out = text.Escape(out, string(l.text[from:*at]))
		from, *at = *at, len(out)
	}
	l.text = text.Escape(out, string(l.text[from:]))
}

// size is the number of bytes that the line will have in a file.
func (l *line) size() int { return len(l.text) + len(`"hash":"",`) + 2*hashLen + len("\n") + 19 }

// join appends a line to buf as the one after head, and returns its number and hash. body is room
// that is used again.
func (l *line) join(buf, body []byte, head Head) (grown, used []byte, next Head) {
	next.Seq = head.Seq + 1
	body = append(body[:0], head.Hash...)
	body = append(body, l.text[:l.prev]...)
	body = append(body, head.Hash...)
	body = append(body, l.text[l.prev:l.seq]...)
	body = strconv.AppendInt(body, next.Seq, 10)
	body = append(body, l.text[l.seq:]...)
	next.Hash = digest(body) // that of hashOf
	text := body[len(head.Hash):]
	buf = append(buf, text[:l.hash]...)
	buf = append(buf, `"hash":"`...)
	buf = append(buf, next.Hash...)
	buf = append(buf, '"', ',')
	buf = append(buf, text[l.hash:]...)
	return append(buf, '\n'), body, next
}

// name appends the name of a member, which needs no escapes.
func name(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// str appends a member unless it is empty.
func str(b []byte, member, value string) []byte {
	if value == "" {
		return b
	}
	return jsonx.AppendString(name(b, member), value)
}

// strs appends a member unless it is empty.
func strs(b []byte, member string, values []string) []byte {
	for i, value := range values {
		if i == 0 {
			b = append(name(b, member), '[')
		} else {
			b = append(b, ',')
		}
		b = jsonx.AppendString(b, value)
	}
	if len(values) > 0 {
		b = append(b, ']')
	}
	return b
}

// number appends a member unless it is zero.
func number(b []byte, member string, value int) []byte {
	if value == 0 {
		return b
	}
	return strconv.AppendInt(name(b, member), int64(value), 10)
}

// raw appends a member unless it is nil. The value is canonical.
func raw(b []byte, member string, value json.RawMessage) []byte {
	if value == nil {
		return b
	}
	return append(name(b, member), value...)
}

// appendFloat appends a number in the form of RFC 8785.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64), nil
	}
	return jsonx.AppendMarshal(b, f)
}
