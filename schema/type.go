package schema

import (
	"encoding/json"
	"errors"
	"reflect"
)

var errUnfinished = errors.New("schema: not written yet")

// Type is the schema and the decoder of one Go type. It is immutable and may
// be used by several goroutines at once.
type Type struct{ typ reflect.Type }

// For returns the Type of T. It is made once per T and then kept.
func For[T any]() (*Type, error) { return ForType(reflect.TypeFor[T]()) }

// ForType is For with a type known at run time.
func ForType(t reflect.Type) (*Type, error) { return nil, errUnfinished }

// JSON returns the JSON Schema 2020-12 of the type, compact, members in a fixed
// order. The caller must not change it.
func (t *Type) JSON() json.RawMessage { return nil }

// Decode checks the JSON value in data and stores it in v, a pointer to the Go
// type. A value that does not fit is a [*ValidationError] with every fault.
func (t *Type) Decode(data []byte, v any) error { return errUnfinished }

// Validate checks the JSON value in data as Decode does and keeps nothing.
func (t *Type) Validate(data []byte) error { return errUnfinished }

// IsObject reports whether every value of the type is a JSON object.
func (t *Type) IsObject() bool { return false }

// Elicitation returns the flat schema that elicitation/create allows.
func (t *Type) Elicitation() (json.RawMessage, error) { return nil, errUnfinished }

// Decode checks data against the schema of T and returns it as a T.
func Decode[T any](data []byte) (T, error) {
	var v T
	t, err := For[T]()
	if err != nil {
		return v, err
	}
	err = t.Decode(data, &v)
	return v, err
}
