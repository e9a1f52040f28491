package main

import (
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/flags"
)

// verbs are the subcommands of the program, in the order of the overview. Each is in the file of
// its name.
var verbs = []*verb{
	&toolsVerb, &callVerb, &resourcesVerb, &templatesVerb, &readVerb, &promptsVerb, &promptVerb, &discoverVerb, &docsVerb,
	&completeVerb, &watchVerb, &pingVerb, &rawVerb, &runVerb, &evalVerb, &serveVerb, &upVerb, &inspectVerb, &pageVerb, &statusVerb, &topVerb, &restartVerb, &disableVerb, &enableVerb, &logsVerb, &loginsVerb, &nodesVerb, &drainVerb, &bridgeVerb,
	&configVerb, &tokenVerb, &policyVerb, &gatewayVerb, &auditVerb, &usageVerb, &chatVerb, &traceVerb, &replayVerb, &mockVerb, &newVerb, &openapiVerb, &completionVerb,
	&loginVerb, &logoutVerb, &whoamiVerb, &versionVerb, &helpVerb,
}

// verb is a subcommand with everything that the program knows about it. The parser of the command
// line, help, completion and docs/command-line.md are generated from it.
type verb struct {
	name     string
	summary  string         // one sentence
	usage    string         // the words after the name, such as "TOOL [SERVER]"
	examples []string       // whole lines for a shell; their flags and arguments are those of the program
	details  string         // explanation beyond usage and flags; may be empty
	minor    bool           // the overview lists it without its summary
	server   serverUse      // how the command line names servers; 0: it takes none
	command  func() command // returns a new command; nil if the verb only has verbs below it, which it may have too
	verbs    []*verb        // the verbs below it
}

// command implements a verb. Its fields are the flags and arguments of the verb, as package flags
// reads them.
type command interface {
	Run(a *app) error
}

// completer is a command that completes the current word of its arguments; a.words are the words
// before it.
type completer interface {
	candidates(a *app, current string) []complete.Candidate
}

// serverUse says how the command line of a verb names servers.
type serverUse uint

const (
	oneServer         serverUse = 1 << iota // -s SERVER or -- COMMAND; default: the only server of mcp.json
	manyServers                             // -s SERVER ... or -- COMMAND; default: all servers of mcp.json
	loginServer                             // SERVER is an argument; default: the only server of mcp.json
	namedServer                             // -s SERVER, but not a command
	gatewayServer                           // SERVER is an argument, and belongs to a running gateway; --pid selects that
	wordsBehindDashes                       // no server: the words after -- belong to the verb
	wordIsServer                            // every plain word names a server
	urlIsServer                             // a plain word that is a URL names a server
	firstURLIsServer                        // likewise, but only the first word
	programIsServer                         // a program and its arguments may stand without --
	serverExplained                         // the details explain SERVER
	foreignFlags                            // an unknown flag is a plain word
)

// takes reports whether a verb names servers in one of these ways.
func (v *verb) takes(use serverUse) bool { return v != nil && v.server&use != 0 }

// synopsis returns the usage of a verb after its path, such as "config model add".
func (v *verb) synopsis(path string) string {
	usage := v.usage
	if v.command == nil {
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
	flags.Set
	globals globals
	command command       // nil without a verb, and for one that only has verbs below it
	own     []*flags.Flag // the flags of the verb
}

// parserOf returns the parser of a verb; for nil, one that knows only the flags of every verb. A
// mistake in the tags of a command panics, which the tests of all verbs find.
func parserOf(v *verb) *parser {
	p := &parser{}
	p.Add(&p.globals)
	if v != nil && v.command != nil {
		n := len(p.Flags)
		p.command = v.command()
		p.Add(p.command)
		p.own = p.Flags[n:]
	}
	return p
}
