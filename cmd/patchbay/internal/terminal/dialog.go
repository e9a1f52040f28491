package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/form"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Refusal is the action of an answer that refuses: "decline" or "cancel". It is an error.
type Refusal string

func (r Refusal) Error() string { return string(r) }

const (
	declined  Refusal = "decline"
	cancelled Refusal = "cancel"
)

// Dialog asks the questions from a server at the terminal.
type Dialog struct {
	*Talk
	Keys   *Keyboard
	Width  int    // of the terminal, in columns; 0: lines are not wrapped
	Server string // the name of the server that asks

	ctx   context.Context
	asked bool // input from before the dialog has been dropped
}

// Ask asks for the answer to an elicitation request. The words that refuse are an answer too. It
// returns when ctx ends.
func (d *Dialog) Ask(ctx context.Context, r *mcp.ElicitRequest) (res *mcp.ElicitResult, err error) {
	d.ctx = ctx
	if r.URL != "" {
		res, err = d.page(r.Message, r.URL)
	} else {
		res, err = d.form(r.Message, r.Schema)
	}
	var no Refusal
	switch {
	case errors.As(err, &no):
		d.Say(d.Paint("("+string(no)+")", "2") + "\n")
		return &mcp.ElicitResult{Action: string(no)}, nil
	case err != nil:
		return nil, err
	}
	return res, nil
}

// read reads a line. The words that refuse, and ctrl-D, give a [Refusal]. Before the first line, it
// drops earlier input.
func (d *Dialog) read(prompt string) (string, error) {
	if !d.asked {
		d.asked = true
		d.Keys.Drop()
	}
	d.Prompt(prompt)
	text, err := d.Keys.Line(d.ctx)
	d.Prompt("")
	switch {
	case errors.Is(err, io.EOF):
		d.Say("\n")
		return "", cancelled
	case err != nil:
		d.Say("\n")
		return "", err
	}
	switch strings.TrimSpace(text) {
	case ":decline":
		return "", declined
	case ":cancel":
		return "", cancelled
	}
	return text, nil
}

// Read reads a line, as Ask does for a field. It returns when ctx ends.
func (d *Dialog) Read(ctx context.Context, prompt string) (string, error) {
	d.ctx = ctx
	return d.read(prompt)
}

// Yes asks for yes or no; a [Refusal] is no. It returns when ctx ends.
func (d *Dialog) Yes(ctx context.Context, prompt string) (bool, error) {
	d.ctx = ctx
	_, err := d.agree(prompt, nil)
	var no Refusal
	if errors.As(err, &no) {
		return false, nil
	}
	return err == nil, err
}

// Part shows a whole text, indented below its name, so that none of its lines looks like another
// part.
func (d *Dialog) Part(name, text string) {
	d.Say(d.Paint(screen.OneLine(name), "1;36") + "\n  " + strings.ReplaceAll(screen.Wrap(screen.Visible(text), d.Width-2), "\n", "\n  ") + "\n")
}

// intro shows the server's name and message (2026-07-28, client/elicitation: ELIC-26-003).
func (d *Dialog) intro(message string) {
	d.Say("\n" + d.Paint(screen.OneLine(d.Server)+" asks:", "1;36") + "\n" + screen.Wrap(screen.Visible(message), d.Width) + "\n")
}

// form asks for the fields of a form. With several fields the answers are shown before they are
// sent (ELIC-26-005).
func (d *Dialog) form(message string, raw json.RawMessage) (*mcp.ElicitResult, error) {
	fields, err := schema.FormOf(raw)
	if err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "invalid form: %v", err)
	}
	d.intro(message)
	enter := ""
	for i := range fields.Fields {
		if f := &fields.Fields[i]; f.Default != nil || !f.Required {
			enter = "Enter accepts the value in [brackets], or skips an optional one; "
		}
	}
	d.Say(d.Paint(screen.Wrap("("+enter+":decline refuses, :cancel or ctrl-D dismisses)", d.Width), "2") + "\n")
	if len(fields.Fields) == 0 {
		return d.agree("Agree? [y/n] ", nil)
	}
	values := map[string]json.RawMessage{}
	for {
		for i := range fields.Fields {
			if err := d.field(&fields.Fields[i], values); err != nil {
				return nil, err
			}
		}
		if err := fields.Check(values); err != nil {
			d.Say(d.Paint("The answers do not fit together: "+screen.Visible(err.Error()), "31") + "\n")
			continue
		}
		if len(fields.Fields) == 1 {
			return form.Accept(values), nil
		}
		res, err := d.review(fields, values)
		if res != nil || err != nil {
			return res, err
		}
	}
}

