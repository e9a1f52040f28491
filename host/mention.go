package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// What a person can mention in a message:
//
//   - @server:uri attaches a resource. A URI with spaces stands in double quotes.
//   - /server:prompt name=value ... at the beginning stands for the messages of a prompt. Values
//     with spaces stand in double quotes. What is no name=value is the value of the one argument
//     that is not given.
//   - #tool has the model begin with a tool: by the name that the model knows it by, as
//     server/tool, or by its own name if no other server has one of that name.
//
// A mention begins a word, and "@" and "/" are followed by the name of a server of the host. All
// else is text.
const (
	maxMentions = 20              // resources of one message
	mentionTime = 2 * time.Minute // to read all of them, or to get the prompt
)

// Resource is a resource of a server.
type Resource struct {
	Server string
	*mcp.Resource
}

// Template is a resource template of a server.
type Template struct {
	Server string
	*mcp.ResourceTemplate
}

// Prompt is a prompt of a server.
type Prompt struct {
	Server string
	*mcp.Prompt
}

// Resources returns the resources of all servers that are there, by server in the order in which
// these were added, and then in that of the server. It is as quick as Tools.
func (h *Host) Resources(ctx context.Context) []Resource {
	return slices.Concat(ofEach(h.snapshot(), func(s *server) []Resource { return h.resourcesOf(ctx, s, listTime) })...)
}

// Templates returns the resource templates of all servers, as Resources does.
func (h *Host) Templates(ctx context.Context) []Template {
	return slices.Concat(ofEach(h.snapshot(), func(s *server) []Template { return h.templatesOf(ctx, s, listTime) })...)
}

// Prompts returns the prompts of all servers, as Resources does.
func (h *Host) Prompts(ctx context.Context) []Prompt {
	return slices.Concat(ofEach(h.snapshot(), func(s *server) []Prompt {
		list, _ := h.promptsOf(ctx, s, listTime)
		return list
	})...)
}

func (h *Host) resourcesOf(ctx context.Context, s *server, patience time.Duration) []Resource {
	list, err := listOf(ctx, h, s, &s.resources, "resources", patience, func(ctx context.Context, session *mcp.Session) ([]Resource, error) {
		found, err := gather(ctx, session.Resources)
		list := make([]Resource, len(found))
		for i, r := range found {
			list[i] = Resource{s.Name, r}
		}
		return list, err
	})
	if err != nil {
		return nil
	}
	return list
}

func (h *Host) templatesOf(ctx context.Context, s *server, patience time.Duration) []Template {
	list, err := listOf(ctx, h, s, &s.templates, "resources", patience, func(ctx context.Context, session *mcp.Session) ([]Template, error) {
		found, err := gather(ctx, session.Templates)
		list := make([]Template, len(found))
		for i, t := range found {
			list[i] = Template{s.Name, t}
		}
		return list, err
	})
	if err != nil {
		return nil
	}
	return list
}

func (h *Host) promptsOf(ctx context.Context, s *server, patience time.Duration) ([]Prompt, error) {
	return listOf(ctx, h, s, &s.prompts, "prompts", patience, func(ctx context.Context, session *mcp.Session) ([]Prompt, error) {
		found, err := gather(ctx, session.Prompts)
		list := make([]Prompt, len(found))
		for i, p := range found {
			list[i] = Prompt{s.Name, p}
		}
		return list, err
	})
}

// spoken is what a person has said, as the model is given it.
type spoken struct {
	messages []model.Message
	tools    []string // names of those that the person insists on
}

// compose makes messages of what a person has written, and of what goes with it.
func (c *Conversation) compose(ctx context.Context, text string, more []model.Part) (*spoken, error) {
	if strings.TrimSpace(text) == "" && len(more) == 0 {
		return nil, errors.New("there is nothing to say")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mentionTime, fmt.Errorf("no answer within %v", mentionTime))
	defer cancel()
	servers := c.h.snapshot()
	c.beside.Store(1)
	if s, rest := namedAt(servers, strings.TrimSpace(text), '/'); s != nil {
		messages, err := c.prompt(ctx, s, rest)
		if err != nil {
			return nil, err
		}
		last := &messages[len(messages)-1]
		if last.Role != model.User {
			messages = append(messages, marked(mark{Host: true}, model.Part{Text: "[Go on from here.]"}))
			last = &messages[len(messages)-1]
		}
		last.Parts = append(last.Parts, more...)
		messages[0].Parts = append(messages[0].Parts, marked(mark{Typed: text}).Parts...)
		return &spoken{messages: messages}, nil
	}
	tools, err := c.h.insisted(ctx, text)
	if err != nil {
		return nil, err
	}
	attached, err := c.attached(ctx, servers, text)
	if err != nil {
		return nil, err
	}
	var parts []model.Part
	if text != "" {
		parts = words(clean(text))
	}
	message := model.Message{Role: model.User, Parts: slices.Concat(parts, more)}
	if attached != nil {
		message = marked(mark{Typed: text}, slices.Concat(parts, attached, more)...)
	}
	return &spoken{messages: []model.Message{message}, tools: tools}, nil
}

