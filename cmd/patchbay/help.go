package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/patchbay-dev/patchbay/servers"
)

type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A verb, flags or exits."`
}

// Run is not reached: help is given before a verb runs.
func (*helpCmd) Run(*app) error { return nil }

// examples come first in the help of a verb. The first one is in the overview.
var examples = map[string][]string{
	"": {
		"patchbay tools -- npx -y @modelcontextprotocol/server-everything",
		"patchbay call everything/add a=2 b=3",
		"patchbay up",
	},
	"tools":     {"patchbay tools -s everything", "patchbay tools add -s everything", "patchbay tools -- npx -y @modelcontextprotocol/server-memory"},
	"call":      {"patchbay call everything/echo message=hi", "patchbay call add a=2 b=3 -s http://127.0.0.1:7420/mcp", "patchbay call read_text_file path=notes.txt -- mcp-server-filesystem .", "patchbay call search '{\"query\": \"cords\"}' tags=a tags=b body=@mail.txt"},
	"resources": {"patchbay resources -s everything"},
	"templates": {"patchbay templates -s everything"},
	"read":      {"patchbay read test://static-text -s everything", "patchbay read test://static-binary -s everything -o picture.png"},
	"prompts":   {"patchbay prompts -s everything", "patchbay prompts test_prompt_with_arguments -s everything"},
	"prompt":    {"patchbay prompt everything/test_prompt_with_arguments arg1=one arg2=two"},
	"discover":  {"patchbay discover -s everything", "patchbay discover --json -- npx -y @modelcontextprotocol/server-everything"},
	"complete":  {"patchbay complete everything/test_prompt_with_arguments arg1=p", "patchbay complete 'test://template/{id}/data' id=4 -s everything"},
	"watch":     {"patchbay watch test://watched-resource --read -s everything", "patchbay watch --json -s http://127.0.0.1:7420/mcp"},
	"ping":      {"patchbay ping -s everything", "patchbay ping -n 0 --interval 5s -s http://127.0.0.1:7420/mcp"},
	"raw":       {"patchbay raw tools/list -s everything", "patchbay raw tools/call '{\"name\": \"test_simple_text\"}' -s everything"},
	"serve":     {"patchbay serve everything", "patchbay serve everything --http 127.0.0.1:7420", "patchbay serve files --read-only docs src"},
	"up":        {"patchbay up", "patchbay up --config ~/mcp.json --http 127.0.0.1:0", "patchbay up -- npx -y @modelcontextprotocol/server-memory"},
	"chat":      {"patchbay chat -m openai/gpt-5-mini", "patchbay chat -s shop -s sqlite", "patchbay chat -- npx -y @modelcontextprotocol/server-memory"},
	"status":    {"patchbay status", "patchbay status --json", "patchbay status -s http://127.0.0.1:7420/mcp"},
	"bridge":    {"patchbay bridge -- npx -y @modelcontextprotocol/server-memory", "patchbay bridge --sse -s https://example.com/mcp"},
	"run":       {`patchbay run "which tables are there?" -m openai/gpt-5-mini -s sqlite`, `patchbay run "order two stoves for Amara" -s shop --allow 'shop/*'`, `patchbay run "what does this change?" --json < diff.txt`},
	"eval":      {"patchbay eval shop.yaml", "patchbay eval shop.yaml -m openai/gpt-5-mini -n 10 --junit report.xml"},
	"trace":     {"patchbay trace t.jsonl", "patchbay trace t.jsonl --method 'tools/*' --full", "patchbay call everything/echo message=hi --trace t.jsonl"},
	"replay":    {"patchbay replay t.jsonl -s everything", "patchbay replay t.jsonl --revision 2025-06-18 --ignore version -- ./my-server"},
	"mock":      {"patchbay mock t.jsonl", "patchbay mock t.jsonl --http 127.0.0.1:7420", "patchbay tools -- patchbay mock t.jsonl"},
	"login":     {"patchbay login github", "patchbay login https://example.com/mcp --scope read", "patchbay login github --no-browser"},
	"logout":    {"patchbay logout github"},
	"whoami":    {"patchbay whoami github"},
	"token get": {"patchbay token get github", "TOKEN=$(patchbay token get https://example.com/mcp)"},
	"version":   {"patchbay version --json"},
	"help":      {"patchbay help call"},

	"policy":       {"patchbay policy check policy.yaml", "patchbay up --policy policy.yaml --auth apikeys:keys.jsonl"},
	"policy check": {"patchbay policy check policy.yaml", "patchbay policy check policy.yaml -s shop --tool refund amount=500", "patchbay policy check policy.yaml --tool refund --principal apikey#ada"},

	"token":          {"patchbay token key alice --file keys.jsonl", "patchbay token jwt alice --secret env:SECRET --ttl 1h", "patchbay token inspect < token.txt"},
	"token key":      {"patchbay token key alice --file keys.jsonl", "patchbay token key ci --scope read --scope write --ttl 720h"},
	"token password": {"patchbay token password alice >> users"},
	"token jwt":      {"patchbay token jwt alice --secret env:SECRET", "patchbay token jwt alice --key k.pem --issuer https://a.example --scope read"},
	"token inspect":  {"patchbay token inspect eyJhbGciOi...", "patchbay token inspect --json < token.txt"},

	"config":         {"patchbay config list", "patchbay config add memory -- npx -y @modelcontextprotocol/server-memory", "patchbay config import", "patchbay config doctor"},
	"config add":     {"patchbay config add memory -- npx -y @modelcontextprotocol/server-memory", "patchbay config add web https://example.com/mcp --header 'X-Key: ${KEY}'", "patchbay config add files --user --env LOG=1 -- mcp-server-filesystem ."},
	"config remove":  {"patchbay config remove memory"},
	"config list":    {"patchbay config list", "patchbay config list --json"},
	"config import":  {"patchbay config import", "patchbay config import claude-desktop", "patchbay config import vscode github --dry-run", "patchbay config import ~/.codex/config.toml"},
	"config export":  {"patchbay config export cursor", "patchbay config export codex memory"},
	"config explain": {"patchbay config explain memory"},
	"config inputs":  {"patchbay config inputs", "patchbay config inputs --forget token"},
	"config doctor":  {"patchbay config doctor", "patchbay config doctor memory --json", "patchbay config doctor openai/gpt-5-mini"},

	"config models":       {"patchbay config models"},
	"config model":        {"patchbay config model add fast --provider openai --model gpt-5 --key-input", "patchbay config model use fast"},
	"config model add":    {"patchbay config model add fast --provider openai --model gpt-5 --key-input", "patchbay config model add own --provider openai --base-url http://HOST/v1"},
	"config model remove": {"patchbay config model remove fast"},
	"config model use":    {"patchbay config model use fast", "patchbay config model use anthropic/claude-sonnet-4-5"},
	"config approvals":    {"patchbay config approvals", "patchbay config approvals revoke shop buy"},

	"completion": {"patchbay completion bash > ~/.local/share/bash-completion/completions/patchbay", "patchbay completion fish > ~/.config/fish/completions/patchbay.fish"},
}

