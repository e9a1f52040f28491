package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// commands is the command table: a field per verb, each with its type in the file
// of its name.
type commands struct {
	globals

	Tools     toolsCmd     `cmd:"" help:"List tools, or show one with its arguments."`
	Call      callCmd      `cmd:"" help:"Call a tool."`
	Resources resourcesCmd `cmd:"" help:"List resources."`
	Templates templatesCmd `cmd:"" help:"List resource templates."`
	Read      readCmd      `cmd:"" help:"Read a resource."`
	Prompts   promptsCmd   `cmd:"" help:"List prompts, or show one with its arguments."`
	Prompt    promptCmd    `cmd:"" help:"Get a prompt."`
	Discover  discoverCmd  `cmd:"" help:"Show what a server is and offers."`
	Complete  completeCmd  `cmd:"" help:"Ask for values of an argument of a prompt or template."`
	Watch     watchCmd     `cmd:"" help:"Show updates of resources and changes of lists."`
	Ping      pingCmd      `cmd:"" help:"Measure round trips."`
	Raw       rawCmd       `cmd:"" help:"Send any request."`
	Run       runCmd       `cmd:"" help:"Have a language model do a task with the tools of servers."`
	Eval      evalCmd      `cmd:"" help:"Test servers and prompts with language models."`
	Serve     serveCmd     `cmd:"" help:"Serve a built-in server."`
	Up        upCmd        `cmd:"" help:"Serve all servers of mcp.json behind one endpoint."`
	Status    statusCmd    `cmd:"" help:"Show what became of the servers of a running up."`
	Bridge    bridgeCmd    `cmd:"" help:"Serve a stdio server over HTTP, or an HTTP server over stdio."`
	Config    configCmd    `cmd:"" help:"Add, remove, list, import, export, explain and check servers."`
	Token     tokenCmd     `cmd:"" help:"Make and inspect test tokens, API keys and passwords."`
	Policy    policyCmd    `cmd:"" help:"Check rules of who may do what, and explain their decisions."`
	Chat      chatCmd      `cmd:"" help:"Talk to a language model that has the tools of servers."`
	Trace     traceCmd     `cmd:"" help:"Show a recording of --trace."`
	Replay    replayCmd    `cmd:"" help:"Send what was recorded to a server, and compare its answers."`
	Mock      mockCmd      `cmd:"" help:"Serve a recording in place of its server."`

	Completion completionCmd `cmd:"" help:"Print a script that completes command lines in a shell."`

	Login   loginCmd   `cmd:"" help:"Log in at a server, and stay so."`
	Logout  logoutCmd  `cmd:"" help:"Revoke and forget the tokens for a server."`
	Whoami  whoamiCmd  `cmd:"" help:"Show the login at a server, not its token."`
	Version versionCmd `cmd:"" help:"Show the version."`
	Help    helpCmd    `cmd:"" help:"Show help."`
}

// globals are the flags of every verb.
type globals struct {
	Servers    []string      `name:"server" short:"s" sep:"none" placeholder:"SERVER" help:"A name of mcp.json, a built-in server or a URL."`
	Server     string        `kong:"-"` // the first of Servers
	Config     string        `placeholder:"FILE" help:"Read this mcp.json; default: the one found from here."`
	JSON       bool          `name:"json" help:"Print JSON, exactly what the server sent."`
	Plain      bool          `help:"Print texts as they are, nothing rendered."`
	Save       string        `placeholder:"DIR" help:"Save pictures, sounds and blobs there."`
	Verbose    bool          `short:"v" help:"Show frames, redacted, and the server's stderr."`
	Quiet      bool          `short:"q" help:"No progress, log lines or warnings."`
	Timeout    time.Duration `default:"1m" placeholder:"TIME" help:"Give up when nothing is heard for so long; 0: never."`
	Revision   string        `placeholder:"DATE" help:"Speak only this revision, such as 2025-11-25."`
	Env        []string      `sep:"none" placeholder:"K=V" help:"Set this in the environment of a command (repeatable)."`
	Header     []string      `sep:"none" placeholder:"'K: V'" help:"Send this HTTP header (repeatable)."`
	ServerCA   string        `name:"server-ca" placeholder:"FILE" help:"Trust servers that this authority (PEM) has signed, too."`
	ClientCert string        `name:"client-cert" placeholder:"FILE" help:"Show servers this certificate (PEM)."`
	ClientKey  string        `name:"client-key" placeholder:"FILE" help:"Its key; default: in the same file."`
	Trace      string        `placeholder:"FILE" help:"Record everything on the wire, redacted; -: to stderr."`
	TraceMax   int           `name:"trace-max" default:"16777216" placeholder:"BYTES" help:"Cut longer messages in the recording."`
	OnElicit   string        `placeholder:"ANSWER" help:"Answer questions: decline, cancel or @answers.json."`
	OnSample   string        `placeholder:"@FILE" help:"Answer sampling with a file: text or a result."`
	Root       []string      `sep:"none" placeholder:"DIR" help:"A folder the server may use (repeatable)."`
}

