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
	Name string // of at most 40 letters, digits, "-" and "_" it stands in the names of tools

	// Open returns the server: a session that it opens with c, or any other Handler. C is a client
	// that the host has prepared: it declares what servers can ask of the host, and puts the
	// questions to the person that belong to no call. What belongs to the way there may be set in
	// it. Ctx bounds the opening alone.
	//
	// A Handler that is a [gateway.Upstream] ends at some time; then Open is called again, with
	// another client. One that has the method Raw of a session too is asked now and then whether it
	// still answers.
	Open func(ctx context.Context, c *mcp.Client) (mcp.Handler, error)

	Identity string        // what approvals are kept for, such as its command or URL; empty: Name
	Trusted  bool          // what it says of its tools is believed: read-only ones need no approval
	Group    string        // of servers that stand for each other, see the package comment; empty: none
	Cache    time.Duration // how long results of its read-only tools are kept; 0: not at all

	// Offers tells whether the model is offered a tool of that name, as long as Enable and Disable
	// say nothing else. It must not use the host. Nil: all are offered.
	Offers func(tool string) bool

	CallTimeout  time.Duration // of its calls; a group has that of its first server; 0: Limits.CallTimeout; negative: none
	Idle         time.Duration // as in gateway.Source
	StartTimeout time.Duration // as in gateway.Source
	Stderr       func() string // as in gateway.Source
}

// ServerStatus is what becomes of a server.
type ServerStatus struct {
	gateway.Status
	Group    string
	Trusted  bool
	Disabled bool // by Disable

	Calls     int           // that ended: of tools, prompts and resources
	Errors    int           // of these that were the server's fault
	Underway  int           // calls in progress
	Latency   time.Duration // of a call, a mean in which the last ones count most; 0: not known
	ErrorRate float64       // likewise, from 0 to 1
	Aside     time.Time     // until then its group leaves it alone; zero: it does not
}

// server is a Server as it runs, or what the model takes for one: a group of them.
type server struct {
	Server
	h       *Host
	members []*server // of a group, in the order in which they came; nil: it is none

	off   bool   // guarded by mu of the host
	rules []rule // for its tools, the last that fits holds; guarded by mu of the host

	offering
	kept results

	ctx    context.Context // ends when it is removed
	end    context.CancelFunc
	credit float64 // in the choice among a group; guarded by mu of the host
	stats  stats
	asking chan struct{} // a slot for each completion that it waits for

	telling sync.Mutex // orders what OnStatus is told

	mu     sync.Mutex
	run    int                // counts the runs of the gateway; guarded by mu
	again  context.CancelFunc // ends the run; guarded by mu
	placed chan struct{}      // closed when the gateway has the run; guarded by mu
	last   gateway.Status     // of the run, as OnStatus was told; guarded by mu
	up     gateway.Upstream   // the last one, nil before the first; guarded by mu
	client *mcp.Client        // that up was opened with; guarded by mu
	silent health             // of up; guarded by mu
	tasks  map[string]*server // of a group: which member has a task, by its id; guarded by mu
	lately budget             // of questions that belong to no call; guarded by mu
	doubts chan struct{}      // capacity 1: something speaks against it
}

// ErrClosed is that of a host that was closed.
var ErrClosed = errors.New("the host is closed")

// drainTime bounds how long the calls at a server that is removed or replaced go on there.
const drainTime = 30 * time.Second

func (h *Host) start() {
	h.setUp.Do(func() {
		h.ctx, h.cancel = context.WithCancel(context.Background())
		h.links = &gateway.Gateway{Name: "host", Logger: h.Logger, Middleware: h.Middleware}
	})
}

// Add adds a server, which is started in the background, beside the others.
func (h *Host) Add(s Server) error { return h.put(s, false) }

// Replace puts a server in the place of the one of that name, which may have another
// configuration, or adds it. Calls in progress go on at the old one, for at most 30 seconds;
// new ones go to the new one. The other servers notice nothing.
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
		return fmt.Errorf("there is a server %q already", s.Name)
	}
	for _, r := range h.running {
		if r.Name != s.Name && (r.Name == s.Group && r.Group != s.Group || r.Group == s.Name && s.Group != s.Name) {
			return fmt.Errorf("server %q: a server and a group of others cannot have the same name", s.Name)
		}
	}
	r := &server{
		Server: s, h: h, placed: make(chan struct{}), asking: make(chan struct{}, maxSampling),
		doubts: make(chan struct{}, 1),
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
		before.end() // before the gateway gets another of its name
	}
	h.wg.Go(r.keep)
	return nil
}

// arrange finds what the model takes for servers; mu is held.
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

// find returns what the model takes for a server: one, or a group; mu is held.
func (h *Host) find(name string) *server { return byName(h.servers, name) }

func byName(list []*server, name string) *server {
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// named returns a server, nil if there is none.
func (h *Host) named(name string) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(name)
}

// those returns the servers of a name, which may be that of a group.
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

// Remove ends a server. Calls in progress there go on for at most 30 seconds.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := byName(h.running, name); s != nil {
		s.end()
		h.running = slices.DeleteFunc(h.running, func(x *server) bool { return x == s })
		h.arrange()
	}
}

// Retry has a server that waits for its next attempt to start tried now, for instance as
// somebody has logged in. A group is each of its servers.
func (h *Host) Retry(name string) {
	for _, s := range h.those(name) {
		s.stats.reset()
		h.links.Retry(s.Name)
	}
}

// Restart ends a server, with the calls in progress there, and starts it again. A group is each
// of its servers.
func (h *Host) Restart(name string) {
	for _, s := range h.those(name) {
		s.restart()
	}
}

// Close ends all servers, with the calls in progress there, and waits for their end, which is
// bounded in time.
func (h *Host) Close() error {
	h.start()
	h.mu.Lock()
	h.closed = true
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

// Use calls f with a session with a server, which is good until f returns and belongs to no
// conversation. Requests wait for a server that is starting; those to one that is failing fail at
// once. Each request to a group goes to one of its servers: if that has surely not taken it, to the
// next.
func (h *Host) Use(ctx context.Context, name string, f func(*mcp.Session) error) error {
	h.start()
	s := h.named(name)
	if s == nil {
		return fmt.Errorf("there is no server %q", name)
	}
	return s.use(ctx, f)
}