// namedAt finds the server that a mention at the beginning of a text names, and what follows its
// colon. Names may have colons and spaces: the longest counts.
func namedAt(servers []*server, text string, sign byte) (found *server, rest string) {
	if text == "" || text[0] != sign {
		return nil, ""
	}
	for _, s := range servers {
		after, ok := strings.CutPrefix(text[1:], s.Name+":")
		if ok && after != "" && (found == nil || len(s.Name) > len(found.Name)) {
			found, rest = s, after
		}
	}
	return found, rest
}

// beginsWord tells whether a mention can begin at i.
func beginsWord(text string, i int) bool {
	return i == 0 || strings.IndexByte(" \t\r\n([{<\"'", text[i-1]) >= 0
}

// trailing is what ends a sentence and not a mention.
const trailing = ".,;:!?)]}>'\""

// mention is one of a resource.
type mention struct {
	server *server
	uri    string
}

// mentions finds the resources that a text mentions.
func (h *Host) mentions(ctx context.Context, servers []*server, text string) []mention {
	var all []mention
	for i := range len(text) {
		if text[i] != '@' || !beginsWord(text, i) {
			continue
		}
		s, rest := namedAt(servers, text[i:], '@')
		if s == nil {
			continue
		}
		uri := rest
		if rest[0] == '"' {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				continue
			}
			uri = rest[1 : 1+end]
		} else {
			if end := strings.IndexAny(rest, " \t\r\n"); end >= 0 {
				uri = rest[:end]
			}
			if bare := strings.TrimRight(uri, trailing); bare != uri && !slices.ContainsFunc(h.resourcesOf(ctx, s, againTime), func(r Resource) bool { return r.URI == uri }) {
				uri = bare
			}
		}
		if m := (mention{s, uri}); uri != "" && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// attached reads the resources that a text mentions.
func (c *Conversation) attached(ctx context.Context, servers []*server, text string) ([]model.Part, error) {
	all := c.h.mentions(ctx, servers, text)
	if len(all) > maxMentions {
		return nil, fmt.Errorf("%d resources are mentioned; at most %d can be attached to a message", len(all), maxMentions)
	}
	c.beside.Store(int32(len(all)))
	parts, errs := make([][]model.Part, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { parts[i], errs[i] = c.read(ctx, m.server, m.uri) })
	}
	wg.Wait()
	return slices.Concat(parts...), errors.Join(errs...)
}

