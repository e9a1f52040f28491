package host

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of a completion.
const (
	completeTime = 2 * time.Second
	maxItems     = 100
)

// Completions are the ways to go on with a text that a person is writing.
type Completions struct {
	From  int // what stands from here to the cursor, in bytes, is replaced
	Items []Completion
}

// Completion is one way to go on.
type Completion struct {
	Text  string // in the place of what stood there
	About string // what it is, in a few words, of the server's choosing; may be empty
}

// Complete tells how a text can go on at a cursor, which is counted in bytes: with servers and
// URIs after "@", with servers, prompts, and their arguments after "/" at the beginning, with
// tools after "#". Servers are asked for values where they offer that. It takes 2 seconds at
// most; what a server has not said by then is missing. There are at most 100 items, and none
// where nothing of the kind is being written.
func (h *Host) Complete(ctx context.Context, text string, cursor int) Completions {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	text = text[:min(max(cursor, 0), len(text))]
	servers := h.snapshot()
	c := Completions{From: len(text)}
	if lead := len(text) - len(strings.TrimLeft(text, " \t\r\n")); lead < len(text) && text[lead] == '/' {
		c = h.completePrompt(ctx, servers, text[lead:])
		c.From += lead
	} else if at := strings.LastIndexAny(text, "@#"); at >= 0 {
		for at > 0 && !beginsWord(text, at) { // it is a part of a URI
			at = strings.LastIndexAny(text[:at], "@#")
		}
		switch {
		case at < 0 || !beginsWord(text, at):
		case text[at] == '@':
			c.Items = h.completeResource(ctx, servers, text[at:])
			c.From = at
		case !strings.ContainsAny(text[at:], " \t\r\n"):
			c.Items = h.completeTool(ctx, text[at+1:])
			c.From = at
		}
	}
	seen := map[string]bool{}
	c.Items = slices.DeleteFunc(c.Items, func(i Completion) bool {
		again := seen[i.Text]
		seen[i.Text] = true
		return again
	})
	c.Items = c.Items[:min(len(c.Items), maxItems)]
	return c
}

// hasFold tells whether a text contains another, whatever the case.
func hasFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func prefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// bestFirst puts those whose text begins with what was written before those that contain it.
func bestFirst(items []Completion, written string) []Completion {
	slices.SortStableFunc(items, func(a, b Completion) int {
		return rank(prefixFold(b.Text, written)) - rank(prefixFold(a.Text, written))
	})
	return items
}

