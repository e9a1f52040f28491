package main

import (
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/servers"
)

// target returns the server that the command line selects.
func (a *app) target() (config.Server, error) {
	switch {
	case a.dashed:
		// A command that a person types runs as in their shell.
		return config.Server{Name: a.command[0], Command: a.command[0], Args: a.command[1:], InheritEnv: true}, nil
	case a.Server != "":
		return a.named(a.Server)
	}
	read, err := a.inspectConfig()
	if err != nil {
		return config.Server{}, err
	}
	if faults := read.about(""); len(faults) > 0 {
		return config.Server{}, faults
	}
	names := read.names()
	if read.path == "" && a.of.takes(oneServer) {
		if s, ok, err := a.onlyUp(); ok || err != nil {
			return s, err
		}
	}
	if len(names) == 1 {
		if len(read.about(names[0])) > 0 {
			return config.Server{}, read.faults // no server of it can be started
		}
		s, err := a.named(names[0])
		if err == nil && a.tty.err { // the line says which file the server comes from
			a.talk.Note("%s of %s", names[0], here(read.path))
		}
		return s, err
	}
	if server, _, ok := strings.Cut(strings.Join(a.words[:min(1, len(a.words))], ""), "/"); ok && server != "" && !strings.HasSuffix(server, ":") &&
		slices.Contains([]string{"call", "tools", "prompt", "prompts"}, a.verb) {
		return config.Server{}, a.noServer(server)
	}
	if len(names) == 0 {
		if a.of.takes(loginServer) {
			return config.Server{}, usagef("missing server: use the URL of a server, or a name in mcp.json").
				Hint(shell(slices.Concat([]string{"patchbay", a.verb}, a.sub, []string{"https://example.com/mcp"})))
		}
		if owners := a.owners(); len(owners) > 0 {
			return config.Server{}, usagef("missing server; %s is a %s of %s", a.words[0], map[string]string{"call": "tool", "read": "resource"}[a.verb], strings.Join(owners, ", ")).Hint(a.withServer(owners[0]))
		}
		return config.Server{}, usagef("missing server: use -s NAME, -s URL or -- COMMAND; built in: %s", strings.Join(servers.Names(), ", ")).
			Hint(a.withServer(servers.Names()[0]))
	}
	return config.Server{}, usagef("which server? %s has %s", read.path, strings.Join(names, ", ")).Hint(a.withServer(names[0]))
}

// named returns a server by its name in the configuration, the name of a built-in server, or its
// URL. Faults about other servers do not matter. A server of a file that was found here is returned
// only if the person has agreed to the file or has chosen the server.
func (a *app) named(name string) (config.Server, error) {
	if u, err := url.Parse(name); err == nil && strings.Contains(name, "://") {
		if !isServerURL(name) || u.Host == "" {
			return config.Server{}, usagef("-s %q is not an http, https, ws or wss URL", name)
		}
		return config.Server{Name: name, URL: name}, nil
	}
	builtin := slices.Contains(servers.Names(), name)
	read, err := a.inspectConfig()
	if err == nil && len(read.about(""))+len(read.about(name)) > 0 {
		err = slices.Concat(read.about(""), read.about(name)) // the faults that decide
	}
	if err != nil {
		f := &fault{Err: err}
		if builtin && a.Config == "" { // the file may mean another server by the name
			f.Hint("correct the file; for the built-in server: " + a.withBuiltin(name))
		}
		return config.Server{}, f
	}
	for _, s := range read.servers {
		switch {
		case s.Name != name:
		case s.Disabled:
			return s, usagef("%s: %q is disabled", s.Source, name)
		default:
			if !a.chosen(name) {
				if err := a.mayUse(read.file); err != nil {
					return s, err
				}
			}
			if name == steer.Up && a.PID != 0 {
				return s, usagef("--pid is for the running patchbay up, but %s has a server %q", read.path, name).Hint("patchbay status shows the URL to use with -s")
			}
			if name == steer.Up {
				a.talk.Note("%s is the server of %s, not the running patchbay up; -s URL selects that", name, here(read.path))
			}
			if n := len(read.faults) - len(read.ofModels()); n > 0 {
				a.talk.Note("warning: %s has %s in other servers; patchbay config list shows them", read.path, quantity(n, "fault"))
			}
			return s, nil
		}
	}
	switch {
	case name == steer.Up:
		u, err := a.runningUp()
		if err != nil {
			return config.Server{}, err
		}
		return serverOf(u)
	case builtin && (a.Config == "" || len(read.faults) == 0):
		return config.Server{Name: name, Builtin: name}, nil
	case builtin:
		return config.Server{}, read.faults
	}
	if guess := asURL(name); guess != "" {
		return config.Server{}, usagef("no server %q; did you mean the URL %s?", name, guess).Hint(a.withServer(guess))
	}
	return config.Server{}, a.noServer(name)
}

