package mention

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/parallel"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxItems bounds the items of a completion.
const maxItems = 100

// Completions are the possible continuations of a text that a person is writing.
type Completions struct {
	From  int // the text from here to the cursor, in bytes, is replaced
	Items []Completion
}

// Completion is one possible continuation.
type Completion struct {
	Text  string // replaces the text from Completions.From to the cursor
	About string // short description, partly the server's words; may be empty
}

// Source provides what a text can mention. Its functions may be called by several goroutines at
// once and should return when ctx ends.
type Source struct {
	Servers   []string
	Tools     func(ctx context.Context) []Tool
	Resources func(ctx context.Context, server string) []*mcp.Resource
	Templates func(ctx context.Context, server string) []*mcp.ResourceTemplate
	Prompts   func(ctx context.Context, server string) []*mcp.Prompt

	// Values asks a server for values of an argument. It returns none if the server does not
	// complete it, or not in time.
	Values func(ctx context.Context, server string, of mcp.Feature, argument, prefix string, others map[string]string) []string
}

// Tool is a tool of a server.
type Tool struct {
	Server string
	Name   string // as the model knows it
	*mcp.Tool
}

// Complete returns the possible continuations of a text at a cursor, a byte offset: servers and
// URIs after "@", tools after "#", and, after "/" at the beginning, servers, prompts and their
// arguments. It returns at most 100 items, and none if the cursor is not in a mention. It takes as
// long as the functions of from.
func Complete(ctx context.Context, from *Source, text string, cursor int) Completions {
	text = text[:min(max(cursor, 0), len(text))]
	c := Completions{From: len(text)}
	if lead := len(text) - len(strings.TrimLeft(text, " \t\r\n")); lead < len(text) && text[lead] == '/' {
		c = from.prompt(ctx, text[lead:])
		c.From += lead
	} else if at := strings.LastIndexAny(text, "@#"); at >= 0 {
		for at > 0 && !beginsWord(text, at) { // part of a URI
			at = strings.LastIndexAny(text[:at], "@#")
		}
		switch {
		case at < 0 || !beginsWord(text, at):
		case text[at] == '@':
			c.Items = from.resource(ctx, text[at:])
			c.From = at
		case !strings.ContainsAny(text[at:], " \t\r\n"):
			c.Items = from.tool(ctx, text[at+1:])
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

// hasFold reports whether text contains part, ignoring case.
func hasFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func prefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// bestFirst sorts items that begin with the written text before those that only contain it.
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

// about returns a short description of an item.
func about(title, name, description string) string {
	text := cmp.Or(title, name)
	if description != "" && text != "" {
		text += ": "
	}
	return bounded(text+description, 120)
}

func (from *Source) tool(ctx context.Context, written string) []Completion {
	var items []Completion
	for _, t := range from.Tools(ctx) {
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

// resource completes a mention that begins with "@".
func (from *Source) resource(ctx context.Context, written string) []Completion {
	servers := from.Servers
	s, uri := Server(servers, written, '@')
	name, bare := strings.CutSuffix(written, ":")
	at := slices.IndexFunc(servers, func(s string) bool { return "@"+s == name })
	if s == "" && bare && at >= 0 {
		s = servers[at]
	}
	if s != "" {
		uri = strings.TrimPrefix(uri, `"`)
		if strings.ContainsAny(uri, "\"") || strings.ContainsAny(uri, " \t\r\n") && !strings.HasPrefix(written, "@"+s+`:"`) {
			return nil // the mention has ended
		}
		return from.uri(ctx, s, uri)
	}
	if strings.ContainsAny(written, " \t\r\n") && !slices.ContainsFunc(servers, func(s string) bool { return prefixFold("@"+s, written) }) {
		return nil
	}
	type found struct{ server, resources []Completion }
	all := parallel.Map(servers, func(s string) (f found) {
		resources := from.Resources(ctx, s)
		if len(resources) == 0 && len(from.Templates(ctx, s)) == 0 {
			return f
		}
		if prefixFold("@"+s, written) {
			f.server = []Completion{{"@" + s + ":", plural(len(resources), "resource")}}
		}
		for _, r := range resources {
			if len(written) > 1 && (hasFold(r.URI, written[1:]) || hasFold(r.Name, written[1:])) {
				f.resources = append(f.resources, mentionOf(s, r))
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

func mentionOf(server string, r *mcp.Resource) Completion {
	return Completion{atURI(server, r.URI), about(r.Title, r.Name, r.Description)}
}

// atURI returns the mention of a resource.
func atURI(server, uri string) string {
	if strings.ContainsAny(uri, " \t") {
		uri = `"` + uri + `"`
	}
	return "@" + server + ":" + uri
}

// uri completes the URI of a resource, from the listed resources and templates.
func (from *Source) uri(ctx context.Context, s, written string) []Completion {
	var items []Completion
	for _, r := range from.Resources(ctx, s) {
		if hasFold(r.URI, written) || hasFold(r.Name, written) || hasFold(r.Title, written) {
			items = append(items, mentionOf(s, r))
		}
	}
	items = bestFirst(items, atURI(s, written))
	templates := from.Templates(ctx, s)
	of := parallel.Map(templates[:min(len(templates), 20)], func(t *mcp.ResourceTemplate) []Completion { return from.template(ctx, s, t, written) })
	items = append(items, slices.Concat(of...)...)
	return items
}

// A piece is a part of a URI template: a literal and the variable after it. Only variables of
// simple expansion can be completed: {name}, {+name} and {#name}.
type piece struct {
	literal  string // before the variable
	variable string // empty: the template ends here
	reserved bool   // the value may contain reserved characters
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
		if p.variable == "" || strings.ContainsAny(p.variable, ",*:./;?&") { // not a simple expansion
			return append(all, piece{literal: literal})
		}
		all = append(all, p)
		template = after
	}
}

// template completes a URI of a template: the literal up to the next variable, or the value of the
// variable at the cursor.
func (from *Source) template(ctx context.Context, s string, t *mcp.ResourceTemplate, written string) []Completion {
	values := map[string]string{}
	rest, all := written, pieces(t.URITemplate)
	for i, p := range all {
		if len(rest) < len(p.literal) { // the cursor is in a literal
			if p.variable == "" && i == 0 || !strings.HasPrefix(p.literal, rest) {
				return nil
			}
			return []Completion{{atURI(s, written+p.literal[len(rest):]), about(t.Title, t.Name, t.Description)}}
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
		for _, v := range from.Values(ctx, s, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: t.URITemplate}, p.variable, prefix, values) {
			if !p.reserved {
				v = url.PathEscape(v)
			}
			items = append(items, Completion{atURI(s, before+v+next), about(t.Title, t.Name, p.variable)})
		}
		return items
	}
	return nil
}

// prompt completes a text that begins with "/".
func (from *Source) prompt(ctx context.Context, text string) Completions {
	s, rest := Server(from.Servers, text, '/')
	if s == "" { // the text may be the name of a server and a colon
		for _, other := range from.Servers {
			if text == "/"+other+":" {
				s = other
			}
		}
	}
	if s == "" {
		return Completions{Items: from.promptServer(ctx, text)}
	}
	start := len(text) - len(rest) // of the prompt's name
	fields := Split(rest)
	list := from.Prompts(ctx, s)
	if len(fields) == 0 || len(fields) == 1 && fields[0].to == len(rest) {
		written := ""
		if len(fields) > 0 {
			written = fields[0].Value
		}
		var items []Completion
		for _, p := range list {
			if hasFold(p.Name, written) || hasFold(p.Title, written) {
				items = append(items, Completion{"/" + s + ":" + Quote(p.Name), about(p.Title, "", p.Description)})
			}
		}
		return Completions{Items: bestFirst(items, "/"+s+":"+written)}
	}
	at := slices.IndexFunc(list, func(p *mcp.Prompt) bool { return p.Name == fields[0].Value })
	if at < 0 {
		return Completions{From: len(text)}
	}
	p, given := list[at], fields[1:]
	last := Word{from: len(rest), to: len(rest)}
	if n := len(given); n > 0 && given[n-1].to == len(rest) {
		last, given = given[n-1], given[:n-1]
	}
	return Completions{From: start + last.from, Items: from.argument(ctx, s, p, given, last)}
}

// promptServer completes the name of a server that has prompts.
func (from *Source) promptServer(ctx context.Context, text string) []Completion {
	lists := parallel.Map(from.Servers, func(s string) (items []Completion) {
		list := from.Prompts(ctx, s)
		if len(list) > 0 && prefixFold("/"+s, text) {
			items = append(items, Completion{"/" + s + ":", plural(len(list), "prompt")})
		}
		for _, p := range list {
			if len(text) > 1 && hasFold(p.Name, text[1:]) {
				items = append(items, Completion{"/" + s + ":" + Quote(p.Name), about(p.Title, "", p.Description)})
			}
		}
		return items
	})
	return bestFirst(slices.Concat(lists...), text)
}

// argument completes the name or the value of a prompt argument.
func (from *Source) argument(ctx context.Context, s string, p *mcp.Prompt, given []Word, last Word) []Completion {
	others := map[string]string{}
	for _, f := range given {
		if name, value, ok := strings.Cut(f.Value, "="); ok {
			others[name] = value
		}
	}
	var items []Completion
	name, value, valued := strings.Cut(last.Value, "=")
	if valued {
		for _, v := range from.Values(ctx, s, mcp.Feature{Kind: mcp.KindPrompt, Name: p.Name}, name, value, others) {
			items = append(items, Completion{name + "=" + Quote(v), ""})
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

// plural returns a count with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
