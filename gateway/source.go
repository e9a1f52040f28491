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

// Source says how to reach a server. Name and Open are required.
type Source struct {
	// Name is what the configuration calls the server. The names of its features
	// depend on it (see [Name]).
	Name string

	// Open connects to the server. Ctx bounds the opening alone. Where the connection is
	// for one client, ctx belongs to the call of that client that needs it first, so that
	// mcp.CallFrom tells who it is and what it can answer. Open may be called by several
	// goroutines at once.
	Open func(ctx context.Context) (Upstream, error)

	// Around returns what stands between the gateway and a connection that Open has made: everything
	// that the gateway sends over it passes there, in the context of the caller, if it is for one.
	// Nil: nothing does.
	Around func(Upstream) mcp.Handler

	// Share says whose connections are.
	Share Share

	// Alone says that there is one client, though the connection is Shared: what a server before
	// 2026-07-28 keeps is kept for that client, which is told if it is lost.
	Alone bool

	// Offers tells whether callers may know of a tool, by the server's own name for it. One of
	// which it is false is in no list, and a call of it is answered as that of a tool that
	// does not exist. It may be called by several goroutines at once. Nil: of all.
	Offers func(tool string) bool

	// Older is what ShareAuto means for a server before 2026-07-28. Zero: PerSession.
	Older Share

	// MaxClients bounds the connections of a server that is not shared, beside the one for
	// lists. One principal has at most a quarter of them; callers without a principal cannot be
	// told apart, and have what there is. If there is no place for another, the quietest
	// connection over which nothing but reads has happened makes room: one of the same
	// principal, if that has its quarter. If there is none, that of a session of the same
	// principal does which has had no request and no open stream for 2 minutes; its client is
	// told of its loss if it comes back. Zero: 100.
	MaxClients int

	// Queue is how long a request waits for a place for its connection, before it fails.
	// Zero: 2 seconds; negative: it does not wait.
	Queue time.Duration

	// Idle is how long a connection is kept that no call and no subscription to a resource
	// uses. The next call opens it again; until then lists are those that it gave.
	// Zero: as long as the sessions that may have state there, and 30 minutes for clients of
	// whom it is not known when they leave, those without a session. Negative: for ever.
	Idle time.Duration

	// StartTimeout bounds Open. Calls wait for a server that is starting.
	// Zero: 1 minute; negative: no bound.
	StartTimeout time.Duration

	// Drain is how long Run waits at its end for calls in progress. Zero: it does not.
	Drain time.Duration

	// Stderr returns the end of what the server has written to its standard error, to say
	// why it does not start. It may be nil.
	Stderr func() string

	// OnStatus is told what becomes of this server, as Gateway.OnStatus is: first, when
	// requests reach it. Nil: nobody is told.
	OnStatus func(Status)
}

// Upstream is a connection to a server that ends at some time, as a [*mcp.Session] is.
//
// One that has the methods Revision and Watch of a Session tells by them what it speaks and
// what changes. What Watch tells is for all who share the connection. One that has the methods
// Asks and TakeTurns of a Session has callers take turns by them. Lists of one that has the method
// ListVersion of a Session are kept for callers with the same principal, credential, HTTP header and
// forward.CallerKey of package mcp/forward: what it answers to them must not differ. One to whose server callers differ in more
// has a ListVersion that returns another number each time.
type Upstream interface {
	mcp.Handler
	Done() <-chan struct{} // closed when the connection is over
	Err() error            // why
	Close() error          // bounded in time
}

// Share says whose the connections to a server are.
type Share int

