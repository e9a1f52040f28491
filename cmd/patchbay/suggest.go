package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
	"github.com/patchbay-dev/patchbay/servers"
)

// suggestVerb is the hidden verb that the scripts of "patchbay completion" call:
//
//	patchbay __complete bash LINE WORDBREAKS      the line up to the cursor
//	patchbay __complete zsh|fish|powershell WORD ... CURRENT
//
// It prints a candidate a line, for other shells than bash with a tab and what it is. It says
// nothing else, asks nothing, and takes at most suggestTime.
const suggestVerb = "__complete"

// suggestTime bounds the wait for a server that has to be started or asked. A person waits
// with a finger on the key.
const suggestTime = 2500 * time.Millisecond

// suggestion is a candidate for the current word.
type suggestion struct{ text, about string }

// suggest is the whole of the hidden verb.
func suggest(ctx context.Context, args []string, stdout io.Writer) int {
	if len(args) < 2 {
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTime)
	defer cancel()
	a := newApp(ctx, strings.NewReader(""), stdout, io.Discard)
	a.answers.silence()
	shell, words, breaks := args[0], args[1:], ""
	if shell == "bash" {
		if len(args) > 2 {
			breaks = args[2]
		}
		var ok bool
		if words, ok = splitLine(args[1]); !ok || len(words) < 2 {
			return exitOK
		}
		words = words[1:] // without the program
	}
	last := len(words) - 1
	current := words[last]
	if shell == "powershell" { // which drops empty words, so that there is a sign before it
		current = strings.TrimPrefix(current, "=")
	}
	for _, s := range a.suggestions(words[:last], current) {
		if !strings.HasPrefix(s.text, current) || s.text != visible(s.text) || strings.ContainsAny(s.text, "\n\t") {
			continue // what cannot be seen is not to be put into a command line either
		}
		switch shell {
		case "bash":
			a.print(forBash(s.text, current, breaks))
		default:
			a.print(s.text + "\t" + cut(oneLine(s.about), 60))
		}
	}
	a.out.Flush()
	for _, f := range slices.Backward(a.atEnd) {
		f()
	}
	return exitOK
}

// suggestions finds the candidates for a word behind others.
func (a *app) suggestions(before []string, current string) []suggestion {
	k, err := kong.New(new(commands), kong.Name("patchbay"), kong.NoDefaultHelp(), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	if err != nil || slices.Contains(before, "--") {
		return nil // a command of its own, whose completion is that of the shell
	}
	line := arrange(k.Model, before)
	a.verb, a.words = line.verb, line.words
	a.takeFlags(line.flags)
	n := line.node(k.Model)
	flags := flagsOf(k.Model.Node)
	if n != nil {
		flags = flagsOf(n)
	}
	if len(before) > 0 { // the value of a flag
		if f := flags[before[len(before)-1]]; f != nil && !f.IsBool() {
			return a.flagValues(f.Name, "")
		}
	}
	switch {
	case strings.HasPrefix(current, "-"):
		if name, _, joined := strings.Cut(current, "="); joined {
			if f := flags[name]; f != nil {
				return a.flagValues(f.Name, name+"=")
			}
			return nil
		}
		var out []suggestion
		for name, f := range flags {
			if strings.HasPrefix(name, "--") && !f.Hidden {
				out = append(out, suggestion{name, f.Help})
			}
		}
		return sorted(out)
	case line.verb == "":
		return verbsOf(k.Model.Node)
	case n != nil && len(n.Children) > 0:
		return verbsOf(n)
	case line.verb == "config":
		return a.configWords(line.sub)
	}
	return a.wordsFor(k.Model, current)
}

func verbsOf(parent *kong.Node) []suggestion {
	var out []suggestion
	for _, n := range parent.Children {
		if !n.Hidden {
			out = append(out, suggestion{n.Name, n.Help})
		}
	}
	return out
}

func sorted(list []suggestion) []suggestion {
	slices.SortFunc(list, func(a, b suggestion) int { return strings.Compare(a.text, b.text) })
	return list
}

// takeFlags takes in the flags that say which server is meant.
func (a *app) takeFlags(flags []string) {
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		switch {
		case name == "--server":
			a.Server, a.Servers = value, append(a.Servers, value)
		case strings.HasPrefix(f, "-s"):
			a.Server = strings.TrimPrefix(f, "-s")
			a.Servers = append(a.Servers, a.Server)
		case name == "--config":
			a.Config = value
		case name == "--revision":
			a.Revision = value
		case name == "--header":
			a.Header = append(a.Header, value)
		case name == "--env":
			a.Env = append(a.Env, value)
		}
	}
	a.Timeout, a.OnElicit, a.Quiet = suggestTime, "decline", true
}

