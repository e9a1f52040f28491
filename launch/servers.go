package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/bounds"
	"github.com/patchbay-dev/patchbay/mcp"
)

// leaveTime is the time for calls in progress with a server that was removed from the configuration
// or changed there.
const leaveTime = 30 * time.Second

// muteCalls is how many consecutive calls may reach a limit without any message from a command,
// before the command is restarted.
const muteCalls = 3

// Servers runs the servers of a configuration behind a gateway. [Servers.Set] or [Servers.Follow]
// says which servers. The exported fields are read when a server starts. Each server has a
// goroutine, which ends with Close or, after the server was removed, with its last call.
type Servers struct {
	Env     *Env             // required
	Gateway *gateway.Gateway // required

	// Client returns the client for one connection. Questions, progress and logs that belong to a
	// call go to the caller of the gateway; those that belong to none go to the functions of the
	// client. Nil: a client without functions.
	Client func(s config.Server) (*mcp.Client, error)

	Share string // the class of servers that do not set it, as in mcp.json; empty: that of Set
	Known bool   // callers are authenticated
	Alone bool   // there is only one client, which everything is shared with

	// StartTimeout bounds the start of a server. Nil: what its entry says, and else that of the gateway.
	StartTimeout func(s config.Server) time.Duration

	// Starting is called before a server is started or retried. If nil, nothing is called.
	Starting func(s config.Server)

	// LeftOut is called when a server is not started because it would lead back to this program.
	LeftOut func(name, why string)

	// Dev honours "dev" of commands: it restarts one whose sources change, and starts one under its
	// debugger. A restart lets calls in progress finish, for at most 30 seconds.
	Dev bool

	// Replica is called when the breaker of a replica of a server, or of the server itself, has opened or
	// closed. It must not block. If nil, nothing is called.
	Replica func(server string, s spread.Status)

	// Said is called with each line of a server's standard error, prefixed with its name. If nil,
	// only the last lines are kept.
	Said func(line string)

	begin sync.Once
	ctx   context.Context // of all servers
	stop  context.CancelFunc
	wg    sync.WaitGroup

	// Groups makes one server of the entries with the same Group: it has the name of the group, and the
	// entries are its replicas.
	Groups bool

	mu        sync.Mutex
	members   map[string][]config.Server   // of the groups, by name; guarded by mu
	list      []*server                    // in the order of the configuration; guarded by mu
	disabled  map[string]bool              // by name, servers that Disable has taken out of use; guarded by mu
	says      map[string]string            // what their calls get; guarded by mu
	out       map[string]map[string]string // by server and replica: what enables it, of disabled replicas; guarded by mu
	journals  map[string]*Journal          // by name; guarded by mu
	restarted map[string]int               // by name, without those of the servers in list; guarded by mu
	required  map[string]bool              // servers without which the gateway is not ready; guarded by mu
}

// server is one server as it was configured.
type server struct {
	config.Server
	older   gateway.Share // the class of the server if its revision is before 2026-07-28 and it does not set one
	ready   chan struct{} // closed when calls reach it
	end     context.CancelFunc
	fault   string                 // the reason why it cannot be started; empty: it can
	leftOut atomic.Pointer[string] // the reason why it is left out; nil: it is not

	log     *Log
	members []config.Server // of a group; nil: it is none
	group   *spread.Group   // nil: it has no replicas and no breaker

	restarts []time.Time // the last ones because of changed sources

	rolling     *roll         // the last restart of its replicas; guarded by mu of Servers
	byHand      bool          // a person has started it
	over        chan struct{} // closed when it has ended
	settled     chan struct{} // closed when it is ready or has failed
	settledOnce sync.Once

	mu    sync.Mutex
	last  gateway.Status     // guarded by mu
	ups   map[*Upstream]bool // its open connections; guarded by mu
	pids  map[int]bool       // of the guards of its processes; guarded by mu
	debug map[int]string     // by pid: the address of the debugger, of processes that have one; guarded by mu
}

// Faulty is a server of a file that cannot be started as written.
type Faulty struct {
	Name string
	Why  config.Problems
}

// FaultyServers returns the servers with faults.
func FaultyServers(faults config.Problems) (list []Faulty) {
	for _, p := range faults {
		if p.Server == "" || p.Model != "" || p.Disabled {
			continue
		}
		i := slices.IndexFunc(list, func(f Faulty) bool { return f.Name == p.Server })
		if i < 0 {
			i = len(list)
			list = append(list, Faulty{Name: p.Server})
		}
		list[i].Why = append(list[i].Why, p)
	}
	return list
}

// Enabled returns the servers of a file that are not disabled.
func Enabled(file *config.File) []config.Server {
	return slices.DeleteFunc(slices.Clone(file.Servers), func(s config.Server) bool { return s.Disabled })
}

func (f *Servers) run() {
	f.begin.Do(func() { f.ctx, f.stop = context.WithCancel(context.Background()) })
}

