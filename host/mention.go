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

	"github.com/patchbay-dev/patchbay/host/mention"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/parallel"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of the mentions in one message. Package mention defines their syntax.
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

// Resources returns the resources of all available servers, in the order in which the servers were
// added and in which each lists them. It waits as long as Tools does.
func (h *Host) Resources(ctx context.Context) []Resource {
	return slices.Concat(parallel.Map(h.snapshot(), func(s *server) []Resource { return h.resourcesOf(ctx, s, listTime) })...)
}

// Templates returns the resource templates of all servers, as Resources does.
func (h *Host) Templates(ctx context.Context) []Template {
	return slices.Concat(parallel.Map(h.snapshot(), func(s *server) []Template { return h.templatesOf(ctx, s, listTime) })...)
}

// Prompts returns the prompts of all servers, as Resources does.
func (h *Host) Prompts(ctx context.Context) []Prompt {
	return slices.Concat(parallel.Map(h.snapshot(), func(s *server) []Prompt {
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
		found, err := gather(ctx, session.ResourceTemplates)
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

// spoken is a message from a person, as the model receives it.
type spoken struct {
	messages []model.Message
	tools    []string // names of the tools that must be called
}

// compose makes messages from a person's text and its attachments.
func (c *Conversation) compose(ctx context.Context, text string, more []model.Part) (*spoken, error) {
	if strings.TrimSpace(text) == "" && len(more) == 0 {
		return nil, errors.New("the message is empty")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mentionTime, fmt.Errorf("no answer within %v", mentionTime))
	defer cancel()
	servers := c.h.snapshot()
	c.beside.Store(1)
	if name, rest := mention.Server(namesOf(servers), strings.TrimSpace(text), '/'); name != "" {
		messages, err := c.prompt(ctx, byName(servers, name), rest)
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
	if text != "" && len(attached)+len(more) > 0 {
		message = marked(mark{Typed: text}, slices.Concat(parts, attached, more)...)
	}
	return &spoken{messages: []model.Message{message}, tools: tools}, nil
}

// attached reads the resources that a text mentions.
func (c *Conversation) attached(ctx context.Context, servers []*server, text string) ([]model.Part, error) {
	all := mention.Resources(namesOf(servers), text, func(server, uri string) bool {
		return slices.ContainsFunc(c.h.resourcesOf(ctx, byName(servers, server), againTime), func(r Resource) bool { return r.URI == uri })
	})
	if len(all) > maxMentions {
		return nil, fmt.Errorf("%d resources are mentioned; at most %d can be attached to a message", len(all), maxMentions)
	}
	c.beside.Store(int32(len(all)))
	parts, errs := make([][]model.Part, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { parts[i], errs[i] = c.read(ctx, byName(servers, m.Server), m.URI) })
	}
	wg.Wait()
	return slices.Concat(parts...), errors.Join(errs...)
}

// insisted returns the tools that a text mentions, by their names for the model.
func (h *Host) insisted(ctx context.Context, text string) ([]string, error) {
	words := mention.Words(text)
	if len(words) == 0 {
		return nil, nil
	}
	var names []string
	tools := h.Tools(ctx)
	for _, word := range words {
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

// toolCalled returns the tool that a word refers to, or nil if it is just a word.
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

// prompt gets the messages of a prompt, given its name and arguments as typed.
func (c *Conversation) prompt(ctx context.Context, s *server, written string) ([]model.Message, error) {
	fields := mention.Split(written)
	name := fields[0].Value
	list, err := c.h.promptsOf(ctx, s, listTime)
	if err != nil {
		return nil, fmt.Errorf("prompts of server %s: %w", quoted(s.Name), err)
	}
	at := slices.IndexFunc(list, func(p Prompt) bool { return p.Name == name })
	if at < 0 {
		var names []string
		for _, p := range list[:min(len(list), 20)] {
			names = append(names, "/"+s.Name+":"+mention.Quote(p.Name))
		}
		return nil, fmt.Errorf("server %s has no prompt %s; it has: %s", quoted(s.Name), quoted(name), cmp.Or(strings.Join(names, ", "), "none"))
	}
	args, err := mention.Arguments(list[at].Prompt, fields[1:])
	if err != nil {
		return nil, err
	}
	var res *mcp.PromptResult
	session, err := c.session(s)
	if err == nil {
		res, err = session.GetPrompt(ctx, name, args)
		err = s.orGone(err)
	}
	if err == nil && len(res.Messages) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("prompt %s of server %s: %w", quoted(name), quoted(s.Name), err)
	}
	var messages []model.Message
	for _, m := range res.Messages {
		p := c.presenting(ctx, s.Name)
		p.block(m.Content)
		role := model.User
		if m.Role == "assistant" {
			role = model.Assistant
		}
		parts := p.done("prompt " + quoted(name))
		if role == model.Assistant { // models produce only text
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

func namesOf(servers []*server) []string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return names
}

// completeTime bounds a completion.
const completeTime = 2 * time.Second

// Complete returns how a text that a person is writing can continue at a cursor, see
// [mention.Complete]. It takes at most 2 seconds; values that a server has not returned by then are
// missing.
func (h *Host) Complete(ctx context.Context, text string, cursor int) mention.Completions {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	servers := h.snapshot()
	return mention.Complete(ctx, &mention.Source{
		Servers: namesOf(servers),
		Tools: func(ctx context.Context) []mention.Tool {
			var all []mention.Tool
			for _, t := range h.listedTools(ctx, completeTime, h.enabled) {
				all = append(all, mention.Tool{Server: t.Server, Name: t.Name, Tool: t.Tool})
			}
			return all
		},
		Resources: func(ctx context.Context, server string) []*mcp.Resource {
			return mapped(h.resourcesOf(ctx, byName(servers, server), completeTime), func(r Resource) *mcp.Resource { return r.Resource })
		},
		Templates: func(ctx context.Context, server string) []*mcp.ResourceTemplate {
			return mapped(h.templatesOf(ctx, byName(servers, server), completeTime), func(t Template) *mcp.ResourceTemplate { return t.ResourceTemplate })
		},
		Prompts: func(ctx context.Context, server string) []*mcp.Prompt {
			list, err := h.promptsOf(ctx, byName(servers, server), completeTime)
			if err != nil {
				return nil
			}
			return mapped(list, func(p Prompt) *mcp.Prompt { return p.Prompt })
		},
		Values: func(ctx context.Context, server string, of mcp.Feature, argument, prefix string, others map[string]string) []string {
			return h.valuesFor(ctx, byName(servers, server), of, argument, prefix, others)
		},
	}, text, cursor)
}

func mapped[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = f(a)
	}
	return out
}

// valuesFor asks a server for values of an argument. It returns nil if the server does not complete
// arguments or does not answer in time.
func (h *Host) valuesFor(ctx context.Context, s *server, of mcp.Feature, argument, prefix string, others map[string]string) []string {
	h.mu.Lock()
	offers := s.said != nil && s.said.Capabilities.Has("completions")
	h.mu.Unlock()
	if !offers {
		return nil
	}
	var values []string
	err := h.Use(ctx, s.Name, func(session *mcp.Session) error {
		res, err := session.Complete(ctx, of, argument, prefix, others)
		if err == nil {
			values = res.Values
		}
		return err
	})
	if err != nil {
		h.log().DebugContext(ctx, "no completion", "server", s.Name, "err", err)
	}
	return values
}
