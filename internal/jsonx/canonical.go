package jsonx

import "github.com/go-json-experiment/json/jsontext"

// Canonical returns raw without white space and with the members of every object in one order, so
// that two spellings of one value give the same bytes. Numbers keep their spelling. Invalid JSON
// is returned as it is.
func Canonical(raw []byte) []byte {
	v := jsontext.Value(raw).Clone()
	if err := v.Format(jsontext.Multiline(false), jsontext.ReorderRawObjects(true)); err != nil {
		return raw
	}
	return v
}
