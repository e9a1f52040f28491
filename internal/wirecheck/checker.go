package wirecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Checker checks the frames of one connection. It is safe for concurrent use, but frames must be
// passed in their order.
type Checker struct {
	// Methods are the methods of extensions, besides those with the domain of a vendor, such as
	// "com.example/audit". Only the envelopes of their messages are checked. It must be set
	// before the first frame.
	Methods []string

	// ResultTypes are values of resultType that extensions add; such results are checked only as
	// Result. It must be set before the first frame.
	ResultTypes []string

	fixed *spec // nil: decided per message

	mu         sync.Mutex
	negotiated *spec                  // guarded by mu; by initialize
	open       [2]map[string]*request // guarded by mu; by sender and id, unanswered
	used       [2]map[string]bool     // guarded by mu; by sender: ids of the legacy session
	answered   [2]map[string]bool     // guarded by mu; by sender of the request
	tokens     [2]map[string]*work    // guarded by mu; by sender of the request: progress tokens
	tasks      [2]map[string]string   // guarded by mu; by sender of the request: task to result type
	listens    map[string]*listen     // guarded by mu; by id
}

// extension reports whether a method belongs to an extension.
func (c *Checker) extension(method string) bool {
	if slices.Contains(c.Methods, method) {
		return true
	}
	vendor, _, ok := strings.Cut(strings.TrimPrefix(method, "notifications/"), "/")
	return ok && strings.Contains(vendor, ".")
}

// request is a request whose response is checked against it.
type request struct {
	spec   *spec
	method string
	result string // definition of the result; "Result" for an extension
	params any
	sender side
}

// New returns a checker for the frames of one connection of a revision, or, with an empty
// revision, for a connection of any: each message is then checked by the revision in its request,
// or the one negotiated by initialize.
//
// New panics if it does not know the revision.
func New(revision string) *Checker {
	c := &Checker{listens: make(map[string]*listen)}
	if revision != "" {
		loaded := specs[revision]
		if loaded == nil {
			panic(fmt.Sprintf("wirecheck: unknown revision %q", revision))
		}
		c.fixed = loaded()
	}
	for i := range 2 {
		c.open[i] = make(map[string]*request)
		c.used[i] = make(map[string]bool)
		c.answered[i] = make(map[string]bool)
		c.tokens[i] = make(map[string]*work)
		c.tasks[i] = make(map[string]string)
	}
	return c
}

// Frame checks one frame and returns nil or a [*Fault]. Even a bad request is recorded, so that
// its response can be checked.
func (c *Checker) Frame(fromClient bool, frame []byte) error {
	sender := server
	if fromClient {
		sender = client
	}
	value, err := decode(frame)
	if err != nil {
		return &Fault{Type: "JSON", Text: text.Short(err.Error())}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if batch, ok := value.([]any); ok {
		return c.batch(sender, batch)
	}
	return c.message(sender, "", value)
}

// Unanswered returns the methods of the requests without a response, sorted:
// those of the client, or those of the server.
func (c *Checker) Unanswered(ofClient bool) []string {
	sender := server
	if ofClient {
		sender = client
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for r := range maps.Values(c.open[sender]) {
		out = append(out, r.method)
	}
	slices.Sort(out)
	return out
}

// decode reads one JSON value, exactly.
func decode(frame []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(frame)) // refuses duplicate names and bad UTF-8
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	value = value.Clone()
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(value))
}

// batch checks a JSON-RPC batch, which only 2025-03-26 has.
func (c *Checker) batch(sender side, batch []any) error {
	s := c.fixed
	if s == nil {
		s = c.negotiated
	}
	fault := func(pointer, text, rule string) error {
		f := &Fault{Type: "batch", Pointer: pointer, Text: text, Rule: rule}
		if s != nil {
			f.Revision = s.revision
		}
		return f
	}
	if s == nil || s.revision != rev2503 {
		return fault("", "only revision 2025-03-26 has batches", "BASE-26-032")
	}
	if len(batch) == 0 {
		return fault("", "an empty batch", "BASE-2503-001")
	}
	for i, value := range batch {
		pointer := fmt.Sprintf("/%d", i)
		if (at(value, "method") == nil) != (at(batch[0], "method") == nil) {
			return fault(pointer, "requests and responses in one batch", "SHTTP-2503-001")
		}
		if at(value, "method") == "initialize" {
			return fault(pointer, "initialize in a batch", "INIT-2503-001")
		}
	}
	for i, value := range batch {
		if err := c.message(sender, fmt.Sprintf("/%d", i), value); err != nil {
			return err
		}
	}
	return nil
}

// envelope is one JSON-RPC message with its place in the frame.
type envelope struct {
	sender  side
	pointer string
	value   map[string]any
	id      string // key of the id; empty if there is no valid one
}

// fault returns a fault of the message itself.
func (m *envelope) fault(s *spec, kind, at, rule, format string, args ...any) error {
	f := &Fault{Type: kind, Pointer: m.pointer + at, Text: text.Short(fmt.Sprintf(format, args...)), Rule: rule}
	if s != nil {
		f.Revision = s.revision
	}
	return f
}

func (c *Checker) message(sender side, pointer string, value any) error {
	object, ok := value.(map[string]any)
	m := &envelope{sender: sender, pointer: pointer, value: object}
	if !ok {
		return m.fault(nil, "JSON-RPC message", "", "BASE-26-002", "not an object")
	}
	for name := range object {
		switch name {
		case "jsonrpc", "id", "method", "params", "result", "error":
		default:
			return m.fault(nil, "JSON-RPC message", "", "BASE-26-002", "unknown member %q", name)
		}
	}
	id, hasID := object["id"]
	m.id = idKey(id)
	_, hasMethod := object["method"]
	_, hasResult := object["result"]
	_, hasError := object["error"]
	_, hasParams := object["params"]
	switch {
	case hasMethod && (hasResult || hasError):
		return m.fault(nil, "JSON-RPC message", "", "BASE-26-002", "both a request and a response")
	case hasResult && hasError:
		return m.fault(nil, "JSON-RPC response", "", "BASE-2506-002", "both result and error")
	case !hasMethod && !hasResult && !hasError:
		return m.fault(nil, "JSON-RPC message", "", "BASE-2506-001", "neither method, result nor error")
	case !hasMethod && hasParams:
		return m.fault(nil, "JSON-RPC response", "", "BASE-26-002", "params in a response")
	case hasMethod && hasID:
		return c.request(m)
	case hasMethod:
		return c.notification(m)
	case hasResult:
		return c.result(m)
	}
	return c.error(m)
}

var integer = pattern.Lazy(`^-?(0|[1-9][0-9]*)$`)

// idKey returns a key of the kind and value of an id, or "" if v is not an id.
func idKey(v any) string {
	switch v := v.(type) {
	case string:
		return "string " + v
	case json.Number:
		if integer().MatchString(v.String()) {
			return "number " + v.String()
		}
	}
	return ""
}
