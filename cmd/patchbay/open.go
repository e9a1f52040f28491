package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/guard"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
	"github.com/patchbay-dev/patchbay/trace"
)

// peer is an open session with a server, and what ends together with it.
type peer struct {
	*mcp.Session
	after    func() // nil: nothing
	handOver func() // leaves a command to its guard; nil: there is none
	command  string // that was started, empty if none was
	pid      int    // of the guard of the command
}

// Err is that of the session, about the command and not its guard.
func (p *peer) Err() error { return aboutCommand(p.Session.Err(), p.command) }

// aboutCommand names in the error of a process the command that a person wrote.
func aboutCommand(err error, command string) error {
	var exit *mcp.ExitError
	if command != "" && errors.As(err, &exit) {
		exit.Command = command
	}
	return err
}

// Close ends the session, and the server if it runs in this process. It takes at
// most 4 seconds, and 2 more for a built-in server.
func (p *peer) Close() error {
	err := p.Session.Close()
	if p.after != nil {
		p.after()
	}
	return err
}

// leaveGrace is how long a program that has printed its result waits for the server. Some
// servers keep timers running and never exit at the end of their input.
const leaveGrace = 200 * time.Millisecond

// leave closes the session when the program is about to end. It waits for at most
// leaveGrace: what has not ended by then is left to the guard, to the end of this process, or,
// on Windows, to the job object.
func (p *peer) leave() {
	closed := make(chan struct{})
	go func() { // ends with the program at the latest
		defer close(closed)
		p.Close()
	}()
	select {
	case <-closed:
	case <-time.After(leaveGrace):
		if p.handOver != nil {
			p.handOver()
		}
	}
}

// openServer opens a session with a server of a configuration: a built-in one runs
// in this process, a command under a guard. Client is used for this server alone:
// the server's headers are added to it. Stderr gets what a command, or the log of a
// built-in server, says. Ctx bounds the opening alone. L is what no command may be started of.
//
// An error is an [*openError], or a fault of usage.
func openServer(ctx context.Context, l *lineage, s config.Server, client *mcp.Client, stderr io.Writer) (*peer, error) {
	var p *peer
	var err error
	switch {
	case s.Builtin != "":
		p, err = openBuiltin(ctx, s, client, stderr)
	case s.URL != "":
		header := http.Header{}
		for k, v := range s.Headers {
			header.Set(k, v)
		}
		for k, v := range client.Header { // those of the command line win
			header[k] = v
		}
		client.Header = header
		var session *mcp.Session
		if session, err = client.Dial(ctx, s.URL); err == nil {
			p = &peer{Session: session}
		}
	default:
		p, err = openCommand(ctx, l, s, client, stderr)
	}
	var f *fault
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &f):
		return nil, err
	}
	return nil, &openError{s.Name, err}
}

func openBuiltin(ctx context.Context, s config.Server, client *mcp.Client, stderr io.Writer) (*peer, error) {
	srv, err := newBuiltin(s.Builtin, s.Args, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return nil, err
	}
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
	return &peer{Session: session, after: stop}, nil
}

// wire is an open connection as a Transport.
type wire struct{ conn mcp.Conn }

func (w wire) Connect(context.Context) (mcp.Conn, error) { return w.conn, nil }

func openCommand(ctx context.Context, l *lineage, s config.Server, client *mcp.Client, stderr io.Writer) (*peer, error) {
	if err := l.refuse(s); err != nil {
		return nil, err
	}
	if err := checkCommand(s); err != nil {
		return nil, err
	}
	cmd, leash, err := guard.Command(s.Command, s.Args)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Stderr = s.Dir, stderr
	cmd.Env = append(environment(s), l.env(s))
	if on := client.OnFrame; on != nil {
		client.OnFrame = func(f trace.Frame) {
			if f.Kind == trace.KindStart { // what a person wrote, and not its guard
				f.Args = append([]string{s.Command}, s.Args...)
			}
			on(f)
		}
	}
	session, err := client.Start(ctx, cmd)
	if err != nil {
		leash.Release()
		return nil, aboutCommand(err, s.Command)
	}
	return &peer{session, leash.Release, leash.HandOver, s.Command, cmd.Process.Pid}, nil
}

