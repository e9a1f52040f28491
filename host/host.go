package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Host connects a language model with servers. The zero value works, without a model and a person.
// Its fields are set before it is used. Its methods may be called by several goroutines at once.
type Host struct {
	Name, Version string // sent to servers; empty: "patchbay-host" and no version

	// Model answers in conversations without a model of their own. If both are nil, Send returns
	// ErrNoModel. If Model, Sampler and OnSample are all nil, servers are not offered sampling.
	Model model.Model

	// Sampler returns the model for a sampling request from a server, see [Choices], or nil to
	// refuse it. If Sampler is nil, the model of the conversation answers, or Model.
	Sampler func(*mcp.ModelPreferences) model.Model

	// AutoSample lets a model answer sampling requests even if Person is nil, so that nobody
	// reviews them. Otherwise, without a Person, servers are not offered sampling.
	AutoSample bool

	// OnSample answers sampling requests instead of a model. Person does not review them, and the
	// limits on sampling do not apply. If nil, a model answers.
	OnSample func(ctx context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error)

	// Person approves calls and answers questions. If nil, calls that nothing else allows are denied,
	// and questions are declined.
	Person Person

	// Allow lists tools that may be called without asking, as SERVER/TOOL, where * matches any
	// text: "shop/*". A single "*" stands for all tools. " if " and a condition may follow, which is
	// Condition's affair: "shop/refund if arguments.amount <= 100". A rule with a condition holds
	// for tools as their server first lists them to this host, others for tools however they are defined.
	Allow []string

	// Condition compiles the condition of a rule, in Allow, a Verdict or [Conversation.Permit]. It is
	// called once for each condition, as long as it returns no error. If nil, rules with a condition
	// allow nothing.
	Condition func(when string) (Condition, error)

	// Distrust overrides Server.Trusted: the annotations of no server are trusted.
	Distrust bool

	// Hooks run before and after calls, in their order.
	Hooks []Hook

	// Approvals stores permanent approvals. If nil, none are stored.
	Approvals Approvals

	// Audit is called for each decision about a call and for its outcome, one at a time. The context
	// that it returns for a call that is about to be made is that of the call, for Middleware, and of
	// its outcome. If it fails before a call, the call is not made. If nil, there is no audit log.
	Audit func(context.Context, Decision) (context.Context, error)

	// Middleware returns the middleware between the host and a server, as for a gateway. Everything
	// that the host sends to the server passes through it; calls of a model do so after approval. It
	// is called for each server that is added, and again after Restart. Nil: none.
	Middleware func(server string) mcp.Middleware

	// Roots are the folders that servers may use, see [Host.SetRoots]. If nil, the roots capability is
	// not declared.
	Roots []mcp.Root

	Limits Limits

	// LogLevel is the minimum level of log messages requested from servers. Nil: none.
	LogLevel slog.Leveler

	// OnStatus is called when the status of a server changes: in order for one server, concurrently
	// for several. It must not block for long. If nil, changes are not reported.
	OnStatus func(ServerStatus)

	// Logger receives what is reported in no other way. If nil, it is discarded.
	Logger *slog.Logger

	setUp  sync.Once
	links  *gateway.Gateway // keeps the servers connected
	ctx    context.Context  // of all servers
	cancel context.CancelFunc
	wg     sync.WaitGroup

	turns map[*context.CancelCauseFunc]bool // of all conversations; guarded by mu

	schemas  schemas    // of arguments
	eras     mcp.Eras   // of servers
	auditing sync.Mutex // held while Audit runs

	changes atomic.Int64 // counts the calls of Changed

	mu      sync.Mutex
	servers []*server                  // servers as the model sees them, in the order in which they were added; guarded by mu
	running []*server                  // all servers, including the members of groups; guarded by mu
	talks   map[*Conversation]struct{} // those with open sessions; guarded by mu
	closed  bool                       // guarded by mu

	conditions map[string]Condition // that were compiled; guarded by mu
}

// Limits are the bounds of a conversation. The zero value of each means its default.
type Limits struct {
	Steps       int           // answers from the model in one turn; 0: 50
	Parallel    int           // calls running at the same time; 0: 8
	CallTimeout time.Duration // of a call, since its last progress; 0: 2 minutes; negative: no bound
	CallTotal   time.Duration // of a call, with progress, questions and retries; 0: 1 hour; negative: no bound
	Retries     int           // of a call that failed temporarily and can be repeated safely; 0: 4; negative: none
	Tools       int           // offered in a request; if there are more, the model searches; 0: 100
	ToolTokens  int           // estimated size of the offered tool descriptions, likewise; 0: 20,000
	ResultBytes int           // of one result given to the model at once; 0: 32 KiB
	Repeats     int           // identical calls with the same result, with nothing new in between; 0: 3
	Questions   int           // from servers to the person during one call; 0: 20
	Samples     int           // sampling requests during one call; 0: 16
	SampleSize  int           // tokens of the answer to a sampling request; 0: 4096
	Window      int           // tokens of one request; 0: three quarters of the model's window
	Tokens      int64         // of the requests and answers of one turn together, with those of completions for servers; 0: no bound
	Cost        float64       // of one turn, by the prices of its models; 0: no bound
	SummariseAt int           // tokens of a request at which a summary is written first; 0: nine tenths of Window; negative: none is
}

func or[T ~int | ~int64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func (h *Host) log() *slog.Logger {
	if h.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.Logger
}
