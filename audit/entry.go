package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// Kind says which fact a line is about. Programs may use words of their own.
type Kind string

const (
	CallBegin   Kind = "call.begin"  // a call is about to leave
	CallRetry   Kind = "call.retry"  // a further attempt of a call, or a round with answers, is about to leave
	CallEnd     Kind = "call.end"    // a call has ended; without a call.begin, it did not leave
	TaskEnd     Kind = "task.end"    // the task that a call has become has ended, as a caller learned now
	Subscribe   Kind = "subscribe"   // a caller gets the changes of resources from now on
	Unsubscribe Kind = "unsubscribe" // no longer
	List        Kind = "list"        // a list was asked for
	Denied      Kind = "denied"      // a request was refused by a policy, a limit or a person
	Config      Kind = "config"      // the configuration was read
	Lock        Kind = "lock"        // pinned definitions of servers have changed
	Node        Kind = "node"        // about the log itself; Event says what
	Checkpoint  Kind = "checkpoint"  // signs all lines before it

	// CheckpointOther is a checkpoint of the log of another node: see [Others].
	CheckpointOther Kind = "checkpoint.other"

	// Approval and Login are followed by their state: "approval.allowed", "login.done".
	Approval Kind = "approval."
	Login    Kind = "login."
)

// Events of lines of kind [Node].
const (
	EventStart   = "start"   // a process has opened the log; Detail may have "fragment", the bytes removed, "cut", the line that the end of the log has lost, "key", the [KeyID] that signs from here on, "keyBefore", that of the last checkpoint if it is another one, "shared" if the log is, "open" if the process goes on with a log that it had open, and in the first line "log", the id of the log
	EventStop    = "stop"    // the process has closed it
	EventFile    = "file"    // the log goes on in this file; Detail has "after", the name of the last one, and "log"
	EventGone    = "gone"    // the file with the lines before was removed, renamed or emptied while the log was open; Detail has "gone", the last of them
	EventDropped = "dropped" // lines were lost here; Detail has "lines", their number
)

// Entry is a line of the log: a fact. The fields are in the order of the line.
//
// Write and Add set Hash, Node, Prev, Seq and V. They clip texts to 1 KiB as they stand in the line,
// and those that a client chooses to 200 bytes: Method, Tool, the Name and Version of Client and, of
// kinds [Denied] and [CallRetry], Name. A clipped text ends with "…". URIs in Reason lose their query. They refuse an
// entry without a Kind, of the kinds [Node], [Checkpoint] and [CheckpointOther], which are about logs, and with a
// Detail that is not a JSON object of at most 16 KiB.
type Entry struct {
	Arguments    *Arguments      `json:"arguments,omitzero"`
	Attempt      int             `json:"attempt,omitzero"` // of a retry: 2 is the first
	Bytes        int             `json:"bytes,omitzero"`   // of the result
	Cached       bool            `json:"cached,omitzero"`  // the result came from a cache
	Call         string          `json:"call,omitempty"`   // joins the lines of one call
	Checkpoint   *Signed         `json:"checkpoint,omitzero"`
	Client       *Client         `json:"client,omitzero"`
	Code         int             `json:"code,omitzero"` // of the JSON-RPC error
	Conversation string          `json:"conversation,omitempty"`
	Decision     *Decision       `json:"decision,omitzero"`
	Definition   string          `json:"definition,omitempty"` // digest of the definition of the tool as it was listed last
	Detail       json.RawMessage `json:"detail,omitzero"`      // an object; of kinds that are not about calls, or the "uris" of a subscription to several resources
	Event        string          `json:"event,omitempty"`
	Fault        string          `json:"fault,omitempty"` // of an end with the outcome "error": "deadline", "transport", "protocol", "audit", "unsent" or "unknown"; of a refused call, "unknown"
	Hash         string          `json:"hash"`            // SHA-256 of Prev and of the line without this member
	Kind         Kind            `json:"kind"`
	Method       string          `json:"method,omitempty"` // empty: tools/call
	More         int             `json:"more,omitzero"`    // lines of this kind and caller that were left out up to this one, see [Trail]
	Millis       float64         `json:"ms,omitzero"`      // duration in milliseconds, of all rounds of questions together
	Name         string          `json:"name,omitempty"`   // of a prompt; URI of a resource, without its query; id of a task
	Node         string          `json:"node"`
	Outcome      string          `json:"outcome,omitempty"` // "ok", "tool error", "error", "denied", "canceled", ...
	Prev         string          `json:"prev"`              // Hash of the line before; 64 zeros in the first
	Principal    *Principal      `json:"principal,omitzero"`
	Reason       string          `json:"reason,omitempty"`
	Result       string          `json:"result,omitempty"` // digest of the result
	Seq          int64           `json:"seq"`              // number of the line in the log, from 1, across files
	Server       *Server         `json:"server,omitzero"`
	Shared       string          `json:"shared,omitzero"` // the Call whose execution, and outcome, this one has shared, because their idempotency keys are equal
	Team         string          `json:"team,omitempty"`
	Time         time.Time       `json:"time"` // zero: the time of Write or Add
	Tool         string          `json:"tool,omitempty"`
	Trace        string          `json:"trace,omitempty"` // trace id of W3C Trace Context
	V            int             `json:"v"`               // version of the format: 1

	line []byte
}

