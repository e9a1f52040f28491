package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Server is one server of a configuration file, its variables replaced. Exactly one of Command,
// URL and Builtin is set; the entry of an OpenAPI document is the built-in server "openapi" with its Args. Inputs in its fields stay ${input:ID} until [Server.Resolve] replaces
// them.
type Server struct {
	Name      string
	Command   string            // program to start; never through a shell
	Args      []string          // of Command or Builtin
	Env       map[string]string // of Command, in addition to those of every server
	EnvFile   string            // absolute path of a file with more of Env; empty: none
	Dir       string            // absolute folder to start in; empty: that of the caller
	URL       string            // http or https, ws or wss
	Headers   map[string]string // sent with each request to URL
	Transport string            // "stdio", "http" or "sse"; empty: not said
	Builtin   string            // name of a built-in server
	Disabled  bool

	// Share selects the sessions of a gateway with the server: one for all clients ("shared"), or
	// one for each session ("session") or principal ("principal"), or one that a single client may use at a
	// time ("exclusive"). "auto": the gateway decides by
	// the server's revision. Empty: not set.
	Share string

	Clients int           // concurrent clients of a gateway; 0: not set
	Queue   time.Duration // time that a call waits for a place among them; 0: not set; negative: no wait

	Replicas []string // more addresses of the same server, besides URL; a gateway spreads calls
	Breaker  Breaker  // when a gateway stops calls to it, or to one of its replicas

	Memory    int64 // bytes that the processes of a Command may use together; 0: no limit
	Processes int   // processes that a Command may consist of; 0: no limit

	Idle         time.Duration // a Command that is unused for this time is stopped; 0: not set; negative: never
	StartTimeout time.Duration // bounds the opening of the session; 0: not set; negative: no bound
	CallTimeout  time.Duration // bounds the silence of a call; 0: not set; negative: no bound
	CallLimit    time.Duration // bounds one call in all; 0: not set; negative: no bound

	// InheritEnv passes the whole environment of the starting program to Command. Otherwise
	// Command gets the variables that a host passes to every server.
	InheritEnv bool

	// CA is a PEM file of authorities for URL's certificate, besides those that the system
	// trusts. Cert and Key are PEM files of the client certificate; if Key is empty, Cert has the
	// key too. All are absolute paths or empty.
	CA, Cert, Key string

	// Trusted lets a host rely on the annotations of the server's tools, such as readOnlyHint.
	Trusted bool

	// Required means that a gateway is not ready while the server is unusable.
	Required bool

	Group string        // group of servers that replace each other in a host and a gateway; empty: none
	Cache time.Duration // time that a host may cache a result of a read-only tool; 0: no cache

	// EnabledTools are the tools that are offered, nil for all, except the DisabledTools. In both
	// * stands for any text; see [Server.Offers].
	EnabledTools, DisabledTools []string

	Dev Dev // for people who develop the server

	Source string // "path:line" of its name

	filled
	workspace string // folder of a relative cwd
}

// filled are the values in the entry of a server or a model, and the inputs that they need.
type filled struct {
	values []Value
	inputs []Input
}

// open reports whether a member has inputs without a value yet.
func (f filled) open(member string) bool {
	return slices.ContainsFunc(f.values, func(v Value) bool { return v.Member == member && v.unresolved() })
}

// String returns only the name of the server, because its fields hold secrets.
func (s Server) String() string { return "server " + quote(s.Name) }

// GoString returns the same as String.
func (s Server) GoString() string { return s.String() }

// transports maps the words in files to those of Server.Transport.
var transports = map[string]string{
	"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "sse": "sse",
}

// kinds are the members of which a server has exactly one.
var kinds = []string{"command", "url", "builtin", "openapi"}

// known are the members this package reads.
var known = []string{"command", "args", "env", "envFile", "cwd", "url", "headers", "api_key", "type", "transport", "disabled", "builtin", "openapi", "credentials", "dev", "patchbay"}