// usages are the shapes of verbs.
var usages = map[string]string{
	"tools": "patchbay tools [TOOL] [SERVER]", "call": "patchbay call TOOL [ARGUMENT ...] [SERVER]",
	"resources": "patchbay resources [SERVER]", "templates": "patchbay templates [SERVER]", "read": "patchbay read URI [SERVER]",
	"prompts": "patchbay prompts [PROMPT] [SERVER]", "prompt": "patchbay prompt PROMPT [ARGUMENT ...] [SERVER]",
	"discover": "patchbay discover [SERVER]", "raw": "patchbay raw METHOD [JSON] [SERVER]",
	"complete": "patchbay complete PROMPT|TEMPLATE ARG=PREFIX [KEY=VALUE ...] [SERVER]",
	"watch":    "patchbay watch [URI ...] [SERVER]", "ping": "patchbay ping [SERVER]",
	"serve": "patchbay serve NAME [--http ADDR] [ARGUMENTS OF THE SERVER]", "up": "patchbay up [--http ADDR | --stdio] [--config FILE | SERVER]", "status": "patchbay status [-s URL]",
	"completion": "patchbay completion bash | zsh | fish | powershell",
	"trace":      "patchbay trace TRACE", "replay": "patchbay replay TRACE [SERVER]", "mock": "patchbay mock TRACE [--http ADDR]", "version": "patchbay version", "help": "patchbay help [VERB | flags | auth | limits | exits]",
	"login": "patchbay login [SERVER] [--client-id ID] [--device | --no-browser]", "logout": "patchbay logout [SERVER]", "whoami": "patchbay whoami [SERVER]", "token get": "patchbay token get [SERVER]",
	"run": "patchbay run TASK [--model MODEL] [--allow SERVER/TOOL ...] [SERVER ...]", "eval": "patchbay eval FILE [--model MODEL ...] [SERVER ...]",
	"chat":   "patchbay chat [MESSAGE] [--model MODEL] [--resume ID] [SERVER ...]",
	"bridge": "patchbay bridge [--http ADDR | --stdio] [SERVER]",

	"policy": "patchbay policy VERB", "policy check": "patchbay policy check FILE [--tool NAME [ARGUMENT ...] | ...]",

	"token": "patchbay token VERB", "token key": "patchbay token key SUBJECT", "token password": "patchbay token password USER",
	"token jwt": "patchbay token jwt SUBJECT --secret env:NAME|FILE | --key FILE", "token inspect": "patchbay token inspect [TOKEN]",

	"config":        "patchbay config VERB",
	"config add":    "patchbay config add NAME URL|BUILTIN, or config add NAME -- COMMAND",
	"config remove": "patchbay config remove NAME", "config list": "patchbay config list",
	"config import": "patchbay config import [HOST | FILE] [NAME ...]", "config export": "patchbay config export HOST [NAME ...]",
	"config explain": "patchbay config explain NAME", "config inputs": "patchbay config inputs [ID ...] [--forget]", "config doctor": "patchbay config doctor [NAME ... | -- COMMAND]",
	"config models": "patchbay config models", "config model": "patchbay config model VERB", "config model add": "patchbay config model add NAME --provider API [--key-input | --key-env X]",
	"config model remove": "patchbay config model remove NAME", "config model use": "patchbay config model use NAME | PROVIDER/NAME",
	"config approvals": "patchbay config approvals [revoke SERVER [TOOL] | revoke --all]",
}