func rank(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// about is what an item is, in a few words.
func about(title, name, description string) string {
	text := cmp.Or(title, name)
	if description != "" && text != "" {
		text += ": "
	}
	return bounded(text+description, 120)
}

func (h *Host) completeTool(ctx context.Context, written string) []Completion {
	var items []Completion
	for _, t := range h.listedTools(ctx, completeTime, h.enabled) {
		name := t.Server + "/" + t.Tool.Name
		if strings.ContainsAny(name, " \t\r\n") {
			name = t.Name
		}
		if hasFold(name, written) || prefixFold(t.Name, written) {
			items = append(items, Completion{"#" + name, about(t.Title, "", t.Description)})
		}
	}
	return bestFirst(items, "#"+written)
}

// completeResource completes a mention that begins with "@".
func (h *Host) completeResource(ctx context.Context, servers []*server, written string) []Completion {
	s, uri := namedAt(servers, written, '@')
	name, bare := strings.CutSuffix(written, ":")
	at := slices.IndexFunc(servers, func(s *server) bool { return "@"+s.Name == name })
	if s == nil && bare && at >= 0 {
		s = servers[at]
	}
	if s != nil {
		uri = strings.TrimPrefix(uri, `"`)
		if strings.ContainsAny(uri, "\"") || strings.ContainsAny(uri, " \t\r\n") && !strings.HasPrefix(written, "@"+s.Name+`:"`) {
			return nil // it has ended
		}
		return h.completeURI(ctx, s, uri)
	}
	if strings.ContainsAny(written, " \t\r\n") && !slices.ContainsFunc(servers, func(s *server) bool { return prefixFold("@"+s.Name, written) }) {
		return nil
	}
	type found struct{ server, resources []Completion }
	all := ofEach(servers, func(s *server) (f found) {
		resources := h.resourcesOf(ctx, s, completeTime)
		if len(resources) == 0 && len(h.templatesOf(ctx, s, completeTime)) == 0 {
			return f
		}
		if prefixFold("@"+s.Name, written) {
			f.server = []Completion{{"@" + s.Name + ":", plural(len(resources), "resource")}}
		}
		for _, r := range resources {
			if len(written) > 1 && (hasFold(r.URI, written[1:]) || hasFold(r.Name, written[1:])) {
				f.resources = append(f.resources, mentionOf(r))
			}
		}
		return f
	})
	var items []Completion
	for _, f := range all {
		items = append(items, f.server...)
	}
	for _, f := range all {
		items = append(items, f.resources...)
	}
	return items
}

func mentionOf(r Resource) Completion {
	return Completion{atURI(r.Server, r.URI), about(r.Title, r.Name, r.Description)}
}

// atURI mentions a resource.
func atURI(server, uri string) string {
	if strings.ContainsAny(uri, " \t") {
		uri = `"` + uri + `"`
	}
	return "@" + server + ":" + uri
}

// completeURI completes the URI of a resource: of those that are listed, and of templates.
func (h *Host) completeURI(ctx context.Context, s *server, written string) []Completion {
	var items []Completion
	for _, r := range h.resourcesOf(ctx, s, completeTime) {
		if hasFold(r.URI, written) || hasFold(r.Name, written) || hasFold(r.Title, written) {
			items = append(items, mentionOf(r))
		}
	}
	items = bestFirst(items, atURI(s.Name, written))
	templates := h.templatesOf(ctx, s, completeTime)
	of := ofEach(templates[:min(len(templates), 20)], func(t Template) []Completion { return h.completeTemplate(ctx, s, t, written) })
	items = append(items, slices.Concat(of...)...)
	return items
}

// A template is literal texts with variables between them, of which those of simple expansion,
// {name}, {+name} and {#name}, can be completed.
type piece struct {
	literal  string // before the variable
	variable string // empty: the template ends
	reserved bool   // its value may have reserved characters
}

func pieces(template string) (all []piece) {
	for {
		literal, rest, ok := strings.Cut(template, "{")
		if !ok {
			return append(all, piece{literal: literal})
		}
		expr, after, _ := strings.Cut(rest, "}")
		p := piece{literal: literal, variable: expr}
		if expr != "" && (expr[0] == '+' || expr[0] == '#') {
			p.variable, p.reserved = expr[1:], true
			if expr[0] == '#' {
				p.literal += "#"
			}
		}
		if p.variable == "" || strings.ContainsAny(p.variable, ",*:./;?&") { // one that is not simple
			return append(all, piece{literal: literal})
		}
		all = append(all, p)
		template = after
	}
}

// completeTemplate completes a URI of a template: the text up to the next variable, or the value
// of that which is being written.
func (h *Host) completeTemplate(ctx context.Context, s *server, t Template, written string) []Completion {
	values := map[string]string{}
	rest, all := written, pieces(t.URITemplate)
	for i, p := range all {
		if len(rest) < len(p.literal) { // the text between two variables
			if p.variable == "" && i == 0 || !strings.HasPrefix(p.literal, rest) {
				return nil
			}
			return []Completion{{atURI(s.Name, written+p.literal[len(rest):]), about(t.Title, t.Name, t.Description)}}
		}
		if !strings.HasPrefix(rest, p.literal) || p.variable == "" {
			return nil
		}
		rest = rest[len(p.literal):]
		next := all[i+1].literal
		if end := strings.Index(rest, next); next != "" && end >= 0 {
			values[p.variable], _ = url.PathUnescape(rest[:end])
			rest = rest[end:]
			continue
		}
		if !p.reserved && strings.Contains(rest, "/") {
			return nil
		}
		before := strings.TrimSuffix(written, rest)
		prefix, err := url.PathUnescape(rest)
		if err != nil {
			prefix = rest
		}
		var items []Completion
		for _, v := range h.valuesFor(ctx, s, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: t.URITemplate}, p.variable, prefix, values) {
			if !p.reserved {
				v = url.PathEscape(v)
			}
			items = append(items, Completion{atURI(s.Name, before+v+next), about(t.Title, t.Name, p.variable)})
		}
		return items
	}
	return nil
}

