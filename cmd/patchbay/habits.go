package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/flags"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
)

// People bring habits from other programs. A server's URL or command is accepted wherever a verb
// takes a server, without -s or --. Any other habit ends in an error that names the right form and,
// where the meaning is clear, hints at the corrected command.

// namesServer reports whether the flags so far name a server.
func (l *line) namesServer() bool {
	return slices.ContainsFunc(l.flags, func(f string) bool { return strings.HasPrefix(f, "-s") || strings.HasPrefix(f, "--server=") })
}

// meansServer reports whether a plain word names a server.
func (l *line) meansServer(word string) bool {
	switch {
	case l.of.takes(wordIsServer):
		return true
	case l.of.takes(urlIsServer):
		return isServerURL(word)
	}
	return l.of.takes(firstURLIsServer) && len(l.words) == 0 && !l.namesServer() && isServerURL(word)
}

// meansCommand reports whether words begin a command that starts a server: an executable program,
// followed by words that mean nothing to the verb.
func (l *line) meansCommand(words []string) bool {
	if !l.of.takes(programIsServer) || len(l.words) > 0 || l.namesServer() || isServerURL(words[0]) {
		return false
	}
	if slices.Contains(servers.Names(), words[0]) {
		return false
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return false
	}
	if strings.ContainsRune(words[0], filepath.Separator) {
		return true
	}
	if len(words) < 2 {
		return false
	}
	name, _, _ := strings.Cut(words[1], "=")
	known := l.parser.Written(name) != nil || name == "--" || name == "-h" || name == "--help"
	if !known && len(name) > 2 && name[0] == '-' && name[1] != '-' {
		known = l.parser.Written(name[:2]) != nil // -sNAME
	}
	return !known
}

// otherFlags are flags of other programs, each with its equivalent here.
var otherFlags = map[string]string{
	"--port": "--http", "-p": "--http", "--listen": "--http", "--addr": "--http", "--address": "--http", "--bind": "--http",
	"--url": "--server", "--debug": "--verbose", "--silent": "--quiet", "--config-file": "--config",
}

// unknownFlag returns the error for a flag that the verb does not have.
func (a *app) unknownFlag(l *line, args []string) *fault {
	of, help := &l.parser.Set, "patchbay help "+strings.Join(l.path(), " ")
	name, _, _ := strings.Cut(l.unknown, "=")
	f := usagef("unknown flag %s", name)
	if meant := otherFlags[name]; of.Written(meant) != nil {
		f.Err = fmt.Errorf("unknown flag %s; use %s", name, meant)
		return f.Hint(corrected(of, args, func(unknown, value string) []string {
			switch meant := otherFlags[unknown]; {
			case of.Written(meant) == nil:
				return nil
			case of.Written(meant).IsBool() || value == "":
				return []string{meant}
			default:
				return []string{meant, value}
			}
		}))
	}
	var names []string
	for _, known := range of.Flags {
		names = append(names, "--"+known.Name)
	}
	slices.Sort(names)
	if near := didYouMean(name, names); near != "" && strings.HasPrefix(name, "--") {
		f.Err = fmt.Errorf("unknown flag %s%s", name, near)
		return f.Hint(help)
	}
	for _, server := range servers.Names() {
		of := slices.Contains(l.flags, "-s"+server) || slices.Contains(l.flags, "--server="+server)
		if !of || !strings.Contains(servers.Usage(server), "\n  "+name+" ") {
			continue
		}
		f.Err = fmt.Errorf("unknown flag %s; it is a flag of the server, which takes flags behind serve", name)
		return f.Hint(fmt.Sprintf("patchbay %s ... -- patchbay serve %s %s ...", strings.Join(l.path(), " "), server, name))
	}
	if slices.Contains([]string{"call", "prompt"}, l.verb) && strings.HasPrefix(name, "--") {
		f.Err = fmt.Errorf("unknown flag %s; arguments are written %s=VALUE", name, strings.TrimLeft(name, "-"))
		return f.Hint(corrected(of, args, func(unknown, value string) []string {
			if !strings.HasPrefix(unknown, "--") {
				return nil
			}
			if value == "" {
				value = "true"
			}
			return []string{strings.TrimPrefix(unknown, "--") + "=" + value}
		}))
	}
	return f.Hint(help)
}

// corrected returns this command line with each unknown flag replaced, as flags.Set.Corrected does.
func corrected(of *flags.Set, args []string, put func(unknown, value string) []string) string {
	return shell(append([]string{"patchbay"}, of.Corrected(args, put)...))
}

// withoutValue returns the error for a last flag without its value.
func (a *app) withoutValue(l *line, f *flags.Flag) *fault {
	if f.Name != "server" {
		return usagef("--%s needs a value: --%s %s", f.Name, f.Name, f.Placeholder).Hint("patchbay help flags")
	}
	for _, flag := range l.flags {
		if path, ok := strings.CutPrefix(flag, "--config="); ok {
			a.Config = path
		}
	}
	names := a.knownServers()
	return usagef("-s needs a server: %s, or a URL", strings.Join(names, ", ")).Hint(a.again("-s", names[0]))
}

// knownServers returns the names of mcp.json and of built-in servers, each once.
func (a *app) knownServers() (names []string) {
	if read, err := a.inspectConfig(); err == nil {
		names = read.names()
	}
	for _, name := range servers.Names() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// withServer returns this command with another server.
func (a *app) withServer(name string) string {
	server, all := a.Server, a.Servers
	defer func() { a.Server, a.Servers = server, all }()
	a.Server, a.Servers = name, []string{name}
	return a.again()
}

// serverAlone treats the name of a server, or a host and port, as the server and not as a feature,
// unless a server is named otherwise. It returns the name of the feature that is left.
func (a *app) serverAlone(name string) string {
	if name == "" || a.Server != "" || a.dashed || !slices.Contains(a.knownServers(), name) && !strings.HasPrefix(asURL(name), "http://") {
		return name
	}
	a.Server, a.words = name, nil
	return ""
}

// which returns the error for a missing feature name, with the names to choose from.
func (a *app) which(of feature.List) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := a.list(p, of)
	if err != nil {
		return err
	}
	names := jsonx.Texts(l.items, of.Key)
	if len(names) == 0 {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no %s", a.serverName(), of.Member), Next: a.other("discover")}
	}
	return usagef("which %s? %s has %s", strings.TrimSuffix(of.Member, "s"), a.serverName(), clip(strings.Join(names, ", "))).Hint(a.other(of.Member))
}

// owners returns the built-in servers that have the tool of call, or resources with the scheme of
// read. It does not start servers of mcp.json.
func (a *app) owners() (out []string) {
	if a.verb != "call" && a.verb != "read" || len(a.words) == 0 {
		return nil
	}
	of, fits := feature.Tools, func(name string) bool { return name == a.words[0] }
	if a.verb == "read" {
		scheme, _, ok := strings.Cut(a.words[0], "://")
		of, fits = feature.Resources, func(uri string) bool { return ok && strings.HasPrefix(uri, scheme+"://") }
	}
	for _, name := range servers.Names() {
		p, err := a.env.Open(a.ctx, config.Server{Builtin: name, Args: servers.Unattended(name)}, &mcp.Client{Name: "patchbay", Version: Version}, nil)
		if err != nil {
			continue
		}
		if l, err := a.list(p, of); err == nil && slices.ContainsFunc(jsonx.Texts(l.items, of.Key), fits) {
			out = append(out, name)
		}
		p.Close()
	}
	return out
}
