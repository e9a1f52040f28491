package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
)

// newEnv returns the environment of the servers that this run opens.
func (a *app) newEnv() *launch.Env {
	e := &launch.Env{
		Ask: a.answers.Answer,
		Amend: func(s config.Server) (config.Server, error) {
			if s.Command == "" {
				return a.withTLS(s), nil
			}
			return a.withEnv(s)
		},
		Note:   func(text string) { a.talk.Note("%s", text) },
		Redact: a.secrets,
		Builtin: func(name string, args []string, log *slog.Logger) (mcp.Handler, error) {
			return newBuiltin(name, args, log)
		},
		Login: a.loginFor,
	}
	if v, err := vault.Open("", nil); err == nil { // else nobody can log in
		e.Vault = a.secrets.Store(v)
	}
	return e
}

// newBuiltin returns a new built-in server.
func newBuiltin(name string, args []string, logger *slog.Logger) (*mcp.Server, error) {
	srv, err := servers.New(name, args, logger)
	if err != nil {
		f := usagef("%w", err)
		if slices.Contains(servers.Names(), name) {
			f.Hint("patchbay help serve " + name)
		}
		return nil, f
	}
	return srv, nil
}

// open opens the session that the command line names. It is left when the program ends, after the
// output is flushed.
func (a *app) open() (*launch.Session, error) { return a.openWith(func(*mcp.Client) {}) }

// openWith is open with a client that change has adjusted. If the server refuses the answers to
// inputs, a person is asked again.
func (a *app) openWith(change func(*mcp.Client)) (*launch.Session, error) {
	s, err := a.target()
	if err != nil {
		return nil, err
	}
	p, err := a.openOnce(s, change)
	for asked := 0; asked < maxAsked && launch.Refused(err) && a.answers.AskAgain(s); asked++ {
		p, err = a.openOnce(s, change)
	}
	if a.wantsLogin(err, a.server) && a.offerLogin(*a.server) {
		p, err = a.openOnce(s, change)
	}
	if err != nil {
		return nil, err
	}
	leave := p.Leave
	if a.Trace != "" { // the end of the server belongs to the recording
		leave = func() { p.Close() }
	}
	a.atEnd = append(a.atEnd, leave)
	return p, nil
}

// maxAsked bounds the questions for answers that the server refuses.
const maxAsked = 3

// openOnce resolves the inputs of a server, opens a session, and makes the server that of this run.
func (a *app) openOnce(s config.Server, change func(*mcp.Client)) (*launch.Session, error) {
	written := s
	if _, err := a.withEnv(s); err != nil { // before a question
		return nil, err
	}
	s, err := a.env.Resolve(s)
	if err != nil {
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
	said := terminal.NewServerLog(a.talk, a.Verbose)
	defer said.Opened()
	p, err := a.env.Open(ctx, s, client, said)
	var open *launch.Error
	if errors.As(err, &open) {
		open.Server = a.serverName()
	}
	return p, err
}

// defaultTimeout is --timeout without the flag. Then the server's own settings override it.
const defaultTimeout = time.Minute

// startContext bounds the opening of a session.
func (a *app) startContext(ctx context.Context, s config.Server) (context.Context, context.CancelFunc) {
	d, from := a.startTimeout(s)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer in %v (%s): %w", d, from, context.DeadlineExceeded))
}

// startTimeout returns the time that a server may take to start, and the setting that it comes
// from.
func (a *app) startTimeout(s config.Server) (d time.Duration, from string) {
	d, from = a.Timeout, "--timeout"
	if s.StartTimeout != 0 && !a.saysTimeout() {
		d, from = s.StartTimeout, `"startTimeout"`
	}
	if d <= 0 {
		d = math.MaxInt64 // no bound
	}
	return d, from
}

// withEnv adds the variables of --env to those of a command.
func (a *app) withEnv(s config.Server) (config.Server, error) {
	if len(a.Env) == 0 {
		return s, nil
	}
	if s.Command == "" {
		return s, usagef("--env applies only to a command; %s is not one", s.Name)
	}
	s.Env = maps.Clone(s.Env)
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	for _, e := range a.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.ContainsRune(e, 0) {
			return s, usagef("--env must be NAME=VALUE").Hint("--env LOG_LEVEL=debug") // the value may be a secret
		}
		s.Env[name] = value
	}
	return s, nil
}

// wireOf describes the transport of a server.
func wireOf(s *config.Server) string {
	switch {
	case s.Builtin != "":
		return "memory"
	case s.URL != "":
		return "HTTP"
	}
	return "stdio"
}

// newClient returns a client for one server, configured by the global flags.
func (a *app) newClient(s config.Server) (*mcp.Client, error) {
	c := &mcp.Client{Name: "patchbay", Title: "Patchbay", Version: Version}
	if s.Command != "" && !a.Quiet { // for what it prints among its messages; faults over HTTP have their own lines
		c.Logger = slog.New(a.talk.Handler(slog.LevelWarn)).With("server", a.serverName())
	}
	if err := a.outfit(c, s); err != nil {
		return nil, err
	}
	if err := a.answerQuestions(c); err != nil {
		return nil, err
	}
	return c, nil
}

