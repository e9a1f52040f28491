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
	"github.com/patchbay-dev/patchbay/mcp"
)

// leaveTime is for calls in progress with a server that was taken out of the
// configuration, or changed there.
const leaveTime = 30 * time.Second

// muteCalls is how many calls in a row may reach a limit while nothing is heard of a command, before
// it is started again.
const muteCalls = 3

// Servers are the servers of a configuration behind a gateway. Its exported fields are read when work
// starts; [Servers.Set] and [Servers.Follow] say which servers there are. It owns a goroutine per server,
// which ends with Close, or when the last call to a server that was taken out has ended.
type Servers struct {
	Env     *Env             // required
	Gateway *gateway.Gateway // required

	// Client makes the client of a connection, which is used for that alone. Questions, progress and logs
	// that belong to a call go to the caller of the gateway; what belongs to none goes to the functions
	// of the client. Nil: a client without functions.
	Client func(s config.Server) (*mcp.Client, error)

	Share string // the class of all servers that do not say it, as in mcp.json; empty: what Set says
	Known bool   // callers are authenticated
	Alone bool   // there is one client, for all that is shared

	// StartTimeout bounds the start of a server. Nil: what its entry says, and else that of the gateway.
	StartTimeout func(s config.Server) time.Duration

	// Starting is called before a server is started, or has an attempt to be. Nil: it is not.
	Starting func(s config.Server)

	// LeftOut is called when a server is not started, as that would lead back to this program.
	LeftOut func(name, why string)

	// Said is called with each line of the standard error of a server, behind its name. Nil: the last
	// lines are kept alone.
	Said func(line string)

	begin sync.Once
	ctx   context.Context // of all servers
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu       sync.Mutex
	list     []*server       // in the order of the configuration; guarded by mu
	required map[string]bool // servers without which the gateway is not ready; guarded by mu
}

// server is one server as it was configured.
type server struct {
	config.Server
	older   gateway.Share // what the class of the server is if it is before 2026-07-28 and does not say it
	ready   chan struct{} // closed when calls find it
	end     context.CancelFunc
	fault   string                 // why it cannot be started; empty: it can
	leftOut atomic.Pointer[string] // why it is not started; nil: it is

	mu   sync.Mutex
	pids map[int]bool // of the guards of its processes; guarded by mu
}

// Faulty is a server of a file that cannot be started as it is written.
type Faulty struct {
	Name string
	Why  config.Problems
}

// FaultyServers returns the servers that faults of a file are about.
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

// Close ends all servers and waits for their end.
func (f *Servers) Close() {
	f.run()
	f.stop()
	f.wg.Wait()
}

// Processes returns how many processes a server runs, and the memory that they have for
// themselves, in bytes; 0 if that is not known.
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
	return len(s.pids), memoryOf(s.pids)
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

// Requires tells whether the gateway is not ready without a server.
func (f *Servers) Requires(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.required[name]
}

// NotStarted returns the servers that are not started as that would lead back to this program, and why.
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

// Set makes the servers the given ones, and tells what that changed: "+ new", "- gone", "~ different".
// One that is as it was goes on undisturbed. Of a server that is different, calls in progress end where
// they began, and new ones go to the new one. When Set returns, calls find the new servers, and wait for
// those that are starting. Share is what the configuration says of all servers.
//
// Servers that cannot be started as they are written are failing with the faults as their reason. One
// that was running goes on as it was, until it can.
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
			was = f.start(s, older, "")
		case !was.Equal(s) || was.older != older || was.fault != "":
			changes = append(changes, "~ "+s.Name)
			was = f.start(s, older, "")
		}
		now = append(now, was)
	}
	for _, b := range bad {
		was := old[b.Name]
		delete(old, b.Name)
		switch text := b.Why.Error(); {
		case was == nil:
			changes = append(changes, "+ "+b.Name)
			was = f.start(config.Server{Name: b.Name}, older, text)
		case was.fault != "" && was.fault != text:
			was = f.start(config.Server{Name: b.Name}, older, text)
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
			s.end()
		}
	}
	f.list = now
	return changes
}

// start starts a server, which takes the place in the gateway of the one of its name. One with a
// fault is failing for that.
func (f *Servers) start(entry config.Server, older gateway.Share, fault string) *server {
	log := f.Env.NewLog(entry.Name, f.Said)
	ctx, end := context.WithCancel(f.ctx)
	s := &server{Server: entry, older: older, fault: fault, ready: make(chan struct{}), end: end, pids: map[int]bool{}}
	ready := sync.OnceFunc(func() { close(s.ready) })
	if f.Starting != nil {
		f.Starting(entry)
	}
	bound := entry.StartTimeout
	if f.StartTimeout != nil {
		bound = f.StartTimeout(entry)
	}
	src := gateway.Source{
		Name: entry.Name, Alone: f.Alone, Older: older, MaxClients: entry.Clients, Queue: entry.Queue,
		Idle: entry.Idle, StartTimeout: bound, Drain: leaveTime, Stderr: log.Last, Offers: offersOf(entry),
		Open: func(ctx context.Context) (gateway.Upstream, error) {
			ready() // the gateway opens what it has placed
			if fault != "" {
				return nil, errors.New(fault)
			}
			u, err := f.open(ctx, entry, log)
			if why := loopOf(err); why != "" {
				s.leftOut.Store(&why)
				end() // it is not tried again
				if f.LeftOut != nil {
					f.LeftOut(entry.Name, why)
				}
			}
			if err != nil {
				return nil, err
			}
			f.wg.Go(func() { s.count(u) })
			return u, nil
		},
	}
	src.Share, _ = gateway.ParseShare(entry.Share) // the configuration was checked
	f.wg.Go(func() {
		defer ready()
		defer end()
		if err := f.Gateway.Run(ctx, src); err != nil {
			f.note("%s: %v", entry.Name, err)
		}
	})
	return s
}

// open opens a connection whose questions go to the callers of the gateway. Those that belong to no call
// go to the functions of the client.
func (f *Servers) open(ctx context.Context, entry config.Server, log *Log) (*Upstream, error) {
	client := &mcp.Client{}
	if f.Client != nil {
		var err error
		if client, err = f.Client(entry); err != nil {
			return nil, err
		}
	}
	client.Limits.Mute = cmp.Or(client.Limits.Mute, muteCalls)
	gateway.Relay(ctx, client)
	return f.Env.Upstream(ctx, entry, client, log)
}

func (f *Servers) note(format string, args ...any) {
	if f.Env.Note != nil {
		f.Env.Note(fmt.Sprintf(format, args...))
	}
}

// offersOf returns what tells which tools of a server callers may know of; nil: all.
func offersOf(s config.Server) func(tool string) bool {
	if s.EnabledTools == nil && len(s.DisabledTools) == 0 {
		return nil
	}
	return s.Offers
}

// count counts the process of a connection, until that is over.
func (s *server) count(u *Upstream) {
	if u.pid == 0 {
		return
	}
	s.mu.Lock()
	s.pids[u.pid] = true
	s.mu.Unlock()
	<-u.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pids, u.pid)
}