// Close ends all servers and waits for them.
func (f *Servers) Close() {
	f.run()
	f.stop()
	f.wg.Wait()
}

// Processes returns how many processes a server runs, and their private memory in bytes; 0 if
// unknown.
func (f *Servers) Processes(name string) (n int, memory int64) {
	f.mu.Lock()
	i := slices.IndexFunc(f.list, func(s *server) bool { return s.Name == name })
	if i < 0 {
		f.mu.Unlock()
		return 0, 0
	}
	s := f.list[i]
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pids), bounds.Memory(s.pids)
}

// Stray returns how many lines a server has printed to its standard output that are not messages, since the first of its
// connections was opened, and the first of them: without secrets, and cut to 200 bytes.
func (f *Servers) Stray(name string) (lines int, first string) {
	f.mu.Lock()
	i := slices.IndexFunc(f.list, func(s *server) bool { return s.Name == name })
	if i < 0 {
		f.mu.Unlock()
		return 0, ""
	}
	l := f.list[i].log
	f.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.strays, l.first
}

// Names returns the names of the servers, in the order of the configuration.
func (f *Servers) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, len(f.list))
	for i, s := range f.list {
		names[i] = s.Name
	}
	return names
}

// Requires reports whether the gateway needs a server to be ready.
func (f *Servers) Requires(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.required[name]
}

// NotStarted returns the servers that are not started because they would lead back to this program,
// with the reasons.
func (f *Servers) NotStarted() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := map[string]string{}
	for _, s := range f.list {
		if why := s.leftOut.Load(); why != nil {
			left[s.Name] = *why
		}
	}
	return left
}

// Set replaces the servers and returns the changes: "+ new", "- gone", "~ different". An unchanged
// server is not interrupted. If an entry has changed, calls in progress finish on the old server,
// and new calls go to the new one. When Set returns, calls find the new servers, and wait for those
// that are starting. The parameter share is the configuration's setting for servers without one of
// their own.
//
// The entries in bad have faults in the configuration: such a server is failing, with its faults as
// the reason. If it was running before, it continues with its old entry until the faults are
// corrected.
func (f *Servers) Set(list []config.Server, bad []Faulty, share string) []string {
	f.run()
	f.mu.Lock()
	defer f.mu.Unlock()
	older, err := gateway.ParseShare(cmp.Or(f.Share, share))
	if err != nil || older == gateway.ShareAuto {
		if older = gateway.PerSession; f.Known {
			older = gateway.PerPrincipal // one person, all windows
		}
	}
	old := map[string]*server{}
	for _, s := range f.list {
		old[s.Name] = s
	}
	f.members = nil
	if f.Groups {
		var refused []config.Server
		list, f.members, refused = grouped(list)
		for _, s := range refused {
			f.note("%s: not started, because a group of other servers has its name (%s); rename one of them", s.Name, s.Source)
		}
	}
	var changes []string
	required := map[string]bool{}
	for _, s := range list {
		required[s.Name] = s.Required
	}
	for _, b := range bad {
		required[b.Name] = f.required[b.Name]
	}
	f.required = required
	now := make([]*server, 0, len(list)+len(bad))
	for _, s := range list {
		was := old[s.Name]
		delete(old, s.Name)
		switch {
		case was == nil:
			changes = append(changes, "+ "+s.Name)
			was = f.start(s, older, "", nil, false)
		case !was.Equal(s) || !slices.EqualFunc(was.members, f.members[s.Name], config.Server.Equal) || was.older != older || was.fault != "":
			changes = append(changes, "~ "+s.Name)
			was = f.start(s, older, "", nil, false)
		}
		now = append(now, was)
	}
	for _, b := range bad {
		was := old[b.Name]
		delete(old, b.Name)
		switch text := b.Why.Error(); {
		case was == nil:
			changes = append(changes, "+ "+b.Name)
			was = f.start(config.Server{Name: b.Name}, older, text, nil, false)
		case was.fault != "" && was.fault != text:
			was = f.start(config.Server{Name: b.Name}, older, text, nil, false)
		}
		now = append(now, was)
	}
	for _, s := range now {
		<-s.ready
	}
	for _, s := range f.list {
		if old[s.Name] != nil {
			changes = append(changes, "- "+s.Name)
		}
		if !slices.Contains(now, s) {
			f.retire(s)
		}
	}
	f.list = now
	return changes
}