// checkCommand tells a command that is not there from a server that ends at once.
func checkCommand(s config.Server) error {
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("the folder to start in, %q, is not there", s.Dir)
		}
	}
	name := s.Command
	if _, ok := s.Env["PATH"]; ok && !strings.ContainsRune(name, filepath.Separator) {
		return nil // found, or not, by the guard
	}
	if s.Dir != "" && strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		name = filepath.Join(s.Dir, name)
	}
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		if words := strings.Fields(s.Command); len(words) > 1 {
			list, _ := jsonx.Marshal(words[1:])
			return fmt.Errorf("the command %q is not there or cannot be run; it has a space: write \"command\": %q, \"args\": %s", s.Command, words[0], list)
		}
		return fmt.Errorf("the command %q is not there or cannot be run", s.Command)
	} else if err != nil {
		return fmt.Errorf("%q is in the current folder; write %q to run it", s.Command, "."+string(filepath.Separator)+s.Command)
	}
	return checkSelf(s.CommandLine())
}

// checkSelf refuses a command line that has this program serve HTTP: whoever starts a command talks
// to it over stdio, and would wait for an answer that never comes.
func checkSelf(line []string) error {
	at := slices.IndexFunc(line, func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimSuffix(strings.ToLower(filepath.Base(word)), ".exe"), "@")
		return name == "patchbay"
	})
	if at < 0 || at+1 >= len(line) {
		return nil
	}
	verb, rest := line[at+1], line[at+2:]
	address := ""
	args := slices.Clone(line[1 : at+2])
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		value, joined := strings.CutPrefix(rest[i], "--http=")
		switch {
		case rest[i] == "--stdio":
			return nil
		case joined:
			address = value
		case rest[i] == "--http" && i+1 < len(rest):
			i++
			address = rest[i]
		default:
			args = append(args, rest[i])
		}
	}
	switch {
	case verb == "up":
		args, address = slices.Insert(args, at+1, "--stdio"), orName(address, "127.0.0.1:7420")
	case verb == "serve" && address != "":
	default:
		return nil
	}
	if strings.HasSuffix(address, ":0") { // it would be another each time
		address = "127.0.0.1:7420"
	}
	text, err := jsonx.Marshal(args)
	if err != nil {
		return err
	}
	return fmt.Errorf(`it is a patchbay that serves HTTP, and a command is talked to over stdio: write "args": %s, or "url": "http://%s%s" instead of the command`, text, address, listen.Path)
}

// openError says that there is no session with a server.
type openError struct {
	server string
	err    error
}

func (e *openError) Error() string { return "cannot reach " + e.server + ": " + e.reason() }

// reason leaves out of the error what names the server again.
func (e *openError) reason() string {
	var dns *net.DNSError
	var op *net.OpError
	var status *mcp.HTTPError
	switch {
	case errors.As(e.err, &dns):
		return plainNetwork(dns)
	case errors.As(e.err, &op):
		return plainNetwork(op)
	case speaksPlain(e.err):
		return "it speaks http, not https"
	case errors.As(e.err, &status):
		text := fmt.Sprintf("HTTP %d %s", status.Status, http.StatusText(status.Status))
		switch body := oneLine(status.Body); {
		case isPage(status):
			return "it answers, but is not an MCP server: a web page (" + text + ")"
		case body != "":
			text += ": " + clip(body)
		}
		return text
	}
	if inner := errors.Unwrap(e.err); inner != nil {
		return inner.Error()
	}
	return e.err.Error()
}

func (e *openError) Unwrap() error { return e.err }

// newBuiltin makes a built-in server.
func newBuiltin(name string, args []string, logger *slog.Logger) (*mcp.Server, error) {
	srv, err := servers.New(name, args, logger)
	if err != nil {
		f := usagef("%w", err)
		if slices.Contains(servers.Names(), name) {
			f.hint("patchbay help serve " + name)
		}
		return nil, f
	}
	return srv, nil
}

