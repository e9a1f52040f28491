package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/flags"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/servers"
)

// globals are the flags of every verb.
type globals struct {
	Servers    []string      `name:"server" short:"s" sep:"none" placeholder:"SERVER" help:"Name in mcp.json, built-in server, URL, or up (it runs)."`
	Server     string        `flag:"-"` // the first of Servers
	Config     string        `placeholder:"FILE" help:"Read this mcp.json; default: the one found from here."`
	PID        int           `name:"pid" placeholder:"N" help:"Select the running patchbay up with this process id."`
	JSON       bool          `name:"json" help:"Print JSON, exactly what the server sent."`
	Plain      bool          `help:"Print text unchanged: no Markdown, no pictures."`
	Save       string        `placeholder:"DIR" help:"Save pictures, sounds and blobs in this folder."`
	Verbose    bool          `short:"v" help:"Show frames, redacted, and the server's stderr."`
	Quiet      bool          `short:"q" help:"Hide progress, log lines and warnings."`
	Timeout    time.Duration `default:"1m" placeholder:"TIME" help:"Time limit without an answer or progress; 0: none."`
	Revision   string        `placeholder:"DATE" help:"Use only this revision, such as 2025-11-25."`
	Env        []string      `sep:"none" placeholder:"K=V" help:"Set a variable for a command (repeatable)."`
	Header     []string      `sep:"none" placeholder:"'K: V'" help:"Send an HTTP header (repeatable)."`
	ServerCA   string        `name:"server-ca" placeholder:"FILE" help:"Also trust server certificates signed by this CA (PEM)."`
	ClientCert string        `name:"client-cert" placeholder:"FILE" help:"Client certificate (PEM)."`
	ClientKey  string        `name:"client-key" placeholder:"FILE" help:"Key of the certificate; default: in the same file."`
	Trace      string        `placeholder:"FILE" help:"Record all frames, redacted; -: to stderr."`
	TraceMax   int           `name:"trace-max" default:"16777216" placeholder:"BYTES" help:"Shorten longer messages in the recording."`
	OnElicit   string        `placeholder:"ANSWER" help:"Answer questions: decline, cancel or @answers.json."`
	OnSample   string        `placeholder:"@FILE" help:"Answer sampling with a file: text or a result."`
	Root       []string      `sep:"none" placeholder:"DIR" help:"Offer this folder to the server (repeatable)."`
}

// dispatch parses the command line and runs its verb.
func (a *app) dispatch(args []string) error {
	line := arrange(args)
	a.globals, a.verb, a.words, a.command, a.dashed = &line.parser.globals, line.verb, line.words, line.command, line.dashed
	a.of, a.sub, a.flags = line.of, line.sub, line.flags
	path := line.path()
	before := strings.Join(path, " ")
	switch {
	case line.help || line.verb == "":
		if line.verb == "" && !line.help && (len(line.flags) > 0 || line.dashed) {
			return usagef("missing verb").Hint("patchbay help")
		}
		return a.help(slices.Concat(path, line.words))
	case line.verb == "help":
		return a.help(line.words)
	case line.of == nil:
		return unknownVerb(verbs, "", line.verb).Hint("patchbay help")
	case line.of.command == nil && len(line.words) == 0:
		return a.help(path)
	case line.of.command == nil:
		return unknownVerb(line.of.verbs, before+" ", line.words[0]).Hint("patchbay help " + before)
	case line.empty != nil:
		return a.withoutValue(&line, line.empty)
	case line.unknown != "":
		return a.unknownFlag(&line, args)
	}
	if err := line.parser.Read(line.flags); err != nil {
		return usagef("%w", err).Hint("patchbay help " + before)
	}
	if err := line.parser.Place(line.words); err != nil {
		return usagef("%w; usage: %s", err, line.of.synopsis(before)).Hint("patchbay help " + before)
	}
	if len(a.Servers) > 0 {
		a.Server = a.Servers[0]
	}
	a.timed = slices.ContainsFunc(line.flags, func(f string) bool { return strings.HasPrefix(f, "--timeout=") })
	a.learnFlags()
	if err := a.checkGlobals(before); err != nil {
		return err
	}
	a.talk.Quiet = a.Quiet
	return line.parser.command.Run(a)
}