// details are what a verb needs to be understood, if it is more than its flags.
var details = map[string]string{
	"call": `Arguments, merged from left to right:
  key=value    typed by the tool's schema; several of a key make a list
  key=@FILE    the contents of a file
  key:=JSON    any JSON, not checked
  JSON         an object of all arguments; also @FILE.json, or - for stdin

Questions of the server are asked here, or answered by --on-elicit, --on-sample
and --root. The result's text is printed as it is, else its structure as JSON.`,
	"read": `Text is printed. Bytes go to --output, or as they are to a file or pipe.`,
	"up": `Starts every server of mcp.json, or some built-in ones if there is no such file,
and offers all as one MCP endpoint, with tools named SERVER_NAME. The file is
followed: servers come and go as it changes, and calls in progress go on. What
fails is tried again: see patchbay status, or /readyz. ctrl-C ends all in 5 s.`,
	"chat": `Each call of the model is shown, and asked about unless --allow names the tool,
it only reads and its server is trusted, or it was allowed before. Questions of
servers come up as forms. /help says what can be typed, ctrl-C cancels and twice
leaves. Without a model it is a console: /call, /read and /prompt. Without a
terminal lines are read, and what comes of each is printed.

SERVER is -s NAME|URL, several times for several, or -- COMMAND. Without any,
all of mcp.json, or some built-in ones. docs/host.md has the rest.`,
	"status": `Asks each up of yours on this machine, or the one at URL. What a server said
last is shown if it is not there. Exit code 4: none is running.`,
	"complete": `Values are printed one a line. The others say what was filled in already.`,
	"watch": `Until ctrl-C. What is watched is told on stderr; stdout has a line per event,
with --json as JSON.`,
	"ping": `Revision 2026-07-28 has no ping; there it is server/discover. Exit code 0: there
was an answer.`,
	"bridge": `A command is served over Streamable HTTP, a URL (also of SSE) over stdio; any
revision on either side. One older than 2026-07-28 gets a session per client.
SERVER is -s NAME, -s URL or -- COMMAND; without, the only one of mcp.json.`,
	"completion": `Verbs, flags and servers are completed, and the names, arguments and values of
the server that is named: it is started and asked for them, for at most 2.5 s,
and its lists are kept for 5 minutes in the user's cache folder.`,
	"discover": `It tells the revision spoken, how it was found, and what the server offers.`,
	"serve": `Without --http the server speaks over stdio, for hosts that start it. With it,
it speaks Streamable HTTP at http://ADDR/mcp until ctrl-C. Port 0 is any.
What stands after -- goes to the server untouched.`,
	"policy": `A file of rules, in YAML or JSON; the first that matches decides:
  default: deny
  rules:
    - name: everybody may look   # hints count of servers that are trusted
      when: kind == "tool" && annotations.readOnlyHint
      effect: allow
    - name: refunds need a scope
      when: name == "refund" && !("shop:refund" in principal.scopes)
      effect: deny
      scopes: [shop:refund]
when is an expression of CEL over principal, server, kind, name, template,
method, arguments, annotations and client. docs/policy.md has all of it.`,
	"policy check": `Without a feature the file alone is checked. Exit code 0: it is allowed;
6: it is refused; 1: the file has faults.`,
	"token": `For tests and small set-ups: nothing is sent anywhere.`,
	"token key": `Prints the key, and what to keep of it: a line for --auth apikeys:FILE, which
--file adds there. The key itself is kept nowhere.`,
	"token password": `Asks for the password, or reads it from standard input, and prints a line for
--auth basic:FILE.`,
	"token jwt": `Signed with a secret (HS256) for --auth hmac:..., or with the key of a file
(ES256; a new one is made if there is none) for --auth jwt:ISSUER,keys=FILE.`,
	"token inspect": `Shows what a token or key says, and what is weak about it. Its signature is not
looked at. Without TOKEN it is read from standard input.`,
	"run": `The answer is on stdout, all else on stderr. What is on stdin goes along with
the task; for TASK "-" it is the task. A tool is called if --allow names it, if
it only reads and its server is trusted (built-in ones are), if it was allowed
for ever, or if a person at the terminal says so. Keys are OPENAI_API_KEY and
ANTHROPIC_API_KEY, or those of models of mcp.json. docs/host.md has the rest.

SERVER is -s NAME|URL, several times for several, or -- COMMAND. Without any,
all of mcp.json, or some built-in ones.`,
	"eval": `FILE has tasks, and what is expected of models, as docs/host.md has it in full:
  servers: [shop]
  models: [openai/gpt-5-mini]
  tasks:
    - name: stoves
      prompt: Put two stoves into a cart.
      expect:
        calls: [{tool: shop/add-to-cart, arguments: {quantity: 2}}]
        never: [shop/place-order]
        answer: {contains: [Ember Stove], judge: It names a price.}
Exit code 1: a run failed.`,
	"trace": `A line per frame: seconds since the first, connection, direction, content. All
verbs record what is on the wire to a file with --trace, without secrets.`,
	"replay": `The recorded requests are sent again, one after the other, by a client of the
same name, capabilities and revision, which answers questions as was recorded.
Ids, times, states and cursors may differ. Exit code 1: answers differ.`,
	"mock": `Requests get recorded answers, by method and params, else by method and name,
in recorded order. Recorded questions and notifications come again. Clients may
speak any revision. Without --http the mock speaks over stdio.`,
	"config": `mcp.json is the file of --config, else the first of ./mcp.json, ./.mcp.json,
./.vscode/mcp.json and patchbay/mcp.json in your configuration folder.`,
	"config add": `The server goes into mcp.json, or into a new one here. Nothing else in the file
changes. ${NAME} stands for a variable, also ${NAME:-default} and ${input:ID}.`,
	"config remove": `Nothing else in the file changes. A comment above the server stays.`,
	"config list":   `Exit code 1: the file has faults. They are told with their lines.`,
	"config import": `Hosts: claude-desktop, claude-code, cursor, vscode, windsurf, zed, goose, codex,
gemini. Without one it shows what there is. A server whose name is taken is left
out; with --rename it gets the host's name too. What Patchbay does not know of a
server is kept. The host's own files are never changed.`,
	"config export": `Prints a file of the host; hosts are those of patchbay help config import.
Values of env and headers become variables, unless --secrets asks for them.`,
	"config explain": `Tells where mcp.json was looked for, which file won, and what each value of the
server is made of. Values of env and headers are not shown.`,
	"config inputs": `What a person answers at the terminal is kept in the vault, for this file and
the servers that it was given to. A variable PATCHBAY_INPUT_ID goes before it.`,
	"config doctor": `Each server is started or reached, step by step, and ended again. Of one that
fails it shows the step, the command, its exit code and last lines, and what to
do. Models are asked, with their keys, what they are. Only what mcp.json names
is started: look at it first if it is not yours. Exit code 1: something failed.`,
	"config models": `Models are those of mcp.json, and of your own file where it is another one.
Whether there is a key is told, and never the key.`,
	"config model": `Models stand under "patchbay" in mcp.json, where other hosts do not look.`,
	"config model add": `With --key-input the key is asked for, here at the terminal, and kept in the
vault; with --key-env it is taken from a variable. Without either it is that of
the provider: OPENAI_API_KEY or ANTHROPIC_API_KEY. The first model is used.`,
	"config model remove": `A key that was kept for it stays until patchbay config inputs --forget.`,
	"config model use":    `PROVIDER/NAME is a model without an entry of its own.`,
	"config approvals": `What you have allowed for ever in a conversation: a tool as it was then. One
that changes is asked for again.`,
	"raw": `The params are an object. They are sent in the form of revision 2026-07-28, and
converted to what the server speaks.`,
}

