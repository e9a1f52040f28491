package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
)

// suggestTime bounds the wait for a server that must be started or asked, while a person waits for
// completion.
var suggestTime = 2500 * time.Millisecond

// suggest answers a shell that completes a command line. It asks no questions, and takes at most
// suggestTime.
func suggest(ctx context.Context, args []string, stdout io.Writer) int {
	r, ok := complete.Parse(args)
	if !ok {
		if len(args) < 2 {
			return exitUsage
		}
		return exitOK
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTime)
	defer cancel()
	a := newApp(ctx, strings.NewReader(""), io.Discard, io.Discard)
	a.answers.Silence()
	a.suggests = true
	_ = r.Write(stdout, a.suggestions(r.Before, r.Current)) // nobody would see an error
	for _, f := range slices.Backward(a.atEnd) {
		f()
	}
	return exitOK
}

// suggestions returns the candidates for the current word.
func (a *app) suggestions(before []string, current string) []complete.Candidate {
	if slices.Contains(before, "--") {
		return nil // another command follows, which the shell completes
	}
	line := arrange(before)
	a.of, a.verb, a.sub, a.words = line.of, line.verb, line.sub, line.words
	a.takeFlags(line.flags)
	if len(before) > 0 { // the value of a flag
		if f := line.parser.Written(before[len(before)-1]); f != nil && !f.IsBool() {
			return a.flagValues(f.Name, "")
		}
	}
	switch {
	case strings.HasPrefix(current, "-"):
		if name, _, joined := strings.Cut(current, "="); joined {
			if f := line.parser.Written(name); f != nil {
				return a.flagValues(f.Name, name+"=")
			}
			return nil
		}
		var out []complete.Candidate
		for _, f := range line.parser.Flags {
			out = append(out, complete.Candidate{Text: "--" + f.Name, About: f.Help})
		}
		if _, serves := line.parser.command.(*serveCmd); serves && len(a.words) > 0 {
			for text := range strings.Lines(servers.Usage(a.words[0])) {
				if flag, ok := strings.CutPrefix(text, "  --"); ok {
					name, about, _ := strings.Cut(flag, " ")
					out = append(out, complete.Candidate{Text: "--" + name, About: strings.TrimSpace(about)})
				}
			}
		}
		slices.SortFunc(out, func(a, b complete.Candidate) int { return strings.Compare(a.Text, b.Text) })
		return out
	case line.verb == "":
		return verbNames(verbs)
	case line.of == nil:
		return nil
	case line.of.command == nil:
		return verbNames(line.of.verbs)
	}
	if c, ok := line.parser.command.(completer); ok {
		return c.candidates(a, current)
	}
	return nil
}

func verbNames(list []*verb) (out []complete.Candidate) {
	for _, v := range list {
		out = append(out, complete.Candidate{Text: v.name, About: v.summary})
	}
	return out
}

// takeFlags applies the flags that select a server.
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

// flagValues returns the known values of a flag, each after the prefix before.
func (a *app) flagValues(name, before string) []complete.Candidate {
	var out []complete.Candidate
	switch name {
	case "server":
		out = a.serverNames("")
	case "model", "judge":
		if a.of != &modelAddVerb { // there the flag takes the provider's name of a model
			out = a.modelNames()
		}
	case "revision":
		for _, r := range mcp.Revisions() {
			out = append(out, complete.Candidate{Text: string(r)})
		}
	case "provider":
		for _, p := range config.Providers {
			out = append(out, complete.Candidate{Text: p})
		}
	case "on-elicit":
		out = []complete.Candidate{{Text: "decline"}, {Text: "cancel"}}
	case "share":
		out = []complete.Candidate{{Text: "auto"}, {Text: "shared", About: "one for all"}, {Text: "session", About: "one for each session"}, {Text: "principal", About: "one for each principal"}, {Text: "exclusive", About: "one caller at a time"}}
	}
	for i := range out {
		out[i].Text = before + out[i].Text
	}
	return out
}

// serverNames returns the servers of mcp.json and the built-in ones, each followed by ending.
func (a *app) serverNames(ending string) []complete.Candidate {
	var out []complete.Candidate
	if file, err := a.loadConfig(); err == nil {
		for _, name := range enabled(file) {
			out = append(out, complete.Candidate{Text: name + ending, About: "mcp.json"})
		}
	}
	for _, name := range servers.Names() {
		if !slices.ContainsFunc(out, func(c complete.Candidate) bool { return c.Text == name+ending }) {
			out = append(out, complete.Candidate{Text: name + ending, About: servers.Summary(name)})
		}
	}
	return out
}

