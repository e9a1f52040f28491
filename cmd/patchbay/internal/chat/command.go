package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/mcp"
)

// command is a command that begins with a slash.
type command struct {
	name, args, says string
	idle             bool // it waits for the end of the turn
	raw              bool // its arguments need not be words
	run              func(u *ui, rest string, words []string) tea.Cmd

	// offers completes the arguments. If nil, there is no completion.
	offers func(ctx context.Context, c *Chat, words []string) []item
}

var commands []*command

func init() { // in init, because commands refer to it
	commands = []*command{
		{name: "help", says: "list the commands", run: (*ui).help},
		{name: "tools", args: "[on|off SERVER[/TOOL]]", says: "list tools, or switch them on or off for the model", run: (*ui).tools, offers: offerToolSwitch},
		{name: "allow", args: "[SERVER/TOOL [CONDITION]]", says: "call tools without asking: /allow always …, /allow off NUMBER", raw: true, run: (*ui).allow, offers: offerAllow},
		{name: "servers", args: "[retry NAME]", says: "show the state of the servers", run: (*ui).servers, offers: offerServerRetry},
		{name: "resources", args: "[WORD]", says: "list resources; @SERVER:URI gives one to the model", run: (*ui).listResources},
		{name: "prompts", args: "[WORD]", says: "list prompts; /SERVER:PROMPT runs one", run: (*ui).listPrompts},
		{name: "model", args: "[PROVIDER/NAME]", says: "show or change the model", idle: true, run: (*ui).switchModel, offers: offerModels},
		{name: "effort", args: "[LEVEL]", says: "show or change how much the model thinks", idle: true, run: (*ui).setEffort, offers: offerEfforts},
		{name: "set", args: "[NAME=VALUE]", says: "show or set parameters of the model, such as temperature", idle: true, run: (*ui).setParameters, offers: offerParameters},
		{name: "mode", args: "[ask|read-only]", says: "show or change what the model may do", idle: true, run: (*ui).setMode, offers: offerModes},
		{name: "cost", says: "show tokens and cost of this conversation", run: (*ui).cost},
		{name: "context", says: "show what the model gets with the next message", idle: true, run: (*ui).context},
		{name: "save", args: "[FILE.md|FILE.json]", says: "write the conversation to a file", run: (*ui).save},
		{name: "undo", says: "undo the last turn", idle: true, run: (*ui).undo},
		{name: "compact", args: "[WHAT MATTERS]", says: "replace the conversation with a summary", idle: true, run: (*ui).compact},
		{name: "show", args: "[NUMBER]", says: "open a call or thought in full (ctrl-O)", run: (*ui).show},
		{name: "trace", says: "show every step of this conversation", run: (*ui).showTrace},
		{name: "new", says: "start a new conversation", idle: true, run: (*ui).fresh},
		{name: "resume", args: "[ID|WORDS]", says: "continue an earlier conversation", idle: true, run: (*ui).pastOnes},
		{name: "forget", args: "ID", says: "delete an earlier conversation", idle: true, run: (*ui).forget},
		{name: "call", args: "SERVER/TOOL [key=value ...]", says: "call a tool by hand", idle: true, run: (*ui).callTool, offers: offerCall},
		{name: "read", args: "SERVER:URI", says: "read a resource by hand", idle: true, run: (*ui).readResource, offers: offerResources},
		{name: "prompt", args: "SERVER:PROMPT [key=value ...]", says: "get a prompt by hand", idle: true, run: (*ui).getPrompt, offers: offerPrompts},
		{name: "quit", says: "quit", run: func(*ui, string, []string) tea.Cmd { return tea.Quit }},
	}
}

func commandNamed(name string) *command {
	at := slices.IndexFunc(commands, func(c *command) bool { return c.name == name || name == "exit" && c.name == "quit" })
	if at < 0 {
		return nil
	}
	return commands[at]
}

// isCommand reports whether a line is a command. /SERVER:PROMPT goes to the model, and a path is
// text.
func isCommand(line string) bool {
	name, ok := strings.CutPrefix(line, "/")
	name, _, _ = strings.Cut(name, " ")
	return ok && !strings.ContainsAny(name, ":/\n")
}

