// Package launch opens the servers that an mcp.json names: one as a session ([Env.Open],
// [Env.OpenNamed]), or all of a file behind a gateway, following changes of the file ([Servers]).
//
//	env := &launch.Env{}
//	session, err := env.OpenNamed(ctx, "mcp.json", "db", &mcp.Client{Name: "app", Version: "1"}, os.Stderr)
//
// An entry is a command, a URL, or a server that is built into the program ([Env.Builtin]). A
// session is an [mcp.Handler]: it may be called, served, or put behind middleware.
//
// # Guarantees
//
//   - A command is started only as the entry has it, never through a shell. It ends with the
//     session, together with all processes it has started, however this program ends. On Unix a
//     guard does that: this program again, with the hidden first argument "__guard", which package
//     launch handles before main.
//   - A command gets the variables of its entry and a few that every program needs, unless the
//     entry says "inheritEnv". It also gets PATCHBAY_PARENT, so that a command that leads back to
//     this program is not started again.
//   - Credentials go only to the address they are for: stored logins over https or loopback, and to an
//     entry without an Authorization of its own.
//   - A command that is over "memory" or "processes" of its entry is ended with all its processes within
//     seconds, and the error says why. This works on Linux; elsewhere Env.Note gets a warning.
//   - Secrets of an entry are given to [Env.Redact] before they are used.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/bounds"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Env configures how servers are opened. The zero value opens commands and URLs. It must not be
// copied after its first use; it may then be used by several goroutines.
type Env struct {
	// Ask answers an input of mcp.json for a server. Nil: the environment variable
	// [config.Input.EnvName], else the default.
	Ask func(s config.Server, in config.Input) (string, error)

	// Amend changes an entry after its inputs have been answered. Nil leaves it as it is. It is
	// called more than once for one session, and then gets its own result.
	Amend func(s config.Server) (config.Server, error)

	// Note is called with a line that a person should read. Nil drops it.
	Note func(text string)

	// Vault holds the logins for servers, as *[vault.Vault] does. Stored logins are sent and
	// refreshed; Env does not log in. If nil, none are sent.
	//
	// [vault.Vault]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/auth/vault
	Vault login.Store

	// Redact learns secrets as they become known, and removes them from errors and logs; a
	// [trace.Redactor] does that. If nil, errors are not redacted.
	Redact interface {
		Learn(secrets ...string)
		Text(text string) string
	}

	// Builtin creates a server that is built into the program. Its errors are returned unchanged.
	// If nil, there are none.
	Builtin func(name string, args []string, log *slog.Logger) (mcp.Handler, error)

	// Login returns the action, such as a command to run, for an error that a login would fix;
	// empty: it is another error. If reopen is true, the connection is closed, and the next one is
	// opened with new answers. If nil, no error is treated as one that needs a login.
	Login func(s config.Server, err error) (do string, reopen bool)

	// OnLogin is called for each login at a server that is done, refused or ended, for an audit log. It
	// must not block. Nil: nothing is called.
	OnLogin func(s config.Server, e login.Event)

	origin  sync.Once
	lineage *lineage

	mu         sync.Mutex
	transports map[way]*login.Transport // guarded by mu
	noted      map[string]bool          // keys of noteOnce; guarded by mu
}

// Resolve replaces the inputs of an entry with their answers, and gives its secrets to Redact. It
// leaves an entry that is resolved unchanged.
func (e *Env) Resolve(s config.Server) (config.Server, error) {
	ask := e.Ask
	if ask == nil {
		ask = func(_ config.Server, in config.Input) (string, error) { return fromEnvironment(in) }
	}
	resolved, err := s.Resolve(func(in config.Input) (string, error) { return ask(s, in) })
	if err != nil {
		return resolved, err
	}
	if e.Redact != nil {
		e.Redact.Learn(secrets.Of(resolved)...)
		if s.InheritEnv {
			for _, v := range os.Environ() {
				name, value, _ := strings.Cut(v, "=")
				e.Redact.Learn(secrets.Of(config.Server{Env: map[string]string{name: value}})...)
			}
		}
	}
	if e.Amend != nil {
		return e.Amend(resolved)
	}
	return resolved, nil
}

func fromEnvironment(in config.Input) (string, error) {
	if text, ok := os.LookupEnv(in.EnvName()); ok {
		return text, nil
	}
	if in.Default == "" {
		return "", errors.New("set " + in.EnvName())
	}
	return in.Default, nil
}

// Session is an open session with a server, with the resources that end with it.
type Session struct {
	*mcp.Session
	after    func() // nil: nothing else ends
	handOver func() // leaves a command to its guard; nil: there is none
	command  string // command that was started, or "" if none was
	pid      int    // of the guard of the command
	bound    *bounds.Bound
}

