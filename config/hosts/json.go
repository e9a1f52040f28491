package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// readJSON reads the file of a host with JSON, which may have comments.
func readJSON(h Host, data []byte, from From) (*Listing, error) {
	l := new(Listing)
	if len(bytes.TrimSpace(data)) == 0 {
		return l, nil
	}
	text, err := config.Standardize(from.Path, data)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	add := func(list json.RawMessage, where string) error {
		if list == nil || jsonx.KindOf(list) == 'n' {
			return nil
		}
		if jsonx.KindOf(list) != '{' {
			return fmt.Errorf("%s: %s is not an object", from.Path, where)
		}
		for raw, value := range jsonx.Members(list) {
			name := string(raw)
			switch {
			case seen[name]:
				l.note("%q of %s is left out: another one of that name in the file takes precedence", name, where)
				continue
			case jsonx.KindOf(value) != '{':
				l.note("%q is left out: it is not an object", name)
				continue
			}
			seen[name] = true
			o := objectOf(jsonx.Compact(nil, value))
			if h.take != nil {
				h.take(o, l.about(name))
			}
			if !o.has("command") && !o.has("url") && !o.has("builtin") && !o.has("openapi") {
				l.note("%q is left out: it has neither a command nor a url", name)
				continue
			}
			h.spell.check(o, l.about(name))
			l.Servers = append(l.Servers, config.Entry{Name: name, Object: o.json()})
		}
		return nil
	}
	inputs, _ := jsonx.Lookup(text, "inputs")
	if h.Name == "claude-code" { // servers of a project take precedence
		local, found := jsonx.LookupPath(text, "projects", from.Dir, "mcpServers")
		if !found {
			local, _ = jsonx.LookupPath(text, "projects", filepath.ToSlash(from.Dir), "mcpServers")
		}
		if err := add(local, "the project"); err != nil {
			return nil, err
		}
	}
	list, found := jsonx.LookupPath(text, h.list...)
	if !found && h.Name == "vscode" { // settings.json had it before there was mcp.json
		list, _ = jsonx.LookupPath(text, "mcp", "servers")
		inputs, _ = jsonx.LookupPath(text, "mcp", "inputs")
	}
	if err := add(list, fmt.Sprintf("%q", h.list[0])); err != nil {
		return nil, err
	}
	for _, other := range []string{"mcpServers", "servers", "context_servers"} {
		if v, ok := jsonx.Lookup(text, other); ok && jsonx.KindOf(v) == '{' && other != h.list[0] {
			l.note("the list %q is left out: %s reads only %q", other, h.Title, h.list[0])
		}
	}
	if jsonx.KindOf(inputs) == '[' {
		for in := range jsonx.Elements(inputs) {
			l.Inputs = append(l.Inputs, jsonx.Compact(nil, in))
		}
	}
	return l, nil
}

