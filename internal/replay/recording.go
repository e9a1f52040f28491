package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Recording is a trace split into exchanges.
type Recording struct {
	Revision   string // the last one used, or "" if unknown
	Transports []string

	Client       json.RawMessage // clientInfo, or nil if unknown
	Capabilities json.RawMessage // of the client, or nil if unknown
	LogLevel     string          // first level that the client requested, empty for none

	Server *Server // nil if the opening was not recorded

	Exchanges []*Exchange

	// Free are notifications that belong to no exchange.
	Free []FreeNote

	// Faults lists the parts that could not be used, for people.
	Faults []string

	// Redacted is the number of requests from the client in which secrets were replaced.
	Redacted int

	answers []*Question // outside of exchanges, such as roots after initialize
}

// Server is the server's description of itself.
type Server struct {
	Method       string // of the request: "initialize" or "server/discover"
	Info         json.RawMessage
	Capabilities json.RawMessage
	Instructions json.RawMessage
}

// Exchange is one request from the client over all its rounds.
type Exchange struct {
	Line     int // of the request among the frames of the trace, from 1
	Conn     string
	Revision string
	Method   string
	Params   json.RawMessage // an object without the members for the hop
	Progress bool            // the client asked for progress

	Steps []Step // messages before the answer

	Result json.RawMessage // in the form of Revision, without its envelope; nil: see Error
	Error  *jsonrpc.Error
	Task   bool // Result is the handle of a task
	Done   bool // it was answered

	// Overlaps reports whether another exchange was in progress, so that messages without a token
	// may belong to either.
	Overlaps bool
}

// Step is a message from the server before its answer: a notification, or questions asked together.
type Step struct {
	Note      *Note
	Questions []*Question
}

// Note is a notification.
type Note struct {
	Method string
	Params json.RawMessage // without a progress token
}

// FreeNote is a notification that belongs to no exchange.
type FreeNote struct {
	Note
	After int // number of exchanges answered before
}

// Question is a request to the client, in the inner form, and the client's answer.
type Question struct {
	Method string
	Params json.RawMessage
	Answer json.RawMessage // nil: see Error
	Error  *jsonrpc.Error  // nil with Answer: it was not answered

	key string // key among the input requests of a round
}

// Questions returns the questions in order.
func (x *Exchange) Questions() []*Question {
	var out []*Question
	for _, s := range x.Steps {
		out = append(out, s.Questions...)
	}
	return out
}

// Name returns the name of the tool or prompt, or the URI, of the request.
func (x *Exchange) Name() string { return nameOf(x.Params) }

func nameOf(params json.RawMessage) string {
	for _, at := range [][]string{{"name"}, {"uri"}, {"ref", "name"}, {"ref", "uri"}, {"taskId"}} {
		if raw, ok := jsonx.LookupPath(params, at...); ok {
			if s, err := jsonx.Unquote(raw); err == nil {
				return s
			}
		}
	}
	return ""
}

// Label returns a name of the exchange for people.
func (x *Exchange) Label() string {
	return strings.TrimSpace(x.Method + " " + x.Name())
}

// maxFaults bounds the faults that are reported.
const maxFaults = 20

func (r *Recording) fault(format string, args ...any) {
	switch len(r.Faults) {
	case maxFaults:
		r.Faults = append(r.Faults, "and more")
	case maxFaults + 1:
	default:
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// Read reads a trace. The argument conns is a pattern of [path.Match] for the names of connections,
// empty for all; "/" in names is an ordinary character. If conns is empty and the recorder was both
// a server and a client, as in a gateway, only the connections in which it was the server are used.
//
// The error comes from r or from the pattern, or reports that there are no requests.
func Read(r io.Reader, conns string) (*Recording, error) {
	flat := strings.NewReplacer("/", "\x00")
	pattern := flat.Replace(conns)
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("the pattern %q of connections: %w", conns, err)
	}
	var frames []numbered
	var bad []string
	n := 0
	for f, err := range trace.Read(r) {
		n++
		if err != nil {
			if _, ok := err.(*trace.LineError); !ok {
				return nil, err
			}
			if len(bad) <= maxFaults {
				bad = append(bad, err.Error())
			}
			continue
		}
		if conns != "" {
			if ok, _ := path.Match(pattern, flat.Replace(f.Conn)); !ok {
				continue
			}
		}
		if f.Lost > 0 {
			bad = append(bad, fmt.Sprintf("frame %d: %d frames before it are missing", n, f.Lost))
		}
		if f.Cut > 0 && f.Kind == trace.KindMessage {
			bad = append(bad, fmt.Sprintf("frame %d: %d bytes of the message are missing", n, f.Cut))
		}
		frames = append(frames, numbered{n, f})
	}
	j := newJoiner()
	for _, b := range bad {
		j.rec.fault("%s", b)
	}
	sides := sidesOf(frames)
	side := trace.Out
	for _, dir := range sides {
		if dir == trace.In { // the client's frames come in: the recorder is the server
			side = trace.In
		}
	}
	mixed := false
	for _, dir := range sides {
		mixed = mixed || dir != side
	}
	if mixed {
		j.rec.fault("the trace has both sides of a gateway; the clients' side is used, see --conn for others")
	}
	for _, f := range frames {
		if dir, ok := sides[f.Conn]; ok && dir != side {
			continue
		}
		j.add(f, side)
	}
	j.end()
	if len(j.rec.Exchanges) == 0 && j.rec.Server == nil {
		return nil, fmt.Errorf("no request of a client is recorded in %d frames%s", len(frames), faultsText(j.rec.Faults))
	}
	return j.rec, nil
}

func faultsText(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return ": " + faults[0]
}

// numbered is a frame with its number in the trace.
type numbered struct {
	n int
	trace.Frame
}

// sidesOf finds the direction of the client's requests for each connection.
func sidesOf(frames []numbered) map[string]trace.Dir {
	sides := map[string]trace.Dir{}
	for _, f := range frames {
		if _, known := sides[f.Conn]; known {
			continue
		}
		switch {
		case f.HTTP != nil && f.HTTP.Method != "":
			sides[f.Conn] = f.Dir
		case f.HTTP != nil && f.HTTP.Status != 0:
			sides[f.Conn] = opposite(f.Dir)
		case f.Kind == trace.KindMessage && len(f.Msg) > 0:
			method, ok := jsonx.Lookup(f.Msg, "method")
			_, request := jsonx.Lookup(f.Msg, "id")
			if name, err := jsonx.Unquote(method); ok && err == nil && request {
				if slices.Contains(serverMethods, name) {
					sides[f.Conn] = opposite(f.Dir)
				} else if name != "ping" {
					sides[f.Conn] = f.Dir
				}
			}
		}
	}
	return sides
}

func opposite(d trace.Dir) trace.Dir {
	if d == trace.In {
		return trace.Out
	}
	return trace.In
}