// valuesFor asks a server for values of an argument; there are none if it does not say so in time.
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
		h.log().Debug("no completion", "server", s.Name, "err", err)
	}
	return values
}

// completePrompt completes a text that begins with "/".
func (h *Host) completePrompt(ctx context.Context, servers []*server, text string) Completions {
	s, rest := namedAt(servers, text, '/')
	if s == nil { // it may be the bare name of a server and a colon
		for _, other := range servers {
			if text == "/"+other.Name+":" {
				s = other
			}
		}
	}
	if s == nil {
		return Completions{Items: h.completePromptServer(ctx, servers, text)}
	}
	from := len(text) - len(rest) // of the name of the prompt
	fields := split(rest)
	list, err := h.promptsOf(ctx, s, completeTime)
	if err != nil {
		return Completions{From: len(text)}
	}
	if len(fields) == 0 || len(fields) == 1 && fields[0].to == len(rest) {
		written := ""
		if len(fields) > 0 {
			written = fields[0].value
		}
		var items []Completion
		for _, p := range list {
			if hasFold(p.Name, written) || hasFold(p.Title, written) {
				items = append(items, Completion{"/" + s.Name + ":" + quotedIf(p.Name), about(p.Title, "", p.Description)})
			}
		}
		return Completions{Items: bestFirst(items, "/"+s.Name+":"+written)}
	}
	at := slices.IndexFunc(list, func(p Prompt) bool { return p.Name == fields[0].value })
	if at < 0 {
		return Completions{From: len(text)}
	}
	p, given := list[at], fields[1:]
	last := field{from: len(rest), to: len(rest)}
	if n := len(given); n > 0 && given[n-1].to == len(rest) {
		last, given = given[n-1], given[:n-1]
	}
	return Completions{From: from + last.from, Items: h.completeArgument(ctx, s, p, given, last)}
}

// completePromptServer completes the name of a server that has prompts.
func (h *Host) completePromptServer(ctx context.Context, servers []*server, text string) []Completion {
	lists := ofEach(servers, func(s *server) (items []Completion) {
		list, _ := h.promptsOf(ctx, s, completeTime)
		if len(list) > 0 && prefixFold("/"+s.Name, text) {
			items = append(items, Completion{"/" + s.Name + ":", plural(len(list), "prompt")})
		}
		for _, p := range list {
			if len(text) > 1 && hasFold(p.Name, text[1:]) {
				items = append(items, Completion{"/" + s.Name + ":" + quotedIf(p.Name), about(p.Title, "", p.Description)})
			}
		}
		return items
	})
	return bestFirst(slices.Concat(lists...), text)
}

// completeArgument completes an argument of a prompt, its name or its value.
func (h *Host) completeArgument(ctx context.Context, s *server, p Prompt, given []field, last field) []Completion {
	others := map[string]string{}
	for _, f := range given {
		if name, value, ok := strings.Cut(f.value, "="); ok {
			others[name] = value
		}
	}
	var items []Completion
	name, value, valued := strings.Cut(last.value, "=")
	if valued {
		for _, v := range h.valuesFor(ctx, s, mcp.Feature{Kind: mcp.KindPrompt, Name: p.Name}, name, value, others) {
			items = append(items, Completion{name + "=" + quotedIf(v), ""})
		}
		return items
	}
	for _, a := range p.Arguments {
		if _, ok := others[a.Name]; ok || !prefixFold(a.Name, name) {
			continue
		}
		need := ""
		if a.Required {
			need = "required"
		}
		items = append(items, Completion{a.Name + "=", about(a.Title, need, a.Description)})
	}
	return items
}
