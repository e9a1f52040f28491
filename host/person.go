package host

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Person is the user in front of a host. Its methods are called by several goroutines at once; an
// implementation that can show only one question at a time queues them. When ctx ends, the question
// is void and the host stops waiting for the answer.
type Person interface {
	// Approve decides about a call. It returns ErrNobody if there is nobody to ask, as without a
	// Person.
	Approve(ctx context.Context, a *Approval) (Verdict, error)

	// Elicit answers a question from a server: a form, or a URL to visit. If the answer does not
	// fit the form, Elicit is called again, at most 3 times in all. It may return mcp.ErrDeclined
	// or mcp.ErrDismissed.
	Elicit(ctx context.Context, q *Elicitation) (*mcp.ElicitResult, error)

	// ReviewRequest reviews a sampling request from a server and returns the request to send to the
	// model, which may be a changed one. mcp.ErrDeclined refuses it.
	ReviewRequest(ctx context.Context, s *Sampling) (*mcp.SampleRequest, error)

	// ReviewAnswer reviews the answer from the model and returns the answer for the server.
	ReviewAnswer(ctx context.Context, s *Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error)
}

// ErrNobody says that there is nobody to ask.
var ErrNobody = errors.New("host: there is nobody to ask")

// Approval is a call that needs a decision.
type Approval struct {
	Conversation string
	Call         string // its id, as in events
	Server       string
	Tool         *mcp.Tool
	Arguments    json.RawMessage // exactly as they are sent
	ReadOnly     bool            // the server declares so
	Destructive  bool            // likewise: its updates are destructive; true unless the server declares otherwise
	Trusted      bool            // the server is trusted
	Tools        []*mcp.Tool     // of the server as it lists them now: those that a Verdict may allow too
	Changed      string          // what has changed since the tool was allowed: "description, inputSchema"; empty: nothing, or it never was
	Before       *mcp.Tool       // the tool as it was allowed, if Changed; nil: not known
	Doubt        string          // why an allowed call needs a decision anyway: it may have run already; empty: it has not

	h *Host
}

// Verdict is the decision about a call.
type Verdict struct {
	Answer Answer
	Reason string // of a denial, for the model; may be empty

	// Tools and When are of AllowConversation and AllowAlways, and say what is allowed beyond this call: the
	// tools among Approval.Tools whose name matches, where * matches any text, and those of their calls
	// that fit the condition, see Host.Condition. Empty: the tool of this call; all its calls. Each of the tools
	// is allowed as it is defined now. [Approval.Covers] returns them.
	Tools, When string

	// Rule names the rule that decided, if no person did, for events and the audit log.
	Rule string
}

// Answer is the answer to an approval request. The zero value is Deny.
type Answer int

const (
	Deny              Answer = iota
	AllowOnce                // this call
	AllowConversation        // this tool, or what Verdict says, until the conversation ends or the tool changes
	AllowAlways              // likewise, until the tool changes; without Host.Approvals the same as AllowConversation
)

// Elicitation is a question from a server: a form to fill in, with its defaults, or a URL to visit.
// The person sees the whole URL and agrees before it is opened.
type Elicitation struct {
	Conversation string // empty: unknown
	Call         string // id of the call that it belongs to, as in events; empty: unknown
	Server       string // server that asks; in a group, the member
	Problem      string // what was wrong with the previous answer; empty: there was none
	*mcp.ElicitRequest
}

// Sampling is a sampling request from a server.
type Sampling struct {
	Conversation string // empty: unknown
	Call         string // id of the call that it belongs to, as in events; empty: unknown
	Server       string // server that asks; in a group, the member
	Model        string // name of the model that answers
	Request      *mcp.SampleRequest
}

// Approvals stores permanent approvals. Package approval implements it with a file. Its methods are
// called by several goroutines at once.
type Approvals interface {
	// Find returns what is stored of a tool of the server with that identity.
	Find(identity string, tool *mcp.Tool) (approval.Found, error)

	// Allow stores approvals, all of them or none.
	Allow(more ...approval.Approval) error
}

// Decision is one entry of the audit log: a decision about a call, or its outcome.
type Decision struct {
	Time         time.Time
	Conversation string
	Call         string
	Server       string
	Identity     string
	Tool         string
	Definition   string // digest of the tool's definition, as approval.Hash makes it, with "sha256:" before it
	Arguments    json.RawMessage
	Allowed      bool
	By           string        // ground of the decision, as in CallEvent.By
	Rule         string        // as in CallEvent.Rule
	Outcome      Outcome       // empty: the entry is a decision only
	Reason       string        // of a denial; of a failure its kind, without text from the server
	Cached       bool          // the server was not asked
	Took         time.Duration // duration of the call, if there is an outcome
}