// start starts a server, which replaces the one of the same name in the gateway. A server with a
// fault is failing for that reason. The parameter restarts has its last restarts because of changed
// sources; continues says that it is the same server again.
func (f *Servers) start(entry config.Server, older gateway.Share, fault string, restarts []time.Time, continues bool) *server {
	log := f.Env.NewLog(entry.Name, f.Said)
	log.journal = f.journal(entry.Name)
	ctx, end := context.WithCancel(f.ctx)
	s := &server{Server: entry, log: log, members: f.members[entry.Name], older: older, fault: fault, ready: make(chan struct{}), end: end, restarts: restarts, pids: map[int]bool{}, debug: map[int]string{},
		over: make(chan struct{}), settled: make(chan struct{}), ups: map[*Upstream]bool{}}
	ready := sync.OnceFunc(func() { close(s.ready) })
	if f.Starting != nil {
		f.Starting(entry)
	}
	bound := entry.StartTimeout
	if f.StartTimeout != nil {
		bound = f.StartTimeout(entry)
	}
	src := gateway.Source{
		Name: entry.Name, Alone: f.Alone, Continues: continues, Older: older, MaxClients: entry.Clients, Queue: entry.Queue,
		Idle: entry.Idle, StartTimeout: bound, Drain: leaveTime, Stderr: log.Last, Offers: s.offers(), Trusted: entry.Trusted, Remote: entry.URL != "",
		OnStatus: func(now gateway.Status) {
			s.became(now, log.journal)
			ready() // the server has its place in the gateway, and a status
		},
	}
	one := func(ctx context.Context, entry config.Server) (gateway.Upstream, error) {
		return f.openCounted(ctx, s, entry, log)
	}
	if fault == "" {
		s.group = f.groupOf(s, one)
	}
	src.Open = func(ctx context.Context) (gateway.Upstream, error) {
		switch {
		case fault != "":
			return nil, errors.New(fault)
		case s.group != nil:
			return s.group.Open(ctx)
		}
		return one(ctx, s.replicaEntries()[0].entry) // of a group with one member: the member
	}
	if f.disabled[entry.Name] {
		src.Disabled = f.says[entry.Name]
	}
	src.Share, _ = gateway.ParseShare(entry.Share) // the configuration was checked
	if f.Dev && src.Disabled == "" && entry.Command != "" && len(entry.Dev.Watch) > 0 {
		sources := newSources(entry.Dev) // before the start: a change during the start counts
		f.wg.Go(func() { f.restartOnChange(ctx, s, sources) })
	}
	f.wg.Go(func() {
		defer close(s.over)
		defer ready()
		defer end()
		if err := f.Gateway.Run(ctx, src); err != nil {
			f.note("%s: %v", entry.Name, err)
		}
		if s.group != nil {
			s.group.Close()
		}
	})
	return s
}

// openCounted opens a connection to a server, or to one of its replicas, and counts its process.
func (f *Servers) openCounted(ctx context.Context, s *server, entry config.Server, log *Log) (gateway.Upstream, error) {
	entry, debugger, err := f.debugged(entry)
	if err != nil {
		return nil, err
	}
	log.begins()
	u, err := f.open(ctx, entry, log)
	if why := loopOf(err); why != "" && s.group == nil {
		s.leftOut.Store(&why)
		s.end() // it is not tried again
		if f.LeftOut != nil {
			f.LeftOut(s.Name, why)
		}
	}
	if err != nil {
		log.ends()
		return nil, err
	}
	if debugger != "" {
		f.note("%s: attach a debugger (%s) to %s", entry.Name, entry.Dev.Debug, debugger)
	}
	s.count(u, debugger)
	f.wg.Go(func() {
		<-u.Done()
		s.uncount(u)
		log.ends()
		if why := u.bound.Reason(); why != "" {
			log.journal.Event(why)
			f.log().Warn("server stopped at a limit of its entry", "server", s.Name, "err", why)
		}
	})
	return u, nil
}

// open opens a connection with questions that go to the callers of the gateway. Those that belong
// to no call go to the functions of the client.
func (f *Servers) open(ctx context.Context, entry config.Server, log *Log) (*Upstream, error) {
	client := &mcp.Client{}
	if f.Client != nil {
		var err error
		if client, err = f.Client(entry); err != nil {
			return nil, err
		}
	}
	if !f.Dev || entry.Dev.Debug == "" { // a breakpoint makes a server mute
		client.Limits.Mute = cmp.Or(client.Limits.Mute, muteCalls)
	}
	gateway.Relay(ctx, client)
	return f.Env.Upstream(ctx, entry, client, log)
}

func (f *Servers) note(format string, args ...any) {
	if f.Env.Note != nil {
		f.Env.Note(fmt.Sprintf(format, args...))
	}
}

// offersOf returns a filter for the tools of a server that callers may see; nil: all.
func offersOf(s config.Server) func(tool string) bool {
	if s.EnabledTools == nil && len(s.DisabledTools) == 0 {
		return nil
	}
	return s.Offers
}

// count counts the process of a connection. The parameter debugger is the address of its debugger;
// empty: it has none.
func (s *server) count(u *Upstream, debugger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ups[u] = true
	if u.pid == 0 {
		return
	}
	s.pids[u.pid] = true
	if debugger != "" {
		s.debug[u.pid] = debugger
	}
}

// uncount takes back what count did; the connection is over.
func (s *server) uncount(u *Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ups, u)
	delete(s.pids, u.pid)
	delete(s.debug, u.pid)
}
