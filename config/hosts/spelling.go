package hosts

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// spelling is the syntax of a host for variables in a server's entry.
type spelling struct {
	env      func(name string) string // nil: it has no variables
	defaults bool                     // ${NAME:-text}
	inputs   bool                     // ${input:ID}
	folders  bool                     // ${userHome}, ${workspaceFolder} and their like
	bare     bool                     // a value $NAME is a variable too
}

var (
	verbatim    = spelling{}
	shellStyle  = spelling{env: braced, defaults: true}
	envStyle    = spelling{env: prefixed, folders: true}
	inputStyle  = spelling{env: prefixed, folders: true, inputs: true}
	dollarStyle = spelling{env: braced, bare: true}
)

func braced(name string) string   { return "${" + name + "}" }
func prefixed(name string) string { return "${env:" + name + "}" }

// each replaces the texts in a server's entry that may have variables.
func each(o *object, change func(text string) string) {
	one := func(raw json.RawMessage) json.RawMessage {
		text, err := jsonx.Unquote(raw)
		if err != nil {
			return raw // a number, or a fault for others to find
		}
		if got := change(text); got != text {
			return quoted(got)
		}
		return raw
	}
	for i := range o.fields {
		f := &o.fields[i]
		switch f.name {
		case "command", "cwd", "url", "envFile":
			f.value = one(f.value)
		case "args":
			if jsonx.KindOf(f.value) == '[' {
				out := []byte{'['}
				for v := range jsonx.Elements(f.value) {
					if len(out) > 1 {
						out = append(out, ',')
					}
					out = append(out, one(v)...)
				}
				f.value = append(out, ']')
			}
		case "env", "headers":
			if jsonx.KindOf(f.value) == '{' {
				table := objectOf(f.value)
				for j := range table.fields {
					table.fields[j].value = one(table.fields[j].value)
				}
				f.value = table.json()
			}
		}
	}
}

var bareVariable = pattern.Lazy(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// check notes the variables of a converted server that Patchbay reads differently.
func (s spelling) check(o *object, note func(string)) {
	noted := false
	each(o, func(text string) string {
		if s.env == nil && strings.Contains(text, "${") && !noted {
			noted = true
			note("a value has ${, which its host keeps and Patchbay replaces")
		}
		if s.bare {
			return bareVariable().ReplaceAllString(text, "$${$1}")
		}
		return text
	})
}

// write converts the variables of a server to the host's syntax.
func (s spelling) write(o *object, note func(string)) {
	each(o, func(text string) string { return s.text(text, note) })
}

// text converts the variables of one value to the host's syntax.
func (s spelling) text(text string, note func(string)) string {
	var out strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		ref, end, closed := strings.Cut(after, "}")
		if !found || !closed {
			out.WriteString(rest[len(before):])
			break
		}
		out.WriteString(s.variable(ref, note))
		rest = end
	}
	got := out.String()
	if s.bare && strings.HasPrefix(got, "${") && strings.IndexByte(got, '}') == len(got)-1 && bareVariable().MatchString("$"+got[2:len(got)-1]) {
		return "$" + got[2:len(got)-1]
	}
	return got
}

func (s spelling) variable(ref string, note func(string)) string {
	asIs := "${" + ref + "}"
	unknown := func(what string) string {
		note("its host does not replace " + what + ", which stays unchanged")
		return asIs
	}
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		name := config.Input{ID: id}.EnvName()
		switch {
		case s.inputs:
			return asIs
		case s.env == nil:
			return unknown("${input:...}")
		}
		note("its host does not ask for inputs: set the environment variable " + name)
		return s.env(name)
	}
	switch ref {
	case "userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/":
		switch {
		case s.folders:
			return asIs
		case ref == "userHome" && s.env != nil:
			return s.env("HOME")
		}
		return unknown(asIs)
	}
	if s.env == nil {
		return unknown("variables")
	}
	name, fallback, has := strings.Cut(ref, ":-")
	name = strings.TrimPrefix(name, "env:")
	switch {
	case has && s.defaults:
		return "${" + name + ":-" + fallback + "}"
	case has:
		note("its host has no defaults: set the environment variable " + name)
	}
	return s.env(name)
}

// bearer moves the "api_key" of a server into its headers.
func bearer(o *object) {
	key := o.text("api_key")
	if key == "" {
		return
	}
	headers := objectOf(o.get("headers"))
	headers.setText("Authorization", "Bearer "+key)
	o.set("headers", headers.json())
	o.remove("api_key")
}

// Redact replaces the values in env, headers and api_key with environment variables, and returns their
// number: the value of K with ${K}, that of a header with a name made of the server and the
// header.
func Redact(e config.Entry) (config.Entry, int) {
	if jsonx.KindOf(e.Object) != '{' {
		return e, 0
	}
	o, n := objectOf(e.Object), 0
	bearer(o)
	for _, member := range []string{"env", "headers"} {
		if jsonx.KindOf(o.get(member)) != '{' {
			continue
		}
		table := objectOf(o.get(member))
		for i := range table.fields {
			f := &table.fields[i]
			text, err := jsonx.Unquote(f.value)
			if err == nil && strings.Contains(text, "${") || text == "" && err == nil {
				continue
			}
			name, before := variableOf(f.name), ""
			if member == "headers" {
				name = variableOf(e.Name + "_" + f.name)
				if scheme, _, ok := strings.Cut(text, " "); ok && (scheme == "Bearer" || scheme == "Basic") {
					before = scheme + " "
				}
			}
			f.value = quoted(before + "${" + name + "}")
			n++
		}
		o.set(member, table.json())
	}
	return config.Entry{Name: e.Name, Object: o.json()}, n
}

// variableOf returns an environment variable name made from s.
func variableOf(s string) string {
	if regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(s) && strings.ToUpper(s) == s {
		return s
	}
	name := strings.TrimPrefix(config.Input{ID: s}.EnvName(), config.InputEnvPrefix)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