// dispatch parses the command line and runs its verb.
func (a *app) dispatch(args []string) error {
	var table commands
	k, err := kong.New(&table, kong.Name("patchbay"), kong.NoDefaultHelp(),
		kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		return err
	}
	line := arrange(k.Model, args)
	a.globals, a.verb, a.words, a.command, a.dashed = &table.globals, line.verb, line.words, line.command, line.dashed
	a.sub, a.flags = line.sub, line.flags
	switch {
	case line.help || line.verb == "":
		if line.verb == "" && !line.help && (len(line.flags) > 0 || line.dashed) {
			return usagef("a verb is missing").hint("patchbay help")
		}
		return a.help(k.Model, slices.Concat([]string{line.verb}, line.sub, line.words))
	case line.verb == "help":
		return a.help(k.Model, line.words)
	}
	if n := line.node(k.Model); n != nil && len(n.Children) > 0 {
		verbs := append([]string{line.verb}, line.sub...)
		if len(line.words) == 0 {
			return a.help(k.Model, verbs)
		}
		before := strings.Join(verbs, " ")
		return unknownVerb(n.Children, before+" ", line.words[0]).hint("patchbay help " + before)
	}
	if n := line.node(k.Model); n != nil {
		switch {
		case line.empty != nil:
			return a.withoutValue(&line, line.empty)
		case line.unknown != "":
			return a.unknownFlag(n, &line, args)
		}
	}
	ctx, err := k.Parse(line.forKong())
	if err != nil {
		verb := strings.Join(append([]string{line.verb}, line.sub...), " ")
		hint := "patchbay help"
		if find(k.Model, line.verb) != nil {
			hint += " " + verb
		}
		var parse *kong.ParseError
		if errors.As(err, &parse) {
			err = parse.Unwrap()
		}
		return usagef("%s", wording(err.Error(), verb)).orUnknown(k.Model, line.verb).hint(hint)
	}
	if len(a.Servers) > 0 {
		a.Server = a.Servers[0]
	}
	a.timed = slices.ContainsFunc(line.flags, func(f string) bool { return strings.HasPrefix(f, "--timeout=") })
	a.learnFlags()
	if err := a.checkGlobals(); err != nil {
		return err
	}
	a.talk.quiet = a.Quiet
	a.canLogIn = find(k.Model, "login") != nil
	return ctx.Run(a)
}

// manyServers are the verbs that take -s several times.
var manyServers = []string{"up", "run", "eval", "chat"}

func (a *app) checkGlobals() error {
	if n := len(a.Servers); n > 1 && !slices.Contains(manyServers, a.verb) {
		return usagef("-s is there %d times; %s takes one server", n, a.verb)
	}
	if a.Server != "" && a.dashed {
		return usagef("both -s %s and a command after -- name a server; keep one", a.Server)
	}
	if a.dashed && len(a.command) == 0 {
		return usagef("no command stands after --").hint("patchbay tools -- npx -y @modelcontextprotocol/server-everything")
	}
	if a.Timeout < 0 {
		return usagef("--timeout %v is negative; 0 means no timeout", a.Timeout)
	}
	if a.TraceMax <= 0 {
		return usagef("--trace-max %d is not a length in bytes", a.TraceMax)
	}
	if a.ClientKey != "" && a.ClientCert == "" {
		return usagef("--client-key needs --client-cert")
	}
	if a.Verbose && a.Quiet {
		return usagef("--verbose and --quiet exclude each other")
	}
	return nil
}

