package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// leaveTime is for calls in progress with a server that was taken out of the
// configuration, or changed there.
const leaveTime = 30 * time.Second

// fleet is the servers that run behind a gateway. It owns a goroutine per server, which
// ends with close, or when the last call to a server that was taken out has ended.
type fleet struct {
	a    *app
	g    *gateway.Gateway
	left func(name, why string) // is told of each server that is left out
	ctx  context.Context        // of all servers
	stop context.CancelFunc
	wg   sync.WaitGroup

	share string        // of --share
	older gateway.Share // of servers before 2026-07-28 of which nobody says it
	alone bool          // there is one client, for all that is shared

	trusted sync.Map // bool by name: whether the server that is launched next is

	mu    sync.Mutex
	ships []*ship // in the order of the configuration; guarded by mu

	required map[string]bool // servers without which up is not ready; guarded by mu
}

// trusts tells whether the server that comes under a name is trusted.
func (f *fleet) trusts(name string) bool {
	trusted, _ := f.trusted.Load(name)
	return trusted == true
}

// ship is one server as it was configured.
type ship struct {
	config.Server
	older   gateway.Share // what the class of the server is if it is before 2026-07-28 and does not say it
	placed  chan struct{} // closed when calls find it
	end     context.CancelFunc
	fault   string                 // why it cannot be started; empty: it can
	leftOut atomic.Pointer[string] // why it is not started; nil: it is

	mu   sync.Mutex
	pids map[int]bool // of the guards of its processes; guarded by mu
}

// newFleet makes a fleet without servers. Share is that of --share. Known tells whether callers are
// authenticated.
func newFleet(a *app, g *gateway.Gateway, share string, known bool) *fleet {
	f := &fleet{a: a, g: g, share: share, older: gateway.PerSession}
	if known {
		f.older = gateway.PerPrincipal // one person, all windows
	}
	f.ctx, f.stop = context.WithCancel(context.WithoutCancel(a.ctx))
	return f
}

// close ends all servers and waits for their end.
func (f *fleet) close() {
	f.stop()
	f.wg.Wait()
}

// processes returns how many processes a server runs, and the memory that they have for
// themselves, in bytes; 0 if that is not known.
func (f *fleet) processes(name string) (n int, memory int64) {
	f.mu.Lock()
	i := slices.IndexFunc(f.ships, func(s *ship) bool { return s.Name == name })
	if i < 0 {
		f.mu.Unlock()
		return 0, 0
	}
	s := f.ships[i]
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pids), memoryOf(s.pids)
}

// names returns the names of the servers, in the order of the configuration.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, len(f.ships))
	for i, s := range f.ships {
		names[i] = s.Name
	}
	return names
}

// requires tells whether up is not ready without a server.
func (f *fleet) requires(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.required[name]
}

// leftOut returns the servers that are not started, and why.
func (f *fleet) leftOut() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := map[string]string{}
	for _, s := range f.ships {
		if why := s.leftOut.Load(); why != nil {
			left[s.Name] = *why
		}
	}
	return left
}

// set makes the fleet the given servers, and tells what that changed: "+ new",
// "- gone", "~ different". What is as it was goes on undisturbed. Of a server that is
// different, calls in progress end where they began, and new ones go to the new one.
// When set returns, calls find the new servers, and wait for those that are starting. Share is
// what the configuration says of all servers.
//
// Servers that cannot be started as they are written are failing with the faults as their reason. One
// that was running goes on as it was, until it can.
func (f *fleet) set(list []config.Server, bad []faulty, share string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	older, err := gateway.ParseShare(cmp.Or(f.share, share))
	if err != nil || older == gateway.ShareAuto {
		older = f.older
	}
	old := map[string]*ship{}
	for _, s := range f.ships {
		old[s.Name] = s
	}
	var changes []string
	required := map[string]bool{}
	for _, server := range list {
		required[server.Name] = server.Required
	}
	for _, b := range bad {
		required[b.name] = f.required[b.name]
	}
	f.required = required
	ships := make([]*ship, 0, len(list)+len(bad))
	for _, server := range list {
		was := old[server.Name]
		delete(old, server.Name)
		switch {
		case was == nil:
			changes = append(changes, "+ "+server.Name)
			was = f.launch(server, older, "")
		case !was.Equal(server) || was.older != older || was.fault != "":
			changes = append(changes, "~ "+server.Name)
			was = f.launch(server, older, "")
		}
		ships = append(ships, was)
	}
	for _, b := range bad {
		was := old[b.name]
		delete(old, b.name)
		switch text := b.why.Error(); {
		case was == nil:
			changes = append(changes, "+ "+b.name)
			was = f.launch(config.Server{Name: b.name}, older, text)
		case was.fault != "" && was.fault != text:
			was = f.launch(config.Server{Name: b.name}, older, text)
		}
		ships = append(ships, was)
	}
	for _, s := range ships {
		<-s.placed
	}
	for _, s := range f.ships {
		if old[s.Name] != nil {
			changes = append(changes, "- "+s.Name)
		}
		if !slices.Contains(ships, s) {
			s.end()
		}
	}
	f.ships = ships
	return changes
}