// Line returns the line as it stands in the file, without its end; nil: the entry was not read from
// a file. The caller must not change it.
func (e *Entry) Line() []byte { return e.line }

// Arguments are those of a call; of requests for a resource, {"uri": URI} with the whole URI, of which
// lines have the digest alone. A writer sets only Value; [Options.Arguments] says what the line has.
type Arguments struct {
	Bytes  int             `json:"bytes,omitzero"` // instead of a Value of more than 64 KiB
	Digest string          `json:"digest"`         // see [Digest]
	Value  json.RawMessage `json:"value,omitzero"` // redacted
}

// Client is the program that sent a request.
type Client struct {
	IP       string `json:"ip,omitempty"`
	Name     string `json:"name,omitempty"`
	Revision string `json:"revision,omitempty"` // of the protocol
	Session  string `json:"session,omitempty"`  // a digest
	Version  string `json:"version,omitempty"`
	Via      string `json:"via,omitempty"` // "page": a person at the page of the program; empty: a host
}

// Decision says why a call was made or refused.
type Decision struct {
	Budget string   `json:"budget,omitempty"`
	By     string   `json:"by,omitempty"`     // origin: "person", "rule", ...
	Effect string   `json:"effect,omitempty"` // "allow" or "deny"
	Guards []string `json:"guards,omitempty"`
	Policy string   `json:"policy,omitempty"` // digest of the rules
	Rule   string   `json:"rule,omitempty"`
	Ticket string   `json:"ticket,omitempty"`
}

// Principal is an authenticated caller.
type Principal struct {
	Client string `json:"client,omitempty"` // OAuth client
	ID     string `json:"id"`
	Issuer string `json:"issuer,omitempty"`
}

// Server is the server that a request is for.
type Server struct {
	Identity string `json:"identity,omitempty"`
	Name     string `json:"name"`
	Replica  string `json:"replica,omitempty"` // that has answered, or gets the attempt of a retry; empty: it has none, or the line is older than the choice
}

// Signed is a checkpoint: the signature of a line, and so of all lines before it.
type Signed struct {
	Hash      string `json:"hash"`
	Key       string `json:"key"` // see [KeyID]
	Seq       int64  `json:"seq"`
	Signature []byte `json:"signature"` // Ed25519, in base64
}

// Head names a line of a log.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

const (
	version      = 1
	maxArguments = 64 << 10
	maxText      = 1 << 10
	maxChosen    = 200 // of a text that a client chooses
	maxGuards    = 16
	lineRoom     = 1 << 10 // for a usual line, with its hashes
	maxDetail    = 16 << 10
	maxLine      = 1 << 20 // a longer line is not of this package
	hashPrefix   = "sha256:"
	hashLen      = len(hashPrefix) + 2*sha256.Size
)

// genesis is the Prev of the first line.
var genesis = hashPrefix + strings.Repeat("0", 2*sha256.Size)

// Digest returns the SHA-256 of arguments, as "sha256:" and hex. White space and the order of
// members make no difference; no arguments are an empty object.
func Digest(arguments json.RawMessage) string {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return digest(jsonx.Canonical(arguments))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	var out [hashLen]byte
	hex.Encode(out[copy(out[:], hashPrefix):], sum[:])
	return string(out[:])
}

// check returns why an entry cannot be a line.
func (e *Entry) check() error {
	switch {
	case e.Kind == "":
		return errors.New("the entry has no Kind")
	case e.Kind == Node || e.Kind == Checkpoint || e.Kind == CheckpointOther:
		return fmt.Errorf("only the log itself writes lines of kind %q; to copy a log, copy the Line of its entries", e.Kind)
	}
	return checkDetail(e.Detail)
}

func checkDetail(detail json.RawMessage) error {
	switch {
	case detail == nil:
	case len(detail) > maxDetail && len(jsonx.Canonical(detail)) > maxDetail:
		return fmt.Errorf("the Detail has %d bytes; the maximum is 16 KiB", len(detail))
	case jsonx.KindOf(detail) != '{' || jsonx.Valid(detail, 0) != nil:
		return errors.New("the Detail is not a JSON object")
	}
	return nil
}

