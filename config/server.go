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

// Server is one server of a configuration file, its variables replaced.
// Exactly one of Command, URL and Builtin is set. Inputs stand in its fields as
// they are written, ${input:ID}, until [Server.Resolve] replaces them.
type Server struct {
	Name      string
	Command   string            // program to start; never through a shell
	Args      []string          // of Command or Builtin
	Env       map[string]string // of Command, beside what every server gets
	EnvFile   string            // absolute path of the file that Env is from too; empty: there is none
	Dir       string            // absolute folder to start in; empty: that of the caller
	URL       string            // http or https, ws or wss
	Headers   map[string]string // sent with each request to URL
	Transport string            // "stdio", "http" or "sse"; empty: not said
	Builtin   string            // name of a server that Patchbay brings along
	Disabled  bool

	// Share says whether the clients of a gateway have one session with the server together
	// ("shared"), or one for each session ("session") or principal ("principal"). "auto": the
	// gateway decides by the server's revision. Empty: not said.
	Share string

	Clients int           // of a gateway, that may use the server at once; 0: not said
	Queue   time.Duration // that a call waits for a place among them; 0: not said; negative: it does not

	Idle         time.Duration // a Command nobody uses so long is stopped; 0: not said; negative: never
	StartTimeout time.Duration // for the session to open; 0: not said; negative: no bound
	CallTimeout  time.Duration // that a call may be silent; 0: not said; negative: no bound
	CallLimit    time.Duration // for one call however much is heard; 0: not said; negative: no bound

	// InheritEnv says that Command gets the whole environment of the program that starts
	// it. Without it that is what a host thinks every server needs.
	InheritEnv bool

	// CA is a PEM file of authorities that URL's certificate may be of, besides those that the
	// system trusts. Cert and Key are PEM files of what is shown to it; an empty Key is in Cert.
	// All are absolute paths or empty.
	CA, Cert, Key string

	// Trusted says that a host may believe what the server says of its tools, such as that one
	// changes nothing.
	Trusted bool

	// Required says that a gateway is not ready while the server cannot be used.
	Required bool

	Group string        // of servers that stand for each other in a host; empty: none
	Cache time.Duration // how long a host may use a result of a tool that changes nothing again; 0: not at all

	// EnabledTools are the tools that are offered, nil for all, without the DisabledTools. In both
	// * stands for any text; see [Server.Offers].
	EnabledTools, DisabledTools []string

	Source string // "path:line" of its name

	filled
	workspace string // what a relative cwd is relative to
}

// filled are the values of a server or a model, and the inputs that they need.
type filled struct {
	values []Value
	inputs []Input
}

// open tells whether a member has inputs in it that nobody was asked for yet.
func (f filled) open(member string) bool {
	return slices.ContainsFunc(f.values, func(v Value) bool { return v.Member == member && v.unresolved() })
}

// String names the server and nothing else of it: its fields hold secrets.
func (s Server) String() string { return "server " + quote(s.Name) }

// GoString returns what String does.
func (s Server) GoString() string { return s.String() }

// transports maps what files say to what Server says.
var transports = map[string]string{
	"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "sse": "sse",
}

// kinds are the members that say what a server is. It has one of them.
var kinds = []string{"command", "url", "builtin"}

// known are the members this package reads.
var known = []string{"command", "args", "env", "envFile", "cwd", "url", "headers", "type", "transport", "disabled", "builtin", "patchbay"}

// elsewhere are members of other hosts that a person would miss here, and
// what to write instead. Others of theirs are ignored in silence.
var elsewhere = map[string]string{
	"environment": `write "env"`, "arguments": `write "args"`, "workingDirectory": `write "cwd"`, "dir": `write "cwd"`,
	"serverUrl": `write "url"`, "httpUrl": `write "url"`, "uri": `write "url"`, "endpoint": `write "url"`, "cmd": `write "command"`,
	"enabled":       `write "disabled"`,
	"headersHelper": `write "headers" with ${NAME}`, "oauth": "",
}

