package schema

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Bounds on schemas that come from peers (JSON-26-012).
const (
	maxSchemaBytes = 1 << 20
	maxSubschemas  = 5000 // JSON objects in the schema
)

// Validator checks JSON against a schema that came as JSON. It is immutable
// and may be used by several goroutines at once.
type Validator struct{ root *subschema }

// Compile reads a JSON Schema.
//
// A schema without $schema is read as 2020-12. Compile also reads 2019-09 and the drafts 7, 6 and
// 4; any other dialect is an error that names it (2026-07-28, basic/index, JSON Schema Usage).
//
// Compile never opens a network connection or a file. A $ref that leads out of the schema is an
// error that names the reference, unless it is to the whole of the published schema of one of
// those dialects: a value fits that if it is a valid schema. Compile also refuses a schema that
// is not valid in its dialect, that has more than 1 MiB, 5000 subschemas or 128 levels, or
// patterns of more than 100,000 steps in all, and a pattern that Go's regexp cannot express, such
// as one with a lookahead.
//
// In 2019-09 and 2020-12 format is an annotation and is not checked; drafts 7
// and older check it. contentEncoding and contentMediaType are never checked.
func Compile(raw json.RawMessage) (*Validator, error) { return newValidator(raw, false) }

// newValidator is Compile. If strict is set, format and the contentEncoding base64 are checked in
// every dialect.
func newValidator(raw json.RawMessage, strict bool) (*Validator, error) {
	s, err := compile(raw, strict)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Validator{s}, nil
}

// Validate checks the JSON value in data. If the value does not fit, the error is a
// [*ValidationError] with the faults in the order of their paths. Numbers are compared exactly.
// If no alternative of an anyOf or oneOf fits, that is one fault, unless it is clear which
// alternative was meant.
//
// The text must be strict JSON, as in [Type.Decode]. Validate gives up, with a fault that says
// so, when the work is out of proportion to the size of data.
func (v *Validator) Validate(data []byte) error {
	faults, more := v.faults(data)
	return faultError(faults, more)
}

// faults returns the faults of data, and the number of further ones.
func (v *Validator) faults(data []byte) ([]Fault, int) {
	doc, err := parseDocument(data)
	if err != nil {
		return []Fault{{Problem: err.Error()}}, 0
	}
	found := validate(v.root, doc, len(data))
	return settled(doc, found.kept), found.more
}

func cutText(s string) string { return text.Clip(s, 500) }