// writeJSON writes the file of a host with JSON.
func writeJSON(h Host, l *Listing) ([]byte, error) {
	list := new(object)
	for _, e := range l.Servers {
		if jsonx.KindOf(e.Object) != '{' {
			return nil, fmt.Errorf("the server %q is not a JSON object", e.Name)
		}
		o := objectOf(e.Object)
		note := l.about(e.Name)
		if !portable(o, note) {
			continue
		}
		if h.shuns {
			if string(o.get("disabled")) == "true" {
				note("left out: it is disabled, and " + h.Title + " would start it")
				continue
			}
			o.remove("disabled")
		}
		h.spell.write(o, note)
		if h.give != nil && !h.give(o, note) {
			continue
		}
		if l.OS == "windows" && h.Name == "claude-code" {
			giveCmd(o, note)
		}
		list.set(e.Name, o.json())
	}
	file := new(object)
	if h.spell.inputs && len(l.Inputs) > 0 {
		raw, err := json.Marshal(l.Inputs)
		if err != nil {
			return nil, err
		}
		file.set("inputs", raw)
	}
	file.set(h.list[0], list.json())
	var out bytes.Buffer
	if err := json.Indent(&out, file.json(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// portable converts Patchbay's own members of a server to ones that other hosts understand. It
// returns false if other hosts cannot use the server.
func portable(o *object, note func(string)) bool {
	o.remove("patchbay")
	bearer(o)
	if o.has("openapi") {
		note("left out: other hosts do not read \"openapi\"; add `patchbay serve openapi DOCUMENT` there as a command")
		return false
	}
	if name := o.text("builtin"); name != "" {
		var args []string
		for arg := range jsonx.Elements(o.get("args")) {
			text, err := jsonx.Unquote(arg)
			if err != nil {
				note("left out: an argument is not a string")
				return false
			}
			args = append(args, text)
		}
		raw, err := json.Marshal(append([]string{"serve", name}, args...))
		if err != nil {
			note("left out: its arguments cannot be written")
			return false
		}
		o.remove("builtin", "share", "clients", "queue", "replicas", "breaker", "idle", "startTimeout", "callTimeout", "callLimit", "inheritEnv", "args")
		o.setText("command", "patchbay")
		o.set("args", raw)
	}
	o.rename("transport", "type")
	if !o.has("command") && !o.has("url") {
		note("left out: it has neither a command nor a url")
		return false
	}
	return true
}

// transport returns the transport of a server with a url.
func transport(o *object) string {
	if o.text("type") == "sse" {
		return "sse"
	}
	return "http"
}

// setType sets the type of a server as its first member.
func setType(o *object, kind string) {
	if o.has("type") {
		o.setText("type", kind)
		return
	}
	o.fields = append([]field{{"type", quoted(kind)}}, o.fields...)
}

// claudeTypes: a url needs its type, and the words are stdio, http and sse.
func claudeTypes(o *object, note func(string)) bool {
	if o.has("url") {
		setType(o, transport(o))
	}
	if o.has("envFile") {
		note(`Claude Code does not read "envFile"`)
	}
	return true
}

// plainTypes: Claude Desktop starts programs, and reaches others through its own settings.
func plainTypes(o *object, note func(string)) bool {
	if o.has("url") {
		note("left out: the file of Claude Desktop is for programs; add a url in its settings, under Connectors")
		return false
	}
	for _, name := range []string{"envFile", "cwd"} {
		if o.has(name) {
			note(fmt.Sprintf("Claude Desktop does not read %q", name))
		}
	}
	return true
}

// vscodeTypes: every server has its type.
func vscodeTypes(o *object, _ func(string)) bool {
	if o.has("url") {
		setType(o, transport(o))
	} else {
		setType(o, "stdio")
	}
	return true
}

// Windsurf has a word of its own for a url.
func takeWindsurf(o *object, _ func(string)) { o.rename("serverUrl", "url") }

func giveWindsurf(o *object, _ func(string)) bool {
	o.rename("url", "serverUrl")
	return true
}

// Gemini CLI has one word for the url of each transport.
func takeGemini(o *object, note func(string)) {
	switch {
	case o.has("httpUrl"):
		if o.has("url") {
			note(`it has "url" besides "httpUrl", which takes precedence`)
		}
		o.remove("url", "type")
		o.rename("httpUrl", "url")
		o.setText("type", "http")
	case o.has("url") && !o.has("type"):
		o.setText("type", "sse")
	}
}

func giveGemini(o *object, note func(string)) bool {
	if o.has("envFile") {
		note(`Gemini CLI does not read "envFile"`)
	}
	if !o.has("url") {
		return true
	}
	if transport(o) == "http" {
		o.rename("url", "httpUrl")
	}
	o.remove("type")
	return true
}

// Zed has "enabled", and once had an object for the command.
func takeZed(o *object, _ func(string)) {
	if jsonx.KindOf(o.get("command")) == '{' {
		command := objectOf(o.get("command"))
		o.remove("command")
		for _, f := range command.fields {
			if f.name == "path" {
				f.name = "command"
			}
			o.set(f.name, f.value)
		}
	}
	takeEnabled(o)
}

func giveZed(o *object, _ func(string)) bool {
	giveEnabled(o)
	if o.has("command") && !o.has("source") {
		o.setText("source", "custom")
	}
	o.remove("type")
	return true
}

// takeEnabled turns "enabled" into "disabled", and giveEnabled turns it back.
func takeEnabled(o *object) { negate(o, "enabled", "disabled") }

func giveEnabled(o *object) { negate(o, "disabled", "enabled") }

func negate(o *object, from, to string) {
	not := map[string]string{"true": "false", "false": "true"}[string(o.get(from))]
	if not != "" && !o.has(to) {
		o.set(from, json.RawMessage(not))
		o.rename(from, to)
	}
}