func (a *app) checkGlobals(verb string) error {
	if len(a.Servers) > 1 && !a.of.takes(manyServers) {
		return usagef("%s takes one server, not %s", a.verb, strings.Join(a.Servers, " and "))
	}
	if a.Server != "" && !a.of.takes(oneServer|manyServers|loginServer|namedServer) {
		f := usagef("%s takes no -s", verb)
		if strings.HasPrefix(a.of.usage, "NAME") {
			return f.Hint(a.beside(append(strings.Fields(verb), a.Server)...))
		}
		return f.Hint("patchbay help " + verb)
	}
	if a.PID != 0 && a.Server == "" && a.of.takes(oneServer) {
		a.Server, a.Servers = steer.Up, []string{steer.Up}
	}
	if a.PID != 0 && !a.of.takes(gatewayServer) && (!a.of.takes(oneServer|manyServers|loginServer) || a.Server != "" && a.Server != steer.Up) {
		return usagef("--pid goes with -s up, which is the running patchbay up, and with verbs such as restart, logs and nodes").Hint("patchbay tools -s up --pid " + strconv.Itoa(a.PID))
	}
	if a.Server != "" && a.dashed {
		return usagef("both -s %s and a command after -- name a server; keep one", a.Server)
	}
	if a.dashed && !a.of.takes(oneServer|manyServers|loginServer|wordsBehindDashes) {
		return usagef("%s takes no command after --", verb).Hint("patchbay help " + verb)
	}
	if a.dashed && len(a.command) == 0 {
		return usagef("missing command after --").Hint("patchbay tools -- npx -y @modelcontextprotocol/server-everything")
	}
	if f := flags.Among(a.flags, "timeout", "header", "env", "root", "on-elicit", "on-sample", "server-ca", "client-cert", "client-key"); f != "" && a.of.takes(foreignFlags) {
		return usagef("%s does not use %s, which is for clients of servers", verb, f).Hint("patchbay help " + verb)
	}
	if a.Timeout < 0 {
		return usagef("--timeout %v is negative; 0 means no timeout", a.Timeout)
	}
	if a.TraceMax <= 0 {
		return usagef("--trace-max must be at least 1, not %d", a.TraceMax)
	}
	if a.ClientKey != "" && a.ClientCert == "" {
		return usagef("--client-key needs --client-cert")
	}
	if _, err := clientTLS(config.Server{CA: a.ServerCA, Cert: a.ClientCert, Key: a.ClientKey}); err != nil {
		return usagef("%w", err)
	}
	if a.Verbose && a.Quiet {
		return usagef("--verbose and --quiet exclude each other")
	}
	return nil
}

// line is a command line, split into its parts.
type line struct {
	verb    string
	sub     []string // verbs below it
	flags   []string // with their values
	words   []string // positional arguments
	command []string // after "--"
	dashed  bool
	help    bool // -h or --help is present

	of     *verb   // the last of verb and sub; nil: there is no such verb
	parser *parser // of that verb

	unknown string      // the first flag that the verb does not have
	empty   *flags.Flag // the last flag, if its value is missing; nil: none
}

// path returns the verb and the verbs below it.
func (l *line) path() []string {
	if l.verb == "" {
		return nil
	}
	return append([]string{l.verb}, l.sub...)
}

// means sets the verb of the line.
func (l *line) means(v *verb) { l.of, l.parser = v, parserOf(v) }

// arrange splits a command line.
func arrange(args []string) line {
	l := line{parser: parserOf(nil)}
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
			l.means(find(l.verb))
		case len(arg) < 2 || arg[0] != '-':
			if l.verb == "" {
				l.verb = arg
				l.means(find(arg))
			} else if sub := l.below(arg); sub != nil {
				l.sub = append(l.sub, arg)
				l.means(sub)
			} else if l.meansCommand(args[i:]) {
				l.command, l.dashed = args[i:], true
				return l
			} else if l.meansServer(arg) {
				l.flags = append(l.flags, "-s"+arg)
			} else {
				l.words = append(l.words, arg)
			}
		default:
			name, _, joined := strings.Cut(arg, "=")
			flag := l.parser.Written(name)
			if flag == nil && len(arg) > 2 && arg[1] != '-' {
				// -sNAME, or -qv
				if flag = l.parser.Written(arg[:2]); flag != nil && !flag.IsBool() {
					joined = true
				}
			}
			if l.of.takes(foreignFlags) && (flag == nil || servers.HasFlag(name, append(l.words, l.verb)...)) {
				l.words = append(l.words, arg)
				continue
			}
			if flag == nil && l.unknown == "" {
				l.unknown = arg
			}
			l.flags = append(l.flags, arg)
			if flag != nil && !flag.IsBool() && !joined {
				if flag.Bare != "" && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
					l.flags[len(l.flags)-1] = flagWithValue(arg, flag.Bare)
					continue
				}
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

// below returns the verb below the verb of the line that a word names; nil: the word is not a verb.
func (l *line) below(word string) *verb {
	if l.of == nil || len(l.words) > 0 {
		return nil
	}
	return among(l.of.verbs, word)
}

// flagWithValue joins a flag and its value, which may begin with a dash.
func flagWithValue(flag, value string) string {
	if strings.HasPrefix(flag, "--") {
		return flag + "=" + value
	}
	return flag + value
}

// unknownVerb returns the error for an unknown verb, with the nearest name.
func unknownVerb(list []*verb, before, name string) *fault {
	var names []string
	for _, v := range list {
		names = append(names, v.name)
	}
	return usagef("unknown verb %q%s", before+name, didYouMean(name, names))
}