// elsewhere maps members of other hosts to the ones to write instead. Their other members are
// in [File.Unread].
var elsewhere = map[string]string{
	"environment": `write "env"`, "arguments": `write "args"`, "workingDirectory": `write "cwd"`, "dir": `write "cwd"`,
	"serverUrl": `write "url"`, "httpUrl": `write "url"`, "uri": `write "url"`, "endpoint": `write "url"`, "cmd": `write "command"`,
	"enabled":       `write "disabled"`,
	"headersHelper": `write "headers" with ${NAME}`, "oauth": "",
}

// server reads one server. One that is only under "patchbay" has its settings among its other
// members.
func (l *loader) server(m member, alone bool) {
	l.about = m.name
	defer func() { l.about = "" }()
	s := Server{Name: m.name, Source: l.source(m.pos), workspace: l.expander.workspace}
	words := known
	if alone {
		words = slices.Concat(known, settings)
	}
	seen := make(map[string]int)
	members := make(map[string]*node)
	for _, field := range m.value.members {
		if l.twice(seen, field, "member") {
			continue
		}
		members[field.name] = field.value
		if fix, ok := elsewhere[field.name]; ok {
			l.warn(field.pos, "the member "+quote(field.name)+" is not read", fix)
		} else if slices.Contains(settings, field.name) && !alone {
			l.unread(field, "", `move it into "patchbay", or leave it to another host`)
		} else {
			l.unknown(field, "", words)
		}
	}
	faults := len(l.problems)
	defer func() {
		for i := faults; i < len(l.problems); i++ {
			l.problems[i].Disabled = s.Disabled
		}
	}()
	if n := members["disabled"]; n != nil {
		s.Disabled = l.truth("disabled", n)
	}
	written := members
	members = l.openapi(members)
	v := values{loader: l, into: &s.filled}
	if s.Disabled {
		v.missing = func(*node, *unreplaced) bool { return true }
	}
	s.Command = v.text(members, "command")
	s.Args = v.list(members["args"])
	l.tildes(members["args"], members["cwd"], members["envFile"])
	s.Env = v.table(members, "env")
	v.text(members, "envFile")
	v.envFile(members["envFile"], &s)
	s.Dir = absolute(s.workspace, v.text(members, "cwd"))
	s.URL = v.text(members, "url")
	s.Headers = v.table(members, "headers")
	if n := members["api_key"]; n != nil && members["url"] != nil {
		v.apiKey(n, &s)
	}
	s.Builtin = v.text(members, "builtin")
	l.dev(members["dev"], &s)
	s.Transport = l.transport(members)
	if alone {
		l.settings(members, &s)
	} else {
		l.patchbaySection(l.above[m.name].value, &s)
	}
	l.patchbaySection(members["patchbay"], &s)
	if len(l.problems) > faults {
		return // further checks would report the same faults
	}
	l.check(m, written, &s)
	if len(l.problems) == faults {
		l.file.Servers = append(l.file.Servers, s)
	}
}

// tildes warns of paths with ~, which only a shell would expand.
func (l *loader) tildes(places ...*node) {
	for _, n := range places {
		if n == nil {
			continue
		}
		for _, path := range append(n.items, n) {
			if path.kind == '"' && (path.text == "~" || strings.HasPrefix(path.text, "~/")) {
				l.warn(path.pos, "~ is not replaced in "+quote(path.text), "write "+quote("${userHome}"+path.text[1:]))
			}
		}
	}
}

