package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// refusal is the action of an answer that is none.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	declined  refusal = "decline"
	cancelled refusal = "cancel"
)

// dialog asks one question of a server at the terminal.
type dialog struct {
	ctx    context.Context
	keys   *keyboard
	say    func(string)
	paint  func(text, style string) string
	width  int
	server string
	asked  bool // what was typed before the dialog is dropped
}

// ask asks what a server wants to know. The words that refuse are an answer too.
func (d *dialog) ask(r *mcp.ElicitRequest) (res *mcp.ElicitResult, err error) {
	if r.URL != "" {
		res, err = d.page(r.Message, r.URL)
	} else {
		res, err = d.form(r.Message, r.Schema)
	}
	var no refusal
	switch {
	case errors.As(err, &no):
		d.say(d.paint("("+string(no)+")", "2") + "\n")
		return &mcp.ElicitResult{Action: string(no)}, nil
	case err != nil:
		return nil, err
	}
	return res, nil
}

// read asks for a line. The words that refuse, and ctrl-D, are refusals. What was typed before the
// first line is asked for is not taken.
func (d *dialog) read(prompt string) (string, error) {
	if !d.asked {
		d.asked = true
		d.keys.drop()
	}
	d.say(prompt)
	text, err := d.keys.line(d.ctx)
	switch {
	case errors.Is(err, io.EOF):
		d.say("\n")
		return "", cancelled
	case err != nil:
		d.say("\n")
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

// intro says who asks, and what (2026-07-28, client/elicitation: ELIC-26-003).
func (d *dialog) intro(message string) {
	d.say("\n" + d.paint(oneLine(d.server)+" asks:", "1;36") + "\n" + wrap(visible(message), d.width) + "\n")
}

// form has a form filled in. With several fields the answers are shown before they are
// sent (ELIC-26-005).
func (d *dialog) form(message string, raw json.RawMessage) (*mcp.ElicitResult, error) {
	form, err := schema.FormOf(raw)
	if err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "the form cannot be read: %v", err)
	}
	d.intro(message)
	enter := ""
	for i := range form.Fields {
		if f := &form.Fields[i]; f.Default != nil || !f.Required {
			enter = "Enter takes what is in [brackets], or skips what is optional; "
		}
	}
	d.say(d.paint(wrap("("+enter+":decline refuses, :cancel or ctrl-D dismisses)", d.width), "2") + "\n")
	if len(form.Fields) == 0 {
		return d.agree("Agree? [y/n] ", nil)
	}
	values := map[string]json.RawMessage{}
	for {
		for i := range form.Fields {
			if err := d.field(&form.Fields[i], values); err != nil {
				return nil, err
			}
		}
		if err := form.Check(values); err != nil {
			d.say(d.paint("The answers do not fit together: "+visible(err.Error()), "31") + "\n")
			continue
		}
		if len(form.Fields) == 1 {
			return accept(values), nil
		}
		res, err := d.review(form, values)
		if res != nil || err != nil {
			return res, err
		}
	}
}

// review shows the answers. It returns nothing if they are to be changed.
func (d *dialog) review(form *schema.Form, values map[string]json.RawMessage) (*mcp.ElicitResult, error) {
	d.say("\n")
	wide := 0
	for i := range form.Fields {
		wide = max(wide, columns(label(&form.Fields[i])))
	}
	for i := range form.Fields {
		f := &form.Fields[i]
		text := d.paint("(left out)", "2")
		if v, ok := values[f.Name]; ok {
			text = visible(shownValue(f, v))
		}
		d.say("  " + pad(label(f), wide) + "  " + text + "\n")
	}
	d.asked = false // the fields are
	for {
		text, err := d.read("Send this? [Y/n/edit] ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "", "y", "yes":
			return accept(values), nil
		case "e", "edit":
			return nil, nil
		case "n", "no":
			return nil, declined
		}
	}
}

// agree asks for yes or no.
func (d *dialog) agree(prompt string, values map[string]json.RawMessage) (*mcp.ElicitResult, error) {
	for {
		text, err := d.read(prompt)
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return accept(values), nil
		case "n", "no":
			return nil, declined
		}
	}
}

// label names a field.
func label(f *schema.Field) string { return oneLine(orName(f.Title, f.Name)) }