// configServers returns the servers of mcp.json, also disabled ones. It omits built-in servers that
// the file does not name, because they cannot be removed.
func (a *app) configServers() (out []complete.Candidate) {
	read, err := a.inspectConfig()
	if err != nil || read.file == nil {
		return nil
	}
	for _, name := range read.names() {
		out = append(out, complete.Candidate{Text: name, About: "mcp.json"})
	}
	for _, s := range read.file.Servers {
		if s.Disabled && !slices.ContainsFunc(out, func(c complete.Candidate) bool { return c.Text == s.Name }) {
			out = append(out, complete.Candidate{Text: s.Name, About: "mcp.json, disabled"})
		}
	}
	return out
}

// builtinNames are the built-in servers.
func builtinNames() (out []complete.Candidate) {
	for _, name := range servers.Names() {
		out = append(out, complete.Candidate{Text: name, About: servers.Summary(name)})
	}
	return out
}

// features returns the names of tools, prompts and the like of the selected server. Without one,
// and unless they are URIs, it returns server names, or the features of the server before a slash.
func (a *app) features(current string, of feature.List) []complete.Candidate {
	var out []complete.Candidate
	before := ""
	if a.Server == "" && of.Key == "name" {
		server, _, ok := strings.Cut(current, "/")
		switch known := a.serverNames(""); {
		case ok && slices.ContainsFunc(known, func(c complete.Candidate) bool { return c.Text == server }):
			a.Server, before = server, server+"/"
		default:
			out = a.serverNames("/")
		}
	}
	for _, item := range a.remembered(of) {
		name, _ := jsonx.Lookup(item, of.Key)
		text, err := jsonx.Unquote(name)
		if err != nil || text == "" {
			continue
		}
		var w struct{ Title, Description string }
		_ = json.Unmarshal(item, &w) // for display only
		out = append(out, complete.Candidate{Text: before + text, About: orName(w.Description, w.Title)})
	}
	return out
}

// item returns the entry of a list that the first word names.
func (a *app) item(of feature.List) json.RawMessage {
	name := a.slashed(a.words[0])
	for _, item := range a.remembered(of) {
		if v, _ := jsonx.Lookup(item, of.Key); plain(v) == name {
			return item
		}
	}
	return nil
}

// toolArguments returns the arguments of a tool, or the known values of one.
func (a *app) toolArguments(current string) []complete.Candidate {
	input, _ := jsonx.Lookup(a.item(feature.Tools), "inputSchema")
	var out []complete.Candidate
	given := func(name string) bool { return arguments.Given(a.words[1:], name) }
	arguments.Suggest(input, given, current, func(word, about string) {
		out = append(out, complete.Candidate{Text: word, About: about})
	})
	return out
}

// promptArguments returns the arguments of a prompt or template, or the values that its server
// suggests for one.
func (a *app) promptArguments(current string) []complete.Candidate {
	name, prefix, valued := strings.Cut(current, "=")
	if !valued {
		var w struct {
			Arguments []struct{ Name, Description string }
		}
		if json.Unmarshal(a.item(feature.Prompts), &w) != nil {
			return nil
		}
		var out []complete.Candidate
		for _, arg := range w.Arguments {
			if !arguments.Given(a.words[1:], arg.Name) {
				out = append(out, complete.Candidate{Text: arg.Name + "=", About: arg.Description})
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
	raw, err := p.Raw(a.ctx, "completion/complete", complete.Params(of, name, prefix, others))
	var c complete.Result
	if err != nil || jsonx.Unmarshal(raw, &c) != nil {
		return nil
	}
	var out []complete.Candidate
	for _, v := range c.Completion.Values {
		out = append(out, complete.Candidate{Text: name + "=" + v})
	}
	return out
}

// remembered returns the items of a list of the selected server, from the cache or fetched now;
// none if the server does not answer in time.
//
// A server is asked only if the command line names it or its configuration: pressing a key in a
// folder of unknown origin must not start the servers of its mcp.json.
func (a *app) remembered(of feature.List) []json.RawMessage {
	if a.Server == "" && a.Config == "" {
		return nil
	}
	s, err := a.target()
	if err != nil {
		return nil
	}
	key := fmt.Sprintf("%q %q %q %q %q %q %q %q", of.Method, s.Name, s.Builtin, s.URL, append([]string{s.Command, s.Dir}, s.Args...), a.Env, a.Header, a.Revision) + fmt.Sprint(s.Env, s.Headers)
	if raw := complete.Kept(key); raw != nil {
		items, _ := jsonx.Lookup(raw, of.Member)
		return slices.Collect(jsonx.Elements(items))
	}
	p, err := a.open()
	if err != nil {
		return nil
	}
	l, err := a.list(p, of)
	if err != nil {
		return nil
	}
	complete.Keep(key, l.raw)
	return l.items
}
