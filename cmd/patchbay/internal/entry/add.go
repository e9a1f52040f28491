package entry

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/servers"
)

// Add has the flags and arguments that describe a new server. Its variables and headers are those of --env and
// --header, which other verbs have too.
type Add struct {
	Name string `arg:"" help:"Name of the server."`
	URL  string `arg:"" optional:"" help:"URL of the server, or the name of a built-in server."`
	Type string `placeholder:"TYPE" help:"Transport of a URL: http or sse."`
	Cwd  string `name:"cwd" placeholder:"DIR" help:"Working directory of the command."`
	User bool   `help:"Change your own file, which applies everywhere."`
}

// Line is the rest of the command line of an Add.
type Line struct {
	Env, Header, Command []string
	Dashed               bool                                   // Command is set
	Builtin              func(name string, args []string) error // checks the arguments of a built-in server
	Beside               func(words ...string) string           // returns a command on the same file
}

// PlainSecrets returns the names of values that the command line gives in plain text though they
// are named like secrets: variables, headers, arguments and parts of the URL.
func (c *Add) PlainSecrets(a *Line) []string {
	var out []string
	plain := func(value string) bool { return value != "" && !strings.Contains(value, "${") }
	for _, e := range a.Env {
		if name, value, _ := strings.Cut(e, "="); secrets.Name(name) && plain(value) {
			out = append(out, name)
		}
	}
	for _, h := range a.Header {
		if name, value, _ := strings.Cut(h, ":"); secrets.Header(name) && plain(strings.TrimSpace(value)) {
			out = append(out, strings.TrimSpace(name))
		}
	}
	before := ""
	for i, arg := range a.Command {
		if i > 0 && (secrets.Part(before, arg) != "" || slices.ContainsFunc(secrets.URL(arg), plain)) {
			out = append(out, fmt.Sprintf("argument %d", i))
		}
		before = arg
	}
	if slices.ContainsFunc(secrets.URL(c.URL), plain) {
		out = append(out, "the URL")
	}
	return out
}

// Entry returns the server that the command line describes.
func (c *Add) Entry(a *Line) (config.Entry, error) {
	var none config.Entry
	o := struct {
		Type    string            `json:"type,omitempty"`
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		Cwd     string            `json:"cwd,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Builtin string            `json:"builtin,omitempty"`
	}{Type: c.Type, Cwd: c.Cwd, URL: c.URL}
	switch {
	case strings.TrimSpace(c.Name) == "":
		return none, advice.Usagef("missing server name")
	case slices.Contains(servers.Names(), c.URL):
		if c.Type != "" || c.Cwd != "" || len(a.Header)+len(a.Env) > 0 {
			return none, advice.Usagef("--type, --cwd, --env and --header do not apply to a built-in server; its flags go after --").
				Hint("patchbay help serve " + c.URL)
		}
		if err := a.Builtin(c.URL, a.Command); err != nil {
			return none, err
		}
		o.Builtin, o.URL, o.Args = c.URL, "", a.Command
	case a.Dashed && c.URL != "":
		return none, advice.Usagef("both %s and a command after -- are given; keep one", c.URL)
	case a.Dashed:
		if c.Type != "" && c.Type != "stdio" || len(a.Header) > 0 {
			return none, advice.Usagef("--type and --header apply only to a URL")
		}
		o.Command, o.Args = a.Command[0], a.Command[1:]
	case c.URL == "":
		return none, advice.Usagef("missing URL or command of %q; a command goes after --", c.Name).
			Hint(screen.Shell([]string{"patchbay", "config", "add", c.Name, "--", "COMMAND"}))
	default:
		u, err := url.Parse(c.URL)
		if !strings.Contains(c.URL, "${") && (err != nil || !IsServerURL(c.URL) || u.Host == "") {
			if guess := AsURL(c.URL); guess != "" {
				return none, advice.Usagef("%q is not a URL; did you mean %s?", c.URL, guess).Hint(a.Beside("config", "add", c.Name, guess))
			}
			if strings.Contains(c.URL, "://") {
				return none, advice.Usagef("%q is not an http, https, ws or wss URL with a host", c.URL).Hint("patchbay help config add")
			}
			return none, advice.Usagef("%q is not an http, https, ws or wss URL, nor a built-in server; a command goes after --", c.URL).
				Hint(screen.Shell([]string{"patchbay", "config", "add", c.Name, "--", c.URL}))
		}
		if c.Type != "" && c.Type != "http" && c.Type != "sse" {
			return none, advice.Usagef("--type %q is not http or sse", c.Type)
		}
		if len(a.Env) > 0 || c.Cwd != "" {
			return none, advice.Usagef("--env and --cwd apply only to a command")
		}
		if o.Type == "" && !strings.HasPrefix(c.URL, "ws") {
			o.Type = "http" // several hosts need the type
		}
	}
	for _, e := range a.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return none, advice.Usagef("--env must be NAME=VALUE").Hint("--env LOG_LEVEL=debug") // the value may be a secret
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[name] = value
	}
	for _, h := range a.Header {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return none, advice.Usagef("--header must be NAME: VALUE").Hint("--header 'Authorization: Bearer ${TOKEN}'")
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers[name] = strings.TrimSpace(value)
	}
	raw, err := jsonx.Marshal(o)
	return config.Entry{Name: c.Name, Object: raw}, err
}

// IsServerURL reports whether a word is the URL of a server.
func IsServerURL(word string) bool {
	for _, scheme := range []string{"http://", "https://", "ws://", "wss://"} {
		if len(word) > len(scheme) && strings.HasPrefix(strings.ToLower(word), scheme) {
			return true
		}
	}
	return false
}

// AsURL returns the URL that a word without a scheme may stand for; empty: it does not look like
// one.
func AsURL(word string) string {
	at, _, _ := strings.Cut(word, "/")
	host, port, err := net.SplitHostPort(at)
	switch {
	case strings.ContainsAny(word, " \t"):
	case err == nil && host != "" && port != "" && strings.Trim(port, "0123456789") == "":
		return "http://" + word
	case at == "localhost" || net.ParseIP(at) != nil:
		return "http://" + word
	case strings.Contains(strings.Trim(at, "."), ".") && at != word:
		return "https://" + word
	}
	return ""
}
