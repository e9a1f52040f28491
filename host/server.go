package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Server is a server of a host. Name and Open are required.
type Server struct {
	Name string // part of tool names as it is if it has at most 40 letters, digits, "-" and "_"

	// Open returns the server: a session opened with c, or any other Handler. The host has prepared
	// c: it declares what servers may ask of the host, and passes questions outside of calls to the
	// person. Open may set fields of c that concern the connection. The context bounds only the
	// opening.
	//
	// If the Handler is a [gateway.Upstream], it ends at some point, and Open is called again with
	// another client. If it also has the method Raw of a session, the host checks now and then
	// whether it still answers.
	Open func(ctx context.Context, c *mcp.Client) (mcp.Handler, error)

	Identity string        // key of approvals, such as the command or URL; empty: Name
	Trusted  bool          // its tool annotations are trusted: read-only tools need no approval
	Group    string        // of interchangeable servers, see the package comment; empty: none
	Cache    time.Duration // how long results of its read-only tools are cached; 0: not at all

	// Offers reports whether the model is offered a tool, unless Enable or Disable overrides it. It
	// must not use the host. If nil, all tools are offered.
	Offers func(tool string) bool

	CallTimeout  time.Duration // of its calls; a group uses that of its first server; 0: Limits.CallTimeout; negative: no bound
	Idle         time.Duration // as in gateway.Source
	StartTimeout time.Duration // as in gateway.Source
	Stderr       func() string // as in gateway.Source
}

// Local returns a server that runs in this process: an [mcp.Server], or any other Handler. Its annotations are not
// trusted unless Trusted is set.
func Local(name string, h mcp.Handler) Server {
	return Server{Name: name, Open: func(context.Context, *mcp.Client) (mcp.Handler, error) { return h, nil }}
}

// ServerStatus is the status of a server.
type ServerStatus struct {
	gateway.Status
	Group    string
	Trusted  bool
	Disabled bool // by Disable

	Calls     int           // calls that ended: of tools, prompts and resources
	Errors    int           // calls that failed by the server's fault
	Underway  int           // calls in progress
	Latency   time.Duration // moving average of the duration of a call; 0: unknown
	ErrorRate float64       // moving average, from 0 to 1
	Aside     time.Time     // its group avoids the server until then; zero: it does not
}

// server is a running Server, or a group, which appears to the model as one server.
type server struct {
	Server
	h       *Host
	members []*server // of a group, in the order in which they were added; nil: not a group

	off   bool   // guarded by mu of the host
	rules []rule // for its tools; the last that matches applies; guarded by mu of the host

	offering
	kept results

	ctx    context.Context // ends when the server is removed
	end    context.CancelFunc
	credit float64 // for the choice within a group; guarded by mu of the host
	stats  stats
	asking chan struct{} // a slot for each sampling request in progress

	telling sync.Mutex // orders calls of OnStatus

	mu     sync.Mutex
	run    int                // counts the runs of the gateway; guarded by mu
	again  context.CancelFunc // ends the run; guarded by mu
	added  chan struct{}      // closed when the gateway has the run; guarded by mu
	last   gateway.Status     // of the run, as OnStatus was told; guarded by mu
	up     gateway.Upstream   // the last connection; nil before the first; guarded by mu
	client *mcp.Client        // that opened up; guarded by mu
	silent health             // of up; guarded by mu
	first  []Tool             // tools that it listed first; nil before; guarded by mu
	tasks  map[string]*server // of a group: the member that has a task, by task id; guarded by mu
	lately budget             // of questions outside of calls; guarded by mu

	suspected chan struct{} // capacity 1: the connection should be checked
}

// ErrClosed says that the host is closed.
var ErrClosed = errors.New("host: closed")

// drainTime bounds how long calls continue at a server that was removed or replaced.
const drainTime = 30 * time.Second

func (h *Host) start() {
	h.setUp.Do(func() {
		h.ctx, h.cancel = context.WithCancel(context.Background())
		h.turns = map[*context.CancelCauseFunc]bool{}
		h.links = &gateway.Gateway{Name: "host", Logger: h.Logger, Middleware: h.Middleware}
	})
}

// Add adds a server and starts it in the background.
func (h *Host) Add(s Server) error { return h.put(s, false) }

// Replace replaces the server of the same name, or adds s. Calls in progress continue at the old
// server for at most 30 seconds; new calls go to the new one. Other servers are not affected.
func (h *Host) Replace(s Server) error { return h.put(s, true) }

