// Package jsonx is the JSON codec of the project: every other package reads and writes JSON
// through it.
//
// It has two parts. [Marshal] and [Unmarshal] wrap encoding/json/v2 (as
// github.com/go-json-experiment/json) with strict settings. [Valid], [Scanner], [Members], [With]
// and the other functions on bytes are written by hand: they check, walk and edit raw JSON
// without building values and, except for objects with many members or escaped names, without
// allocating.
//
// # What is accepted
//
// One JSON value as RFC 8259 defines it, and nothing else. Invalid UTF-8 is refused, as are an
// escaped surrogate without its partner, two members of one object with the same name (compared
// after unescaping), bytes after the value, and nesting deeper than the bound. Numbers are kept
// as text until a type asks for them.
//
// # What is written
//
// A time.Duration is a string such as "1m30s" and a json.Number is a number, 0 if it is empty;
// both are read in the same form. All else is as the codec writes it.
//
// # Struct tags
//
// The tags are those of encoding/json/v2, which differ from those of encoding/json:
//
//   - omitempty leaves out a field whose JSON would be null, "", {} or []. It
//     never leaves out 0 or false, and it does leave out a json.RawMessage that
//     holds {}, [] or "".
//   - omitzero leaves out the zero Go value: 0, false, "", a nil pointer, slice
//     or json.RawMessage, or whatever IsZero reports. A json.RawMessage that
//     holds {} is kept.
//
// So: omitzero for numbers, booleans and raw values; omitempty for strings, slices, maps and
// structs that may be empty. A nil json.RawMessage without a tag is written as null.
//
// # Guarantees
//
//   - No function panics or loops on any input, valid or not. The walking and
//     editing functions give no promise about what they return for invalid
//     input: check with [Valid] first.
//   - No function keeps a reference to its input; raw values that are returned are sub-slices of
//     it.
//   - All functions may be used by several goroutines at once.
package jsonx