// Open opens a session with the server of an entry: a built-in one runs in this process, a command
// under a guard. The client is used for this session only: headers, TLS settings and limits of the
// entry are added to it; the client's own settings take precedence. Nil is a client without
// functions. The standard error of a command, or the log of a built-in server, goes to stderr; nil
// drops it. The context bounds the opening only. When it ends, Open waits until the command has
// ended too: at most 4 seconds, after which a command that ignores the request to terminate has
// been killed.
//
// The error is an [*Error] that names the server, unless an input of the entry has no answer or
// Builtin fails. It wraps [exec.ErrNotFound] or [fs.ErrNotExist] if the command does not exist.
func (e *Env) Open(ctx context.Context, s config.Server, client *mcp.Client, stderr io.Writer) (*Session, error) {
	s, err := e.Resolve(s)
	if err != nil {
		return nil, err
	}
	if stderr == nil {
		stderr = io.Discard
	}
	if client == nil {
		client = &mcp.Client{}
	}
	if client.Limits.CallTimeout == 0 {
		client.Limits.CallTimeout = s.CallTimeout
	}
	if client.Limits.CallLimit == 0 {
		client.Limits.CallLimit = s.CallLimit
	}
	var open *Session
	switch {
	case s.Builtin != "":
		srv, refused := e.builtin(s, stderr)
		if refused != nil {
			return nil, refused
		}
		open, err = serveBuiltin(ctx, srv, client)
	case s.URL != "":
		open, err = e.dial(ctx, s, client)
	default:
		open, err = e.start(ctx, s, client, stderr)
	}
	if err != nil {
		return nil, &Error{s.Name, err}
	}
	return open, nil
}

// OpenNamed opens a session with the named server of a configuration file, as Open does. Faults of
// the file in other servers are ignored.
func (e *Env) OpenNamed(ctx context.Context, path, name string, client *mcp.Client, stderr io.Writer) (*Session, error) {
	file, faults, err := config.Inspect(path, nil)
	if err != nil {
		return nil, err
	}
	faults = slices.DeleteFunc(faults, func(p config.Problem) bool { return p.Model != "" || p.Server != "" && p.Server != name })
	if len(faults) > 0 {
		return nil, faults
	}
	var names []string
	for _, s := range file.Servers {
		switch {
		case s.Name == name && s.Disabled:
			return nil, fmt.Errorf("%s: %q is disabled", s.Source, name)
		case s.Name == name:
			return e.Open(ctx, s, client, stderr)
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%s has no server %q; it has %s", path, name, strings.Join(names, ", "))
}

func (e *Env) dial(ctx context.Context, s config.Server, client *mcp.Client) (*Session, error) {
	header := http.Header{}
	for k, v := range s.Headers {
		header.Set(k, v)
	}
	if err := e.carry(client, s); err != nil {
		return nil, err
	}
	for k, v := range client.Header { // the client's take precedence
		header[k] = v
	}
	client.Header = header
	session, err := client.Dial(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	return &Session{Session: session}, nil
}

func (e *Env) builtin(s config.Server, stderr io.Writer) (*mcp.Server, error) {
	if e.Builtin == nil {
		return nil, &Error{s.Name, errors.New("this program has no built-in servers")}
	}
	h, err := e.Builtin(s.Builtin, s.Args, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return nil, err
	}
	if srv, ok := h.(*mcp.Server); ok {
		return srv, nil
	}
	return &mcp.Server{Name: s.Builtin, Version: "1", Handler: h}, nil
}

// serveBuiltin connects a client to a server of this process by a pipe: its frames can be recorded, a client gets the
// revision that it asks for, and the end of the session cuts off calls whose handlers ignore their context
// (docs/architecture.md has what that costs).
func serveBuiltin(ctx context.Context, srv *mcp.Server, client *mcp.Client) (*Session, error) {
	near, far := jsonrpc.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(context.WithoutCancel(ctx), far) })
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
	}
	session, err := client.Connect(ctx, wire{near})
	if err != nil {
		stop()
		return nil, err
	}
	return &Session{Session: session, after: stop}, nil
}

// wire is an open connection as a Transport.
type wire struct{ conn jsonrpc.Conn }

func (w wire) Connect(context.Context) (jsonrpc.Conn, error) { return w.conn, nil }

// Err returns the session's error. It names the command instead of its guard. If the command was ended
// because it was over a limit of its entry, the error says so.
func (s *Session) Err() error { return aboutCommand(s.Session.Err(), s.command, s.bound) }

// Close ends the session, and the server if it runs in this process. It takes at most 4 seconds, and 2
// more for a built-in server.
func (s *Session) Close() error {
	err := s.Session.Close()
	if s.after != nil {
		s.after()
	}
	return err
}

// LeaveGrace is how long Leave waits for a server. Some servers keep timers running and never exit
// at the end of their input.
const LeaveGrace = 200 * time.Millisecond

// Leave closes the session when the program is about to exit. It waits for at most LeaveGrace: a
// command that is still running then is left to the guard, to the end of this process, or, on
// Windows, to the job object.
func (s *Session) Leave() {
	closed := make(chan struct{})
	go func() { // ends at the latest with the program
		defer close(closed)
		s.Close()
	}()
	select {
	case <-closed:
	case <-time.After(LeaveGrace):
		s.HandOver()
	}
}

// HandOver leaves a command that is still running to its guard when this program is about to exit.
// The guard gives it the time that the specification allows. After the end of the session HandOver
// does nothing.
func (s *Session) HandOver() {
	if s.handOver == nil {
		return
	}
	select {
	case <-s.Done():
	default:
		s.handOver()
	}
}
