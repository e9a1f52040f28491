package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

type toolsCmd struct {
	Name string `arg:"" optional:"" help:"Show this tool with its arguments."`
}

func (c *toolsCmd) Run(a *app) error {
	c.Name = a.serverAlone(c.Name)
	if c.Name == "" {
		return items(a, "tools/list", "tools", "has no tools", func(t *mcp.Tool) row {
			return row{t.Name, about(t.Name, t.Title, t.Description)}
		})
	}
	c.Name = a.slashed(c.Name)
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := a.list(p, "tools/list", "tools")
	if err != nil {
		return err
	}
	raw, names := pick(l.items, c.Name)
	if raw == nil {
		return &fault{code: exitAnswer, err: fmt.Errorf("%s has no tool %q%s", a.serverName(), c.Name, didYouMean(c.Name, names)), next: a.other("tools")}
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	t, err := decode[mcp.Tool](raw)
	if err != nil {
		return fmt.Errorf("the tool %q cannot be read: %w", c.Name, err)
	}
	a.head(t.Name, t.Title, t.Description)
	form, err := schema.FormOf(t.InputSchema)
	switch {
	case err != nil:
		a.print("\narguments, by this JSON Schema:\n" + a.shownJSON(t.InputSchema))
	case len(form.Fields) == 0:
		a.print("\nno arguments")
	default:
		a.print("\narguments:")
		a.fields(form)
	}
	if hints := toolHints(t.Annotations); hints != "" {
		a.print("\nit says of itself: " + hints)
	}
	return nil
}

// pick finds an item of a list by its name, and returns all names.
func pick(items []json.RawMessage, name string) (raw json.RawMessage, names []string) {
	for _, item := range items {
		v, _ := jsonx.Lookup(item, "name")
		n, err := jsonx.Unquote(v)
		if err != nil {
			continue
		}
		if n == name && raw == nil {
			raw = item
		}
		names = append(names, n)
	}
	return raw, names
}

// head prints what an entry is.
func (a *app) head(name, title, description string) {
	if title = oneLine(title); title == "" || sameWords(title, name) {
		title = ""
	} else {
		title = "  " + title
	}
	a.print(a.paint(oneLine(name), "1") + title)
	if description = strings.TrimSpace(description); description != "" {
		a.print(a.prose(description, a.tty.width))
	}
}

// fields prints the arguments of a tool, one a line.
func (a *app) fields(form *schema.Form) {
	var rows []row
	for i := range form.Fields {
		f := &form.Fields[i]
		name := "  " + f.Name
		if f.Required {
			name += requiredMark
		}
		text := kindOf(f)
		if more := about(f.Name, f.Title, f.Description); more != "" {
			text += ": " + more
		}
		rows = append(rows, row{name, text})
	}
	a.rows(rows)
}

// requiredMark stands behind the name of an argument that must be given.
const requiredMark = " *"

// rows prints arguments, each description wrapped beside its name.
func (a *app) rows(rows []row) {
	first := 0
	for i := range rows {
		first = max(first, columns(rows[i].name))
	}
	for _, r := range rows {
		room := 0
		if a.tty.width > 0 {
			room = max(20, a.tty.width-first-2)
		}
		lines := strings.Split(wrap(oneLine(r.about), room), "\n")
		for i, text := range lines {
			name := ""
			if i == 0 {
				name = visible(r.name)
			}
			a.print(a.paint(pad(name, first), "1") + "  " + text)
		}
	}
	if slices.ContainsFunc(rows, func(r row) bool { return strings.HasSuffix(r.name, requiredMark) }) {
		a.print("\n  (* required)")
	}
}

// kindOf words what a field takes.
func kindOf(f *schema.Field) string {
	var s string
	switch f.Kind {
	case schema.Enum, schema.MultiEnum:
		var names []string
		for _, o := range f.Options {
			v := plain(o.Value)
			if o.Title != v {
				v += " (" + o.Title + ")"
			}
			names = append(names, v)
		}
		s = strings.Join(names, " | ")
		if f.Kind == schema.MultiEnum {
			s = "several of " + s
		}
	case schema.String:
		s = "text"
		if f.Format != "" {
			s = f.Format
		}
		s += bounds(f, " characters")
	case schema.Integer:
		s = "whole number" + bounds(f, "")
	case schema.Number:
		s = "number" + bounds(f, "")
	case schema.Boolean:
		s = "true or false"
	default:
		s = "JSON"
		var w struct {
			Type any `json:"type"`
		}
		if jsonx.Unmarshal(f.Schema, &w) == nil {
			switch w.Type {
			case "array":
				s = "list"
			case "object":
				s = "object"
			}
		}
	}
	if f.Default != nil {
		s += " [" + plain(f.Default) + "]"
	}
	return s
}

func bounds(f *schema.Field, unit string) string {
	switch {
	case f.Min != "" && f.Max != "":
		return fmt.Sprintf(" %s to %s%s", f.Min, f.Max, unit)
	case f.Min != "":
		return fmt.Sprintf(" from %s%s", f.Min, unit)
	case f.Max != "":
		return fmt.Sprintf(" up to %s%s", f.Max, unit)
	}
	return ""
}

// toolHints words the annotations of a tool, which are the server's own claims.
func toolHints(h *mcp.ToolAnnotations) string {
	if h == nil {
		return ""
	}
	raw, err := jsonx.Marshal(h)
	if err != nil {
		return ""
	}
	words := map[string][2]string{ // true, false
		"readOnlyHint": {"changes nothing", ""}, "destructiveHint": {"may destroy", "destroys nothing"},
		"idempotentHint": {"twice is as once", ""}, "openWorldHint": {"reaches outside", ""},
	}
	var out []string
	for name, v := range jsonx.Members(raw) {
		w, i := words[string(name)], 0
		if string(v) == "false" {
			i = 1
		}
		if w[i] != "" && (string(v) == "true" || string(v) == "false") {
			out = append(out, w[i])
		}
	}
	return strings.Join(out, ", ")
}

// unknownTool adds to the error of a call that the server has no such tool, if so.
func (a *app) unknownTool(p *peer, name string, err error) error {
	var rpc *mcp.Error
	if a.toldUnusable[name] || !errors.As(err, &rpc) || (rpc.Code != mcp.CodeInvalidParams && rpc.Code != mcp.CodeMethodNotFound) {
		return err
	}
	l, listErr := a.list(p, "tools/list", "tools")
	if listErr != nil {
		return err
	}
	raw, names := pick(l.items, name)
	if raw != nil {
		return &fault{code: exitAnswer, err: err, next: a.other("tools", name)}
	}
	return &fault{code: exitAnswer, err: fmt.Errorf("%s has no tool %q%s", a.serverName(), name, didYouMean(name, names)), next: a.other("tools")}
}
