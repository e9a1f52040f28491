package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Person is who sits in front of a host. Its methods are called by several goroutines at the
// same time; one who can answer only one question after the other queues them. When the context
// ends the question is over, and nobody waits for the answer.
type Person interface {
	// Approve decides about a call.
	Approve(ctx context.Context, a *Approval) (Verdict, error)

	// Elicit answers a question of a server: a form, or a URL to visit. If the answer does
	// not fit the form it is asked again. mcp.ErrDeclined and mcp.ErrDismissed are answers too.
	Elicit(ctx context.Context, q *Elicitation) (*mcp.ElicitResult, error)

	// ReviewRequest sees what a server wants a model to complete, and returns what it is to
	// complete, which may be another. mcp.ErrDeclined refuses.
	ReviewRequest(ctx context.Context, s *Sampling) (*mcp.SampleRequest, error)

	// ReviewAnswer sees what the model has answered, and returns what the server is given.
	ReviewAnswer(ctx context.Context, s *Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error)
}

// Approval is a call that is to be decided about.
type Approval struct {
	Conversation string
	Call         string // its id, as in events
	Server       string
	Tool         *mcp.Tool
	Arguments    json.RawMessage // exactly as they are sent
	ReadOnly     bool            // as the server says; nobody else does
	Destructive  bool            // likewise: it may destroy something, which is so if the server says nothing
	Trusted      bool            // whether the server is
	Changed      string          // what has changed since the tool was allowed for ever; empty: it was not
	Doubt        string          // why an allowed call is asked about all the same: it may have run already; empty: it has not
}

// Verdict is the decision about a call.
type Verdict struct {
	Answer Answer
	Reason string // of a denial, for the model; may be empty
}

// Answer is what a person answers when asked for an approval. The zero value is Deny.
type Answer int

const (
	Deny              Answer = iota
	AllowOnce                // this call
	AllowConversation        // this tool, until the conversation ends
	AllowAlways              // this tool, until it changes; without Host.Approvals: as AllowConversation
)

// Elicitation is a question of a server: a form to fill in, with its defaults, or a URL to
// visit, which the person sees in full and agrees to before it is opened.
type Elicitation struct {
	Conversation string // empty: it is not known that it belongs to one
	Call         string // that it belongs to, its id as in events; empty: it is not known
	Server       string // that asks; of a group, the one of it
	Problem      string // what is wrong with the answer that was given last; empty: there was none
	*mcp.ElicitRequest
}

// Sampling is a server's request for a completion.
type Sampling struct {
	Conversation string // empty: it is not known that it belongs to one
	Call         string // that it belongs to, its id as in events; empty: it is not known
	Server       string // that asks; of a group, the one of it
	Model        string // that answers
	Request      *mcp.SampleRequest
}

// Approvals keeps what was allowed for ever. Package approval has one in a file. Its methods are
// called by several goroutines at the same time.
type Approvals interface {
	// Allowed tells whether a tool was allowed as it is now, and, if it was allowed as
	// something else, what has changed.
	Allowed(identity string, tool *mcp.Tool) (ok bool, changed string, err error)
	Allow(identity, server string, tool *mcp.Tool) error
}

// Decision is one entry of the audit log: a decision about a call, or what came of it.
type Decision struct {
	Time         time.Time
	Conversation string
	Call         string
	Server       string
	Identity     string
	Tool         string
	Arguments    json.RawMessage
	Allowed      bool
	By           string        // who decided, as in CallEvent.By
	Outcome      Outcome       // empty: it was only decided
	Reason       string        // of a denial; of an outcome that is no success: what kind of failure, in no word of the server
	Cached       bool          // the server was not asked
	Took         time.Duration // with an outcome: the call
}