func (h *Host) put(s Server, replace bool) error {
	switch {
	case s.Name == "":
		return errors.New("a server needs a name")
	case s.Open == nil:
		return fmt.Errorf("server %q: Server.Open is nil", s.Name)
	}
	if s.Identity == "" {
		s.Identity = s.Name
	}
	s.Trusted = s.Trusted && !h.Distrust
	h.start()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	at := slices.IndexFunc(h.running, func(r *server) bool { return r.Name == s.Name })
	if at >= 0 && !replace {
		return fmt.Errorf("server %q exists already", s.Name)
	}
	for _, r := range h.running {
		if r.Name != s.Name && (r.Name == s.Group && r.Group != s.Group || r.Group == s.Name && s.Group != s.Name) {
			return fmt.Errorf("server %q: a server and a group of others cannot have the same name", s.Name)
		}
	}
	r := &server{
		Server: s, h: h, added: make(chan struct{}), asking: make(chan struct{}, maxSampling),
		suspected: make(chan struct{}, 1),
	}
	r.ctx, r.end = context.WithCancel(h.ctx)
	var before *server
	if at >= 0 {
		before = h.running[at]
		r.off, r.rules = before.off, before.rules
		h.running[at] = r
	} else {
		h.running = append(h.running, r)
	}
	h.arrange()
	if before != nil {
		before.end() // must come before the gateway gets the new server of that name
	}
	h.wg.Go(r.keep)
	return nil
}

// arrange computes the servers as the model sees them; mu is held.
func (h *Host) arrange() {
	var shown []*server
	for _, r := range h.running {
		if r.Group == "" {
			shown = append(shown, r)
			continue
		}
		at := slices.IndexFunc(shown, func(s *server) bool { return s.members != nil && s.Name == r.Group })
		if at < 0 {
			shown = append(shown, &server{
				h: h, Server: Server{Name: r.Group}, members: []*server{r}, asking: make(chan struct{}, maxSampling), tasks: map[string]*server{},
			})
			continue
		}
		shown[at].members = append(shown[at].members, r)
	}
	for i, s := range shown {
		old := h.find(s.Name)
		if s.members == nil {
			continue
		}
		if old != nil && slices.Equal(old.members, s.members) {
			shown[i] = old
			continue
		}
		s.join()
		if old != nil {
			s.off, s.rules = old.off, old.rules
		}
	}
	h.servers = shown
}

// find returns a server or a group by name; mu is held.
func (h *Host) find(name string) *server { return byName(h.servers, name) }

func byName(list []*server, name string) *server {
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// named returns a server or a group by name, or nil.
func (h *Host) named(name string) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(name)
}

// those returns the server with a name, or the members of the group with that name.
func (h *Host) those(name string) []*server {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := byName(h.running, name); s != nil {
		return []*server{s}
	}
	if s := h.find(name); s != nil {
		return s.all()
	}
	return nil
}

// Remove removes a server. Its calls in progress continue for at most 30 seconds.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := byName(h.running, name); s != nil {
		s.end()
		h.running = slices.DeleteFunc(h.running, func(x *server) bool { return x == s })
		h.arrange()
	}
}

// Retry makes a server that waits for its next connection attempt try now, for example after a
// login. For a group, it applies to each member.
func (h *Host) Retry(name string) {
	for _, s := range h.those(name) {
		s.stats.reset()
		h.links.Retry(s.Name)
	}
}

// Restart ends a server and its calls in progress, and starts it again. For a group, it applies to
// each member.
func (h *Host) Restart(name string) {
	for _, s := range h.those(name) {
		s.restart()
	}
}

// Close ends all servers and their calls in progress, and waits until they have ended. The wait is
// bounded. Turns of conversations end with [ErrClosed], and no new ones begin.
func (h *Host) Close() error {
	h.start()
	h.mu.Lock()
	h.closed = true
	for end := range h.turns { // before their calls fail, which a turn would tell its model
		(*end)(ErrClosed)
	}
	talks := slices.Collect(maps.Keys(h.talks))
	h.mu.Unlock()
	for _, c := range talks {
		c.Close()
	}
	h.cancel()
	h.wg.Wait()
	return nil
}

// Servers returns the servers in the order in which they were added.
func (h *Host) Servers() []ServerStatus {
	h.start()
	states := map[string]gateway.Status{}
	for _, s := range h.links.Status() {
		states[s.Name] = s
	}
	h.mu.Lock()
	list := slices.Clone(h.running)
	h.mu.Unlock()
	all := make([]ServerStatus, len(list))
	for i, s := range list {
		all[i] = s.status(states[s.Name])
	}
	return all
}

// Use calls f with a session with a server or a group. The session is valid until f returns and
// belongs to no conversation. Requests wait for a server that is starting, and fail at once for one
// that is failing. Each request to a group goes to one member, and to the next if that member has
// certainly not accepted it.
func (h *Host) Use(ctx context.Context, name string, f func(*mcp.Session) error) error {
	h.start()
	s := h.named(name)
	if s == nil {
		return fmt.Errorf("there is no server %q", name)
	}
	return s.use(ctx, f)
}
