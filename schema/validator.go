package schema

import "encoding/json"

// Validator checks JSON against a schema that came as JSON. It may be used by
// several goroutines at once.
type Validator struct{ raw json.RawMessage }

// Compile reads a JSON Schema: 2020-12, or the draft that its $schema names.
func Compile(raw json.RawMessage) (*Validator, error) { return nil, errUnfinished }

// Validate checks the JSON value in data. A value that does not fit is a
// [*ValidationError].
func (v *Validator) Validate(data []byte) error { return errUnfinished }