// server reads one server. One that stands alone under "patchbay" has its settings
// among its other members.
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
		} else if near := misspelt(field.name, words); near != "" {
			l.warn(field.pos, "the member "+quote(field.name)+" is not read", "did you mean "+quote(near)+"?")
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
	s.Builtin = v.text(members, "builtin")
	s.Transport = l.transport(members)
	if alone {
		l.settings(members, &s)
	} else {
		l.own(l.above[m.name].value, &s)
	}
	l.own(members["patchbay"], &s)
	if len(l.problems) > faults {
		return // the rest would repeat these in other words
	}
	l.check(m, members, &s)
	if len(l.problems) == faults {
		l.file.Servers = append(l.file.Servers, s)
	}
}

// tildes warns of paths that a shell would complete: no shell reads them.
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

// check reports what members that are right alone say wrongly together.
func (l *loader) check(m member, members map[string]*node, s *Server) {
	var said []string
	for _, name := range kinds {
		if members[name] != nil {
			said = append(said, name)
		}
	}
	switch {
	case len(said) == 0:
		pos, fix := m.pos, `add "command" to start a program, "url" to reach one, or "builtin"`
		for _, field := range m.value.members {
			switch near := misspelt(field.name, known); {
			case elsewhere[field.name] == `write "command"` || elsewhere[field.name] == `write "url"`:
				pos, fix = field.pos, elsewhere[field.name]+" instead of "+quote(field.name)
			case near == "command" || near == "url" || near == "builtin":
				pos, fix = field.pos, "did you mean "+quote(near)+" instead of "+quote(field.name)+"?"
			}
		}
		l.fail(pos, "the server "+quote(s.Name)+" says neither command nor url", fix)
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
				l.warn(n.pos, fmt.Sprintf("%q means nothing beside %q", name, said[0]), "remove it")
			}
		}
	}
	switch said[0] {
	case "command":
		if s.Transport == "" {
			s.Transport = "stdio"
		}
		if s.Transport != "stdio" {
			l.fail(place.pos, "a command is reached by stdio", `write "stdio", or "url" instead of "command"`)
		}
		useless("headers")
	case "url":
		if s.Transport == "stdio" {
			l.fail(place.pos, "a url is not reached by stdio", `write "http" or "sse", or "command" instead of "url"`)
		}
		if problem, fix := checkServerURL(s.URL); problem != "" && !s.open("url") && !s.Disabled {
			l.fail(members["url"].pos, problem, fix)
		}
		useless("args", "env", "envFile", "cwd")
	case "builtin":
		if s.Transport != "" {
			l.warn(place.pos, "a builtin server has no transport", "remove it")
			s.Transport = ""
		}
		useless("env", "envFile", "cwd", "headers")
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
			l.fail(n.pos, `"type" and "transport" say different things`, "keep one of them")
		}
		said = t
	}
	return said
}

// checkServerURL tells what is wrong with the URL of a server, if anything is. It may also be of
// WebSocket.
func checkServerURL(text string) (problem, fix string) {
	if rest, ok := strings.CutPrefix(text, "ws"); ok && (strings.HasPrefix(rest, "://") || strings.HasPrefix(rest, "s://")) {
		text = "http" + rest
	}
	return checkURL("url", text)
}

// checkURL tells what is wrong with the URL of a member, if anything is.
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

// values reads the values of one server or model. missing, which may be nil, is told of a value
// whose variables cannot be replaced, and says whether it is kept as it is written.
type values struct {
	*loader
	into    *filled
	missing func(*node, *unreplaced) bool
}

// expand reads one value, and keeps where it is from.
func (v values) expand(n *node, member, name string) string {
	pieces, wrong := v.expander.expand(n.text)
	if wrong != nil {
		if v.missing == nil || !v.missing(n, wrong) {
			v.fail(n.pos, wrong.text, wrong.fix)
		}
		pieces = []piece{{text: n.text}}
	}
	value := Value{Member: member, Name: name, Written: n.text, Source: v.source(n.pos), pieces: pieces}
	v.into.values = append(v.into.values, value)
	for _, p := range pieces {
		if p.input != "" && !slices.ContainsFunc(v.into.inputs, func(in Input) bool { return in.ID == p.input }) {
			in, _ := v.file.named(p.input) // expand made sure that it is there
			v.into.inputs = append(v.into.inputs, in)
		}
	}
	return value.Text()
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

// table reads env and headers. A number stands for its text, as hosts read it.
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
