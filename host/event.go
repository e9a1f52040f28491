package host

import (
	"encoding/json"
	"math"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Event reports something that happened in a conversation.
type Event struct {
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn"` // from 1
	Step int       `json:"step"` // of the turn, from 1; 0: before the first

	Text  string       `json:"text,omitempty"`        // of most kinds; of waiting: why the person is asked again; of answered, summarised and ended: what the model wrote
	Call  *CallEvent   `json:"call,omitempty"`        // of those about a call
	Usage *model.Usage `json:"usage,omitempty"`       // of answered, summarised, sampled and ended
	Cost  float64      `json:"cost,omitempty"`        // likewise; 0: the price is not known
	Model string       `json:"model,omitempty"`       // of asking, answered, summarising, summarised and sampled
	Error string       `json:"error,omitempty"`       // of ended and resulted, when it failed
	Took  Millis       `json:"duration_ms,omitempty"` // of answered, summarised and ended

	// ErrorKind is the kind of Error, of ended: a [model.Kind] with "_" for its spaces, such as
	// "rate_limited"; "steps", "budget", "schema", "closed", "cancelled"; or "other".
	ErrorKind string `json:"error_kind,omitempty"`

	Conversation string `json:"conversation,omitempty"` // of ended: its id

	Early Early      `json:"early,omitempty"` // of ended, as in Reply
	Stop  model.Stop `json:"stop,omitempty"`  // of answered and ended: why the answer ended; empty: it broke off

	Before int64 `json:"before,omitempty"` // of summarised: tokens that the conversation took, about
	After  int64 `json:"after,omitempty"`  // of summarised: tokens that it takes now, about
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

	Summarising EventKind = "summarising" // the model begins to write a summary of the conversation
	Summarised  EventKind = "summarised"  // the summary is complete, and takes the place of what it stands for

	Ended EventKind = "ended" // the turn has ended
)

// CallEvent describes a call of a tool as far as it has progressed.
type CallEvent struct {
	ID        string          `json:"id"`
	Server    string          `json:"server,omitempty"` // empty: a tool of the host, or an unknown tool
	Tool      string          `json:"tool"`             // as the server names it
	Arguments json.RawMessage `json:"arguments,omitempty"`

	Done  float64 `json:"done,omitempty"`  // of progress
	Total float64 `json:"total,omitempty"` // of progress; 0: not known

	By      string       `json:"by,omitempty"`          // of started: the ground of the approval: "person", "conversation", "always", "rule", "read-only", "host"; of result also "nobody", "mode" and "hook"
	Rule    string       `json:"rule,omitempty"`        // of started and result: the rule that allowed it, such as "shop/*"; empty: By says it all
	Cached  bool         `json:"cached,omitempty"`      // of result: the server was not asked
	Outcome Outcome      `json:"outcome,omitempty"`     // of result
	Parts   []model.Part `json:"parts,omitempty"`       // of result: content for the model
	Took    Millis       `json:"duration_ms,omitempty"` // of result
}

// Millis is a duration, in JSON a number of milliseconds.
type Millis time.Duration

func (m Millis) String() string { return time.Duration(m).String() }

func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(float64(m)/1e3) / 1e3)
}

func (m *Millis) UnmarshalJSON(data []byte) error {
	var ms float64
	err := json.Unmarshal(data, &ms)
	*m = Millis(ms * 1e6)
	return err
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
