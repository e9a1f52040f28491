package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Markdown returns a page about the server, in the dialect of GitHub: CommonMark with tables.
func (s *Server) Markdown() string {
	p := &page{}
	i := s.Info
	p.line("# %s", cell(cmp.Or(i.Title, i.Name, "MCP server")))
	about := cmp.Or(cell(i.Name), "without a name")
	if i.Version != "" {
		about += ", version " + cell(i.Version)
	}
	p.line("The MCP server %s. Its own words are quoted.", about)
	p.quote("the description", i.Description)
	if i.Instructions != "" {
		p.line("Instructions for models:")
		p.quote("the instructions", i.Instructions)
	}
	if len(s.Tools) > 0 {
		p.line("## Tools")
	}
	for i := range s.Tools {
		p.tool(&s.Tools[i], s.Command)
	}
	if len(s.Resources) > 0 {
		p.line("## Resources")
		p.row("URI", "Name", "Type", "Size", "Description")
		for _, r := range s.Resources {
			size := ""
			if r.Size > 0 {
				size = fmt.Sprint(r.Size, " bytes")
			}
			p.row(r.URI, cmp.Or(r.Title, r.Name), r.MIMEType, size, r.Description)
		}
		p.end()
	}
	if len(s.Templates) > 0 {
		p.line("## Resource templates")
		p.row("URI", "Name", "Type", "Description")
		for _, t := range s.Templates {
			p.row(t.URITemplate, cmp.Or(t.Title, t.Name), t.MIMEType, t.Description)
		}
		p.end()
	}
	if len(s.Prompts) > 0 {
		p.line("## Prompts")
	}
	for _, t := range s.Prompts {
		p.heading(t.Name, t.Title)
		p.quote("the description", t.Description)
		if len(t.Arguments) == 0 {
			p.line("No arguments.")
			continue
		}
		p.row("Argument", "Required", "Description")
		for _, a := range t.Arguments {
			p.row(a.Name, yes(a.Required), screen.About(a.Name, a.Title, a.Description))
		}
		p.end()
	}
	return strings.TrimSuffix(p.String(), "\n")
}

// page is a page that is written from top to bottom.
type page struct {
	strings.Builder
	columns int // of the table that is open; zero: none is
}

// line writes a block of one line.
func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n\n", args...) }

// heading writes the heading of a feature.
func (p *page) heading(name, title string) {
	head := cmp.Or(cell(name), "(without a name)")
	if title != "" && !screen.SameWords(title, name) {
		head += " – " + cell(title)
	}
	p.line("### %s", head)
}

// tool writes about one tool.
func (p *page) tool(t *mcp.Tool, command func(words ...string) string) {
	title := t.Title
	if t.Annotations != nil {
		title = cmp.Or(title, t.Annotations.Title)
	}
	p.heading(t.Name, title)
	p.quote("the description", t.Description)
	if hints := Hints(t.Annotations); hints != "" {
		p.line("The server says that it is: %s.", hints)
	}
	p.schema("Argument", "No arguments.", t.InputSchema)
	if t.OutputSchema != nil {
		p.line("Result:")
		p.schema("Member", "Any object.", t.OutputSchema)
	}
	form, err := schema.FormOf(t.InputSchema)
	if err != nil {
		return
	}
	line := arguments.Call(command, t.Name, form, t.InputSchema)
	if line == "" {
		return
	}
	words, err := arguments.Read(arguments.Example(form, t.InputSchema), nil, "")
	if err != nil {
		return
	}
	args, err := arguments.Build(words, form, t.InputSchema, "")
	if err != nil || screen.Visible(string(args)) != string(args) {
		return
	}
	p.line("Example:")
	p.block("sh", line)
	p.block("json", screen.Indented(args))
}