// line is a command line taken apart.
type line struct {
	verb    string
	sub     []string // of a verb that has verbs of its own, and of that one likewise
	flags   []string // with their values
	words   []string // positional arguments
	command []string // after "--"
	dashed  bool
	help    bool // -h or --help was there

	unknown string     // the first flag that the verb does not have
	empty   *kong.Flag // has no value, and needs one; nil: none
}

// forKong is the line in the order that kong reads best: flags may stand anywhere,
// and a word may be "-" or begin with it.
func (l *line) forKong() []string {
	return slices.Concat([]string{l.verb}, l.sub, l.flags, []string{"--"}, l.words)
}

// node is the verb of a line, or the one below it; nil: there is none.
func (l *line) node(model *kong.Application) *kong.Node {
	n := find(model, l.verb)
	for _, name := range l.sub {
		n = verbOf(n, name)
	}
	return n
}

// arrange takes a command line apart. What "serve" does not know belongs to the
// server.
func arrange(model *kong.Application, args []string) line {
	var l line
	flags := flagsOf(model.Node)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			l.command, l.dashed = args[i+1:], true
			return l
		case arg == "-h" || arg == "--help":
			l.help = true
		case arg == "--version" && l.verb == "":
			l.verb = "version"
		case len(arg) < 2 || arg[0] != '-':
			if l.verb == "" {
				if l.verb = arg; find(model, arg) != nil {
					flags = flagsOf(find(model, arg))
				}
			} else if sub := verbOf(l.node(model), arg); sub != nil && len(l.words) == 0 {
				l.sub, flags = append(l.sub, arg), flagsOf(sub)
			} else if l.meansCommand(args[i:], flags) {
				l.command, l.dashed = args[i:], true
				return l
			} else if l.meansServer(arg) {
				l.flags = append(l.flags, "-s"+arg)
			} else {
				l.words = append(l.words, arg)
			}
		default:
			name, _, joined := strings.Cut(arg, "=")
			flag := flags[name]
			if flag == nil && len(arg) > 2 && arg[1] != '-' {
				// -sNAME, or -qv
				if flag = flags[arg[:2]]; flag != nil && !flag.IsBool() {
					joined = true
				}
			}
			if flag == nil && l.verb == "serve" {
				l.words = append(l.words, arg)
				continue
			}
			if flag == nil && l.unknown == "" {
				l.unknown = arg
			}
			l.flags = append(l.flags, arg)
			if flag != nil && !flag.IsBool() && !joined {
				if i++; i == len(args) || args[i] == "--" {
					l.empty, l.flags = flag, l.flags[:len(l.flags)-1]
					i--
					continue
				}
				l.flags[len(l.flags)-1] = flagWithValue(arg, args[i])
			}
		}
	}
	return l
}

// flagWithValue joins a flag and its value, which may begin with a dash.
func flagWithValue(flag, value string) string {
	if strings.HasPrefix(flag, "--") {
		return flag + "=" + value
	}
	return flag + value
}

// flagsOf returns the flags of a verb as they are written.
func flagsOf(n *kong.Node) map[string]*kong.Flag {
	out := make(map[string]*kong.Flag)
	for _, group := range n.AllFlags(false) {
		for _, f := range group {
			out["--"+f.Name] = f
			if f.Short != 0 {
				out["-"+string(f.Short)] = f
			}
		}
	}
	return out
}

// find returns a verb of the command table, nil if there is none of that name.
func find(model *kong.Application, verb string) *kong.Node { return verbOf(model.Node, verb) }

// verbOf returns the verb of a name below another one, which may be nil.
func verbOf(n *kong.Node, name string) *kong.Node {
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// orUnknown replaces what kong says of a verb that does not exist.
func (f *fault) orUnknown(model *kong.Application, verb string) *fault {
	if find(model, verb) != nil {
		return f
	}
	f.err = unknownVerb(model.Children, "", verb).err
	return f
}

// unknownVerb says that there is no such verb, and which one may be meant.
func unknownVerb(nodes []*kong.Node, before, verb string) *fault {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return usagef("no verb %q%s", before+verb, didYouMean(verb, names))
}
