package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Source describes how to reach a server. Name and Open are required.
type Source struct {
	// Name is the configured name of the server. The names of its features depend on it (see
	// [Name]).
	Name string

	// Open connects to the server. The context bounds only the opening. If the connection is for
	// one client, ctx belongs to the first call of that client that needs the connection, so that
	// mcp.CallFrom describes the client. Open may be called by several goroutines at once. After a panic
	// of Open, which is logged, the server has not started.
	Open func(ctx context.Context) (Upstream, error)

	// Around returns the handler between the gateway and a connection that Open has made.
	// Everything that the gateway sends over the connection passes through it, in the context of
	// the caller if there is one. Nil: none.
	Around func(Upstream) mcp.Handler

	// Share says which callers share a connection.
	Share Share

	// Alone says that there is only one client, even though the connection is Shared: state that a
	// server before 2026-07-28 keeps belongs to that client, which is told if the state is lost.
	Alone bool

	// Trusted lets a call of a tool that the server declares idempotent be repeated once after its connection was lost, if
	// the caller has given an idempotency key ("dev.patchbay/idempotencyKey" in _meta).
	Trusted bool

	// Remote says that the server runs by itself, and that other gateways reach it too: those with the same [Gateway.TaskKeys] find
	// the tasks that this one has begun there, and the end of this one does not cancel them. Answers to its questions can come to any
	// of them; those of another server, to the one whose server has asked.
	Remote bool

	// Offers reports whether callers may see a tool, given the server's own name for it. A tool
	// that they may not see is in no list, and a call of it is answered like that of a tool that
	// does not exist. Offers may be called by several goroutines at once. Nil: all tools.
	Offers func(tool string) bool

	// Older is what ShareAuto means for a server before 2026-07-28. Zero and Exclusive: PerSession.
	Older Share

	// MaxClients bounds the connections to a server that is not shared, without the one for lists.
	// One principal has at most a quarter of them; callers without a principal cannot be told
	// apart, and may use all. If no place is free, the connection that has been quiet for longest
	// and was used for nothing but reads makes room; if the principal has used up its quarter, only
	// a connection of its own. If there is none, a connection makes room whose session belongs to
	// the same principal and has had no request and no open stream for 2 minutes; its client is
	// informed of the loss if it returns. Zero: 100.
	MaxClients int

	// Queue is how long a request waits for a place, or for an Exclusive server, before it fails. Zero: 2 seconds; negative: it
	// fails at once.
	Queue time.Duration

	// Idle is how long a connection is kept that no call and no resource subscription uses. The
	// next call opens it again; until then, lists are those that it returned last. Zero: a shared
	// connection is kept, a connection of a single client is kept as long as the sessions that may
	// have state there, or for 30 minutes if the client has no session and cannot say that it
	// leaves. Negative: connections are kept.
	Idle time.Duration

	// StartTimeout bounds Open. Calls wait at most a minute for a server that is starting. Zero: 1
	// minute; negative: no bound.
	StartTimeout time.Duration

	// Continues says that this is the server of the source that it replaces, such as after a restart:
	// requests on their way to the old one, which it refuses because it is ending, go to this one, and so do
	// requests that change nothing and were cut off.
	Continues bool

	// Disabled says that nobody may use the server for now: it is never opened and is in no list, its
	// state is [Disabled], and callers get this text, which says what enables it. Empty: it is in use.
	Disabled string

	// Drain is how long Run waits at its end for calls in progress. Zero: not at all.
	Drain time.Duration

	// Stderr returns the end of the server's standard error output, to explain why it does not
	// start. It may be nil.
	Stderr func() string

	// OnStatus is called when the status of this server changes, as Gateway.OnStatus is, and first
	// when requests can reach it. If nil, changes are not reported.
	OnStatus func(Status)
}

// Upstream is a connection to a server that ends at some point, such as a [*mcp.Session].
//
// Optional methods, with the meaning that they have in Session, add features. Revision and Watch
// tell what the server speaks and what changes; events of Watch apply to all who share the
// connection. Asks and TakeTurns let callers take turns. With ListVersion, lists are cached for
// callers with the same principal, credential, HTTP header and forward.CallerKey of package
// mcp/forward, so the server must give the same lists to them. If callers differ to the server in
// other ways, ListVersion must return a different number each time.
type Upstream interface {
	mcp.Handler
	Done() <-chan struct{} // closed when the connection is over
	Err() error            // why
	Close() error          // bounded in time
}

// Share says which callers share a connection to a server.
type Share int

const (
	// ShareAuto means Shared for a server that speaks 2026-07-28, which keeps nothing between
	// requests, and Source.Older for an older one, whose state belongs to a session.
	ShareAuto Share = iota
	// Shared: all callers use one connection.
	Shared
	// PerSession: each session before 2026-07-28 has its own connection, opened when it is first
	// needed. Callers that speak 2026-07-28 have no sessions: for them it means PerPrincipal. One
	// more connection is for lists.
	PerSession
	// PerPrincipal: each principal has a connection for all its callers with the same capabilities,
	// with or without a session. Callers without a principal count as one principal. One more
	// connection is for lists. Once a server of that name has asked for roots, which may differ
	// between sessions, each session with roots has its own connection, for the lifetime of the
	// Gateway.
	PerPrincipal
	// Exclusive: all callers use one connection, one caller at a time. A session, or a principal without
	// one, has the server from its first request on that is not for a list, until the session ends or
	// Source.Idle has passed without a request of it; if that is zero, a minute. Requests of others wait
	// for at most Source.Queue. The server is not started again in between.
	Exclusive

	// PerClient is the former name of PerSession.
	PerClient = PerSession
)

