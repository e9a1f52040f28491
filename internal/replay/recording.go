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

// Recording is a trace, taken apart.
type Recording struct {
	Revision   string // the last that was spoken, empty if that cannot be told
	Transports []string

	Client       json.RawMessage // clientInfo, nil if it is not known
	Capabilities json.RawMessage // of the client, nil if they are not known
	LogLevel     string          // that the client asked for first, empty for none

	Server *Server // nil if the opening was not recorded

	Exchanges []*Exchange

	// Free are notifications that belong to no exchange.
	Free []FreeNote

	// Faults tell what could not be used, for people.
	Faults []string

	// Redacted is the number of requests of the client in which secrets were replaced.
	Redacted int

	answers []*Question // that belong to no exchange, such as roots after initialize
}

// Server is what the server said of itself.
type Server struct {
	Method       string // that it answered: "initialize" or "server/discover"
	Info         json.RawMessage
	Capabilities json.RawMessage
	Instructions json.RawMessage
}

// Exchange is one request of the client over all its rounds.
type Exchange struct {
	Line     int // of the request among the frames of the trace, from 1
	Conn     string
	Revision string
	Method   string
	Params   json.RawMessage // an object without what belongs to the hop
	Progress bool            // the client wanted to be told of progress

	Steps []Step // what came before the answer

	Result json.RawMessage // in the form of Revision, without its envelope; nil: see Error
	Error  *jsonrpc.Error
	Task   bool // Result is the handle of a task
	Done   bool // it was answered

	// Overlaps says that another exchange was in progress, so that what came without a
	// token may belong to either.
	Overlaps bool
}

// Step is something that the server sent before it answered: a notification, or
// questions that it asked together.
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
	After int // exchanges that were answered before
}

// Question is a request to the client, in the inner form, and what it answered.
type Question struct {
	Method string
	Params json.RawMessage
	Answer json.RawMessage // nil: see Error
	Error  *jsonrpc.Error  // nil with Answer: it was not answered

	key string // among the input requests of a round
}

// Questions returns what was asked, in order.
func (x *Exchange) Questions() []*Question {
	var out []*Question
	for _, s := range x.Steps {
		out = append(out, s.Questions...)
	}
	return out
}

// Name is the name of the tool or prompt, or the URI, that the request is about.
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

// Label names an exchange for people.
func (x *Exchange) Label() string {
	return strings.TrimSpace(x.Method + " " + x.Name())
}

// maxFaults bounds what is told of a bad trace.
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

// Read reads a trace. Conns is a pattern of [path.Match] that chooses connections by
// their names, empty for all; in names, "/" is like any character. If a trace has both
// connections in which its recorder was the server and such in which it was a client, as
// that of a gateway, and none are chosen, the former count.
//
// An error is one of r or of the pattern, or says that there is no request at all.
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

// sidesOf finds out for each connection in which direction requests of the client go.
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
