package main

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

// verbs are the verbs of the program, in the order of the overview. Each stands in the file of its name.
var verbs = []*verb{
	&toolsVerb, &callVerb, &resourcesVerb, &templatesVerb, &readVerb, &promptsVerb, &promptVerb, &discoverVerb,
	&completeVerb, &watchVerb, &pingVerb, &rawVerb, &runVerb, &evalVerb, &serveVerb, &upVerb, &statusVerb, &bridgeVerb,
	&configVerb, &tokenVerb, &policyVerb, &chatVerb, &traceVerb, &replayVerb, &mockVerb, &completionVerb,
	&loginVerb, &logoutVerb, &whoamiVerb, &versionVerb, &helpVerb,
}

// verb is a word of the command line with everything that the program knows about it. The parser of the
// command line, help, completion and docs/command-line.md are made from it.
type verb struct {
	name     string
	summary  string         // one sentence
	usage    string         // follows the name, such as "TOOL [SERVER]"
	examples []string       // whole lines of a shell; their flags and arguments are those of the program
	details  string         // an explanation beyond usage and flags; empty: none
	minor    bool           // the overview names it without its summary
	server   serverUse      // how its command line names servers; 0: it takes none
	command  func() command // returns the work of the verb; nil for one that has verbs
	verbs    []*verb        // the verbs below it
}

// command is the work of a verb. Its fields are the flags and arguments of the verb, as kong reads them.
type command interface {
	Run(a *app) error
}

// completer is a command that knows candidates for the current word of its arguments; a.words are those
// before it.
type completer interface {
	candidates(a *app, current string) []complete.Candidate
}

// serverUse says how the command line of a verb names servers.
type serverUse uint

const (
	oneServer         serverUse = 1 << iota // -s SERVER or -- COMMAND; without, the only one of mcp.json
	manyServers                             // -s SERVER ... or -- COMMAND; without, all of mcp.json
	loginServer                             // SERVER is an argument; without, the only one of mcp.json
	namedServer                             // -s SERVER, without a command
	wordsBehindDashes                       // no server: the words after -- are the verb's own
	wordIsServer                            // every plain word names a server
	urlIsServer                             // a plain word that is a URL names a server
	firstURLIsServer                        // likewise, but only the first word
	programIsServer                         // a program and its arguments may stand without --
	serverExplained                         // details say what SERVER is
	foreignFlags                            // a flag that the program does not have is a plain word
)

// takes tells whether a verb names servers in one of some ways.
func (v *verb) takes(use serverUse) bool { return v != nil && v.server&use != 0 }

// synopsis is the usage of a verb behind its path, such as "config model add".
func (v *verb) synopsis(path string) string {
	usage := v.usage
	if v.verbs != nil {
		usage = "VERB"
	}
	return strings.TrimSpace("patchbay " + path + " " + usage)
}

// among finds a verb by its name; nil: there is none.
func among(list []*verb, name string) *verb {
	if i := slices.IndexFunc(list, func(v *verb) bool { return v.name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// find returns the verb of a path such as config, model, add; nil: there is none.
func find(path ...string) (v *verb) {
	list := verbs
	for _, name := range path {
		if v = among(list, name); v == nil {
			return nil
		}
		list = v.verbs
	}
	return v
}

// parser reads the command line of one verb.
type parser struct {
	kong    *kong.Kong
	globals globals
	command command               // nil without a verb, and for one that has verbs
	own     []*kong.Flag          // the flags of the verb
	flags   map[string]*kong.Flag // all of them as they are written: --name and -n
}

// parserOf makes the parser of a verb; nil: only the flags of every verb are known. A mistake in the
// tags of a command panics, which the tests of all verbs find.
func parserOf(v *verb) *parser {
	p := &parser{flags: make(map[string]*kong.Flag)}
	options := []kong.Option{kong.Name("patchbay"), kong.NoDefaultHelp(), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard)}
	if v != nil && v.command != nil {
		p.command = v.command()
		options = append(options, kong.DynamicCommand(v.name, v.summary, "", p.command))
	}
	p.kong = kong.Must(&p.globals, options...)
	all := p.kong.Model.Flags
	if p.command != nil {
		p.own = p.kong.Model.Children[0].Flags
		all = slices.Concat(all, p.own)
	}
	for _, f := range all {
		p.flags["--"+f.Name] = f
		if f.Short != 0 {
			p.flags["-"+string(f.Short)] = f
		}
	}
	return p
}