// String returns "auto", "shared", "session", "principal" or "exclusive".
func (s Share) String() string {
	switch s {
	case Shared:
		return "shared"
	case PerSession:
		return "session"
	case PerPrincipal:
		return "principal"
	case Exclusive:
		return "exclusive"
	}
	return "auto"
}

// ParseShare parses what String returns, and "per-client", a former name of "session". The empty
// string means ShareAuto.
func ParseShare(name string) (Share, error) {
	switch name {
	case "", "auto":
		return ShareAuto, nil
	case "shared":
		return Shared, nil
	case "session", "per-client":
		return PerSession, nil
	case "principal":
		return PerPrincipal, nil
	case "exclusive":
		return Exclusive, nil
	}
	return 0, fmt.Errorf("%q is not auto, shared, session, principal or exclusive", name)
}

// State is the state of a server.
type State string

const (
	Starting   State = "starting" // for the first time or again; calls wait
	Ready      State = "ready"
	Failing    State = "failing"     // it cannot be reached, or does not answer; the gateway keeps trying
	NeedsLogin State = "needs login" // as Failing; Reason says what a person must do, see [LoginError]
	Crashing   State = "crashing"    // it ends soon after each start
	Idle       State = "idle"        // ended because nobody used it; the next call starts it
	Disabled   State = "disabled"    // nobody may use it, see [Source.Disabled]
	Stopped    State = "stopped"     // Run is ending; new requests are refused
)

// Status is the status of a server.
type Status struct {
	Name   string
	State  State
	Reason string    // for people; may quote the server; empty if there is nothing to say
	Since  time.Time // when the state began

	// Restarts says how many times it was started or connected to again, with or without success,
	// including for single clients after they have lost a connection.
	Restarts int

	// Lost says why a connection last ended by itself, including those of clients, and LostAt when.
	// Empty: none has.
	Lost   string
	LostAt time.Time

	Changes int   // how many times it has reported changed lists, or may have without being heard
	Conns   int   // open connections
	Clients int   // those of single clients
	Share   Share // in effect now; ShareAuto while it is unknown
	Roots   bool  // Share is PerPrincipal, but sessions with roots have their own connections because the server asks for roots

	// These count, for connections of single clients, the clients that lost state which the server
	// kept (each is told), the quiet connections that made room, and the requests that did not get
	// a place.
	Losses, Evicted, Refused int

	// Asks says that the server has asked a question that does not name a call, so that callers who
	// share a connection take turns.
	Asks bool

	// Waiting counts the calls that wait for their turn now. If a call has an open question of a server
	// before 2026-07-28, Question says when the oldest was asked, and Asked is the principal who has to
	// answer it, empty if unknown. Calls may wait for it.
	Waiting  int
	Question time.Time
	Asked    string

	// How many features the last list had that Run, or a caller without a principal, asked for; -1
	// if not known yet.
	Tools, Prompts, Resources int

	// Shadowed are URIs of its resources or templates that a server whose name sorts earlier also
	// lists: a read goes to that server. At most 100.
	Shadowed []string

	Server   mcp.Implementation // as it describes itself, if known; name, title and version have at most 100 bytes and "…"
	Revision mcp.Revision       // that it speaks; empty if unknown
}

const (
	defaultClients = 100
	defaultQueue   = 2 * time.Second
	clientIdle     = 30 * time.Minute
	defaultStart   = time.Minute
)

func (src Source) check() error {
	switch {
	case src.Name == "":
		return errors.New("a server needs a name")
	case src.Open == nil:
		return fmt.Errorf("server %q: Source.Open is nil", src.Name)
	}
	return nil
}

func (src Source) withDefaults() Source {
	if src.MaxClients <= 0 {
		src.MaxClients = defaultClients
	}
	if src.Queue == 0 {
		src.Queue = defaultQueue
	}
	if src.Older == ShareAuto || src.Older == Exclusive {
		src.Older = PerSession
	}
	switch {
	case src.StartTimeout == 0:
		src.StartTimeout = defaultStart
	case src.StartTimeout < 0:
		src.StartTimeout = math.MaxInt64
	}
	return src
}

// Run keeps a server connected until ctx ends: when a connection ends, it opens another, with
// growing pauses. It returns after all connections are closed. The server is in the gateway from
// the beginning and replaces one with the same name.
//
// Run returns an error only if src lacks Name or Open.
func (g *Gateway) Run(ctx context.Context, src Source) error {
	if err := src.check(); err != nil {
		return err
	}
	p := newPool(ctx, g, src.withDefaults())
	g.put(ctx, p.up)
	defer g.takeOut(p.up)
	p.run()
	return nil
}

// maxShadowed bounds Status.Shadowed.
const maxShadowed = 100

// shadowed returns the URIs of an upstream that an earlier one also has, according to the lists for
// callers without a principal (T-161).
func (g *Gateway) shadowed(up *upstream) []string {
	var found []string
	for _, k := range []*listKind{listResources, listTemplates} {
		var earlier []*keptList
		for _, other := range g.upstreams() { // in the order of their names
			if other.name >= up.name {
				break
			}
			if l := other.cache.list(client{}, k); l != nil {
				earlier = append(earlier, l)
			}
		}
		for e := range (part{list: up.cache.get(client{}, k)}).entries {
			if !slices.ContainsFunc(earlier, func(l *keptList) bool { return l.ids[e.id] }) {
				continue
			}
			if found = append(found, e.id); len(found) == maxShadowed {
				return found
			}
		}
	}
	return found
}

// Status returns the status of each server of Run, in the order of their names.
func (g *Gateway) Status() []Status {
	var all []Status
	for _, up := range g.upstreams() {
		if up.pool != nil {
			all = append(all, up.pool.status())
		}
	}
	return all
}
