package schema

import "encoding/json"

// Kind says what a form field takes.
type Kind uint8

const (
	String Kind = iota + 1
	Number
	Integer
	Boolean
	Enum      // one of Options
	MultiEnum // several of Options
	Other     // anything else, typed as JSON
)

// Form is the flat view of an object schema that people can fill in.
type Form struct {
	Title, Description string
	Fields             []Field // in the order of the schema
}

// Field is one property of a form.
type Field struct {
	Name, Title, Description string
	Kind                     Kind
	Required                 bool
	Default                  json.RawMessage // nil: none
	Options                  []Option        // of Enum and MultiEnum
	Format                   string
	Pattern                  string

	// Min and Max bound the value of a Number or Integer, the characters of a
	// String, and the choices of a MultiEnum. Empty: no bound.
	Min, Max json.Number

	Schema json.RawMessage // the property's schema, local $ref resolved
}

// Option is one choice of a field.
type Option struct {
	Value json.RawMessage
	Title string // what to show; never empty
}

// FormOf returns the form of an object schema.
func FormOf(raw json.RawMessage) (*Form, error) { return nil, errUnfinished }

// Parse turns what a person typed into a JSON value that fits the field.
func (f *Field) Parse(text string) (json.RawMessage, error) { return nil, errUnfinished }

// Defaults returns the default of every field that has one, by name.
func (f *Form) Defaults() map[string]json.RawMessage { return nil }

// Check validates a filled-in form against the whole schema.
func (f *Form) Check(values map[string]json.RawMessage) error { return errUnfinished }