// flagValues are the values of a flag that are known, each behind before.
func (a *app) flagValues(name, before string) []suggestion {
	var out []suggestion
	switch name {
	case "server":
		out = a.serverNames("")
	case "model", "judge":
		if a.verb != "config" { // there it is what a provider calls one
			out = a.modelNames()
		}
	case "revision":
		for _, r := range mcp.Revisions() {
			out = append(out, suggestion{text: string(r)})
		}
	case "provider":
		for _, p := range config.Providers {
			out = append(out, suggestion{text: p})
		}
	case "on-elicit":
		out = []suggestion{{"decline", ""}, {"cancel", ""}}
	case "share":
		out = []suggestion{{"auto", ""}, {"shared", "one for all"}, {"session", "one for each session"}, {"principal", "one for each principal"}}
	}
	for i := range out {
		out[i].text = before + out[i].text
	}
	return out
}

// serverNames are the servers of mcp.json and the built-in ones, each with an ending.
func (a *app) serverNames(ending string) []suggestion {
	var out []suggestion
	if file, err := a.loadConfig(); err == nil {
		for _, name := range enabled(file) {
			out = append(out, suggestion{name + ending, "mcp.json"})
		}
	}
	for _, name := range servers.Names() {
		if !slices.ContainsFunc(out, func(s suggestion) bool { return s.text == name+ending }) {
			out = append(out, suggestion{name + ending, servers.Summary(name)})
		}
	}
	return out
}

// configWords are the candidates for a positional argument of a verb of "config".
func (a *app) configWords(sub []string) []suggestion {
	switch verb := strings.Join(sub, " "); verb {
	case "add", "model add", "models", "list":
		return nil
	case "model remove", "model use":
		return a.modelNames()
	case "remove", "export", "import", "explain", "doctor":
		return a.configServers(verb)
	case "inputs":
		return a.inputNames()
	case "approvals":
		if len(a.words) == 0 {
			return []suggestion{{"revoke", "Forget approvals."}}
		}
		return a.approvedNames()
	}
	return nil
}

// configServers are the candidates of verbs that are about servers of mcp.json. Disabled ones
// are servers too, and a built-in one that the file does not name cannot be removed.
func (a *app) configServers(verb string) (out []suggestion) {
	if first := len(a.words) == 0; first && (verb == "import" || verb == "export") {
		for _, h := range hosts.All() {
			out = append(out, suggestion{h.Name, h.Title})
		}
		return out
	}
	if verb == "import" {
		return nil // names of the host's own file, which is not read at the press of a key
	}
	read, err := a.inspectConfig()
	if err != nil || read.file == nil {
		return nil
	}
	for _, name := range read.names() {
		out = append(out, suggestion{name, "mcp.json"})
	}
	for _, s := range read.file.Servers {
		if s.Disabled && !slices.ContainsFunc(out, func(o suggestion) bool { return o.text == s.Name }) {
			out = append(out, suggestion{s.Name, "mcp.json, disabled"})
		}
	}
	switch verb {
	case "doctor":
		out = append(out, a.modelNames()...)
	case "explain":
		for _, name := range servers.Names() {
			out = append(out, suggestion{name, servers.Summary(name)})
		}
	}
	return out
}

// inputNames are the inputs of mcp.json.
func (a *app) inputNames() (out []suggestion) {
	read, err := a.inspectConfig()
	if err != nil || read.path == "" {
		return nil
	}
	doc, err := config.Open(read.path)
	if err != nil {
		return nil
	}
	for _, id := range textsOf(doc.Inputs(), "id") {
		out = append(out, suggestion{text: id})
	}
	return out
}

// wordsFor are the candidates for a positional argument of the verb.
func (a *app) wordsFor(model *kong.Application, current string) []suggestion {
	first := len(a.words) == 0
	switch a.verb {
	case "tools", "call":
		if first {
			return a.features(current, false, "tools")
		}
		if a.verb == "call" {
			return a.toolArguments(current)
		}
	case "prompts", "prompt":
		if first {
			return a.features(current, false, "prompts")
		}
		if a.verb == "prompt" {
			return a.promptArguments(current)
		}
	case "complete":
		if first {
			return append(a.features(current, false, "prompts"), a.features(current, true, "templates")...)
		}
		return a.promptArguments(current)
	case "read":
		if first {
			return a.features(current, true, "resources")
		}
	case "watch":
		return a.features(current, true, "resources")
	case "serve":
		if first {
			return a.serverNames("")
		}
	case "help":
		return a.helpTopics(model)
	case "completion":
		var out []suggestion
		for _, name := range shells {
			out = append(out, suggestion{text: name})
		}
		return out
	}
	return nil
}

