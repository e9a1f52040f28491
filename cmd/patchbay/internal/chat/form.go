package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	engine "github.com/patchbay-dev/patchbay/cmd/patchbay/internal/form"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// form asks for the fields of a form, one below the other, and shows the answers before they are
// sent (2026-07-28, client/elicitation, form mode).
type form struct {
	*host.Elicitation
	*schema.Form
	fields  []*entry
	at      int    // index of the field with the cursor
	review  bool   // the answers are shown
	leaving bool   // the person is choosing how to leave
	problem string // of all answers together
}

// entry is a field and its current content.
type entry struct {
	*schema.Field
	text    editor // the typed text
	choice  int    // of an enum or a boolean; -1: none
	chosen  []bool // several choices
	over    int    // with several choices, the option under the cursor
	problem string
}

func newForm(q *host.Elicitation) (*form, error) {
	parsed, err := schema.FormOf(q.Schema)
	if err != nil {
		return nil, err
	}
	f := &form{Elicitation: q, Form: parsed}
	for i := range parsed.Fields {
		f.fields = append(f.fields, newEntry(&parsed.Fields[i]))
	}
	f.review = len(f.fields) == 0
	return f, nil
}

func newEntry(f *schema.Field) *entry {
	e := &entry{Field: f, choice: -1, text: editor{one: true}, chosen: make([]bool, len(f.Options))}
	if f.Default == nil {
		return e
	}
	switch f.Kind {
	case schema.Enum:
		e.choice = slices.IndexFunc(f.Options, func(o schema.Option) bool { return string(o.Value) == string(f.Default) })
	case schema.MultiEnum:
		var values []json.RawMessage
		_ = json.Unmarshal(f.Default, &values) // not a list: nothing is chosen
		for i, o := range f.Options {
			e.chosen[i] = slices.ContainsFunc(values, func(v json.RawMessage) bool { return string(v) == string(o.Value) })
		}
	case schema.Boolean:
		e.choice = slices.Index([]string{"true", "false"}, string(f.Default))
	default:
		if string(f.Default) != "null" {
			e.text.set(screen.Plain(f.Default))
		}
	}
	return e
}

// options returns the labels of the choices.
func (e *entry) options() []string {
	if e.Kind == schema.Boolean {
		return []string{"yes", "no"}
	}
	out := make([]string, len(e.Options))
	for i, o := range e.Options {
		out[i] = screen.OneLine(o.Title)
	}
	return out
}

func (e *entry) label() string { return engine.Label(e.Field) }

// value returns the value of the field; nil: it is left out.
func (e *entry) value() (json.RawMessage, error) {
	switch e.Kind {
	case schema.Enum:
		if e.choice >= 0 {
			return e.Options[e.choice].Value, nil
		}
	case schema.Boolean:
		if e.choice >= 0 {
			return json.RawMessage(map[bool]string{true: "true", false: "false"}[e.choice == 0]), nil
		}
	case schema.MultiEnum:
		list := []json.RawMessage{}
		for i, on := range e.chosen {
			if on {
				list = append(list, e.Options[i].Value)
			}
		}
		if len(list) == 0 && !e.Required {
			return nil, nil
		}
		raw, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		return e.Parse(string(raw))
	default:
		return engine.Value(e.Field, e.text.String())
	}
	return engine.Value(e.Field, "")
}

// check validates the field and sets its error.
func (e *entry) check() bool {
	_, err := e.value()
	e.problem = engine.Problem(err)
	return err == nil
}

// values returns the answers, or nil if they are not valid, with the cursor at the error.
func (f *form) values() map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	wrong := -1
	for i, e := range f.fields {
		v, err := e.value()
		if e.problem = engine.Problem(err); err != nil && wrong < 0 {
			wrong = i
		}
		if v != nil {
			values[e.Name] = v
		}
	}
	if wrong >= 0 {
		f.at = wrong
		return nil
	}
	if err := f.Check(values); err != nil {
		f.problem = "the answers do not fit together: " + err.Error()
		return nil
	}
	f.problem = ""
	return values
}