const (
	// ShareAuto: Shared for a server that speaks 2026-07-28, which keeps nothing between
	// requests, and Source.Older for an older one, whose state belongs to a session.
	ShareAuto Share = iota
	// Shared: all callers use one connection.
	Shared
	// PerSession: each session before 2026-07-28 has a connection of its own, opened when it is
	// first needed. Callers of 2026-07-28, which has no sessions, have what PerPrincipal says.
	// One more connection is for lists.
	PerSession
	// PerPrincipal: each principal has a connection of its own for all its callers who can be
	// asked the same, with or without a session. Callers of whom nobody knows who they are, are
	// one principal. One more connection is for lists. Once a server of that name has asked for
	// roots, which may differ from one session to the next, sessions that have roots have
	// connections of their own, as long as the Gateway lives.
	PerPrincipal

	// PerClient is a former name of PerSession.
	PerClient = PerSession
)

// String returns "auto", "shared", "session" or "principal".
func (s Share) String() string {
	switch s {
	case Shared:
		return "shared"
	case PerSession:
		return "session"
	case PerPrincipal:
		return "principal"
	}
	return "auto"
}

// ParseShare reads what String returns, and "per-client", a former name of "session". The empty
// string is ShareAuto.
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
	}
	return 0, fmt.Errorf("%q is none of auto, shared, session and principal", name)
}

// State is what becomes of a server.
type State string

const (
	Starting   State = "starting" // for the first time or again; calls wait
	Ready      State = "ready"
	Failing    State = "failing"     // it could not be reached, or does not answer; it is tried again
	NeedsLogin State = "needs login" // as Failing; Reason is what a person does about it, see [LoginError]
	Crashing   State = "crashing"    // it ends soon after each start
	Idle       State = "idle"        // ended as nobody used it; the next call starts it
	Stopped    State = "stopped"     // Run is ending: new requests are refused
)

// Status is the state of a server, and why.
type Status struct {
	Name   string
	State  State
	Reason string    // for people, empty if there is nothing to say; it may quote the server
	Since  time.Time // that it is in this state

	Restarts int // times that it was started or connected to again, with or without success

	// Lost says why a connection ended last by itself, that of a client too, and LostAt when.
	// Empty: none has.
	Lost   string
	LostAt time.Time

	Changes int   // times that it said that its lists have changed, or may have while nobody heard it
	Conns   int   // open connections
	Clients int   // of these, of single clients
	Share   Share // what it is now; ShareAuto while that is not known
	Roots   bool  // Share is PerPrincipal, and PerSession for sessions with roots, as the server asks for them

	// Of connections of single clients: clients that have lost what the server kept for them,
	// each of which is told; quiet connections that made room; requests that found no place.
	Losses, Evicted, Refused int

	// Asks tells that the server has asked a question that names no call, so that callers who
	// share a connection take turns.
	Asks bool

	// What it offers, as last listed by Run itself or for a caller without a principal; -1
	// while that is not known.
	Tools, Prompts, Resources int

	// Shadowed are URIs that it lists, of resources or templates, and that a server whose name
	// comes earlier has too: who reads them gets that one's. At most 100.
	Shadowed []string

	Server   mcp.Implementation // as it names itself, as far as it is known
	Revision mcp.Revision       // spoken with it, empty if it is not known
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
	if src.Older == ShareAuto {
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

// Run keeps a server connected until ctx ends: it opens a connection, and when that ends
// another, with growing pauses. It returns when all its connections are closed. The server is
// in the gateway from the beginning; another of that name gives way.
//
// Run returns an error only if src is not complete.
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

// shadowed finds the URIs of an upstream that an earlier one has, by the lists of those
// without a principal (T-161).
func (g *Gateway) shadowed(up *upstream) []string {
	var found []string
	for _, k := range []*listKind{listResources, listTemplates} {
		var earlier []*keptList
		for _, other := range g.upstreams() { // in the order of their names
			if other.name >= up.name {
				break
			}
			if l := other.kept.list(client{}, k); l != nil {
				earlier = append(earlier, l)
			}
		}
		for e := range (part{list: up.kept.get(client{}, k)}).entries {
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

// Status returns the states of the servers of Run, in the order of their names.
func (g *Gateway) Status() []Status {
	var all []Status
	for _, up := range g.upstreams() {
		if up.pool != nil {
			all = append(all, up.pool.status())
		}
	}
	return all
}
