package main

import (
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/flags"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/observe"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/servers"
)

var helpVerb = verb{
	name: "help", summary: "Show help.", usage: "[VERB | flags | auth | limits | exits]",
	examples: []string{"patchbay help call"},
	minor:    true,
	command:  func() command { return new(helpCmd) },
}

type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A verb, flags, auth, limits or exits."`
}

// candidates returns the topics of help: verbs, verbs and servers below one, and pages.
func (*helpCmd) candidates(a *app, _ string) []complete.Candidate {
	if len(a.words) > 0 {
		v := find(a.words...)
		switch {
		case v == nil:
			return nil
		case v == &serveVerb:
			return builtinNames()
		}
		return verbNames(v.verbs)
	}
	out := verbNames(verbs)
	for _, p := range helpPages {
		out = append(out, complete.Candidate{Text: p.name, About: p.summary})
	}
	return out
}

// Run is never called: help is printed before a verb runs.
func (*helpCmd) Run(*app) error { return nil }

// overviewExamples are the first lines of the overview.
var overviewExamples = []string{
	"patchbay tools -- npx -y @modelcontextprotocol/server-everything",
	"patchbay call everything/add a=2 b=3",
	"patchbay up",
}

const (
	helpServer = `SERVER is -s NAME (in mcp.json, or built in), -s URL, or -- COMMAND ARGS, to
start one over stdio. Default: the only server in mcp.json.`
	helpServers = `SERVER is -s NAME|URL (repeatable) or -- COMMAND; default: all of mcp.json.`
	helpLogin   = `SERVER is a name in mcp.json, or a URL. Default: the only server in mcp.json.`
)

const helpExits = `Exit codes
  0  success
  1  a local failure
  2  wrong command line, a file that it names is missing, or key=value does not
     fit the tool (which is not called then)
  3  the server requires authorization (HTTP 401 or 403)
  4  the server cannot be reached: refused, unknown host, command not found, or
     it ended or timed out before its first answer
  5  the server answered with an error: a tool error (the result is printed) or
     a protocol error, also for arguments in JSON that do not fit; or it has no
     tool, prompt or resource of that name
  6  policy check, gateway explain: refused; policy replay, audit verify: differ
  7  run: the language model, or its provider, gave no answer or refused
  8  run: not done within a --max flag, or the answer was cut off
  9  run: a call was not allowed, so not made (the answer is printed)
 10  run: the answer does not fit --output-schema
 11  the program would serve or start itself
130  ctrl-C, or another signal, ended it before it was done
`

// helpPages are the topics of help that are not verbs.
var helpPages = []struct{ name, summary, text string }{
	{"flags", "Global flags.", ""}, // generated from globals
	{"auth", "Authentication of callers.", listen.HelpAuth},
	{"limits", "Rate limits for callers.", listen.HelpLimits},
	{"exits", "Exit codes.", helpExits},
}

// help prints the help of a topic, or the overview.
func (a *app) help(topic []string) error {
	topic = slices.DeleteFunc(slices.Clone(topic), func(s string) bool { return s == "" })
	if len(topic) == 0 {
		a.overview()
		return nil
	}
	for _, p := range helpPages {
		switch {
		case p.name != topic[0]:
			continue
		case p.text == "":
			a.print("Global flags")
			a.flagTable(parserOf(nil).Flags)
		default:
			a.out.WriteString(p.text)
		}
		return nil
	}
	v, n := find(topic[0]), 1
	if v == nil {
		return unknownVerb(verbs, "", topic[0]).Hint("patchbay help")
	}
	for ; n < len(topic) && len(v.verbs) > 0; n++ {
		sub := among(v.verbs, topic[n])
		if sub == nil && v.command != nil {
			break // a word of the command
		} else if sub == nil {
			before := strings.Join(topic[:n], " ")
			return unknownVerb(v.verbs, before+" ", topic[n]).Hint("patchbay help " + before)
		}
		v = sub
	}
	if v == &serveVerb && n < len(topic) {
		return a.helpServer(topic[n])
	}
	a.helpVerb(v, strings.Join(topic[:n], " "))
	return nil
}

// helpServer prints the help of a built-in server: its flags, and a pointer to the flags of the verb serve.
func (a *app) helpServer(name string) error {
	if name == observe.Name {
		a.out.WriteString(observe.Usage)
		return nil
	}
	usage := servers.Usage(name)
	if usage == "" {
		names := servers.Names()
		return usagef("no built-in server %q; available: %s%s", name, strings.Join(names, ", "), didYouMean(name, names)).Hint("patchbay help serve")
	}
	a.out.WriteString(usage)
	a.print("\nUsage: patchbay serve " + name + " [--http ADDR] [FLAGS]")
	a.print("Flags of serve itself: patchbay help serve")
	return nil
}

func (a *app) overview() {
	a.print("Patchbay connects to servers of the Model Context Protocol, and serves its own.\n")
	a.examples(overviewExamples)
	a.print("\nVerbs")
	var minor []string
	for _, v := range verbs {
		switch {
		case !v.minor:
			a.summary(v)
		case v != &helpVerb:
			minor = append(minor, v.name)
		}
	}
	a.print(wrap("More: "+strings.Join(minor, " "), 80))
	a.print("patchbay help VERB|flags|auth|limits|exits")
}

// summary prints the line of a verb in a list.
func (a *app) summary(v *verb) { a.print("  " + a.paint(pad(v.name, 11), "1") + v.summary) }

func (a *app) examples(lines []string) {
	for _, e := range lines {
		a.print("  " + a.paint(e, "1"))
	}
}

// helpVerb prints the help of a verb with a path such as "config add".
func (a *app) helpVerb(v *verb, path string) {
	a.print(v.summary + "\n")
	a.examples(v.examples)
	a.print("Usage: " + v.synopsis(path))
	if v.details != "" {
		a.print("\n" + v.details)
	}
	switch {
	case v.takes(serverExplained):
	case v.takes(oneServer):
		a.print("\n" + helpServer)
	case v.takes(loginServer):
		a.print("\n" + helpLogin)
	}
	if v.command == nil {
		a.print("\nVerbs")
		for _, sub := range v.verbs {
			a.summary(sub)
		}
	}
	if own := parserOf(v).own; len(own) > 0 {
		a.print("\nFlags (global flags: patchbay help flags)")
		a.flagTable(own)
	} else {
		a.print("\nGlobal flags: patchbay help flags")
	}
}

func (a *app) flagTable(list []*flags.Flag) {
	first := 0
	rows := flagRows(list)
	for _, r := range rows {
		first = max(first, columns(r.Name))
	}
	for _, r := range rows {
		a.print(pad("  "+r.Name, first+2) + "  " + r.About)
	}
}

// flagRows returns a row for each flag, with its description.
func flagRows(list []*flags.Flag) (rows []row) {
	for _, f := range list {
		name := "--" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", " + name
		}
		if !f.IsBool() {
			name += " " + f.Placeholder
		}
		about := f.Help
		if f.Default != "" && !strings.Contains(about, "default") {
			about = strings.TrimSuffix(about, ".") + " [" + f.Default + "]."
		}
		rows = append(rows, row{Name: name, About: about})
	}
	return rows
}