const helpServer = `SERVER is -s NAME (of mcp.json, or built in), -s URL, or -- COMMAND ARGS to
start one over stdio. Without any, it is the only server of mcp.json.
`

const helpExits = `Exit codes
  0  it worked
  1  something failed on this side
  2  the command line is wrong, or an argument does not fit the tool
  3  the server wants authorization (HTTP 401 or 403)
  4  the server cannot be reached: refused, unknown host, command not found, or
     ended or silent before it answered
  5  the server answered with an error: of the tool (its result is printed), or
     of the protocol
  6  policy check: the policy refuses
  7  run: the language model, or who serves it, gave no answer
  8  run: not done within --max-steps or --within
  9  run: a call was not allowed and so not made (the answer is printed)
 10  run: the answer does not fit --output-schema
 11  the program would serve or start itself
`

// help prints the help of a topic, or the overview.
func (a *app) help(model *kong.Application, topic []string) error {
	topic = slices.DeleteFunc(slices.Clone(topic), func(s string) bool { return s == "" })
	if len(topic) == 0 {
		return a.overview(model)
	}
	switch name := topic[0]; name {
	case "flags":
		a.print("Flags of every verb")
		a.flagTable(model.Flags)
		return nil
	case "auth":
		a.out.WriteString(helpAuth)
		return nil
	case "limits":
		a.out.WriteString(helpLimits)
		return nil
	case "exits":
		a.out.WriteString(helpExits)
		return nil
	default:
		n := find(model, name)
		if n == nil {
			return usagef("").orUnknown(model, name).hint("patchbay help")
		}
		for i := 1; i < len(topic) && len(n.Children) > 0; i++ {
			sub := verbOf(n, topic[i])
			if sub == nil {
				before := strings.Join(topic[:i], " ")
				return unknownVerb(n.Children, before+" ", topic[i]).hint("patchbay help " + before)
			}
			n = sub
		}
		if name == "serve" && len(topic) > 1 {
			return a.helpServer(topic[1])
		}
		a.helpVerb(n)
		return nil
	}
}