// open opens the session that the command line names. It is left when the program
// ends, after the output has been flushed.
func (a *app) open() (*peer, error) { return a.openWith(func(*mcp.Client) {}) }

// openWith opens the session with a client that was changed. What the server refuses, a person
// is asked for again.
func (a *app) openWith(change func(*mcp.Client)) (*peer, error) {
	s, err := a.target()
	if err != nil {
		return nil, err
	}
	p, err := a.openOnce(s, change)
	for asked := 0; asked < maxAsked && refused(err) && a.askAgain(s); asked++ {
		p, err = a.openOnce(s, change)
	}
	if a.wantsLogin(err, a.server) && a.offerLogin(*a.server) {
		p, err = a.openOnce(s, change)
	}
	if err != nil {
		return nil, err
	}
	leave := p.leave
	if a.Trace != "" { // how the server ends belongs to the recording
		leave = func() { p.Close() }
	}
	a.atEnd = append(a.atEnd, leave)
	return p, nil
}

// maxAsked bounds how often a person is asked for what the server then refuses.
const maxAsked = 3

// openOnce opens a session with a server whose inputs are not resolved yet, and makes it the
// server of this run.
func (a *app) openOnce(s config.Server, change func(*mcp.Client)) (*peer, error) {
	written := s
	s, err := a.resolve(s)
	if err != nil {
		return nil, err
	}
	if s, err = a.withEnv(s); err != nil {
		return nil, err
	}
	a.server, a.written = &s, &written
	client, err := a.newClient(s)
	if err != nil {
		return nil, err
	}
	change(client)
	ctx, cancel := a.startContext(a.ctx, s)
	defer cancel()
	said := newChildLog(a.talk, a.Verbose)
	defer said.opened()
	p, err := openServer(ctx, a.lineage, s, client, said)
	var open *openError
	if errors.As(err, &open) {
		open.server = a.serverName()
	}
	return p, err
}

// refused tells an error that other credentials would change.
func refused(err error) bool {
	var status *mcp.HTTPError
	return errors.As(err, &status) && status.Status == http.StatusUnauthorized
}

// defaultTimeout is --timeout if it is not on the command line. Then what the
// server's own settings say goes before it.
const defaultTimeout = time.Minute

// startContext bounds the opening of a session.
func (a *app) startContext(ctx context.Context, s config.Server) (context.Context, context.CancelFunc) {
	d, from := a.startTimeout(s)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer in %v (%s): %w", d, from, context.DeadlineExceeded))
}

// startTimeout is how long a server may take to start, and what says so.
func (a *app) startTimeout(s config.Server) (d time.Duration, from string) {
	d, from = a.Timeout, "--timeout"
	if s.StartTimeout != 0 && !a.saysTimeout() {
		d, from = s.StartTimeout, `"startTimeout"`
	}
	if d <= 0 {
		d = math.MaxInt64 // it is not bounded
	}
	return d, from
}

// withEnv adds the variables of --env to those of a command.
func (a *app) withEnv(s config.Server) (config.Server, error) {
	if len(a.Env) == 0 {
		return s, nil
	}
	if s.Command == "" {
		return s, usagef("--env is for servers that are started by a command; %s is not", s.Name)
	}
	s.Env = maps.Clone(s.Env)
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	for _, e := range a.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.ContainsRune(e, 0) {
			return s, usagef("--env must be NAME=VALUE").hint("--env LOG_LEVEL=debug") // the value may be a secret
		}
		s.Env[name] = value
	}
	return s, nil
}

// wireOf words how a server is reached.
func wireOf(s *config.Server) string {
	switch {
	case s.Builtin != "":
		return "memory"
	case s.URL != "":
		return "HTTP"
	}
	return "stdio"
}

