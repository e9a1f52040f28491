package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	texts "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/schema"
)

// Bounds of a form. Deeper parts are sent when the person opens them.
const (
	maxFormBytes  = 2 << 20  // of a schema, with the JSON around it
	maxCheckBytes = 8 << 20  // of a schema and a value
	maxFormDepth  = 5        // levels of one answer
	maxFormFields = 300      // fields of one answer, except those of the first object
	maxFormParts  = 16 << 20 // bytes of the schemas of these fields
	maxFormSteps  = 128      // from the root to a field that is opened
	maxStep       = 12       // bytes of a step
)

// routeForms adds the paths that fill in calls of tools, and write them elsewhere.
func (p *Page) routeForms() {
	t := turns{all: make(chan struct{}, maxWaiting), work: make(chan struct{}, maxWorking)}
	p.mux.Handle("POST /ui/form", t.answered(maxFormBytes, p.form))
	p.mux.Handle("POST /ui/check", t.answered(maxCheckBytes, p.check))
	p.mux.Handle("POST /ui/paste", t.answered(maxPaste, p.paste))
}

// form is a form as the page has it.
type form struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Error       string `json:"error,omitempty"` // why nothing of it is checked
	formField
}

// formField is a field of a form, with its parts.
type formField struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Kind         string          `json:"kind"`
	Required     bool            `json:"required,omitempty"`
	Default      json.RawMessage `json:"default,omitempty"`
	Example      json.RawMessage `json:"example,omitempty"`
	Options      []formOption    `json:"options,omitempty"`
	Format       string          `json:"format,omitempty"`
	Pattern      string          `json:"pattern,omitempty"`
	Min          string          `json:"min,omitempty"`
	Max          string          `json:"max,omitempty"`
	Bounds       string          `json:"bounds,omitempty"`
	Fields       []formField     `json:"fields,omitempty"` // of an object; of a list: its first elements
	Rest         *formField      `json:"rest,omitempty"`
	Element      *formField      `json:"element,omitempty"`
	Alternatives []formField     `json:"alternatives,omitempty"`
	More         []string        `json:"more,omitempty"` // the parts are not here: ask for the field at this place
}

type formOption struct {
	Value json.RawMessage `json:"value"`
	Title string          `json:"title"`
}