// callTimeout returns how long a call may be silent; negative: no bound; 0: neither the command
// line nor the configuration sets it.
func (a *app) callTimeout(s config.Server) time.Duration {
	switch {
	case a.Timeout == 0:
		return -1
	case !a.saysTimeout():
		return s.CallTimeout
	}
	return a.Timeout
}

// saysTimeout reports whether --timeout is on the command line.
func (a *app) saysTimeout() bool { return a.timed || a.Timeout != defaultTimeout }

// outfit configures a client for a server by the global flags. It leaves the functions that answer
// questions as they are.
func (a *app) outfit(c *mcp.Client, s config.Server) (err error) {
	c.Limits.CallTimeout, c.Limits.CallLimit, c.Eras = a.callTimeout(s), s.CallLimit, &a.eras
	if c.Header == nil {
		c.Header = http.Header{}
	}
	if err := a.addHeaders(c.Header); err != nil {
		return err
	}
	if a.Revision != "" {
		r := mcp.Revision(a.Revision)
		if !slices.Contains(mcp.Revisions(), r) {
			return usagef("unknown revision %q; use one of %s", a.Revision, join(mcp.Revisions(), ", "))
		}
		c.Revisions = []mcp.Revision{r}
	}
	c.OnFrame, c.Watched, err = a.recorder()
	return err
}

// addHeaders adds the headers of --header.
func (a *app) addHeaders(to http.Header) error {
	for _, h := range a.Header {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return usagef("--header must be NAME: VALUE").Hint("--header 'Authorization: Bearer TOKEN'") // the value may be a secret
		}
		to.Add(name, strings.TrimSpace(value))
	}
	return nil
}

// join joins texts of any string type.
func join[T ~string](list []T, sep string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, sep)
}

// again returns this command with all its words, and more flags after them.
func (a *app) again(flags ...string) string {
	words := slices.Concat([]string{"patchbay", a.verb}, a.sub, a.words, a.serverFlags(), a.typedFlags(nil, flags))
	return a.withCommand(append(words, flags...))
}

// other returns a command of another verb on the same server, with the flags to reach it.
func (a *app) other(words ...string) string {
	words = slices.Concat([]string{"patchbay"}, words, a.serverFlags(), a.typedFlags(wayFlags, nil))
	return a.withCommand(words)
}

// beside returns a command about the same configuration, without the server flags.
func (a *app) beside(words ...string) string {
	return shell(slices.Concat([]string{"patchbay"}, words, a.typedFlags([]string{"--config"}, nil)))
}

func (a *app) withCommand(words []string) string {
	if a.dashed {
		words = append(append(words, "--"), a.command...)
	}
	return shell(words)
}

// wayFlags are the flags that are needed to find or reach a server.
var wayFlags = []string{"--config", "--pid", "--revision", "--env", "--header", "--server-ca", "--client-cert", "--client-key"}

// repeatable are the flags that may be given several times. A command that again returns has their
// typed values and the new ones. Of any other flag it has only the new value.
var repeatable = []string{"--root"}

// typedFlags returns the flags of this command line without those that name servers and those in
// anew; if only is not nil, it returns only these. A secret is replaced by the variable $TOKEN.
func (a *app) typedFlags(only, anew []string) (out []string) {
	for _, f := range a.flags {
		name, value, joined := strings.Cut(f, "=")
		if !strings.HasPrefix(f, "--") { // -mNAME, -qv
			name, value, joined = f[:2], f[2:], false
		}
		switch {
		case name == "-s" || name == "--server", name == "--stdio" && slices.Contains(anew, "--http"), only != nil && !slices.Contains(only, name):
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

// serverFlags returns the flags that name the servers of this run.
func (a *app) serverFlags() (flags []string) {
	if a.Server != "" && len(a.Servers) < 2 { // the name may come from another word
		return []string{"-s", a.Server}
	}
	for _, s := range a.Servers {
		flags = append(flags, "-s", s)
	}
	return flags
}

// reachHint returns advice for a server that cannot be reached.
func (a *app) reachHint(err error) string {
	var dns *net.DNSError
	var status *mcp.HTTPError
	var unknown x509.UnknownAuthorityError
	switch {
	case a.server == nil:
		return ""
	case errors.As(err, &unknown):
		return a.again("--server-ca", "FILE") + " trusts its CA"
	case a.server.URL != "" && errors.As(err, &dns):
		return "check the host name in " + a.server.URL
	case a.server.URL != "" && netfault.OtherScheme(a.server.URL, err) != "":
		other := netfault.OtherScheme(a.server.URL, err)
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
			return "many servers use " + u.String()
		}
	case strings.HasPrefix(a.server.URL, "http") && netfault.Is(err):
		return "check that it is running: curl -i " + shell([]string{a.server.URL})
	case a.server.Command != "" && process.Check(*a.server) != nil:
		return "" // the error explains it
	case a.server.Command != "":
		return "run it by hand to see its output: " + shell(a.server.CommandLine())
	}
	return ""
}