// command runs the command of a line. It reports whether the line leaves the input.
func (u *ui) command(line string) (tea.Cmd, bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	c := commandNamed(name)
	if c == nil {
		u.say("unknown command /" + screen.Cut(screen.OneLine(name), 30) + "; /help lists them")
		return nil, false
	}
	if c.idle && u.turn != nil {
		u.say("/" + name + " waits for the end of the turn; ctrl-C cancels it")
		return nil, false
	}
	rest = strings.TrimSpace(rest)
	words, err := split(rest)
	if err != nil && !c.raw {
		u.say(err.Error())
		return nil, false
	}
	if !u.look.lines {
		u.print(u.look.paint("❯ "+screen.Cut(screen.OneLine(line), u.look.width-2), dim))
	}
	return c.run(u, rest, words), true
}

// split splits words like a shell: quotes and backslashes protect spaces.
func split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, quote, escaped := false, rune(0), false
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case (r == '\'' || r == '"') && !strings.HasPrefix(word.String(), "{") && !strings.Contains(word.String(), ":="):
			quote, begun = r, true
		case r == ' ' || r == '\n' || r == '\t':
			if open := word.String(); strings.Contains(open, "{") && strings.Count(open, "{") > strings.Count(open, "}") {
				word.WriteRune(r) // JSON is one word
				continue
			}
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("unclosed quote")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

func (u *ui) help(string, []string) tea.Cmd {
	l := &u.look
	wide := 0
	for _, c := range commands {
		wide = max(wide, screen.Columns("/"+c.name+" "+c.args))
	}
	wide = min(wide, l.width/2)
	for _, c := range commands {
		u.row(strings.TrimSpace("/"+c.name+" "+c.args), wide, c.says)
	}
	u.print("")
	for _, k := range [][2]string{
		{"enter", "sends; ctrl-J, alt-enter or \\ before enter starts a new line"},
		{"tab", "completes /commands, @server:uri, /server:prompt and #server/tool"},
		{"up, down", "earlier messages; ctrl-R searches in them"},
		{"ctrl-X", "then ctrl-E: opens the message in your editor ($VISUAL or $EDITOR)"},
		{"ctrl-O", "calls and thoughts in full"},
		{"ctrl-T", "show or hide thoughts"},
		{"ctrl-C", "cancels the turn; twice quits"},
	} {
		u.row(k[0], 10, k[1])
	}
	u.print("")
	return nil
}

// row prints a name and its description, on two lines if they do not fit on one.
func (u *ui) row(name string, wide int, says string) {
	l := &u.look
	room := l.width - wide - 4
	if screen.Columns(name) > wide || room < 20 {
		lines := l.wrapped(name, "      ", bold)
		lines[0] = "  " + strings.TrimLeft(lines[0], " ")
		u.print(lines...)
		if says != "" {
			u.print(l.wrapped(says, strings.Repeat(" ", min(wide+4, 6)), dim)...)
		}
		return
	}
	lines := l.wrapped(says, strings.Repeat(" ", wide+4), "")
	lines[0] = "  " + l.paint(screen.Pad(name, wide), bold) + "  " + strings.TrimLeft(lines[0], " ")
	u.print(lines...)
}

// patience bounds the wait of a command for its output.
const patience = 15 * time.Second

// later runs f in a goroutine, and then shows its result.
func (u *ui) later(f func(ctx context.Context) func(*ui)) tea.Cmd {
	u.c.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if show := f(ctx); show != nil {
			u.c.mail.put(show)
		}
	})
	return nil
}

func (u *ui) tools(_ string, words []string) tea.Cmd {
	if len(words) == 2 && (words[0] == "on" || words[0] == "off") {
		server, tool, _ := strings.Cut(words[1], "/")
		turn := u.c.h.Enable
		if words[0] == "off" {
			turn = u.c.h.Disable
		}
		var names []string
		if tool != "" {
			names = []string{tool}
		}
		if err := turn(server, names...); err != nil {
			u.note("%v", err)
			return nil
		}
		u.note("%s is %s", words[1], words[0])
		return nil
	}
	word := strings.Join(words, " ")
	return u.later(func(ctx context.Context) func(*ui) {
		list := u.c.h.AllTools(ctx)
		return func(u *ui) { u.showTools(list, word) }
	})
}