// check reports members that contradict each other.
func (l *loader) check(m member, members map[string]*node, s *Server) {
	var said []string
	for _, name := range kinds {
		if members[name] != nil {
			said = append(said, name)
		}
	}
	switch {
	case len(said) == 0:
		pos, fix := m.pos, `add "command" to start a program, "url" to reach one, "builtin" or "openapi"`
		for _, field := range m.value.members {
			switch near := misspelt(field.name, known); {
			case elsewhere[field.name] == `write "command"` || elsewhere[field.name] == `write "url"`:
				pos, fix = field.pos, elsewhere[field.name]+" instead of "+quote(field.name)
			case slices.Contains(kinds, near):
				pos, fix = field.pos, "did you mean "+quote(near)+" instead of "+quote(field.name)+"?"
			}
		}
		l.fail(pos, "the server "+quote(s.Name)+" has neither command nor url", fix)
		return
	case len(said) > 1:
		l.fail(members[said[1]].pos, fmt.Sprintf("the server %s has both %q and %q", quote(s.Name), said[0], said[1]), "keep one of them")
		return
	}
	place := members["type"]
	if place == nil {
		place = members["transport"]
	}
	useless := func(names ...string) {
		for _, name := range names {
			if n := members[name]; n != nil {
				l.warn(n.pos, fmt.Sprintf("%q has no effect besides %q", name, said[0]), "remove it")
			}
		}
	}
	if said[0] != "openapi" {
		useless("credentials")
	}
	switch said[0] {
	case "command":
		if s.Transport == "" {
			s.Transport = "stdio"
		}
		if s.Transport != "stdio" {
			l.fail(place.pos, "a command is reached by stdio", `write "stdio", or "url" instead of "command"`)
		}
		useless("headers", "api_key")
	case "url":
		if s.Transport == "stdio" {
			l.fail(place.pos, "a url is not reached by stdio", `write "http" or "sse", or "command" instead of "url"`)
		}
		if problem, fix := checkServerURL(s.URL); problem != "" && !s.open("url") && !s.Disabled {
			l.fail(members["url"].pos, problem, fix)
		}
		useless("args", "env", "envFile", "cwd", "dev")
	case "builtin", "openapi":
		if s.Transport != "" {
			l.warn(place.pos, "a builtin server has no transport", "remove it")
			s.Transport = ""
		}
		useless("env", "envFile", "cwd", "api_key", "dev")
		if said[0] == "builtin" {
			useless("headers")
		}
	}
}

func (l *loader) transport(members map[string]*node) string {
	said := ""
	for _, name := range []string{"type", "transport"} {
		n := members[name]
		if n == nil {
			continue
		}
		t, ok := transports[n.text]
		if n.kind != '"' || !ok {
			l.fail(n.pos, fmt.Sprintf("%q is not a transport", name), `write "stdio", "http", "streamable-http" or "sse"`)
		} else if said != "" && said != t {
			l.fail(n.pos, `"type" and "transport" contradict each other`, "keep one of them")
		}
		said = t
	}
	return said
}

// checkServerURL returns the fault of the URL of a server, if there is one. The URL may also be
// of WebSocket.
func checkServerURL(text string) (problem, fix string) {
	if rest, ok := strings.CutPrefix(text, "ws"); ok && (strings.HasPrefix(rest, "://") || strings.HasPrefix(rest, "s://")) {
		text = "http" + rest
	}
	return checkURL("url", text)
}

// checkURL returns the fault of the URL of a member, if there is one.
func checkURL(member, text string) (problem, fix string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return quote(member) + " is not an http or https URL", `write "https://..."`
	case u.Host == "":
		return quote(member) + " has no host", `write "https://HOST/..."`
	}
	return "", ""
}

// values reads the values of one server or model. missing, which may be nil, is called for a
// value whose variables cannot be replaced, and returns whether to keep the value unchanged.
type values struct {
	*loader
	into    *filled
	missing func(*node, *unreplaced) bool
}

// expand reads one value and records its origin.
func (v values) expand(n *node, member, name string) string {
	pieces, wrong := v.expander.expand(n.text)
	if wrong != nil {
		if v.missing == nil || !v.missing(n, wrong) {
			v.fail(n.pos, wrong.text, wrong.fix)
		}
		pieces = []piece{{text: n.text}}
	}
	value := Value{Member: member, Name: name, Written: n.text, Source: v.source(n.pos), pieces: pieces, place: v.at(n.pos, "", "")}
	v.into.values = append(v.into.values, value)
	for _, p := range pieces {
		if p.input != "" && !slices.ContainsFunc(v.into.inputs, func(in Input) bool { return in.ID == p.input }) {
			in, _ := v.file.named(p.input) // expand has checked that it exists
			v.into.inputs = append(v.into.inputs, in)
		}
	}
	return value.Text()
}

