package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/toolsearch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// ownNames are the names of the host's own tools.
var ownNames = []string{"search_tools", "describe_tool", "read_more", "read_resource"}

// Bounds of a search.
const (
	usualHits = 8
	mostHits  = 20
)

// searchTools is the tool that finds other tools. Requests offer them from then on.
func (c *Conversation) searchTools(cat *catalog) Tool {
	return Tool{Name: "search_tools", Tool: &mcp.Tool{
		Name: "search_tools",
		Description: "Finds tools by words: there are more than the listed ones. Tools that it finds can be called by name from then on. " +
			"Search again with other words before you say that something cannot be done.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words for what the tool should do, or from its name"},"server":{"type":"string","description":"only tools of this server"},"limit":{"type":"integer","minimum":1,"maximum":20,"description":"how many at most; 8 if not given"}},"required":["query"]}`),
	}, own: own{do: func(_ context.Context, args json.RawMessage) ([]model.Part, error) {
		var in struct {
			Query, Server string
			Limit         int
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		tools := cat.ofServers()
		if in.Server != "" {
			tools = slices.DeleteFunc(tools, func(t Tool) bool { return t.Server != in.Server })
		}
		hits := search(tools, in.Query, min(max(or(in.Limit, usualHits), 1), mostHits))
		if len(hits) == 0 {
			return words("No tool fits these words. Try others, or fewer. There are: " + cat.byServer() + "."), nil
		}
		var b strings.Builder
		for _, t := range hits {
			fmt.Fprintf(&b, "%s (server %s): %s\n  arguments: %s\n", t.Name, quoted(t.Server), bounded(cmp.Or(t.Description, t.Title, "no description"), 300), arguments(t.InputSchema))
		}
		c.find(hits)
		return words(b.String() + "They can be called by these names from now on."), nil
	}}}
}

// describeTool is the tool that describes another tool in full. Requests offer it from then on.
func (c *Conversation) describeTool(cat *catalog) Tool {
	return Tool{Name: "describe_tool", Tool: &mcp.Tool{
		Name:        "describe_tool",
		Description: "Describes one tool that search_tools has named: its whole description and the JSON Schemas of its arguments and result. It can be called from then on.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	}, own: own{do: func(_ context.Context, args json.RawMessage) ([]model.Part, error) {
		var in struct{ Name string }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		tools := cat.ofServers()
		i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == in.Name || t.Server+"/"+t.Tool.Name == in.Name })
		if i < 0 {
			return nil, fmt.Errorf("unknown tool %s; search_tools lists tools that exist", quoted(in.Name))
		}
		t := tools[i]
		c.find(tools[i : i+1])
		text := fmt.Sprintf("%s (tool %s of server %s)\n", t.Name, quoted(t.Tool.Name), quoted(t.Server))
		if t.Title != "" {
			text += t.Title + "\n"
		}
		if t.Description != "" {
			text += t.Description + "\n"
		}
		text += "arguments: " + string(t.InputSchema) + "\n"
		if t.OutputSchema != nil {
			text += "result: " + string(t.OutputSchema) + "\n"
		}
		return []model.Part{{Text: c.cut(text, "description of "+t.Name, c.resultBytes())}}, nil
	}}}
}

// find marks tools to be offered from the next step on.
func (c *Conversation) find(tools []Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range slices.Backward(tools) { // the best match becomes the newest
		c.findLocked(t.Name)
	}
}

// ofServers returns the tools of the available servers.
func (cat *catalog) ofServers() []Tool {
	var tools []Tool
	for _, sec := range cat.servers {
		if sec.missing == "" {
			tools = append(tools, sec.tools...)
		}
	}
	return tools
}

// arguments lists the arguments of a tool in words.
func arguments(schema json.RawMessage) string {
	props, required := properties(schema)
	if len(props) == 0 {
		return "none"
	}
	var all []string
	for i, p := range props {
		if i == 30 {
			all = append(all, fmt.Sprintf("and %d more", len(props)-i))
			break
		}
		text := p.name
		var note []string
		if p.kind != "" {
			note = append(note, p.kind)
		}
		if slices.Contains(required, p.name) {
			note = append(note, "required")
		}
		if note != nil {
			text += " (" + strings.Join(note, ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// property is an argument of a tool.
type property struct{ name, kind, about string }

// properties returns the properties of a schema, sorted by name. A schema that it cannot read has
// none, because the result is only for display and search.
func properties(schema json.RawMessage) (props []property, required []string) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(schema, &s)
	for name, raw := range s.Properties {
		var p struct {
			Type        any    `json:"type"`
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		_ = json.Unmarshal(raw, &p)
		kind, _ := p.Type.(string)
		props = append(props, property{name, kind, p.Title + " " + p.Description})
	}
	slices.SortFunc(props, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return props, s.Required
}

// search returns the tools that match a query, the best first.
func search(tools []Tool, query string, most int) []Tool {
	all := make([]toolsearch.Tool, len(tools))
	for i, t := range tools {
		title := t.Title
		if t.Annotations != nil {
			title += " " + t.Annotations.Title
		}
		var args strings.Builder
		props, _ := properties(t.InputSchema)
		for _, p := range props {
			fmt.Fprintln(&args, p.name, p.about)
		}
		all[i] = toolsearch.Tool{Name: t.Tool.Name, Title: title, Description: t.Description, Arguments: t.Server + " " + args.String()}
	}
	var out []Tool
	for _, hit := range toolsearch.New(all).Find(query, most) {
		out = append(out, tools[hit.Tool])
	}
	return out
}

// words returns a result that consists of text.
func words(text string) []model.Part { return []model.Part{{Text: text}} }

// quoted quotes text from a peer or a model for use in a sentence.
func quoted(s string) string { return strconv.Quote(bounded(s, 100)) }

// plural returns a count with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
