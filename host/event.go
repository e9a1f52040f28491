package host

import (
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Event reports something that happened in a conversation.
type Event struct {
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn"` // from 1
	Step int       `json:"step"` // of the turn, from 1; 0: before the first

	Text  string       `json:"text,omitempty"`  // of most kinds; of waiting: why the person is asked again; of answered and ended: the answer
	Call  *CallEvent   `json:"call,omitempty"`  // of those about a call
	Usage *model.Usage `json:"usage,omitempty"` // of answered, sampled and ended
	Cost  float64      `json:"cost,omitempty"`  // likewise; 0: the price is not known
	Model string       `json:"model,omitempty"` // of asking, answered and sampled
	Error string       `json:"error,omitempty"` // of ended and resulted, when it failed
	Early Early        `json:"early,omitempty"` // of ended, as in Reply
}

// EventKind is the kind of an [Event].
type EventKind string

const (
	Asking   EventKind = "asking"   // a request to the model begins
	TextCame EventKind = "text"     // a piece of the answer
	Thought  EventKind = "thinking" // a piece of the model's reasoning
	Again    EventKind = "again"    // the answer starts over: discard the pieces so far
	Answered EventKind = "answered" // the answer is complete
	Called   EventKind = "called"   // the model calls a tool
	Waiting  EventKind = "waiting"  // the call waits for the person
	Started  EventKind = "started"  // the call was allowed and begins
	Progress EventKind = "progress" // of a call in progress
	Logged   EventKind = "log"      // a log message from the server during a call
	Retried  EventKind = "retry"    // the call failed and is retried after a pause; Text says why
	Asked    EventKind = "asked"    // the server asks something during a call
	Sampled  EventKind = "sampled"  // the model answered a sampling request from the server
	Resulted EventKind = "result"   // the call has ended
	Noted    EventKind = "note"     // something that a person should know
	Ended    EventKind = "ended"    // the turn has ended
)

// CallEvent describes a call of a tool as far as it has progressed.
type CallEvent struct {
	ID        string          `json:"id"`
	Server    string          `json:"server,omitempty"` // empty: a tool of the host, or an unknown tool
	Tool      string          `json:"tool"`             // as the server names it
	Arguments json.RawMessage `json:"arguments,omitempty"`

	Done  float64 `json:"done,omitempty"`  // of progress
	Total float64 `json:"total,omitempty"` // of progress; 0: not known

	By      string        `json:"by,omitempty"`      // of started: the ground of the approval: "person", "conversation", "always", "rule", "read-only", "host"; of result also "nobody"
	Cached  bool          `json:"cached,omitempty"`  // of result: the server was not asked
	Outcome Outcome       `json:"outcome,omitempty"` // of result
	Parts   []model.Part  `json:"parts,omitempty"`   // of result: content for the model
	Took    time.Duration `json:"took,omitempty"`    // of result, in nanoseconds
}

// Outcome is the outcome of a call.
type Outcome string

const (
	Succeeded Outcome = "done"
	Failed    Outcome = "failed"    // the tool reported an error, or a question from the server had no answer
	Invalid   Outcome = "invalid"   // the arguments do not fit, or the tool does not exist; it was not called
	Denied    Outcome = "denied"    // it was not called
	Broken    Outcome = "error"     // it failed; Unknown if it may have run and must not be repeated
	Unknown   Outcome = "unknown"   // the answer was lost: it may have run
	Cancelled Outcome = "cancelled" // it may have run
)