func (f *form) key(k tea.KeyPressMsg) any {
	switch {
	case f.leaving:
		switch k.String() {
		case "d", "n":
			return &mcp.ElicitResult{Action: "decline"}
		case "c", "x":
			return &mcp.ElicitResult{Action: "cancel"}
		case "esc", "b":
			f.leaving = false
		default:
			return unmeant{}
		}
		return nil
	case k.String() == "esc":
		if f.review && len(f.fields) > 0 {
			f.review = false
		} else {
			f.leaving = true
		}
		return nil
	case f.review:
		switch k.String() {
		case "enter", "y":
			if values := f.values(); values != nil {
				return engine.Accept(values)
			}
			f.review = len(f.fields) == 0
		case "e":
			f.review = len(f.fields) == 0
		case "n":
			return &mcp.ElicitResult{Action: "decline"}
		default:
			return unmeant{}
		}
		return nil
	}
	e := f.fields[f.at]
	switch k.String() {
	case "tab", "down":
		e.check()
		f.at = (f.at + 1) % len(f.fields)
	case "shift+tab", "up":
		e.check()
		f.at = (f.at + len(f.fields) - 1) % len(f.fields)
	case "enter":
		switch {
		case !e.check():
		case f.at < len(f.fields)-1:
			f.at++
		default:
			f.review = f.values() != nil
		}
	case "ctrl+s":
		f.review = f.values() != nil
	default:
		e.key(k)
	}
	return nil
}

// key edits the field.
func (e *entry) key(k tea.KeyPressMsg) {
	n := len(e.options())
	switch {
	case e.Kind == schema.Boolean || e.Kind == schema.Enum:
		switch key := k.String(); {
		case key == "right" || key == "space":
			e.choice = (e.choice + 1) % n
		case key == "left":
			e.choice = (max(e.choice, 0) + n - 1) % n
		case key == "backspace" || key == "delete":
			if !e.Required {
				e.choice = -1
			}
		case k.Text != "":
			e.choose(k.Text)
		}
	case e.Kind == schema.MultiEnum:
		switch k.String() {
		case "right":
			e.over = (e.over + 1) % n
		case "left":
			e.over = (e.over + n - 1) % n
		case "space":
			e.chosen[e.over] = !e.chosen[e.over]
		}
	default:
		e.text.key(k)
	}
	e.problem = ""
}

// choose moves to the next option that begins with a letter.
func (e *entry) choose(letter string) {
	options := e.options()
	for i := range options {
		at := (max(e.choice, -1) + 1 + i) % len(options)
		if strings.HasPrefix(strings.ToLower(options[at]), strings.ToLower(letter)) {
			e.choice = at
			return
		}
	}
}

func (f *form) paste(text string) {
	if !f.review && !f.leaving {
		e := f.fields[f.at]
		e.text.insert(text)
		e.problem = ""
	}
}

func (f *form) show(l *look) sheet {
	s := sheet{title: screen.OneLine(f.Server) + " asks"}
	s.body = append(l.wrapped(screen.Visible(f.Message), "", ""), "")
	if f.Problem != "" {
		s.head = append(s.head, l.wrapped("The last answer was refused: "+screen.OneLine(f.Problem), "", yellow)...)
	}
	wide := 4
	for _, e := range f.fields {
		wide = max(wide, screen.Columns(e.label())+1)
	}
	wide = min(wide, max(8, l.width/3))
	switch {
	case f.review:
		values := f.values()
		for _, e := range f.fields {
			v, ok := values[e.Name]
			text := l.paint("(omitted)", dim)
			if ok {
				text = e.shown(v)
			}
			label := screen.Pad(e.label(), wide)
			if screen.Columns(label) > wide { // it may be the question, so all of it is shown
				s.body = append(s.body, l.wrapped(label, "", dim)...)
				label = strings.Repeat(" ", wide)
			}
			for i, line := range screen.Fold(text, max(8, l.width-wide-2)) {
				if i > 0 {
					label = strings.Repeat(" ", wide)
				}
				s.body = append(s.body, l.paint(label, dim)+"  "+line)
			}
		}
		s.foot = l.keysLine("enter", "send to "+screen.Cut(screen.OneLine(f.Server), 20), "e", "edit", "n", "decline", "esc", "back")
	default:
		for i, e := range f.fields {
			f.showField(l, &s, e, wide, i == f.at)
		}
		keys := []string{"enter", "next", "tab", "moves", "ctrl-S", "review", "esc", "leave"}
		if k := f.fields[f.at].Kind; k == schema.Boolean || k == schema.Enum {
			keys = append([]string{"left, right", "choose"}, keys...)
		}
		s.foot = l.keysLine(keys...)
	}
	if f.leaving {
		s.cursor = false
		s.foot = l.keysLine("d", "decline", "c", "dismiss without an answer", "esc", "back to the form")
	}
	if f.problem != "" {
		s.head = append(s.head, l.wrapped(screen.Visible(f.problem), "", red)...)
	}
	return s
}

