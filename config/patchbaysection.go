package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// Patchbay's own settings are under the key "patchbay", which other hosts ignore: in a server, or
// for all servers at the top of the file.

// settings are the members of a server that only Patchbay reads.
var settings = []string{"share", "clients", "queue", "replicas", "breaker", "memory", "processes", "idle", "startTimeout", "callTimeout", "callLimit", "inheritEnv", "ca", "cert", "key", "trusted", "required", "group", "cache", "tools"}

// patchbaySection reads the settings of a server from the value of a "patchbay" key, which may
// be nil.
func (l *loader) patchbaySection(n *node, s *Server) {
	if n == nil {
		return
	}
	if n.kind != '{' {
		l.fail(n.pos, `"patchbay" is not an object`, `write {"share": "shared", "idle": "10m"}`)
		return
	}
	seen, members := make(map[string]int), make(map[string]*node)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "member"):
		case slices.Contains(settings, m.name):
			members[m.name] = m.value
		default:
			fix := "Patchbay has " + strings.Join(settings, ", ")
			if near := misspelt(m.name, settings); near != "" {
				fix = "did you mean " + quote(near) + "?"
			}
			l.warn(m.pos, "the member "+quote(m.name)+" of \"patchbay\" is not read", fix)
		}
	}
	l.settings(members, s)
}

// settings reads the settings among the members of an object.
func (l *loader) settings(members map[string]*node, s *Server) {
	if n := members["share"]; n != nil {
		s.Share = l.share(n)
	}
	if n := members["clients"]; n != nil {
		clients, err := strconv.Atoi(n.text)
		if s.Clients = clients; n.kind != '0' || err != nil || clients < 1 {
			l.fail(n.pos, `"clients" is not a number of clients`, "write how many may use the server at once, such as 100")
		}
	}
	if n := members["replicas"]; n != nil {
		l.replicas(n, s)
	}
	if n := members["breaker"]; n != nil {
		l.breaker(n, s)
	}
	l.limits(members, s)
	for name, b := range map[string]*bool{"inheritEnv": &s.InheritEnv, "trusted": &s.Trusted, "required": &s.Required} {
		if n := members[name]; n != nil {
			*b = l.truth(name, n)
		}
	}
	if n := members["group"]; n != nil {
		if s.Group = n.text; n.kind != '"' || strings.TrimSpace(n.text) == "" {
			l.fail(n.pos, `"group" is not a name`, `write a word in quotes, such as "work"`)
		}
	}
	if n := members["cache"]; n != nil {
		if s.Cache = l.duration("cache", n); s.Cache < 0 {
			l.fail(n.pos, `"cache" is "never"`, `write how long a result holds, such as "5m", or remove it`)
		}
	}
	if n := members["tools"]; n != nil {
		l.tools(n, s)
	}
	for name, d := range map[string]*time.Duration{"queue": &s.Queue, "idle": &s.Idle, "startTimeout": &s.StartTimeout, "callTimeout": &s.CallTimeout, "callLimit": &s.CallLimit} {
		if n := members[name]; n != nil {
			*d = l.duration(name, n)
		}
	}
	for _, f := range []struct {
		name string
		path *string
	}{{"ca", &s.CA}, {"cert", &s.Cert}, {"key", &s.Key}} {
		if n := members[f.name]; n != nil {
			if *f.path = l.path(f.name, n); s.URL == "" {
				l.warn(n.pos, quote(f.name)+" is for a server with a \"url\"", "remove it")
			}
		}
	}
	if n := members["key"]; n != nil && s.Cert == "" {
		l.fail(n.pos, `"key" without "cert"`, `add "cert", the file of the certificate`)
	}
}

// path reads the path of a file, which may have variables in it and is relative to the folder
// of the configuration.
func (l *loader) path(name string, n *node) string {
	if n.kind != '"' || strings.TrimSpace(n.text) == "" {
		l.fail(n.pos, fmt.Sprintf("%q is not the path of a file", name), "put it in quotes")
		return ""
	}
	pieces, wrong := l.expander.expand(n.text)
	value := Value{pieces: pieces}
	switch {
	case wrong != nil:
		l.fail(n.pos, wrong.text, wrong.fix)
	case value.unresolved():
		l.fail(n.pos, fmt.Sprintf("%q has an input in it", name), "write the path")
	}
	return absolute(l.expander.workspace, value.Text())
}

// truth reads true or false.
func (l *loader) truth(name string, n *node) bool {
	if n.kind != 't' && n.kind != 'f' {
		l.fail(n.pos, fmt.Sprintf("%q is not true or false", name), "write true or false without quotes")
	}
	return n.kind == 't'
}

// tools reads the selection of a server's tools.
func (l *loader) tools(n *node, s *Server) {
	if n.kind != '{' {
		l.fail(n.pos, `"tools" is not an object`, `write {"disabled": ["NAME"]}`)
		return
	}
	seen := make(map[string]int)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "member"):
		case m.name == "enabled":
			s.EnabledTools = l.names(m)
		case m.name == "disabled":
			s.DisabledTools = l.names(m)
		default:
			l.warn(m.pos, "the member "+quote(m.name)+" of \"tools\" is not read", `write "enabled" or "disabled"`)
		}
	}
}

// names reads a list of names, which is not nil.
func (l *loader) names(m member) []string {
	if m.value.kind != '[' {
		l.fail(m.value.pos, quote(m.name)+" is not a list", `write ["one", "two"]`)
	}
	out := []string{}
	for _, item := range m.value.items {
		if item.kind != '"' || strings.TrimSpace(item.text) == "" {
			l.fail(item.pos, "an element of "+quote(m.name)+" is not a name", "put it in quotes")
			continue
		}
		out = append(out, item.text)
	}
	return out
}

