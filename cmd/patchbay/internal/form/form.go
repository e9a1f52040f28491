// Package form is the engine of a form that a server asks a person to fill in: it names the fields,
// converts typed texts to values, checks them, and builds the answer. Package terminal asks for one
// field at a time with it; package chat shows all fields at once.
//
// Specification: 2026-07-28, client/elicitation, form mode.
package form

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Accept returns a result that accepts with these values.
func Accept(values map[string]json.RawMessage) *mcp.ElicitResult {
	content := make(map[string]any, len(values))
	for k, v := range values {
		content[k] = v
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

// Label returns the name of a field, in one line.
func Label(f *schema.Field) string {
	if f.Title != "" {
		return screen.OneLine(f.Title)
	}
	return screen.OneLine(f.Name)
}

// Value converts a typed text to the value of a field; nil: the field is left out, as for an empty
// text. A choice is named by its number, title or value; if its value is a number, the value wins.
// Two double quotes stand for the empty text.
func Value(f *schema.Field, text string) (json.RawMessage, error) {
	switch {
	case text == `""` && f.Kind == schema.String:
		return f.Parse("")
	case text == "" && f.Required && f.Kind == schema.String:
		return nil, errors.New(`an answer is required; "" is the empty text`)
	case text == "" && f.Required:
		return nil, errors.New("an answer is required")
	case text == "":
		return nil, nil
	}
	return f.Parse(numbered(f, text))
}

// numbered replaces the numbers of choices by their values.
func numbered(f *schema.Field, text string) string {
	if f.Kind != schema.Enum && f.Kind != schema.MultiEnum {
		return text
	}
	one := func(s string) string {
		s = strings.TrimSpace(s)
		for _, o := range f.Options {
			if screen.Plain(o.Value) == s {
				return s
			}
		}
		if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= len(f.Options) {
			return screen.Plain(f.Options[n-1].Value)
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

// Problem describes the error of an answer, or "" if err is nil.
func Problem(err error) string {
	var bad *schema.ValidationError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &bad) && len(bad.Faults) > 0:
		return bad.Faults[0].Problem
	}
	return err.Error()
}

// Shown returns a value as its field shows it: choices by their titles, booleans as yes and no. The
// text comes from the server and may contain control characters.
func Shown(f *schema.Field, v json.RawMessage) string {
	title := func(v json.RawMessage) string {
		for _, o := range f.Options {
			if string(o.Value) == string(v) {
				return o.Title
			}
		}
		return screen.Plain(v)
	}
	switch f.Kind {
	case schema.Boolean:
		return map[bool]string{true: "yes", false: "no"}[string(v) == "true"]
	case schema.MultiEnum:
		var values []json.RawMessage
		if json.Unmarshal(v, &values) != nil {
			break
		}
		names := make([]string, len(values))
		for i, e := range values {
			names[i] = title(e)
		}
		return strings.Join(names, ", ")
	}
	return title(v)
}