// helpServer prints the help of a built-in server: its flags, and no more of serve than where
// that is.
func (a *app) helpServer(name string) error {
	usage := servers.Usage(name)
	if usage == "" {
		names := servers.Names()
		return usagef("no built-in server %q%s there are %s", name, didYouMean(name, names)+";", strings.Join(names, ", ")).hint("patchbay help serve")
	}
	a.out.WriteString(usage)
	a.print("\nUsage: patchbay serve " + name + " [--http ADDR] [FLAGS]")
	a.print("Flags of serve itself: patchbay help serve")
	return nil
}

// more are the verbs without a line of their own in the overview.
var more = []string{"help", "version", "login", "logout", "whoami", "token", "policy", "complete", "raw", "mock", "completion"}

func (a *app) overview(model *kong.Application) error {
	a.print("Patchbay talks to servers of the Model Context Protocol, and serves its own.\n")
	a.examples("")
	a.print("\nVerbs")
	for _, n := range model.Children {
		if !n.Hidden && !slices.Contains(more, n.Name) {
			a.print("  " + a.paint(pad(n.Name, 11), "1") + n.Help)
		}
	}
	a.print("\nMore: " + strings.Join(more[2:], " "))
	a.print("patchbay help VERB|flags|auth|exits")
	return nil
}