// prepare returns the line of an entry. It changes e.
func (l *Log) prepare(e *Entry) (line, error) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	e.V, e.Node, e.Hash, e.Prev, e.Seq = version, l.options.Node, "", "", 0
	e.Arguments = l.arguments(e.Arguments)
	if e.Detail != nil {
		e.Detail = jsonx.Canonical(e.Detail)
	}
	e.clip()
	return e.encode()
}

// arguments returns the form of arguments in a line.
func (l *Log) arguments(a *Arguments) *Arguments {
	if a == nil || l.options.Arguments == ContentNone {
		return nil
	}
	if a.Value == nil && a.Digest != "" && a.Bytes == 0 {
		return a
	}
	out := &Arguments{Digest: a.Digest}
	if out.Digest == "" {
		out.Digest = Digest(a.Value)
	}
	switch {
	case l.options.Arguments != ContentRedacted || len(a.Value) == 0:
	case len(a.Value) > maxArguments:
		out.Bytes = len(a.Value)
	default:
		f := l.options.Redactor.Frame(trace.Frame{Msg: a.Value})
		if f.Msg != nil && jsonx.Valid(f.Msg, 0) == nil {
			out.Value = jsonx.Canonical(f.Msg)
		} else { // the model's arguments are not JSON
			out.Value = jsonx.AppendString(nil, strings.ToValidUTF8(string(f.Raw), "�"))
		}
	}
	return out
}

// clip bounds the texts of an entry. It copies a part that other entries share before it changes it.
func (e *Entry) clip() {
	e.Reason = withoutQueries(e.Reason)
	clip(maxChosen, &e.Method, &e.Tool)
	if e.Kind == Denied || e.Kind == CallRetry { // other lines are of calls, which limits bound: they have the whole URI
		clip(maxChosen, &e.Name)
	}
	clip(maxText, &e.Call, &e.Conversation, &e.Definition, &e.Event, &e.Fault, (*string)(&e.Kind), &e.Name, &e.Outcome, &e.Reason, &e.Result, &e.Shared, &e.Team, &e.Trace)
	if e.Client != nil {
		c := *e.Client
		if long := clip(maxChosen, &c.Name, &c.Version); clip(maxText, &c.IP, &c.Revision, &c.Session, &c.Via) || long {
			e.Client = copied(&c)
		}
	}
	if e.Decision != nil {
		d := *e.Decision
		long := clip(maxText, &d.Budget, &d.By, &d.Effect, &d.Policy, &d.Rule, &d.Ticket)
		if len(d.Guards) > 0 {
			d.Guards, long = slices.Clone(d.Guards[:min(len(d.Guards), maxGuards)]), true
		}
		for i := range d.Guards {
			clip(maxText, &d.Guards[i])
		}
		if long {
			e.Decision = copied(&d)
		}
	}
	if e.Principal != nil {
		p := *e.Principal
		if clip(maxText, &p.Client, &p.ID, &p.Issuer) {
			e.Principal = copied(&p)
		}
	}
	if e.Server != nil {
		s := *e.Server
		if clip(maxText, &s.Identity, &s.Name) {
			e.Server = copied(&s)
		}
	}
}

// clip bounds texts, and reports whether one was too long.
func clip(limit int, texts ...*string) (long bool) {
	for _, t := range texts {
		if s := clipped(*t, limit); s != *t {
			*t, long = s, true
		}
	}
	return long
}

// clipped returns valid UTF-8 of at most limit bytes as they stand in a line.
func clipped(s string, limit int) string {
	if len(s) <= limit/6 && utf8.ValidString(s) {
		return s
	}
	if len(s) > limit { // what follows is cut off, and so need not be read
		s = s[:limit+1]
	}
	const mark = "…"
	size, cut := 0, 0 // bytes in the line; end of the text that leaves room for the mark
	for i, r := range s {
		switch {
		case r < ' ', text.Obeyed(r):
			size += len(`\u0000`)
		case r == '"' || r == '\\':
			size += 2
		default: // U+FFFD for a byte that is not UTF-8
			size += utf8.RuneLen(r)
		}
		if size > limit {
			return strings.ToValidUTF8(s[:cut], "�") + mark
		}
		if size <= limit-len(mark) {
			cut = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, n := utf8.DecodeRuneInString(s[i:])
				cut = i + n
			}
		}
	}
	return strings.ToValidUTF8(s, "�")
}

// query matches a URI with a query.
var query = pattern.Lazy(`\b([A-Za-z][A-Za-z0-9+.-]*:[^\s?]+)\?[^\s"'<>]+`)

// withoutQueries removes the queries of URIs from a text.
func withoutQueries(s string) string {
	if !strings.Contains(s, "?") {
		return s
	}
	return query().ReplaceAllString(s[:min(len(s), 4*maxText)], "$1")
}

// copied returns a copy of *p, which stays where it is: on the stack.
func copied[T any](p *T) *T {
	own := *p
	return &own
}