// noServer returns the error for a name that no server has.
func (a *app) noServer(name string) *fault {
	names := a.knownServers()
	return usagef("no server %q; available: %s%s", name, strings.Join(names, ", "), didYouMean(name, names))
}

// withBuiltin returns this command with a built-in server that runs as a command, which does not
// depend on mcp.json.
func (a *app) withBuiltin(name string, args ...string) string {
	words := slices.Concat([]string{"patchbay", a.verb}, a.sub, a.words, a.typedFlags(nil, nil))
	return shell(slices.Concat(words, []string{"--", "patchbay", "serve", name}, args))
}

// chosen reports whether the command line names the one server that a verb uses, and the name can
// only mean the server in the file that was found here: the person's own file and the built-in
// servers do not have it, and it is not an address.
func (a *app) chosen(name string) bool {
	if a.suggests || a.of == nil || a.of.server&manyServers != 0 || a.Server != name || asURL(name) != "" {
		return false
	}
	others := append(servers.Names(), steer.Up)
	if path, ok := config.UserFile(); ok {
		own, err := config.Open(path)
		if err != nil {
			return false
		}
		for _, e := range own.Entries() {
			others = append(others, e.Name)
		}
	}
	return !slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(other, name) })
}

// inspected holds the valid part of mcp.json and its faults. The zero value stands for no file.
type inspected struct {
	path    string
	servers []config.Server
	faults  config.Problems
	file    *config.File
}

// about returns the faults about one server, or with "" those about the file as a whole. It
// excludes those about models.
func (r *inspected) about(server string) config.Problems {
	var out config.Problems
	for _, p := range r.faults {
		if p.Server == server && p.Model == "" {
			out = append(out, p)
		}
	}
	return out
}

// ofModels returns the faults about models.
func (r *inspected) ofModels() config.Problems {
	return slices.DeleteFunc(slices.Clone(r.faults), func(p config.Problem) bool { return p.Model == "" })
}

// names returns the names of the servers that are not disabled, including those with faults.
func (r *inspected) names() []string {
	names := enabled(r.file)
	for _, p := range r.faults {
		if p.Server != "" && !slices.Contains(names, p.Server) {
			names = append(names, p.Server)
		}
	}
	return names
}

// has reports whether the file has a server or a model of a name.
func (r *inspected) has(name string) bool {
	return slices.Contains(r.names(), name) || r.file != nil && slices.ContainsFunc(r.file.Models, func(m config.Model) bool { return m.Name == name })
}

// configPath returns the file of --config, else the one found from here, or "" if there is neither.
func (a *app) configPath() (string, error) {
	if a.Config != "" {
		return a.Config, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	path, _ := config.Find(dir)
	return path, nil
}

// places returns the places where a configuration was looked for.
func (a *app) places() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	return config.Places(dir)
}

// inspectConfig reads mcp.json once, and prints its warnings.
func (a *app) inspectConfig() (*inspected, error) {
	if a.file != nil {
		return a.file, nil
	}
	path, err := a.configPath()
	if err != nil {
		return nil, err
	}
	read := &inspected{path: path}
	if path != "" {
		file, faults, err := config.Inspect(path, nil)
		if err != nil {
			return nil, err
		}
		for _, w := range file.Warnings {
			a.talk.Note("warning: %s", w)
		}
		read.faults = entry.Unbuilt(file, faults)
		read.servers, read.file = file.Servers, file
	}
	a.file = read
	return read, nil
}

// loadConfig reads mcp.json: the one of --config, else the one found from here. It
// returns nil if there is none. Any fault of the file is an error.
func (a *app) loadConfig() (*config.File, error) {
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	if len(read.faults) > 0 {
		return nil, read.faults
	}
	return read.file, nil
}

// enabled returns the names of the servers that are not disabled.
func enabled(file *config.File) []string {
	var names []string
	if file != nil {
		for _, s := range file.Servers {
			if !s.Disabled {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// slashed splits "server/name" unless a server is named otherwise or the part before the slash is
// not a server. It returns the name.
func (a *app) slashed(name string) string {
	server, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" || a.Server != "" || a.dashed {
		return name
	}
	known := servers.Names()
	if read, err := a.inspectConfig(); err == nil {
		known = append(known, read.names()...)
	}
	if !slices.Contains(known, server) {
		return name
	}
	a.Server, a.words = server, slices.Clone(a.words)
	a.words[0] = rest
	return rest
}
