package host

import (
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Event is something that happens in a conversation.
type Event struct {
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn"` // from 1
	Step int       `json:"step"` // of the turn, from 1; 0: before the first

	Text  string       `json:"text,omitempty"`  // of text, thinking, again, note, progress, log, retry and asked
	Call  *CallEvent   `json:"call,omitempty"`  // of those about a call
	Usage *model.Usage `json:"usage,omitempty"` // of answered, sampled and ended
	Cost  float64      `json:"cost,omitempty"`  // likewise, if the price is known
	Model string       `json:"model,omitempty"` // of answered and sampled
	Error string       `json:"error,omitempty"` // of ended and resulted, when it failed
	Early Early        `json:"early,omitempty"` // of ended, as in Reply
}

// EventKind says what happens.
type EventKind string

const (
	Asking   EventKind = "asking"   // the model is asked
	TextCame EventKind = "text"     // a piece of its answer
	Thought  EventKind = "thinking" // a piece of its thoughts
	Again    EventKind = "again"    // the answer begins anew: what came of it is void
	Answered EventKind = "answered" // the answer is complete
	Called   EventKind = "called"   // it wants a tool called
	Waiting  EventKind = "waiting"  // the call waits for the person
	Started  EventKind = "started"  // the call was allowed and begins
	Progress EventKind = "progress" // of a call
	Logged   EventKind = "log"      // a server says something about a call
	Retried  EventKind = "retry"    // the call failed, and is made again after a pause: Text says why
	Asked    EventKind = "asked"    // the server asks something for a call
	Sampled  EventKind = "sampled"  // the server got an answer of the model for a call
	Resulted EventKind = "result"   // the call is over
	Noted    EventKind = "note"     // something that a person should know
	Ended    EventKind = "ended"    // the turn
)

// CallEvent is a call of a tool, as far as it has come.
type CallEvent struct {
	ID        string          `json:"id"`
	Server    string          `json:"server,omitempty"` // empty: it is the host's own tool, or none
	Tool      string          `json:"tool"`             // as the server names it
	Arguments json.RawMessage `json:"arguments,omitempty"`

	Done  float64 `json:"done,omitempty"`  // of progress
	Total float64 `json:"total,omitempty"` // of progress; 0: not known

	By      string        `json:"by,omitempty"`      // of started: who allowed it: "person", "conversation", "always", "rule", "read-only", "host"; of result also "nobody"
	Cached  bool          `json:"cached,omitempty"`  // of result: the server was not asked
	Outcome Outcome       `json:"outcome,omitempty"` // of result
	Parts   []model.Part  `json:"parts,omitempty"`   // of result: what the model is given
	Took    time.Duration `json:"took,omitempty"`    // of result, in nanoseconds
}

// Outcome is what came of a call.
type Outcome string

const (
	Succeeded Outcome = "done"
	Failed    Outcome = "failed"    // the tool says so
	Invalid   Outcome = "invalid"   // the arguments do not fit, or there is no such tool; it was not called
	Denied    Outcome = "denied"    // it was not called
	Broken    Outcome = "error"     // the server could not do it
	Unknown   Outcome = "unknown"   // the answer was lost: it may have run
	Cancelled Outcome = "cancelled" // it may have run
)