// helpTopics are the topics of help: verbs, the verbs and servers below one, and pages.
func (a *app) helpTopics(model *kong.Application) []suggestion {
	if len(a.words) == 0 {
		return append(verbsOf(model.Node), suggestion{"flags", "Flags of every verb."}, suggestion{"auth", "Authentication of callers."},
			suggestion{"limits", "Bounds for callers."}, suggestion{"exits", "Exit codes."})
	}
	n := find(model, a.words[0])
	for _, word := range a.words[1:] {
		n = verbOf(n, word)
	}
	switch {
	case n == nil:
		return nil
	case n.Name == "serve":
		var out []suggestion
		for _, name := range servers.Names() {
			out = append(out, suggestion{name, servers.Summary(name)})
		}
		return out
	}
	return verbsOf(n)
}

// lists says where the names of features come from.
var lists = map[string]struct{ method, member, name string }{
	"tools":     {"tools/list", "tools", "name"},
	"prompts":   {"prompts/list", "prompts", "name"},
	"resources": {"resources/list", "resources", "uri"},
	"templates": {"resources/templates/list", "resourceTemplates", "uriTemplate"},
}

// features are the names of tools and the like of the server that is meant. Without one,
// and unless they are URIs, they are those of the server before a slash, and servers.
func (a *app) features(current string, uris bool, kind string) []suggestion {
	var out []suggestion
	before := ""
	if a.Server == "" && !uris {
		server, _, ok := strings.Cut(current, "/")
		switch known := a.serverNames(""); {
		case ok && slices.ContainsFunc(known, func(s suggestion) bool { return s.text == server }):
			a.Server, before = server, server+"/"
		default:
			out = a.serverNames("/")
		}
	}
	for _, item := range a.remembered(kind) {
		name, _ := jsonx.Lookup(item, lists[kind].name)
		text, err := jsonx.Unquote(name)
		if err != nil || text == "" {
			continue
		}
		var w struct{ Title, Description string }
		_ = json.Unmarshal(item, &w) // it is for display
		out = append(out, suggestion{before + text, orName(w.Description, w.Title)})
	}
	return out
}

// item is the entry of a list that the first word names.
func (a *app) item(kind string) json.RawMessage {
	name := a.slashed(a.words[0])
	for _, item := range a.remembered(kind) {
		if v, _ := jsonx.Lookup(item, lists[kind].name); plain(v) == name {
			return item
		}
	}
	return nil
}

// toolArguments are the arguments of a tool, and the values of one that are known.
func (a *app) toolArguments(current string) []suggestion {
	input, _ := jsonx.Lookup(a.item("tools"), "inputSchema")
	form, err := schema.FormOf(input)
	if err != nil {
		return nil
	}
	var out []suggestion
	name, _, valued := strings.Cut(current, "=")
	for i := range form.Fields {
		f := &form.Fields[i]
		switch {
		case !valued && !a.given(f.Name):
			out = append(out, suggestion{f.Name + "=", kindOf(f) + " " + f.Description})
		case valued && f.Name == name:
			for _, o := range f.Options {
				out = append(out, suggestion{name + "=" + plain(o.Value), o.Title})
			}
			if f.Kind == schema.Boolean {
				out = append(out, suggestion{name + "=true", ""}, suggestion{name + "=false", ""})
			}
		}
	}
	return out
}

// given tells whether an argument is on the command line already. Lists may be given in
// several words, but that is rare.
func (a *app) given(name string) bool {
	return slices.ContainsFunc(a.words[1:], func(w string) bool {
		return strings.HasPrefix(w, name+"=") || strings.HasPrefix(w, name+":=")
	})
}

// promptArguments are the arguments of a prompt or template, and the values that its server
// suggests for one.
func (a *app) promptArguments(current string) []suggestion {
	name, prefix, valued := strings.Cut(current, "=")
	if !valued {
		var w struct {
			Arguments []struct{ Name, Description string }
		}
		if json.Unmarshal(a.item("prompts"), &w) != nil {
			return nil
		}
		var out []suggestion
		for _, arg := range w.Arguments {
			if !a.given(arg.Name) {
				out = append(out, suggestion{arg.Name + "=", arg.Description})
			}
		}
		return out
	}
	of := a.slashed(a.words[0])
	others := map[string]string{}
	for _, w := range a.words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			others[key] = value
		}
	}
	p, err := a.open()
	if err != nil {
		return nil
	}
	raw, err := p.Raw(a.ctx, "completion/complete", completion(of, name, prefix, others))
	var c completed
	if err != nil || jsonx.Unmarshal(raw, &c) != nil {
		return nil
	}
	var out []suggestion
	for _, v := range c.Completion.Values {
		out = append(out, suggestion{text: name + "=" + v})
	}
	return out
}