// shares are the words of "share".
var shares = []string{"auto", "shared", "session", "principal", "exclusive"}

func (l *loader) share(n *node) string {
	switch {
	case n.kind != '"':
	case n.text == "per-client": // the former name of "session"
		return "session"
	case slices.Contains(shares, n.text):
		return n.text
	}
	l.fail(n.pos, `"share" has an unknown value`, `write "shared", "session", "principal", "exclusive" or "auto"`)
	return ""
}

// duration reads a time such as "90s", or "never", which is -1.
func (l *loader) duration(name string, n *node) time.Duration {
	if n.kind == '"' && n.text == "never" {
		return -1
	}
	d, err := time.ParseDuration(n.text)
	if n.kind != '"' || err != nil || d <= 0 {
		l.fail(n.pos, fmt.Sprintf("%q is not a duration", name), `write "30s", "5m" or "never"`)
		return 0
	}
	return d
}

// patchbay reads the key at the top of the file. Its settings of a server apply unless the server
// has its own; a server that is in no list may be there whole, such as a built-in one, which
// other hosts cannot start.
func (l *loader) patchbay(n *node) {
	if n.kind != '{' {
		l.fail(n.pos, `"patchbay" is not an object`, `write {"servers": {"NAME": {"idle": "10m"}}}`)
		return
	}
	defer l.models(n)
	seen := make(map[string]int)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "member"):
		case m.name == "model" || m.name == "models":
		case m.name == "hooks":
			l.hooks(m.value)
		case m.name == "share":
			if l.file.Share = l.share(m.value); l.file.Share == "exclusive" {
				l.fail(m.value.pos, `"share" is "exclusive" for all servers`, `write it in the server that only one caller may use at a time`)
			}
		case m.name != "servers":
			l.warn(m.pos, "the member "+quote(m.name)+" of \"patchbay\" is not read", `Patchbay has "servers", "share", "models", "model" and "hooks"`)
		case m.value.kind != '{':
			l.fail(m.value.pos, `"servers" is not an object`, `write {"NAME": {"idle": "10m"}}`)
		default:
			l.ownServers(m.value)
		}
	}
}

func (l *loader) ownServers(n *node) {
	seen := make(map[string]int)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "server"):
		case m.value.kind != '{':
			l.fail(m.value.pos, "the server "+quote(m.name)+" is not an object", `write {"idle": "10m"}`)
		default:
			l.above[m.name] = m
		}
	}
}

// alone reads the servers that are only under "patchbay". lists has the names of the others.
func (l *loader) alone(lists map[string]int) {
	names := slices.SortedFunc(maps.Keys(l.above), func(a, b string) int { return l.above[a].pos - l.above[b].pos })
	for _, name := range names {
		m := l.above[name]
		whole := slices.ContainsFunc(m.value.members, func(f member) bool { return slices.Contains(kinds, f.name) })
		_, listed := lists[name]
		switch {
		case listed && whole:
			faults := len(l.problems)
			l.about = name
			l.file.Servers = slices.DeleteFunc(l.file.Servers, func(s Server) bool { return s.Name == name })
			l.fail(m.pos, "the server "+quote(name)+" is here and in a list", "keep only its settings here, or rename one")
			l.unnamed(faults)
			l.about = ""
		case listed:
		case whole:
			l.server(m, true)
		case len(l.file.Warnings) < maxProblems: // finding a proposal takes time
			fix := "name one of the servers of this file"
			if near := misspelt(name, slices.Sorted(maps.Keys(lists))); near != "" {
				fix = "did you mean " + quote(near) + "?"
			}
			l.warn(m.pos, "there is no server "+quote(name), fix)
		}
	}
}

// Equal reports whether s and t are reached, started and treated alike: they differ at most in
// Source and Required.
func (s Server) Equal(t Server) bool {
	return s.Name == t.Name && s.Command == t.Command && slices.Equal(s.Args, t.Args) && maps.Equal(s.Env, t.Env) &&
		s.Dir == t.Dir && s.URL == t.URL && maps.Equal(s.Headers, t.Headers) && s.Transport == t.Transport &&
		s.Builtin == t.Builtin && s.Disabled == t.Disabled && s.Share == t.Share && s.Clients == t.Clients && s.Queue == t.Queue && s.Memory == t.Memory && s.Processes == t.Processes && s.Idle == t.Idle &&
		s.StartTimeout == t.StartTimeout && s.CallTimeout == t.CallTimeout && s.CallLimit == t.CallLimit && s.InheritEnv == t.InheritEnv &&
		s.CA == t.CA && s.Cert == t.Cert && s.Key == t.Key && s.Trusted == t.Trusted && s.Group == t.Group && s.Cache == t.Cache && s.Dev.equal(t.Dev) &&
		slices.Equal(s.Replicas, t.Replicas) && s.Breaker == t.Breaker &&
		slices.Equal(s.EnabledTools, t.EnabledTools) && (s.EnabledTools == nil) == (t.EnabledTools == nil) && slices.Equal(s.DisabledTools, t.DisabledTools)
}

// Offers reports whether a host offers a tool of the server to its model, according to
// EnabledTools and DisabledTools.
func (s Server) Offers(tool string) bool {
	fits := func(pattern string) bool { return wildcard.Match(pattern, tool) }
	return (s.EnabledTools == nil || slices.ContainsFunc(s.EnabledTools, fits)) && !slices.ContainsFunc(s.DisabledTools, fits)
}
