package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Server is a server of a host. Name and Open are required.
type Server struct {
	Name string // of at most 40 letters, digits, "-" and "_" it stands in the names of tools

	// Open connects with a client that the host has prepared: it puts the questions of the
	// server to the person. What belongs to the way there may be set in it. Ctx bounds the
	// opening alone. Open is called again when the connection was lost.
	Open func(ctx context.Context, c *mcp.Client) (Session, error)

	Identity string        // what approvals are kept for, such as its command or URL; empty: Name
	Trusted  bool          // what it says of its tools is believed: read-only ones need no approval
	Group    string        // servers of one group have the same tools, and share the calls; empty: none
	Cache    time.Duration // how long results of its read-only tools are kept; 0: not at all
	Disabled []string      // names of its tools that the model is not offered, where * stands for any text

	Idle         time.Duration // as in gateway.Source
	StartTimeout time.Duration // as in gateway.Source
	Stderr       func() string // as in gateway.Source
}

// Session is what a host needs of a *mcp.Session, which has it all.
type Session interface {
	gateway.Upstream
	CallTool(ctx context.Context, name string, args any, o ...mcp.CallOption) (*mcp.ToolResult, error)
	Tools(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Tool, error]
	Prompts(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Prompt, error]
	Prompt(ctx context.Context, name string, args map[string]string, o ...mcp.CallOption) (*mcp.PromptResult, error)
	Resources(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Resource, error]
	Templates(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.ResourceTemplate, error]
	Read(ctx context.Context, uri string, o ...mcp.CallOption) (*mcp.ReadResult, error)
	Complete(ctx context.Context, of mcp.Feature, argument, prefix string, others map[string]string) (*mcp.CompleteResult, error)
	Server() *mcp.ServerInfo
	Revision() mcp.Revision
	Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error]
}

var _ Session = (*mcp.Session)(nil)

// ServerStatus is what becomes of a server.
type ServerStatus struct {
	gateway.Status
	Group    string
	Trusted  bool
	Disabled bool // by Disable
}

// server is a Server as it runs.
type server struct {
	Server
	end context.CancelFunc
	off bool // guarded by mu of the host

	kept results
}

// ErrClosed is that of a host that was closed.
var ErrClosed = errors.New("the host is closed")

func (h *Host) start() {
	h.setUp.Do(func() {
		h.ctx, h.cancel = context.WithCancel(context.Background())
		h.links = &gateway.Gateway{Name: "host", Logger: h.Logger, OnStatus: func(gateway.Status) {}}
		if on := h.OnStatus; on != nil {
			h.links.OnStatus = func(s gateway.Status) { on(h.statusOf(s)) }
		}
	})
}

// Add adds a server, which is started in the background, beside the others.
func (h *Host) Add(s Server) error {
	switch {
	case s.Name == "":
		return errors.New("a server needs a name")
	case s.Open == nil:
		return fmt.Errorf("server %q: Server.Open is nil", s.Name)
	}
	if s.Identity == "" {
		s.Identity = s.Name
	}
	h.start()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if h.find(s.Name) != nil {
		return fmt.Errorf("there is a server %q already", s.Name)
	}
	ctx, end := context.WithCancel(h.ctx)
	h.servers = append(h.servers, &server{Server: s, end: end})
	src := gateway.Source{
		Name: s.Name, Share: gateway.Shared, Idle: s.Idle, StartTimeout: s.StartTimeout, Stderr: s.Stderr,
		Open: func(ctx context.Context) (gateway.Upstream, error) {
			session, err := s.Open(ctx, h.client(s.Name))
			if err != nil {
				return nil, err
			}
			return session, nil
		},
	}
	h.wg.Go(func() {
		defer end()
		h.links.Run(ctx, src)
	})
	return nil
}

// find returns a server; mu is held.
func (h *Host) find(name string) *server {
	for _, s := range h.servers {
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

// Remove ends a server.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(name); s != nil {
		s.end()
		h.servers = slices.DeleteFunc(h.servers, func(x *server) bool { return x == s })
	}
}

// Close ends all servers and waits for their end, which is bounded in time.
func (h *Host) Close() error {
	h.start()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
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
	names := make([]string, len(h.servers))
	for i, s := range h.servers {
		names[i] = s.Name
	}
	h.mu.Unlock()
	all := make([]ServerStatus, len(names))
	for i, name := range names {
		s, ok := states[name]
		if !ok { // it is about to be placed
			s = gateway.Status{Name: name, State: gateway.Starting, Since: time.Now(), Tools: -1, Prompts: -1, Resources: -1}
		}
		all[i] = h.statusOf(s)
	}
	return all
}

func (h *Host) statusOf(s gateway.Status) ServerStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	status := ServerStatus{Status: s}
	if srv := h.find(s.Name); srv != nil {
		status.Group, status.Trusted, status.Disabled = srv.Group, srv.Trusted, srv.off
	}
	return status
}

// Use calls f with the session of a server. It waits for one that is starting; that of one that
// is failing is an error at once.
func (h *Host) Use(ctx context.Context, name string, f func(Session) error) error {
	h.start()
	up, release, err := h.links.Lend(ctx, name)
	if err != nil {
		return err
	}
	err = f(up.(Session))
	release(err)
	return err
}