// newClient makes a client of the global flags, for one server.
func (a *app) newClient(s config.Server) (*mcp.Client, error) {
	c := &mcp.Client{Name: "patchbay", Title: "Patchbay", Version: Version}
	if err := a.outfit(c, s); err != nil {
		return nil, err
	}
	if err := a.answerQuestions(c); err != nil {
		return nil, err
	}
	return c, nil
}

// callTimeout is how long a call of a server may be silent; negative: without a bound; 0: neither
// the command line nor the configuration says.
func (a *app) callTimeout(s config.Server) time.Duration {
	switch {
	case a.Timeout == 0:
		return -1
	case !a.saysTimeout():
		return s.CallTimeout
	}
	return a.Timeout
}

// saysTimeout tells whether --timeout is on the command line.
func (a *app) saysTimeout() bool { return a.timed || a.Timeout != defaultTimeout }

// outfit gives a client what the way to a server takes, by the global flags. Its answers to
// questions are untouched.
func (a *app) outfit(c *mcp.Client, s config.Server) (err error) {
	c.Limits.CallTimeout, c.Limits.CallLimit, c.Eras = a.callTimeout(s), s.CallLimit, &a.eras
	if c.Header == nil {
		c.Header = http.Header{}
	}
	for _, h := range a.Header {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return usagef("--header must be NAME: VALUE").hint("--header 'Authorization: Bearer TOKEN'") // the value may be a secret
		}
		c.Header.Add(name, strings.TrimSpace(value))
	}
	if a.Revision != "" {
		r := mcp.Revision(a.Revision)
		if !slices.Contains(mcp.Revisions(), r) {
			return usagef("no revision %q; use one of %s", a.Revision, join(mcp.Revisions(), ", "))
		}
		c.Revisions = []mcp.Revision{r}
	}
	if err := a.carry(c, a.withTLS(s)); err != nil {
		return &openError{s.Name, fmt.Errorf("TLS: %w", err)}
	}
	c.OnFrame, err = a.recorder()
	return err
}

// join joins texts of any string type.
func join[T ~string](list []T, sep string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, sep)
}

// again words this command once more, with all that was typed and more flags behind it.
func (a *app) again(flags ...string) string {
	words := slices.Concat([]string{"patchbay", a.verb}, a.sub, a.words, a.serverFlags(), a.typedFlags(nil, flags))
	return a.withCommand(append(words, flags...))
}

// other words a command of another verb on the same server, which is reached in the same way.
func (a *app) other(words ...string) string {
	words = slices.Concat([]string{"patchbay"}, words, a.serverFlags(), a.typedFlags(wayFlags, nil))
	return a.withCommand(words)
}

// beside words a command about the same configuration that names no server by a flag.
func (a *app) beside(words ...string) string {
	return shell(slices.Concat([]string{"patchbay"}, words, a.typedFlags([]string{"--config"}, nil)))
}

func (a *app) withCommand(words []string) string {
	if a.dashed {
		words = append(append(words, "--"), a.command...)
	}
	return shell(words)
}

// wayFlags are the flags that a server cannot be found or reached without.
var wayFlags = []string{"--config", "--revision", "--env", "--header", "--server-ca", "--client-cert", "--client-key"}

// repeatable flags keep what was typed beside what comes anew. Of others that may be repeated
// the hint replaces what was wrong.
var repeatable = []string{"--root"}

// typedFlags are the flags of this command line but those that name servers and those that come
// anew; of only, if it is not nil. A secret stands as the variable $TOKEN.
func (a *app) typedFlags(only, anew []string) (out []string) {
	for _, f := range a.flags {
		name, value, joined := strings.Cut(f, "=")
		if !strings.HasPrefix(f, "--") { // -mNAME, -qv
			name, value, joined = f[:2], f[2:], false
		}
		switch {
		case name == "-s" || name == "--server", only != nil && !slices.Contains(only, name):
			continue
		case name == "--header":
			key, _, ok := strings.Cut(value, ":")
			if again := func(s string) bool { return strings.HasPrefix(strings.ToLower(s), strings.ToLower(key)+":") }; !ok || slices.ContainsFunc(anew, again) {
				continue
			}
			if secrets.Header(strings.TrimSpace(key)) {
				value = key + ": $TOKEN"
			}
		case name == "--env":
			key, _, ok := strings.Cut(value, "=")
			if !ok || slices.ContainsFunc(anew, func(s string) bool { return strings.HasPrefix(s, key+"=") }) {
				continue
			}
			if secrets.Name(key) {
				value = key + "=$TOKEN"
			}
		case slices.Contains(repeatable, name):
		case slices.Contains(anew, name), name == "-m" && slices.Contains(anew, "--model"):
			continue
		}
		switch {
		case joined, value != "" && name != "-v" && name != "-q":
			out = append(out, name, value)
		default:
			out = append(out, f)
		}
	}
	return out
}