// form answers POST /ui/form: the form of a schema, or of a part of it.
func (p *Page) form(ctx context.Context, body []byte) (any, error) {
	var in struct {
		Schema json.RawMessage `json:"schema"`
		At     []string        `json:"at"` // the more of a field
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if len(in.At) > maxFormSteps {
		return nil, fail(http.StatusBadRequest, "the place has more than %d steps", maxFormSteps)
	}
	f := &form{}
	if _, err := schema.Compile(in.Schema); err != nil {
		f.Error = err.Error()
	}
	at := schema.Outline(in.Schema)
	for i := range in.At {
		if ctx.Err() != nil {
			return nil, errGone
		}
		next := part(&at, in.At[i])
		if next == nil {
			return nil, fail(http.StatusNotFound, "the schema has nothing at %q", texts.Clip(strings.Join(in.At, " "), 100))
		}
		at = *next
	}
	b := &formBuilder{ctx: ctx, left: maxFormFields, bytes: maxFormParts}
	f.Title, f.Description = at.Title, at.Description
	f.formField = b.field(&at, in.At, maxFormDepth)
	if ctx.Err() != nil {
		return nil, errGone
	}
	f.formField.Title, f.formField.Description = "", "" // those of the form
	if f.Kind == "other" && len(in.At) == 0 && slices.Equal(at.Types(), []string{"object"}) {
		f.Kind = "object" // without properties
	}
	return f, nil
}

// part returns the part of a field at the end of a step.
func part(f *schema.Field, step string) *schema.Field {
	index := func(list []schema.Field) *schema.Field {
		i, err := strconv.Atoi(step[1:])
		if err != nil || i < 0 || i >= len(list) {
			return nil
		}
		return &list[i]
	}
	switch {
	case len(step) > maxStep:
		return nil
	case step == "[]":
		return f.Elements()
	case step == "{}":
		return f.Others()
	case strings.HasPrefix(step, "|"):
		return index(f.Variants())
	case strings.HasPrefix(step, "#"):
		return index(f.Places())
	case strings.HasPrefix(step, "."):
		return index(f.Members())
	}
	return nil
}

// formBuilder makes one answer.
type formBuilder struct {
	ctx   context.Context // of the request
	left  int             // fields that may still be added
	bytes int             // of schemas, the same
}

// full reports whether nothing more may be added.
func (b *formBuilder) full() bool { return b.left <= 0 || b.bytes <= 0 || b.ctx.Err() != nil }

func (b *formBuilder) field(f *schema.Field, at []string, depth int) formField {
	out := formField{
		Name: f.Name, Title: f.Title, Description: f.Description, Kind: f.Kind.String(), Required: f.Required, Default: f.Default,
		Format: f.Format, Pattern: f.Pattern, Min: f.Min.String(), Max: f.Max.String(), Bounds: bounds(f), Example: example(f.Schema),
	}
	for _, o := range f.Options {
		out.Options = append(out.Options, formOption{o.Value, o.Title})
	}
	if null, err := f.Parse("null"); f.Kind == schema.Enum && err == nil && string(null) == "null" {
		out.Options = append(out.Options, formOption{null, "null"})
	}
	if f.Kind != schema.Other {
		return out
	}
	if b.bytes -= len(f.Schema); depth == 0 || depth < maxFormDepth && b.full() {
		return unopened(f, out, at)
	}
	members, variants, places, types := f.Members(), f.Variants(), []schema.Field(nil), f.Types()
	if slices.Contains(types, "array") {
		places = f.Places()
	}
	if b.left -= len(members) + len(variants) + len(places); depth < maxFormDepth && b.left < 0 {
		return unopened(f, out, at)
	}
	step := func(s string) []string { return append(slices.Clone(at), s) }
	list := func(of []schema.Field, kind string) []formField {
		fields := make([]formField, 0, len(of))
		for i := range of {
			if b.ctx.Err() != nil {
				break
			}
			fields = append(fields, b.field(&of[i], step(kind+strconv.Itoa(i)), depth-1))
		}
		return fields
	}
	one := func(of *schema.Field, kind string) *formField {
		b.left--
		field := b.field(of, step(kind), depth-1)
		return &field
	}
	switch {
	case variants != nil:
		out.Kind, out.Alternatives = "choice", list(variants, "|")
	case len(members) > 0 || slices.Contains(types, "object"):
		out.Fields = list(members, ".")
		if others := f.Others(); others != nil {
			out.Rest = one(others, "{}")
		}
		if len(out.Fields) > 0 || out.Rest != nil {
			out.Kind = "object"
		}
	case slices.Contains(types, "array"):
		out.Fields = list(places, "#")
		if e := f.Elements(); e != nil {
			out.Element, out.Kind = one(e, "[]"), "list"
		}
		if len(out.Fields) > 0 {
			out.Kind = "list"
		}
	}
	return out
}

// unopened returns a field without its parts. It looks only at the keywords of the field, because the parts are what takes
// time: a choice may turn out to be an object when it is opened.
func unopened(f *schema.Field, out formField, at []string) formField {
	has := func(keyword string) bool {
		value, _ := jsonx.LookupPath(f.Schema, keyword)
		if len(value) < 2 || value[0] != '{' && value[0] != '[' {
			return false
		}
		i := jsonx.SkipSpace(value, 1)
		return value[i] != '}' && value[i] != ']'
	}
	types := slices.DeleteFunc(f.Types(), func(t string) bool { return t == "null" })
	switch {
	case has("anyOf") || has("oneOf") || len(types) > 1:
		out.Kind, out.More = "choice", at
	case has("properties") || has("additionalProperties") && slices.Contains(types, "object"):
		out.Kind, out.More = "object", at
	case slices.Contains(types, "array") && (has("items") || has("prefixItems")):
		out.Kind, out.More = "list", at
	}
	return out
}

// keywords are those of a schema that a form tells in words.
type keywords struct {
	ExclusiveMinimum, ExclusiveMaximum any
	MultipleOf                         json.Number
	MinItems, MaxItems                 json.Number
	UniqueItems                        bool
	Examples                           []json.RawMessage
}

func keywordsOf(raw json.RawMessage) keywords {
	var k keywords
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	_ = d.Decode(&k) // what has another type is left out
	return k
}

// bounds tells for people which values a field takes.
func bounds(f *schema.Field) string {
	k := keywordsOf(f.Schema)
	var said []string
	say := func(low, high, unit string) {
		switch {
		case low != "" && low == high:
			said = append(said, low+unit)
		case low != "" && high != "":
			said = append(said, low+"…"+high+unit)
		case low != "":
			said = append(said, "at least "+low+unit)
		case high != "":
			said = append(said, "at most "+high+unit)
		}
	}
	switch f.Kind {
	case schema.String:
		say(f.Min.String(), f.Max.String(), " characters")
	case schema.MultiEnum:
		say(f.Min.String(), f.Max.String(), " choices")
	default:
		say(f.Min.String(), f.Max.String(), "")
		unit := " elements"
		if k.MinItems == "1" && (k.MaxItems == "" || k.MaxItems == "1") {
			unit = " element"
		}
		say(k.MinItems.String(), k.MaxItems.String(), unit)
	}
	if n, ok := k.ExclusiveMinimum.(json.Number); ok {
		said = append(said, "more than "+n.String())
	}
	if n, ok := k.ExclusiveMaximum.(json.Number); ok {
		said = append(said, "less than "+n.String())
	}
	if k.MultipleOf != "" {
		said = append(said, "a multiple of "+k.MultipleOf.String())
	}
	if k.UniqueItems {
		said = append(said, "all different")
	}
	return strings.Join(said, ", ")
}

func example(raw json.RawMessage) json.RawMessage {
	if e := keywordsOf(raw).Examples; len(e) > 0 {
		return e[0]
	}
	return nil
}

// formFault is a fault of a value.
type formFault struct {
	Path string `json:"path"` // a JSON pointer
	Text string `json:"text"`
}

// check answers POST /ui/check: the faults of a value.
func (p *Page) check(_ context.Context, body []byte) (any, error) {
	var in struct {
		Schema json.RawMessage `json:"schema"`
		Value  json.RawMessage `json:"value"` // absent: none, which is a fault
		Form   bool            `json:"form"`  // formats count, as in the answer to a question
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	out := struct {
		Faults []formFault `json:"faults"`
		More   int         `json:"more,omitempty"`
		Error  string      `json:"error,omitempty"` // why nothing is checked
	}{Faults: []formFault{}}
	fits, err := checker(in.Schema, in.Form)
	if err != nil { // also a ValidationError: that of the schema
		out.Error = err.Error()
		return out, nil
	}
	if in.Value == nil {
		out.Faults = append(out.Faults, formFault{Text: "is missing"})
		return out, nil
	}
	var invalid *schema.ValidationError
	switch err := fits(in.Value); {
	case errors.As(err, &invalid):
		for _, f := range invalid.Faults {
			out.Faults = append(out.Faults, formFault{f.Pointer, f.Problem})
		}
		out.More = invalid.More
	case err != nil:
		out.Faults = append(out.Faults, formFault{Text: err.Error()})
	}
	return out, nil
}

// checker returns a function that checks values against a schema.
func checker(of json.RawMessage, isForm bool) (func(json.RawMessage) error, error) {
	if !isForm {
		v, err := schema.Compile(of)
		if err != nil {
			return nil, err
		}
		return func(value json.RawMessage) error { return v.Validate(value) }, nil
	}
	f, err := schema.FormOf(of)
	if err != nil {
		return nil, err
	}
	return func(value json.RawMessage) error {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil || members == nil {
			return errors.New("must be an object")
		}
		return f.Check(members)
	}, nil
}