func (u *ui) showTools(list []host.Tool, word string) {
	l := &u.look
	server, n := "", 0
	for _, t := range list {
		if !strings.Contains(t.Server+"/"+t.Tool.Name, word) {
			continue
		}
		if t.Server != server {
			server = t.Server
			u.print(l.paint(screen.OneLine(server), bold+";"+cyan))
		}
		n++
		says := about(t.Tool)
		if u.c.h.Disabled(t.Server, t.Tool.Name) {
			says = "(off) " + says
		}
		wide := min(24, l.width/3)
		u.row(screen.OneLine(t.Tool.Name), wide, screen.Cut(says, max(12, l.width-wide-4)))
	}
	switch {
	case n == 0 && word != "":
		u.print(l.paint("  no tool like "+screen.OneLine(word), dim))
	case n == 0:
		u.print(l.paint("  no available server has tools; /servers shows their state", dim))
	}
	u.print("")
}

func (u *ui) servers(_ string, words []string) tea.Cmd {
	l := &u.look
	list := u.c.h.Servers()
	if len(words) == 2 && words[0] == "retry" {
		known := slices.ContainsFunc(list, func(s host.ServerStatus) bool { return s.Name == words[1] || s.Group == words[1] })
		u.c.h.Retry(words[1]) // ignores an unknown name
		u.note(map[bool]string{true: "retrying %s", false: "no server %s; /servers lists them"}[known], screen.Cut(words[1], 60))
		return nil
	}
	wide := 0
	for _, s := range list {
		wide = max(wide, screen.Columns(screen.OneLine(s.Name)))
	}
	for _, s := range list {
		style := map[gateway.State]string{gateway.Ready: green, gateway.Idle: green, gateway.Failing: red, gateway.Crashing: red}[s.State]
		if style == "" {
			style = yellow
		}
		facts := []string{}
		if s.Tools >= 0 {
			facts = append(facts, plural(s.Tools, "tool"))
		}
		if s.Latency > 0 {
			facts = append(facts, fmt.Sprintf("%.3g ms", float64(s.Latency.Microseconds())/1000))
		}
		if s.Errors > 0 {
			facts = append(facts, plural(s.Errors, "error"))
		}
		if s.Restarts > 0 {
			facts = append(facts, plural(s.Restarts, "restart"))
		}
		if s.Group != "" {
			facts = append(facts, "group "+screen.OneLine(s.Group))
		}
		if left := time.Until(s.Aside); left > 0 {
			facts = append(facts, "paused for "+left.Round(time.Second).String())
		}
		if s.Trusted {
			facts = append(facts, "trusted")
		}
		if s.Disabled {
			facts = append(facts, "off")
		}
		if s.Revision != "" {
			facts = append(facts, string(s.Revision))
		}
		name := screen.Cut(screen.OneLine(s.Name), max(8, l.width/3))
		u.print("  " + l.paint(screen.Pad(name, min(wide, max(8, l.width/3))), bold) + "  " + l.paint(screen.Pad(string(s.State), 9), style) + "  " +
			l.paint(screen.Cut(strings.Join(facts, ", "), max(8, l.width-wide-15)), dim))
		if s.Reason != "" {
			u.print(l.wrapped(firstLine(s.Reason), "    ", dim)...)
		}
	}
	if len(list) == 0 {
		u.print(l.paint("  no servers; patchbay config add NAME adds one", dim))
	}
	u.print("")
	return nil
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (u *ui) listResources(word string, _ []string) tea.Cmd {
	return u.later(func(ctx context.Context) func(*ui) {
		list := u.c.h.Resources(ctx)
		for _, t := range u.c.h.Templates(ctx) {
			list = append(list, host.Resource{Server: t.Server, Resource: &mcp.Resource{URI: t.URITemplate, Name: t.Name, Title: t.Title}})
		}
		return func(u *ui) {
			n := 0
			for _, r := range list {
				name := r.Server + ":" + r.URI
				if !strings.Contains(strings.ToLower(name+r.Name+r.Title), strings.ToLower(word)) {
					continue
				}
				n++
				u.row(screen.OneLine(name), min(40, u.look.width/2), screen.OneLine(orTitle(r.Title, r.Name)))
			}
			u.none(n, "resources", word)
		}
	})
}

func (u *ui) listPrompts(word string, _ []string) tea.Cmd {
	return u.later(func(ctx context.Context) func(*ui) {
		list := u.c.h.Prompts(ctx)
		return func(u *ui) {
			n := 0
			for _, p := range list {
				name := p.Server + ":" + p.Name
				if !strings.Contains(strings.ToLower(name+p.Title), strings.ToLower(word)) {
					continue
				}
				n++
				for _, a := range p.Arguments {
					if a.Required {
						name += " " + a.Name + "="
					} else {
						name += " [" + a.Name + "=]"
					}
				}
				u.row("/"+screen.OneLine(name), min(40, u.look.width/2), screen.OneLine(orTitle(p.Description, p.Title)))
			}
			u.none(n, "prompts", word)
		}
	})
}

func (u *ui) none(n int, what, word string) {
	switch {
	case n > 0:
	case word != "":
		u.print(u.look.paint("  no "+what+" like "+screen.OneLine(word), dim))
	default:
		u.print(u.look.paint("  no available server has "+what, dim))
	}
	u.print("")
}

func (u *ui) cost(string, []string) tea.Cmd {
	used, cost := u.talk.Used()
	line := fmt.Sprintf("  %d tokens in, %d out", used.Input, used.Output)
	if used.Cached > 0 {
		line += fmt.Sprintf(", %d of the input cached", used.Cached)
	}
	u.print(line, "  "+cmp.Or(u.fill(true), "nothing in the window yet"))
	if m := u.model(); cost > 0 || m != nil && m.Info().Price != (model.Price{}) {
		u.print(fmt.Sprintf("  cost %.6g", cost))
	} else {
		u.print(u.look.paint("  unknown price; add it to the model in mcp.json", dim))
	}
	u.print("")
	return nil
}

// save writes the conversation to a file: as JSON if its name ends so, else as Markdown.
func (u *ui) save(_ string, words []string) tea.Cmd {
	name := "conversation-" + u.talk.ID + ".md"
	if len(words) > 0 {
		name = words[0]
	}
	entries := u.talk.Snapshot()
	if len(entries) == 0 {
		u.note("nothing to save yet")
		return nil
	}
	used, cost := u.talk.Used()
	about := memory.Conversation{ID: u.talk.ID, Usage: used, Cost: cost, Created: entries[0].Time, Updated: entries[len(entries)-1].Time}
	if m := u.model(); m != nil {
		about.Model = m.Info().Name
	}
	return u.later(func(context.Context) func(*ui) {
		err := saveTo(name, about, entries)
		return func(u *ui) {
			if err != nil {
				u.note("%v", err)
				return
			}
			u.note("saved as %s", name)
		}
	})
}

// saveTo writes a new file.
func saveTo(name string, about memory.Conversation, entries []host.Entry) error {
	kept := make([]memory.Entry, len(entries))
	for i, e := range entries {
		kept[i] = memory.Entry{At: e.Time, Turn: e.Turn, Model: e.Model, Usage: e.Usage, Cost: e.Cost, Message: e.Message}
	}
	var text bytes.Buffer
	var err error
	if strings.EqualFold(filepath.Ext(name), ".json") {
		err = memory.WriteJSON(&text, about, kept)
	} else {
		err = memory.WriteMarkdown(&text, about, kept)
	}
	if err != nil {
		return err
	}
	return ownfile.Create(name, text.Bytes(), 0o600)
}

func (u *ui) undo(string, []string) tea.Cmd {
	t := u.talk
	return u.briefly(func(ctx context.Context) func(*ui) {
		text, err := t.Undo(ctx)
		return func(u *ui) {
			if err != nil {
				u.note("%v", err)
				return
			}
			u.note("the last turn is undone; effects of tools are not")
			if u.input.empty() {
				u.input.set(text)
			}
		}
	})
}

func (u *ui) compact(matters string, _ []string) tea.Cmd {
	if u.model() == nil {
		u.note("%s", u.c.noModel())
		return nil
	}
	t := u.talk
	u.run("summarising", func(ctx context.Context) error {
		_, err := t.Summarise(ctx, matters)
		return err
	})
	return nil
}

func (u *ui) show(_ string, words []string) tea.Cmd {
	number := 0
	if len(words) > 0 {
		var err error
		if number, err = strconv.Atoi(strings.TrimPrefix(words[0], "#")); err != nil || number <= 0 {
			u.say("/show takes the number of a call or thought")
			return nil
		}
	}
	if u.open(number); !u.look.lines {
		u.print("") // after the command
	}
	return nil
}

func (u *ui) showTrace(string, []string) tea.Cmd {
	steps := slices.Clone(u.talk.steps)
	u.pages("trace", func(l *look) []string {
		var out []string
		for _, s := range steps {
			out = append(out, l.wrapped(s, "", "")...)
		}
		if len(out) == 0 {
			out = append(out, "no steps yet")
		}
		return out
	})
	return nil
}

func (u *ui) fresh(string, []string) tea.Cmd {
	conv := u.c.h.NewConversation()
	conv.Parameters, conv.Mode = u.talk.Parameters, u.talk.Mode
	u.begin(conv)
	u.note("new conversation")
	return nil
}

// pastOnes lists conversations, or resumes one.
func (u *ui) pastOnes(rest string, words []string) tea.Cmd {
	if u.c.o.Memory == nil {
		u.note("conversations are not stored")
		return nil
	}
	return u.later(func(ctx context.Context) func(*ui) {
		if len(words) == 1 {
			if show, err := u.c.resumed(ctx, words[0]); !errors.Is(err, memory.ErrNone) {
				return show
			}
		}
		list, err := u.c.o.Memory.List(ctx, rest)
		return func(u *ui) {
			switch {
			case err != nil:
				u.note("%v", err)
				return
			case len(list) > 0 && !u.look.lines:
				u.choosePast(list)
				return
			}
			for _, p := range list {
				u.row(screen.OneLine(p.ID), 12, p.Updated.Local().Format("2006-01-02 15:04")+"  "+screen.Cut(screen.OneLine(p.Title), max(10, u.look.width-36)))
			}
			hint := "  /resume ID continues one"
			switch {
			case len(list) > 0:
			case rest == "":
				hint = "  no stored conversations yet"
			default:
				hint = "  no conversation has this ID or these words"
			}
			u.print(u.look.paint(hint, dim))
			u.print("")
		}
	})
}

// forget deletes a conversation. It requires the full ID, against mistakes.
func (u *ui) forget(_ string, words []string) tea.Cmd {
	switch {
	case u.c.o.Memory == nil:
		u.note("conversations are not stored")
		return nil
	case len(words) != 1:
		u.note("/forget takes the whole ID of a conversation; /resume lists them")
		return nil
	}
	return u.later(func(ctx context.Context) func(*ui) {
		err := u.c.o.Memory.Forget(ctx, words[0])
		return func(u *ui) {
			if err != nil {
				u.note("%v", err)
				return
			}
			u.note("deleted %s", words[0])
		}
	})
}

// goOn shows the end of a conversation and continues it.
func (u *ui) goOn(conv *host.Conversation) {
	u.begin(conv)
	entries := conv.Snapshot()
	facts := []string{"continuing " + conv.ID, plural(len(entries), "message")}
	if mode := u.mode(); mode != "" {
		facts = append(facts, mode)
	}
	u.note("%s", strings.Join(append(facts, u.settings()...), ", "))
	for _, e := range entries[max(0, len(entries)-6):] {
		kind, text := answer, e.Text()
		if e.Role == model.User {
			kind, text = said, e.Said()
		}
		if text = strings.TrimSpace(text); text != "" {
			u.blocks = append(u.blocks, &block{kind: kind, over: true, text: bounded(text)})
		}
		for _, c := range e.Calls() {
			u.print(u.look.paint(screen.Cut("· "+screen.OneLine(c.Name)+" "+screen.OneLine(string(c.Arguments)), u.look.width), dim), "")
		}
	}
	if n := len(entries); n > 0 && len(entries[n-1].Calls()) > 0 {
		u.note("the program ended before the results came: each of these calls may or may not have happened")
	}
}

func orTitle(title, other string) string {
	if title != "" {
		return title
	}
	return other
}