// launch starts a server, which takes the place in the gateway of the one of its name. One with a
// fault is failing for that.
func (f *fleet) launch(server config.Server, older gateway.Share, fault string) *ship {
	f.trusted.Store(server.Name, trustedServer(server))
	log := f.a.newServerLog(server.Name)
	ctx, end := context.WithCancel(f.ctx)
	s := &ship{Server: server, older: older, fault: fault, placed: make(chan struct{}), end: end, pids: map[int]bool{}}
	placed := sync.OnceFunc(func() { close(s.placed) })
	f.a.noteUnused(f.a.verb, server)
	bound, _ := f.a.startTimeout(server)
	src := gateway.Source{
		Name: server.Name, Alone: f.alone, Older: older, MaxClients: server.Clients, Queue: server.Queue,
		Idle: server.Idle, StartTimeout: bound, Drain: leaveTime, Stderr: log.last, Offers: offersOf(server),
		Open: func(ctx context.Context) (gateway.Upstream, error) {
			placed() // the gateway opens what it has placed
			if fault != "" {
				return nil, errors.New(fault)
			}
			u, err := f.a.openUpstream(ctx, server, log)
			if why := loopOf(err); why != "" {
				s.leftOut.Store(&why)
				end() // it is not tried again
				f.left(server.Name, why)
			}
			if err != nil {
				return nil, err
			}
			f.wg.Go(func() { s.count(u) })
			return u, nil
		},
	}
	src.Share, _ = gateway.ParseShare(server.Share) // the configuration was checked
	f.wg.Go(func() {
		defer placed()
		defer end()
		if err := f.g.Run(ctx, src); err != nil {
			f.a.talk.note("%s: %v", server.Name, err)
		}
	})
	return s
}

// offersOf returns what tells which tools of a server callers may know of; nil: all.
func offersOf(s config.Server) func(tool string) bool {
	if s.EnabledTools == nil && len(s.DisabledTools) == 0 {
		return nil
	}
	return s.Offers
}

// noteUnused names the settings of a server that hold in conversations alone.
func (a *app) noteUnused(verb string, s config.Server) {
	var unused []string
	if s.Group != "" {
		unused = append(unused, `"group"`)
	}
	if s.Cache > 0 {
		unused = append(unused, `"cache"`)
	}
	if len(unused) > 0 {
		a.talk.note("%s: %s does not use %s yet, conversations do", s.Name, verb, strings.Join(unused, " and "))
	}
}

// muteCalls is how many calls in a row may reach a limit while nothing is heard of a command, before
// it is started again.
const muteCalls = 3

// count counts the process of a connection, until that is over.
func (s *ship) count(u *upstream) {
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

// openUpstream opens a session whose questions go to the callers of the gateway.
// Those that belong to no call cannot be put to anybody.
func (a *app) openUpstream(ctx context.Context, s config.Server, log *serverLog) (*upstream, error) {
	client := &mcp.Client{Name: "patchbay", Title: "Patchbay", Version: Version, Limits: mcp.Limits{Mute: muteCalls}, Logger: a.logger().With("server", s.Name)}
	if err := a.answerQuestions(client); err != nil {
		return nil, err
	}
	gateway.Relay(ctx, client)
	return a.openPeer(ctx, s, client, log)
}

// upstream is a session behind a gateway.
type upstream struct {
	*peer
	a *app
	s config.Server // as it is written
}

// Handle is that of the session. Its errors hold no secrets, and tell when a login is over.
func (u *upstream) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := u.peer.Handle(ctx, req)
	return res, u.told(err)
}

// told is an error of the session as others are told it.
func (u *upstream) told(err error) error {
	if err == nil {
		return nil
	}
	var rpc *mcp.Error
	if errors.As(err, &rpc) {
		return err // of the server: data
	}
	if login := u.a.loginError(err, u.s); login != nil {
		if refused(err) && len(u.a.refusable(&u.s)) > 0 {
			u.a.unlearn(u.s)
			go u.Close() // bounded in time; another answer takes another connection
		}
		err = login
	}
	return u.a.secrets.Error(err)
}

