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

// Host is a language model with servers. The zero value works, with no model and nobody to ask.
// Its fields are set before it is used; its methods may be used by several goroutines.
type Host struct {
	Name, Version string // as servers are told; empty: "patchbay-host" and none

	// Model answers in conversations that have none of their own. Nil: there is none, and
	// Send returns ErrNoModel. Without it and Sampler, servers can have nothing completed.
	Model model.Model

	// Sampler chooses the model that answers a server's request for a completion, see
	// [Choices]; nil stands for none. If it is nil itself, the model of the conversation does,
	// or Model.
	Sampler func(*mcp.ModelPreferences) model.Model

	// AutoSample has a model answer requests of servers for completions also when there is no
	// Person to review them. Without it, servers are told then that there is no model for them.
	AutoSample bool

	// OnSample answers requests of servers for completions in the place of a model: no Person reviews
	// them. Nil: a model does.
	OnSample func(ctx context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error)

	// Person approves calls and answers questions. Nil: there is nobody, so that what is not
	// allowed is denied, and what is asked is declined.
	Person Person

	// Allow are the tools that may be called without asking, as SERVER/TOOL, where * stands for any
	// text: "shop/*". A "*" alone is all tools.
	Allow []string

	// Distrust has what servers say of their tools believed of none of them, whatever
	// Server.Trusted says.
	Distrust bool

	// Approvals keeps what the person has allowed for ever. Nil: nothing is kept.
	Approvals Approvals

	// Audit is told of every decision about a call, and of what came of it. If it fails before a
	// call, that is not made. One call of it follows another. Nil: nobody is told.
	Audit func(Decision) error

	// Middleware returns what stands between the host and a server, as that of a gateway does: calls
	// of a model pass it after they were approved, and so does everything else that the host asks
	// the server. It is called for each server that comes. Nil: nothing.
	Middleware func(server string) mcp.Middleware

	// Roots are the folders that servers may use, see [Host.SetRoots]. Nil: servers are not
	// told that there is such a thing.
	Roots []mcp.Root

	Limits Limits

	// LogLevel is the least level of the log messages that servers are asked for. Nil: none.
	LogLevel slog.Leveler

	// OnStatus is told what becomes of servers: of each in order, of several at the same time. It
	// must not block for long. Nil: nobody is.
	OnStatus func(ServerStatus)

	// Logger gets what nobody else is told. Nil: it is discarded.
	Logger *slog.Logger

	setUp  sync.Once
	links  *gateway.Gateway // keeps the servers connected
	ctx    context.Context  // of all servers
	cancel context.CancelFunc
	wg     sync.WaitGroup

	schemas  schemas    // of arguments
	eras     mcp.Eras   // of servers
	auditing sync.Mutex // held while Audit is told

	changes atomic.Int64 // counts the calls of Changed

	mu      sync.Mutex
	servers []*server                  // what the model takes for servers, in the order in which they came; guarded by mu
	running []*server                  // all of them, those of groups too; guarded by mu
	talks   map[*Conversation]struct{} // those with open sessions; guarded by mu
	closed  bool                       // guarded by mu
}

// Limits bound what a conversation does. Zero stands for the default of each.
type Limits struct {
	Steps       int           // answers of the model in one turn; 0: 50
	Parallel    int           // calls at the same time; 0: 8
	CallTimeout time.Duration // of a call, from its last progress; 0: 2 minutes; negative: none
	CallTotal   time.Duration // of a call, with its progress, questions and repetitions; 0: 1 hour; negative: none
	Retries     int           // of a call that failed for now and can be made again without harm; 0: 4; negative: none
	Tools       int           // offered one by one; of more the model is given a search; 0: 100
	ToolTokens  int           // of the descriptions of tools, likewise, estimated; 0: 20,000
	ResultBytes int           // of a result that the model is given at once; 0: 32 KiB
	Repeats     int           // of the same call with the same result in a turn; 0: 3
	Questions   int           // of a server to the person in one call; 0: 20
	Samples     int           // completions for a server in one call; 0: 16
	SampleSize  int           // tokens of a completion for a server; 0: 4096
	Window      int           // tokens of a request; 0: three quarters of the model's window
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
