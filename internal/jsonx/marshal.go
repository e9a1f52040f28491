package jsonx

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw strings are preserved so that raw values pass through as they came.
var marshalOptions = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(marshalers),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsontext.PreserveRawStrings(true),
)

// Marshal returns v as JSON in one line: nil slices as [], nil maps as {}, the
// members of maps in the order of their names, nothing escaped for HTML, and
// what package schema describes otherwise than the codec as it does there: a
// time.Duration as a string such as "1m30s", a json.Number as a number.
//
// A json.RawMessage is checked and written without white space, and otherwise
// as it is; nil is null. The package comment says what omitempty and omitzero
// do. Marshal fails on invalid UTF-8 in strings, on NaN and the infinities, and
// on functions and channels.
func Marshal(v any) ([]byte, error) { return AppendMarshal(nil, v) }

// AppendMarshal appends what [Marshal] returns. On error dst is returned as it
// was.
func AppendMarshal(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	if err := json.MarshalWrite(buf, v, marshalOptions); err != nil {
		return dst, reword(err, "marshal")
	}
	return buf.Bytes(), nil
}
