// Package jsonx is the JSON codec of the house: every other package reads and
// writes JSON through it.
//
// It has two parts. [Marshal] and [Unmarshal] are a thin front to
// encoding/json/v2 (as github.com/go-json-experiment/json) with the strict
// settings of the house. [Valid], [Scanner], [Members], [With] and the other
// functions on bytes are written by hand: they check, walk and edit raw JSON
// without building values and, but for objects with many members or escaped
// names, without allocating.
//
// # What is accepted
//
// One JSON value as RFC 8259 defines it, and nothing else. Refused are invalid
// UTF-8, an escaped surrogate without its partner, two members of one object
// with the same name (compared after unescaping), bytes after the value, and
// nesting over the bound. Numbers are kept as text until a type asks for them.
//
// # What is written
//
// Besides what the codec does by itself, a time.Duration is a string such as
// "1m30s" and a json.Number is a number, the empty one 0; both are read back so.
//
// # Struct tags
//
// The tags mean what encoding/json/v2 says, which is not what encoding/json
// does:
//
//   - omitempty leaves out a field whose JSON would be null, "", {} or []. It
//     never leaves out 0 or false, and it does leave out a json.RawMessage that
//     holds {}, [] or "".
//   - omitzero leaves out the zero Go value: 0, false, "", a nil pointer, slice
//     or json.RawMessage, or whatever IsZero reports. A json.RawMessage that
//     holds {} is kept.
//
// So: omitzero for numbers, booleans and raw values; omitempty for strings,
// slices, maps and structs that have nothing to say. A nil json.RawMessage
// without a tag is written as null.
//
// # Guarantees
//
//   - No function panics or loops on any input, valid or not. The walking and
//     editing functions give no promise about what they return for invalid
//     input: check with [Valid] first.
//   - Nothing here keeps a reference to its input, but raw values that are
//     returned are sub-slices of it.
//   - All functions may be used by several goroutines at once.
package jsonx