// schema writes the members that a schema names as a table, and the schema itself if that says more.
func (p *page) schema(heading, none string, raw json.RawMessage) {
	parts, more := arguments.Parts(raw)
	if len(parts) > 0 {
		p.row(heading, "Type", "Required", "Default", "Description")
	}
	path := []string{} // names of the members above, by their depth
	for _, part := range parts {
		f := part.Field
		path = append(path[:min(part.Depth-1, len(path))], part.Name)
		if f == nil {
			p.row(strings.Join(path, "."), "", "", "", part.About)
			continue
		}
		name := strings.Join(path, ".")
		for e := f.Elements(); e != nil && strings.Count(path[len(path)-1], "[]") < 4; e = e.Elements() {
			path[len(path)-1] += "[]"
		}
		fallback := ""
		if f.Default != nil {
			fallback = string(f.Default)
		}
		if part.Other {
			part.About = "any other name"
		}
		p.row(name, arguments.Words(f), yes(f.Required), fallback, part.About)
	}
	switch {
	case len(parts) > 0:
		p.end()
		if more > 0 {
			p.line("%s more; the schema has all.", screen.Quantity(more, "row"))
		}
	case saysNothing(raw):
		p.line("%s", none)
	case len(raw) > maxQuote:
		p.line("A schema of %d bytes.", len(raw))
	default:
		p.block("json", screen.Visible(screen.Indented(raw)))
	}
}

// saysNothing reports whether a schema is one of objects and says no more.
func saysNothing(raw json.RawMessage) bool {
	for name, v := range jsonx.Members(raw) {
		switch string(name) {
		case "$schema", "type", "title", "description", "additionalProperties":
			if jsonx.KindOf(v) == '{' {
				return false
			}
		case "properties", "required":
			if v := string(v); v != "{}" && v != "[]" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// row writes a row of a table, whose first row is its head.
func (p *page) row(cells ...string) {
	for _, c := range cells {
		p.WriteString("| " + cell(c) + " ")
	}
	p.WriteString("|\n")
	if p.columns == 0 {
		p.columns = len(cells)
		p.WriteString(strings.Repeat("| --- ", p.columns) + "|\n")
	}
}

// end ends a table.
func (p *page) end() {
	p.columns = 0
	p.WriteByte('\n')
}

// Bounds of texts, in bytes.
const (
	maxCell  = 500
	maxQuote = 16 << 10
)

// cell returns a text of the server for one line.
func cell(s string) string {
	out := strings.TrimSpace(escape(screen.OneLine(text.Clip(s, maxCell))))
	if len(s) > maxCell {
		out += fmt.Sprintf(" (%d bytes in all)", len(s))
	}
	return out
}

// quote writes a text of the server of several lines.
func (p *page) quote(what, s string) {
	whole := len(s)
	s = strings.TrimRight(screen.Visible(text.Clip(s, maxQuote)), " \t\n")
	if strings.TrimSpace(s) == "" {
		return
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " \t")
		indent := strings.ReplaceAll(line[:len(line)-len(words)], "\t", "    ")
		words = strings.Repeat("\u00a0", min(len(indent), 40)) + escape(strings.TrimRight(words, " \t"))
		if i+1 < len(lines) && strings.TrimSpace(line) != "" && strings.TrimSpace(lines[i+1]) != "" {
			words += `\` // the line ends here, too
		}
		p.WriteString(strings.TrimRight("> "+words, " ") + "\n")
	}
	p.WriteByte('\n')
	if whole > maxQuote {
		p.line("(Cut: %s has %d bytes.)", what, whole)
	}
}

// block writes lines as they are. They are visible already.
func (p *page) block(language, s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	p.line("%s%s\n%s\n%s", fence, language, strings.TrimRight(s, "\n"), fence)
}

// escape returns text without line breaks for a line of Markdown, where no character of it has a meaning.
func escape(s string) string {
	var out strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '<':
			out.WriteString("&lt;")
			continue
		case c == '>':
			out.WriteString("&gt;")
			continue
		case c == '&':
			out.WriteString("&amp;")
			continue
		case strings.IndexByte("\\`*[]|~$#", c) >= 0,
			c == '_' && !(i > 0 && letter(s[i-1]) && i+1 < len(s) && letter(s[i+1])),
			strings.IndexByte("-+=:", c) >= 0 && i == 0,
			(c == '.' || c == ')') && i > 0 && strings.Trim(s[:i], "0123456789") == "" && (i+1 == len(s) || s[i+1] == ' '):
			out.WriteByte('\\')
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
