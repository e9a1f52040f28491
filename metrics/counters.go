package metrics

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/taskend"
)

// Bounds of the names that have counts of their own.
const (
	maxServers  = 1000
	maxName     = 128    // bytes of a tool's name, as in the specification; longer ones count as other
	maxTools    = 1000   // of one server
	maxAllTools = 10_000 // of all servers
)

// other stands for names without counts of their own.
const other = "other"

// Counters count calls. The zero value is ready for use. Its fields are set before it is used; its
// methods may be used by several goroutines at once.
type Counters struct {
	// Listed reports whether a server lists a tool, both by the server's own names. A tool that is
	// not listed counts as "other". It is called for tools without counts of their own. Nil: a tool
	// is listed once the server has answered a call of it with a result, so that the calls before
	// count as "other" if they end with an error. An [mcp.Server] has [mcp.Server.HasTool] for it.
	Listed func(server, tool string) bool

	// Owner returns the server of a tool and the server's own name for it, given the name that
	// callers use. With it, calls over a rate limit, which do not reach the server, count there
	// too. The server is empty if there is none. Nil: these calls count at the front alone.
	Owner func(name string) (server, tool string)

	// Team returns the team of the caller of a request, Empty: it has none. Teams beyond some
	// hundred count as "other". Nil: calls are not counted by team.
	Team func(ctx context.Context) string

	// Upstreams returns the states of the servers behind a gateway, for Prometheus. Nil: none.
	Upstreams func() []Upstream

	// Audit returns the state of the audit log of the calls. Nil: there is none.
	Audit func() AuditLog

	// Faults returns the number of changed files that are not, or not all, in use. Nil: there are no
	// such files.
	Faults func() int

	// Version of the program, for Prometheus. Empty: unknown.
	Version string

	// Logger gets the first panic of each of the functions above. After a panic the call goes on, as
	// if the function had returned nothing. Nil: the default logger of slog.
	Logger *slog.Logger

	front   table
	lists   [15]atomic.Int64                   // bytes of the last list that a client got, as methods
	policy  pairs                              // decisions by effect and rule
	teams   pairs                              // calls of tools by kind and team
	ends    pairs                              // of tasks, by server and kind
	cached  pairs                              // calls by server, and "hit" or "miss"
	refused pairs                              // requests by the error code of their answer, and nothing
	servers atomic.Pointer[map[string]*server] // a change makes a new map
	tools   atomic.Int64                       // number of tools with counts of their own

	sessions sync.Map // *series of sessions of clients by revision, a string

	mu sync.Mutex // of changes of servers, and of the tools of every table

	panicked sync.Map // names of the functions that have panicked
}

// AuditLog is the state of an audit log.
type AuditLog struct {
	Lag     time.Duration // the time that the last write took
	Queued  int           // lines that wait
	Dropped int64         // lines that are lost
}

// Upstream is the state of a server behind a gateway.
type Upstream struct {
	Name        string
	State       string // such as "ready"
	Connections int    // open
	Processes   int    // running
	Restarts    int    // since the gateway has the server
	MemoryBytes int64  // private memory of the processes; zero: unknown

	Breakers []Breaker // of its replicas, or of the server itself; empty: none
}

// Breaker is the state of the breaker of a replica of an upstream.
type Breaker struct {
	Replica string
	Open    bool // the replica gets no requests

	Failures map[string]int // of requests, by kind
}

// server has the counts of one server.
type server struct {
	name     string
	callers  table // what callers get
	upstream table // what the server answers

	connections series // that have ended
	waits       series // for a place among its connections

	tasks taskend.Pending[struct{}] // that calls have become, by the ids of the server

	history history // of callers
}

// server returns the counts of a server.
func (c *Counters) server(name string) *server {
	if s := c.known(name); s != nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.known(name)
	if s != nil {
		return s
	}
	all := map[string]*server{}
	if old := c.servers.Load(); old != nil {
		all = maps.Clone(*old)
	}
	if len(all) >= maxServers-1 {
		name = other
		if s := all[other]; s != nil {
			return s
		}
	}
	s = &server{name: name}
	all[name] = s
	c.servers.Store(&all)
	return s
}

// known returns the counts of a server that has some; otherwise nil.
func (c *Counters) known(name string) *server {
	all := c.servers.Load()
	if all == nil {
		return nil
	}
	return (*all)[name]
}

// all returns the servers, by name.
func (c *Counters) all() []*server {
	all := c.servers.Load()
	if all == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(*all), func(a, b *server) int { return strings.Compare(a.name, b.name) })
}

const callMethod = "tools/call"

// methods are the methods with counts of their own: first those that [Counters.Server] counts.
var methods = []string{
	callMethod, "prompts/get", "resources/read", "completion/complete", "tasks/get", "tasks/update", "tasks/cancel",
	"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list", "server/discover", "logging/setLevel", other,
}

// serverMethods is the number of methods that Counters.Server counts.
const serverMethods = 7

var methodNumbers = func() map[string]int {
	numbers := make(map[string]int, len(methods))
	for i, m := range methods {
		numbers[m] = i
	}
	return numbers
}()

// table has the counts of requests by method, and those of calls by tool. The zero value is empty.
type table struct {
	methods [15]atomic.Pointer[series]         // as in methods; that of tools/call is for tools without a series
	tools   atomic.Pointer[map[string]*series] // a change makes a new map
}

// method returns the series of a method.
func (t *table) method(number int) *series {
	if s := t.methods[number].Load(); s != nil {
		return s
	}
	t.methods[number].CompareAndSwap(nil, new(series))
	return t.methods[number].Load()
}

// tool returns the series of a tool, given its name in JSON, or nil if it has none.
func (t *table) tool(quoted json.RawMessage) *series {
	tools := t.tools.Load()
	if tools == nil || len(quoted) < 2 {
		return nil
	}
	name := quoted[1 : len(quoted)-1]
	for _, b := range name {
		if b == '\\' {
			plain, _ := jsonx.Unquote(quoted)
			return (*tools)[plain]
		}
	}
	return (*tools)[string(name)] // without an allocation
}

// addTool makes a series for a tool if it is listed and the bounds allow it; otherwise it returns
// nil.
func (c *Counters) addTool(t *table, server, tool string, kind Kind) *series {
	switch {
	case tool == "" || tool == other || len(tool) > maxName:
		return nil
	case c.Listed == nil && kind != OK && kind != ToolError:
		return nil
	case c.Listed != nil && !c.listed(server, tool):
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	tools := map[string]*series{}
	if old := t.tools.Load(); old != nil {
		if s := (*old)[tool]; s != nil {
			return s
		}
		if len(*old) >= maxTools {
			return nil
		}
		tools = maps.Clone(*old)
	}
	if c.tools.Load() >= 2*maxAllTools { // each has two tables
		return nil
	}
	c.tools.Add(1)
	s := new(series)
	tools[tool] = s
	t.tools.Store(&tools)
	return s
}