// field asks for one value until it fits, and puts it into values. What is there
// already is the default.
func (d *dialog) field(f *schema.Field, values map[string]json.RawMessage) error {
	def, has := values[f.Name]
	if !has {
		def, has = f.Default, f.Default != nil
	}
	d.say("\n" + d.paint(label(f), "1"))
	if !f.Required {
		d.say(d.paint(" (optional)", "2"))
	}
	d.say("\n")
	if text := strings.TrimSpace(f.Description); !screen.SameWords(text, label(f)) && text != "" {
		d.say(wrap("  "+oneLine(text), d.width) + "\n")
	}
	many := f.Kind == schema.MultiEnum
	prompt := "  "
	switch f.Kind {
	case schema.Enum, schema.MultiEnum:
		for i, o := range f.Options {
			d.say(fmt.Sprintf("  %2d) %s\n", i+1, oneLine(o.Title)))
		}
		prompt += "number or name"
		if many {
			prompt = "  numbers or names, with commas"
		}
	case schema.Boolean:
		prompt += "yes or no"
	default:
		prompt += arguments.Kind(without(f))
	}
	// What has a default cannot be left out: it gets the default again.
	removable := !f.Required && f.Default == nil
	if has && removable {
		d.say(d.paint("  (:skip leaves it out)", "2") + "\n")
	}
	if has {
		prompt += " [" + oneLine(shownValue(f, def)) + "]"
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
		if text == "" {
			switch {
			case has:
				values[f.Name] = def
				return nil
			case !f.Required:
				delete(values, f.Name)
				return nil
			}
			d.say("  " + d.paint("an answer is required", "31"))
			if f.Kind == schema.String {
				d.say(d.paint(`; "" is the empty text`, "31"))
			}
			d.say("\n")
			continue
		}
		if f.Kind == schema.String && text == `""` {
			text = ""
		}
		value, err := f.Parse(numbered(f, text))
		if err == nil {
			values[f.Name] = value
			return nil
		}
		problem := err.Error()
		var bad *schema.ValidationError
		if errors.As(err, &bad) && len(bad.Faults) > 0 {
			problem = bad.Faults[0].Problem
		}
		d.say("  " + d.paint(visible(problem), "31") + "\n")
	}
}

// without is a field without its default, which the prompt shows itself.
func without(f *schema.Field) *schema.Field {
	g := *f
	g.Default = nil
	return &g
}

// shownValue is a value as its field shows it: choices by their titles.
func shownValue(f *schema.Field, v json.RawMessage) string {
	for _, o := range f.Options {
		if string(o.Value) == string(v) {
			return o.Title
		}
	}
	if f.Kind == schema.Boolean {
		return map[bool]string{true: "yes", false: "no"}[string(v) == "true"]
	}
	if f.Kind == schema.MultiEnum {
		var values []json.RawMessage
		if json.Unmarshal(v, &values) == nil {
			var names []string
			for _, e := range values {
				name := plain(e)
				for _, o := range f.Options {
					if string(o.Value) == string(e) {
						name = o.Title
					}
				}
				names = append(names, name)
			}
			return strings.Join(names, ", ")
		}
	}
	return plain(v)
}

// numbered replaces the numbers of choices by their values. A choice that is itself
// a number is taken by its value first.
func numbered(f *schema.Field, text string) string {
	if f.Kind != schema.Enum && f.Kind != schema.MultiEnum {
		return text
	}
	one := func(s string) string {
		s = strings.TrimSpace(s)
		for _, o := range f.Options {
			if plain(o.Value) == s {
				return s
			}
		}
		if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= len(f.Options) {
			return plain(f.Options[n-1].Value)
		}
		return s
	}
	if f.Kind == schema.Enum || strings.HasPrefix(strings.TrimSpace(text), "[") {
		return one(text)
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = one(parts[i])
	}
	return strings.Join(parts, ",")
}

// page asks whether the user agrees to visit a page. It is shown in full, with its
// host, and neither fetched nor opened (ELIC-26-006, 036, 037, 038, 040, 041).
func (d *dialog) page(message, address string) (*mcp.ElicitResult, error) {
	d.intro(message)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "the URL of the page cannot be read")
	}
	d.say("\n  " + visible(address) + "\n\n")
	d.say("It is a page of " + d.paint(visible(u.Hostname()), "1") + ".\n")
	for _, warning := range screen.Suspicions(u) {
		d.say(d.paint("Take care: "+warning, "33") + "\n")
	}
	d.say(d.paint("(open it in your browser; :cancel or ctrl-D dismisses the question)", "2") + "\n")
	return d.agree("Do you agree to visit it? [y/n] ", nil)
}