// showField shows a field, with its details if it has the cursor.
func (f *form) showField(l *look, s *sheet, e *entry, wide int, active bool) {
	label := screen.Pad(screen.Cut(e.label(), wide), wide)
	need := " "
	if e.Required {
		need = l.paint("*", yellow)
	}
	room := max(6, l.width-wide-3)
	value := ""
	switch e.Kind {
	case schema.Boolean, schema.Enum:
		value = l.paint("(choose)", dim)
		if e.choice >= 0 {
			value = screen.Cut(e.options()[e.choice], room-4)
		}
		if active {
			value = "‹ " + value + " ›"
		}
	case schema.MultiEnum:
		var on []string
		for i, o := range e.options() {
			if e.chosen[i] {
				on = append(on, o)
			}
		}
		value = l.paint("(none)", dim)
		if len(on) > 0 {
			value = screen.Cut(strings.Join(on, ", "), room)
		}
	default:
		line, x := e.text.field(room - 1)
		value = line
		if active {
			s.cursor, s.inBody, s.x, s.y = true, true, wide+2+x, len(s.body)
		} else if text := hint(e); e.text.empty() && text != "" {
			value = l.paint("("+text+")", dim) // in brackets, as there may be no colours
		}
	}
	style := dim
	if active {
		style = bold
	}
	if active && !s.inBody {
		s.inBody, s.y = true, len(s.body) // keep it visible
	}
	s.body = append(s.body, l.paint(label, style)+need+" "+value)
	if e.problem != "" {
		s.body = append(s.body, l.wrapped("! "+screen.Visible(e.problem), "  ", red)...)
	}
	if active {
		indent := strings.Repeat(" ", min(wide+2, l.width/4))
		if screen.Columns(e.label()) > wide {
			s.body = append(s.body, l.wrapped(e.label(), indent, bold)...)
		}
		if e.Kind == schema.MultiEnum {
			s.body = append(s.body, e.list(l, indent)...)
		}
		if e.Kind == schema.Enum && len(e.Options) > 2 {
			s.body = append(s.body, l.wrapped(e.near(), indent, dim)...)
		}
		if text := screen.OneLine(e.Description); text != "" {
			s.body = append(s.body, l.wrapped(text, indent, dim)...)
		}
		if text := hint(e); text != "" {
			s.body = append(s.body, l.wrapped("("+text+")", indent, dim)...)
		}
		s.end = len(s.body)
	}
}

// near names the options around the chosen one, or all if they are few.
func (e *entry) near() string {
	const most = 9
	options := e.options()
	if len(options) <= most {
		return "one of " + strings.Join(options, ", ")
	}
	first := max(0, min(e.choice-most/2, len(options)-most))
	return fmt.Sprintf("%d to %d of %d: %s", first+1, first+most, len(options), strings.Join(options[first:first+most], ", "))
}

// list shows the options of a field with several choices.
func (e *entry) list(l *look, indent string) []string {
	var out []string
	const most = 7
	options := e.options()
	first := max(0, min(e.over-most/2, len(options)-most))
	for i := first; i < min(len(options), first+most); i++ {
		box, point := "[ ] ", "  "
		if e.chosen[i] {
			box = "[x] "
		}
		if i == e.over {
			point = l.paint("› ", cyan)
		}
		out = append(out, indent+point+box+screen.Cut(options[i], max(6, l.width-len(indent)-6)))
	}
	more := "left and right move, space selects"
	if len(options) > most {
		more = fmt.Sprintf("%d of %d; %s", e.over+1, len(options), more)
	}
	return append(out, l.wrapped(more, indent, dim)...)
}

// hint describes the values that a field accepts.
func hint(e *entry) string {
	var words []string
	switch {
	case e.Format != "":
		words = append(words, screen.OneLine(e.Format))
	case e.Kind == schema.Number:
		words = append(words, "a number")
	case e.Kind == schema.Integer:
		words = append(words, "a whole number")
	case e.Kind == schema.Other:
		words = append(words, "JSON")
	}
	unit := ""
	if e.Kind == schema.String {
		unit = " characters"
	}
	switch {
	case e.Min != "" && e.Max != "":
		words = append(words, fmt.Sprintf("%s to %s%s", e.Min, e.Max, unit))
	case e.Min != "":
		words = append(words, fmt.Sprintf("at least %s%s", e.Min, unit))
	case e.Max != "":
		words = append(words, fmt.Sprintf("at most %s%s", e.Max, unit))
	}
	return strings.Join(words, ", ")
}

// shown returns a value as text for people.
func (e *entry) shown(v json.RawMessage) string {
	if len(e.options()) > 0 {
		return screen.OneLine(engine.Shown(e.Field, v))
	}
	return screen.Visible(engine.Shown(e.Field, v))
}

// writes reports whether the form uses the arrow keys.
func (f *form) writes() bool { return !f.review && !f.leaving }