// Err is that of the session, without secrets.
func (u *upstream) Err() error {
	if err := u.peer.Err(); err != nil {
		return u.a.secrets.Error(err)
	}
	return nil
}

// openPeer opens a session for others than the person of this run: those behind a gateway, or
// a model. Client is what answers questions; the rest of it is set here. No error of it, and
// nothing that log has of it, holds a secret: others are told both.
func (a *app) openPeer(ctx context.Context, s config.Server, client *mcp.Client, log *serverLog) (*upstream, error) {
	p, err := a.peerOf(ctx, s, client, log)
	if err != nil {
		return nil, a.secrets.Error(err)
	}
	return &upstream{p, a, s}, nil
}

func (a *app) peerOf(ctx context.Context, s config.Server, client *mcp.Client, log *serverLog) (*peer, error) {
	written := s
	s, err := a.resolve(s)
	if err != nil {
		return nil, err
	}
	if s.Command != "" {
		if s, err = a.withEnv(s); err != nil {
			return nil, err
		}
	}
	if err := a.outfit(client, s); err != nil {
		return nil, err
	}
	if on := client.OnFrame; on != nil {
		name := s.Name
		if n := log.opened.Add(1); n > 1 { // another client's connection, or one after a loss
			name = fmt.Sprintf("%s#%d", s.Name, n)
		}
		client.OnFrame = func(f trace.Frame) {
			f.Conn = name + "/" + f.Conn
			on(f)
		}
	}
	p, err := openServer(ctx, a.lineage, s, client, log)
	var open *openError
	if err == nil {
		return p, nil
	}
	if login := a.loginError(err, written); login != nil {
		a.unlearn(written)
		return nil, login
	}
	if errors.As(err, &open) {
		return nil, nameless{open}
	}
	return nil, err
}

// loginError tells an error that a login would change, or another answer to an input; nil: it is
// another. S is the server before its inputs were answered.
func (a *app) loginError(err error, s config.Server) error {
	switch {
	case refused(err) && len(a.refusable(&s)) > 0:
		return &gateway.LoginError{Do: a.byName("ping", s, "-s"), Err: err}
	case a.wantsLogin(err, &s):
		return &gateway.LoginError{Do: a.byName("login", s), Err: err}
	}
	return nil
}

// byName words a command about a server of the configuration.
func (a *app) byName(verb string, s config.Server, flag ...string) string {
	words := append([]string{"patchbay", verb}, append(flag, s.Name)...)
	if a.Config != "" && s.Source != "" {
		words = append(words, "--config", fileOf(s))
	}
	return shell(words)
}

// nameless is an openError where the name of the server stands already.
type nameless struct{ *openError }

func (e nameless) Error() string { return e.reason() }

// serverLog keeps the end of what a server says on its standard error, over all its
// connections. It may be used by several goroutines.
type serverLog struct {
	name    string
	to      *talk // gets all of it, nil: nobody does
	secrets *secrets.Known

	opened atomic.Int64 // connections to the server so far

	mu   sync.Mutex
	tail []byte      // guarded by mu
	part []byte      // of a line that is not complete; guarded by mu
	keys trace.Lines // of what goes to a terminal; guarded by mu
}

func (a *app) newServerLog(name string) *serverLog {
	log := &serverLog{name: name, secrets: a.secrets}
	if a.Verbose {
		log.to = a.talk
	}
	return log
}

// maxSaid bounds what is kept of what a server says, and the length of a line.
const maxSaid = 4 << 10

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, p[max(0, len(p)-maxSaid):]...)
	l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-maxSaid):]...)
	if l.to == nil {
		return len(p), nil
	}
	l.part = append(l.part, p...)
	for {
		i := slices.Index(l.part, '\n')
		if i < 0 && len(l.part) <= maxSaid {
			return len(p), nil
		}
		if i < 0 {
			i = maxSaid
		}
		line := strings.TrimRight(string(l.part[:i]), "\r\n")
		if l.keys.Secret(line) {
			line = trace.Redacted
		}
		l.to.always(visible(l.name + ": " + line))
		l.part = append(l.part[:0], l.part[min(i+1, len(l.part)):]...)
	}
}

// last returns the end of what was said, without secrets.
func (l *serverLog) last() string { return l.secrets.Text(strings.Join(l.lines(8), "\n")) }

// lines returns the last n lines of what was said, not more than maxSaid bytes.
func (l *serverLog) lines(n int) []string {
	l.mu.Lock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.tail), "�"))
	l.mu.Unlock()
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}
