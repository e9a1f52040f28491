package jsonx

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw strings are preserved so that raw values pass unchanged.
var marshalOptions = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(marshalers),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsontext.PreserveRawStrings(true),
)

// Marshal returns v as JSON in one line: nil slices as [], nil maps as {}, the members of maps in
// the order of their names, nothing escaped for HTML. As package schema describes them, a
// time.Duration is a string such as "1m30s" and a json.Number is a number.
//
// A json.RawMessage is checked and written without white space, otherwise unchanged; nil is null.
// The package comment says what omitempty and omitzero do. Marshal fails on invalid UTF-8 in
// strings, on NaN and the infinities, and on functions and channels.
func Marshal(v any) ([]byte, error) { return AppendMarshal(nil, v) }

// AppendMarshal appends what [Marshal] returns. On error it returns dst unchanged.
func AppendMarshal(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	if err := json.MarshalWrite(buf, v, marshalOptions); err != nil {
		return dst, reword(err, "marshal")
	}
	return buf.Bytes(), nil
}