// serverFlags are the flags that name the servers of this run.
func (a *app) serverFlags() (flags []string) {
	if a.Server != "" && len(a.Servers) < 2 { // it may be of another word
		return []string{"-s", a.Server}
	}
	for _, s := range a.Servers {
		flags = append(flags, "-s", s)
	}
	return flags
}

// shell joins words so that a shell takes them apart again.
func shell(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		switch {
		case strings.Contains(w, "$TOKEN") && !strings.ContainsAny(strings.ReplaceAll(w, "$TOKEN", ""), "\"`$\\!"): // to be filled in by the shell
			w = `"` + w + `"`
		case w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;<>()*?[]{}!#~\\"):
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// networkFault tells an address that does not answer from other faults.
func networkFault(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}

// reachHint says what to try when a server cannot be reached.
func (a *app) reachHint(err error) string {
	var dns *net.DNSError
	var status *mcp.HTTPError
	var unknown x509.UnknownAuthorityError
	switch {
	case a.server == nil:
		return ""
	case errors.As(err, &unknown):
		return a.again("--server-ca", "FILE") + " names the authority to trust"
	case a.server.URL != "" && errors.As(err, &dns):
		return "check the name of the host in " + a.server.URL
	case a.server.URL != "" && otherScheme(a.server.URL, err) != "":
		other := otherScheme(a.server.URL, err)
		if a.Server == a.server.URL {
			return a.withServer(other)
		}
		return "it answers at " + other
	case a.server.URL != "" && errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed):
		if u, err := url.Parse(a.server.URL); err == nil && u.Path != listen.Path {
			u.Path, u.RawQuery, u.Fragment = listen.Path, "", ""
			if a.Server == a.server.URL {
				return a.withServer(u.String())
			}
			return "many servers are at " + u.String()
		}
	case strings.HasPrefix(a.server.URL, "http") && networkFault(err):
		return "is it running? try: curl -i " + shell([]string{a.server.URL})
	case a.server.Command != "" && checkCommand(*a.server) != nil:
		return "" // the error says what is wrong with it
	case a.server.Command != "":
		return "run it by hand to see what it says: " + shell(a.server.CommandLine())
	}
	return ""
}

// childLog holds back what a child says on its standard error: most servers greet
// there, which nobody wants to see. If the opening takes long, it may say why, so
// that it is shown then.
type childLog struct {
	to    *talk
	mu    sync.Mutex
	state int    // guarded by mu
	held  []byte // at most maxHeld; guarded by mu
	timer *time.Timer
}

const (
	holding = iota
	passing
	dropping
)

const (
	slowOpening = 5 * time.Second
	maxHeld     = 16 << 10
)

func newChildLog(to *talk, all bool) *childLog {
	l := &childLog{to: to}
	if all {
		l.state = passing
		return l
	}
	l.timer = time.AfterFunc(slowOpening, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.state == holding {
			l.state = passing
			if len(l.held) > 0 {
				l.to.Write(l.held)
			}
			l.held = nil
		}
	})
	return l
}

func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state == passing:
		l.to.Write(p)
	case l.state == holding && len(l.held)+len(p) <= maxHeld:
		l.held = append(l.held, p...)
	}
	return len(p), nil
}

// opened says that the session is open, or is not going to be.
func (l *childLog) opened() {
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.held = dropping, nil
}