// review shows the answers. It returns nil if the person wants to change them.
func (d *Dialog) review(fields *schema.Form, values map[string]json.RawMessage) (*mcp.ElicitResult, error) {
	d.Say("\n")
	wide := 0
	for i := range fields.Fields {
		wide = max(wide, screen.Columns(form.Label(&fields.Fields[i])))
	}
	for i := range fields.Fields {
		f := &fields.Fields[i]
		text := d.Paint("(omitted)", "2")
		if v, ok := values[f.Name]; ok {
			text = screen.Visible(form.Shown(f, v))
		}
		d.Say("  " + screen.Pad(form.Label(f), wide) + "  " + text + "\n")
	}
	d.asked = false // the fields were asked for
	for {
		text, err := d.read("Send this? [Y/n/edit] ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "", "y", "yes":
			return form.Accept(values), nil
		case "e", "edit":
			return nil, nil
		case "n", "no":
			return nil, declined
		}
	}
}

// agree asks for yes or no.
func (d *Dialog) agree(prompt string, values map[string]json.RawMessage) (*mcp.ElicitResult, error) {
	for {
		text, err := d.read(prompt)
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return form.Accept(values), nil
		case "n", "no":
			return nil, declined
		}
	}
}

// field asks for one value until it is valid, and puts it into values. A value in values is the
// default.
func (d *Dialog) field(f *schema.Field, values map[string]json.RawMessage) error {
	def, has := values[f.Name]
	if !has {
		def, has = f.Default, f.Default != nil
	}
	d.Say("\n" + d.Paint(form.Label(f), "1"))
	if !f.Required {
		d.Say(d.Paint(" (optional)", "2"))
	}
	d.Say("\n")
	if text := strings.TrimSpace(f.Description); !screen.SameWords(text, form.Label(f)) && text != "" {
		d.Say(screen.Wrap("  "+screen.OneLine(text), d.Width) + "\n")
	}
	many := f.Kind == schema.MultiEnum
	prompt := "  "
	switch f.Kind {
	case schema.Enum, schema.MultiEnum:
		for i, o := range f.Options {
			d.Say(fmt.Sprintf("  %2d) %s\n", i+1, screen.OneLine(o.Title)))
		}
		prompt += "number or name"
		if many {
			prompt = "  numbers or names, separated by commas"
		}
	case schema.Boolean:
		prompt += "yes or no"
	default:
		prompt += arguments.Kind(without(f))
	}
	// A field with a default cannot be left out: it gets the default again.
	removable := !f.Required && f.Default == nil
	if has && removable {
		d.Say(d.Paint("  (:skip omits it)", "2") + "\n")
	}
	if has {
		prompt += " [" + screen.OneLine(form.Shown(f, def)) + "]"
	}
	prompt += ": "
	for {
		text, err := d.read(prompt)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == ":skip" && removable {
			delete(values, f.Name)
			return nil
		}
		switch {
		case text == "" && has:
			values[f.Name] = def
			return nil
		case text == "" && !f.Required:
			delete(values, f.Name)
			return nil
		}
		value, err := form.Value(f, text)
		if err == nil {
			values[f.Name] = value
			return nil
		}
		d.Say("  " + d.Paint(screen.Visible(form.Problem(err)), "31") + "\n")
	}
}

// without returns a field without its default, which the prompt shows.
func without(f *schema.Field) *schema.Field {
	g := *f
	g.Default = nil
	return &g
}

// page asks whether the user agrees to visit a page. It shows the whole URL and its host, and
// neither fetches nor opens it (ELIC-26-006, 036, 037, 038, 040, 041).
func (d *Dialog) page(message, address string) (*mcp.ElicitResult, error) {
	d.intro(message)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "invalid URL")
	}
	d.Say("\n  " + screen.Visible(address) + "\n\n")
	d.Say("The page is at " + d.Paint(screen.Visible(u.Hostname()), "1") + ".\n")
	for _, warning := range screen.Suspicions(u) {
		d.Say(d.Paint("Warning: "+warning, "33") + "\n")
	}
	d.Say(d.Paint("(open it in your browser; :cancel or ctrl-D dismisses the question)", "2") + "\n")
	return d.agree("Do you agree to visit it? [y/n] ", nil)
}
