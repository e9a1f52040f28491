package trace

// Normalise replaces:
//
//   - times and sizes of frames are dropped, other RFC 3339 times become one fixed time;
//   - connections, sessions, request states, tasks and stream events become "conn-1",
//     "session-1", "state-1", ... in order of first appearance, so that a golden test still shows
//     that the same value came back;
//   - with IDs, request ids and progress tokens become 1, 2, 3 or "id-1", ...,
//     keeping their JSON type;
//   - Date and Content-Length headers are dropped, and the port of a loopback
//     address in a header becomes PORT.

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// NormaliseOptions configures [Normalise]. Nil and the zero value mean
// defaults.
type NormaliseOptions struct {
	// IDs also replaces request ids, their references in cancellations and
	// subscriptions, and progress tokens.
	IDs bool

	// Names are further members with volatile strings: each value becomes
	// prefix-1, prefix-2, ... Keys are member names, values the prefixes.
	Names map[string]string
}

// normalTime replaces every time inside a message. It is a time itself, so that a normalised
// message still fits its schema.
const normalTime = "2000-01-01T00:00:00Z"

var volatileNames = map[string]string{
	"requestState":  "state",
	"taskId":        "task",
	"elicitationId": "elicitation",
}

var volatileHeaders = map[string]string{
	"mcpsessionid": "session",
	"lasteventid":  "event",
}

var loopbackPort = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d+`) })

// Normalise returns copies of frames with volatile values replaced by stable
// placeholders, for golden tests. The same frames give the same result in any
// run, and equal values have equal placeholders within one call.
//
// A message that is not JSON keeps its bytes. "[redacted]" stays as it is.
func Normalise(frames []Frame, opts *NormaliseOptions) []Frame {
	n := normaliser{names: maps.Clone(volatileNames), seen: make(map[string]map[string]string)}
	if opts != nil {
		n.ids = opts.IDs
		maps.Copy(n.names, opts.Names)
	}
	out := make([]Frame, len(frames))
	for i, f := range frames {
		out[i] = n.frame(f)
	}
	return out
}

type normaliser struct {
	ids   bool
	names map[string]string
	seen  map[string]map[string]string // kind, then value, to placeholder
}

// placeholder returns prefix-1, prefix-2, ... by first appearance of value.
func (n *normaliser) placeholder(prefix, value string) string {
	if value == Redacted || value == "" {
		return value
	}
	return prefix + "-" + n.number(prefix, value)
}

// number returns "1", "2", ... by first appearance of value among its kind.
func (n *normaliser) number(kind, value string) string {
	if n.seen[kind] == nil {
		n.seen[kind] = make(map[string]string)
	}
	num, ok := n.seen[kind][value]
	if !ok {
		num = strconv.Itoa(len(n.seen[kind]) + 1)
		n.seen[kind][value] = num
	}
	return num
}

func (n *normaliser) frame(f Frame) Frame {
	f.Time, f.Size = time.Time{}, 0
	f.Conn = n.placeholder("conn", f.Conn)
	f.Event = n.placeholder("event", f.Event)
	if f.Kind == KindStart {
		f.Note = "" // the process id
	}
	if len(f.Msg) > 0 {
		f.Msg = n.message(f)
	}
	if f.HTTP != nil {
		f.HTTP = n.http(f.HTTP)
	}
	return f
}

func (n *normaliser) http(h *HTTP) *HTTP {
	out := *h
	if u, err := url.Parse(h.Path); err == nil && u.RawQuery != "" {
		// The session of the two-endpoint transport is a query value.
		parts := strings.Split(u.RawQuery, "&")
		for i, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			if fold(name) == "sessionid" {
				parts[i] = name + "=" + n.placeholder("session", value)
			}
		}
		u.RawQuery = strings.Join(parts, "&")
		out.Path = u.String()
	}
	if h.Headers == nil {
		return &out
	}
	out.Headers = make(map[string][]string, len(h.Headers))
	for name, values := range h.Headers {
		folded := fold(name)
		if folded == "date" || folded == "contentlength" {
			continue
		}
		list := make([]string, len(values))
		for i, v := range values {
			list[i] = loopbackPort().ReplaceAllString(v, "$1:PORT")
			if prefix := volatileHeaders[folded]; prefix != "" {
				list[i] = n.placeholder(prefix, v)
			} else if num, ok := n.seen["task"][v]; ok && folded == "mcpname" {
				list[i] = "task-" + num
			}
		}
		out.Headers[name] = list
	}
	return &out
}

// top reports whether p is a member of a message itself, alone or in a batch, rather than of a
// value inside it.
func (p *place) top() bool { return p.parent != nil && p.parent.parent == nil }

func (n *normaliser) message(f Frame) json.RawMessage {
	sender, receiver := "id "+f.Conn+" "+string(f.Dir), "id "+f.Conn+" "+string(opposite(f.Dir))
	// The id of a response belongs to the sender of the request: a message without a method
	// answers the other side. A batch holds requests and notifications, or responses, never both.
	response := !hasMethod(f.Msg)
	e := editor{leaf: func(p *place, value jsontext.Value) []byte {
		if !n.ids {
			return n.leaf(p, value)
		}
		switch {
		case p.name == "id" && p.top():
			if response {
				return n.id(value, receiver)
			}
			return n.id(value, sender)
		case p.name == "requestId" && p.parent != nil && p.parent.name == "params":
			return n.id(value, n.owner(value, sender, receiver))
		case p.name == "io.modelcontextprotocol/subscriptionId":
			return n.id(value, n.owner(value, receiver, sender))
		case p.name == "progressToken" && p.parent != nil && (p.parent.name == "params" || p.parent.name == "_meta"):
			return n.id(value, "progress")
		}
		return n.leaf(p, value)
	}}
	out, err := e.edit(f.Msg)
	if err != nil {
		return f.Msg
	}
	return out
}

func opposite(d Dir) Dir {
	if d == In {
		return Out
	}
	return In
}

// owner returns the first of the two id spaces that knows value, else first.
func (n *normaliser) owner(value jsontext.Value, first, second string) string {
	if _, ok := n.seen[first][string(value)]; ok {
		return first
	}
	if _, ok := n.seen[second][string(value)]; ok {
		return second
	}
	return first
}

// id replaces an id by one of the same JSON type.
func (n *normaliser) id(value jsontext.Value, space string) []byte {
	switch value.Kind() {
	case '0':
		return []byte(n.number(space, string(value)))
	case '"':
		return []byte(`"id-` + n.number(space, string(value)) + `"`)
	}
	return nil // null stays
}

// leaf replaces strings that are volatile according to their member name or form.
func (n *normaliser) leaf(p *place, value jsontext.Value) []byte {
	if value.Kind() != '"' {
		return nil
	}
	s, err := unquote(value)
	if err != nil {
		return nil
	}
	if prefix := n.names[p.name]; prefix != "" {
		return appendString(nil, n.placeholder(prefix, s))
	}
	if len(s) >= len("2006-01-02T15:04:05Z") && s[4] == '-' {
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return []byte(`"` + normalTime + `"`)
		}
	}
	return nil
}

// hasMethod reports whether msg, or a message of the batch msg, has a method.
func hasMethod(msg []byte) bool {
	found := false
	e := editor{leaf: func(p *place, _ jsontext.Value) []byte {
		found = found || p.name == "method" && p.top()
		return nil
	}}
	_, _ = e.edit(msg) // the caller finds a fault in msg
	return found
}