// insisted finds the tools that a text insists on, by their names for the model.
func (h *Host) insisted(ctx context.Context, text string) ([]string, error) {
	var names []string
	var tools []Tool
	for i := range len(text) {
		if text[i] != '#' || !beginsWord(text, i) {
			continue
		}
		word := text[i+1:]
		if end := strings.IndexAny(word, " \t\r\n"); end >= 0 {
			word = word[:end]
		}
		if word = strings.TrimRight(word, trailing); word == "" || word[0] == '#' {
			continue
		}
		if tools == nil {
			tools = h.Tools(ctx)
		}
		t, err := h.toolCalled(tools, word)
		if err != nil {
			return nil, err
		}
		if t != nil && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// toolCalled finds the tool that a person means by a word; nil if that is just a word.
func (h *Host) toolCalled(tools []Tool, word string) (*Tool, error) {
	var bare []*Tool
	for i := range tools {
		switch t := &tools[i]; word {
		case t.Name, t.Server + "/" + t.Tool.Name:
			return t, nil
		case t.Tool.Name:
			bare = append(bare, t)
		}
	}
	if len(bare) == 1 {
		return bare[0], nil
	}
	if len(bare) > 1 {
		var all []string
		for _, t := range bare[:min(len(bare), 5)] {
			all = append(all, "#"+t.Server+"/"+t.Tool.Name)
		}
		return nil, fmt.Errorf("more than one server has a tool %s: say %s", quoted(word), strings.Join(all, " or "))
	}
	for i := range len(word) {
		if word[i] == '/' && h.named(word[:i]) != nil {
			return nil, fmt.Errorf("server %s has no tool %s that is enabled", quoted(word[:i]), quoted(word[i+1:]))
		}
	}
	return nil, nil
}

// prompt gets the messages of a prompt, written as its name and arguments.
func (c *Conversation) prompt(ctx context.Context, s *server, written string) ([]model.Message, error) {
	fields := split(written)
	name := fields[0].value
	list, err := c.h.promptsOf(ctx, s, listTime)
	if err != nil {
		return nil, fmt.Errorf("prompts of server %s: %w", quoted(s.Name), err)
	}
	at := slices.IndexFunc(list, func(p Prompt) bool { return p.Name == name })
	if at < 0 {
		var names []string
		for _, p := range list[:min(len(list), 20)] {
			names = append(names, "/"+s.Name+":"+quotedIf(p.Name))
		}
		return nil, fmt.Errorf("server %s has no prompt %s; it has: %s", quoted(s.Name), quoted(name), cmp.Or(strings.Join(names, ", "), "none"))
	}
	args, err := promptArguments(list[at].Prompt, fields[1:])
	if err != nil {
		return nil, err
	}
	var res *mcp.PromptResult
	session, err := c.session(s)
	if err == nil {
		res, err = session.Prompt(ctx, name, args)
	}
	if err == nil && len(res.Messages) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("prompt %s of server %s: %w", quoted(name), quoted(s.Name), err)
	}
	var messages []model.Message
	for _, m := range res.Messages {
		p := c.presenting(s.Name)
		p.block(m.Content)
		role := model.User
		if m.Role == "assistant" {
			role = model.Assistant
		}
		parts := p.done("prompt " + quoted(name))
		if role == model.Assistant { // models say words alone
			parts = slices.DeleteFunc(parts, func(p model.Part) bool { return p.Media != nil })
		}
		if len(parts) > 0 {
			messages = append(messages, model.Message{Role: role, Parts: parts})
		}
	}
	if messages == nil {
		return nil, fmt.Errorf("prompt %s of server %s: it is empty", quoted(name), quoted(s.Name))
	}
	if messages[0].Role != model.User {
		begin := model.UserText(fmt.Sprintf("[The person has run the prompt %s of server %s.]", quoted(name), quoted(s.Name)))
		messages = slices.Insert(messages, 0, begin)
	}
	return messages, nil
}

// promptArguments reads the arguments of a prompt.
func promptArguments(p *mcp.Prompt, fields []field) (map[string]string, error) {
	args := map[string]string{}
	var rest []string
	for _, f := range fields {
		name, value, ok := strings.Cut(f.value, "=")
		if ok && slices.ContainsFunc(p.Arguments, func(a mcp.PromptArgument) bool { return a.Name == name }) {
			args[name] = value
			continue
		}
		rest = append(rest, f.value)
	}
	var open, missing []string
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; !ok {
			open = append(open, a.Name)
		}
	}
	switch {
	case rest == nil:
	case len(open) == 1:
		args[open[0]] = strings.Join(rest, " ")
	default:
		return nil, fmt.Errorf("prompt %s has no argument %s; %s", quoted(p.Name), quoted(rest[0]), argumentsOf(p))
	}
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; !ok && a.Required {
			missing = append(missing, a.Name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("prompt %s lacks %s; %s", quoted(p.Name), strings.Join(missing, ", "), argumentsOf(p))
	}
	return args, nil
}

// argumentsOf tells which arguments a prompt takes.
func argumentsOf(p *mcp.Prompt) string {
	if len(p.Arguments) == 0 {
		return "it takes none"
	}
	var all []string
	for _, a := range p.Arguments {
		text := bounded(a.Name, 100) + "=…"
		if !a.Required {
			text = "[" + text + "]"
		}
		all = append(all, text)
	}
	return "it takes " + strings.Join(all, " ")
}

// field is a word of a command line.
type field struct {
	from, to int    // where it stands
	value    string // without quotes
	open     bool   // a quote is not closed
}

// split splits a command line into words. Within double quotes a backslash stands for the
// character that follows it.
func split(text string) []field {
	var all []field
	var word strings.Builder
	from, quote, within := 0, false, false
	end := func(to int) {
		if within {
			all = append(all, field{from, to, word.String(), quote})
		}
		word.Reset()
		within = false
	}
	for i := 0; i < len(text); i++ {
		b := text[i]
		space := b == ' ' || b == '\t' || b == '\n' || b == '\r'
		if space && !quote {
			end(i)
			continue
		}
		if !within {
			from, within = i, true
		}
		switch {
		case b == '"':
			quote = !quote
		case b == '\\' && quote && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		default:
			word.WriteByte(b)
		}
	}
	end(len(text))
	return all
}

// quotedIf is a word of a command line that split reads as a text.
func quotedIf(text string) string {
	if text != "" && !strings.ContainsAny(text, " \t\r\n\"") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