// apiKey reads the "api_key" of a server with a URL, which is another way to write a Bearer token
// in "headers".
func (v values) apiKey(n *node, s *Server) {
	const header, better = "Authorization", `write "headers": {"Authorization": "Bearer ${input:ID}"} or ${NAME}, which other hosts read too`
	for name := range s.Headers {
		if strings.EqualFold(name, header) {
			v.fail(n.pos, `"api_key" is here besides the header "Authorization"`, "keep one of them")
			return
		}
	}
	if n.kind != '"' || strings.TrimSpace(n.text) == "" {
		v.fail(n.pos, `"api_key" is not a string`, better)
		return
	}
	if strings.HasPrefix(n.text, "Bearer ") {
		v.fail(n.pos, `"api_key" begins with "Bearer "`, "write the key alone")
		return
	}
	v.warn(n.pos, `"api_key" is sent as a Bearer token`, better)
	v.expand(n, "headers", header)
	value := &v.into.values[len(v.into.values)-1]
	value.pieces = append([]piece{{text: "Bearer "}}, value.pieces...)
	if s.Headers == nil {
		s.Headers = make(map[string]string)
	}
	s.Headers[header] = value.Text()
}

// text reads a member that is a string and not empty.
func (v values) text(members map[string]*node, name string) string {
	n := members[name]
	switch {
	case n == nil:
		return ""
	case n.kind == '[' && name == "command":
		v.fail(n.pos, `"command" is not a string`, `write the program here and the rest in "args"`)
		return ""
	case n.kind != '"':
		v.fail(n.pos, fmt.Sprintf("%q is not a string", name), "put it in quotes")
		return ""
	}
	s := v.expand(n, name, "")
	switch {
	case strings.TrimSpace(s) == "":
		v.fail(n.pos, fmt.Sprintf("%q is empty", name), "write it, or remove the member")
	case strings.ContainsFunc(n.text, func(r rune) bool { return r < ' ' }):
		v.fail(n.pos, fmt.Sprintf("%q has a control character in it", name), `write \\ for one backslash, as in "C:\\new"`)
	}
	return s
}

// list reads args.
func (v values) list(n *node) []string {
	if n == nil {
		return nil
	}
	if n.kind != '[' {
		v.fail(n.pos, `"args" is not a list`, `write ["one", "two"]`)
		return nil
	}
	out := make([]string, 0, len(n.items))
	for i, item := range n.items {
		if item.kind != '"' {
			v.fail(item.pos, "an argument is not a string", "put it in quotes")
			continue
		}
		out = append(out, v.expand(item, "args", strconv.Itoa(i)))
	}
	return out
}

// table reads env and headers. A number counts as its text, as in other hosts.
func (v values) table(members map[string]*node, name string) map[string]string {
	n := members[name]
	if n == nil {
		return nil
	}
	if n.kind != '{' {
		v.fail(n.pos, fmt.Sprintf("%q is not an object", name), `write {"NAME": "value"}`)
		return nil
	}
	out, seen := make(map[string]string), make(map[string]int)
	for _, m := range n.members {
		switch {
		case v.twice(seen, m, "name"):
		case m.name == "" || strings.ContainsAny(m.name, "=\x00\r\n"):
			v.fail(m.pos, fmt.Sprintf("a name in %q is empty or has = or a line break in it", name), "rename it")
		case m.value.kind == jsontext.Kind('0'):
			out[m.name] = v.expand(m.value, name, m.name)
		case m.value.kind != '"':
			v.fail(m.value.pos, fmt.Sprintf("%s in %q is not a string", quote(m.name), name), "put it in quotes")
		default:
			out[m.name] = v.expand(m.value, name, m.name)
		}
	}
	return out
}