func (a *app) examples(verb string) {
	for _, e := range examples[verb] {
		a.print("  " + a.paint(e, "1"))
	}
}

func (a *app) helpVerb(n *kong.Node) {
	name := n.Name
	for p := n.Parent; p != nil && p.Type == kong.CommandNode; p = p.Parent {
		name = p.Name + " " + name
	}
	a.print(n.Help + "\n")
	a.examples(name)
	a.print("\nUsage: " + orName(usages[name], "patchbay "+name))
	if d := details[name]; d != "" {
		a.print("\n" + d)
	}
	if len(n.Children) > 0 {
		a.print("\nVerbs")
		for _, c := range n.Children {
			a.print("  " + a.paint(pad(c.Name, 11), "1") + c.Help)
		}
	}
	switch {
	case name == "version" || name == "help":
		return
	case name == "serve":
		a.print("\nServers: " + strings.Join(servers.Names(), ", ") + "\n(patchbay help serve NAME shows their arguments)")
	case !slices.Contains([]string{"up", "chat", "run", "eval", "trace", "mock", "bridge"}, name) && !strings.HasPrefix(name, "config") && !strings.HasPrefix(name, "token") && !strings.HasPrefix(name, "policy"):
		a.print("")
		a.out.WriteString(helpServer)
	}
	if len(n.Flags) > 0 {
		a.print("\nFlags")
		a.flagTable(n.Flags)
	}
	a.print("\nFlags of every verb: patchbay help flags")
}

func (a *app) flagTable(flags []*kong.Flag) {
	var rows []row
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "  --" + f.Name
		if f.Short != 0 {
			name = "  -" + string(f.Short) + ", --" + f.Name
		}
		if !f.IsBool() {
			name += " " + f.PlaceHolder
		}
		about := f.Help
		if f.HasDefault && !f.IsBool() && !strings.Contains(about, "default") {
			about = strings.TrimSuffix(about, ".") + " [" + f.Default + "]."
		}
		rows = append(rows, row{name, about})
	}
	first := 0
	for _, r := range rows {
		first = max(first, columns(r.name))
	}
	for _, r := range rows {
		a.print(pad(r.name, first) + "  " + r.about)
	}
}
