package jsonx

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/patchbay-dev/patchbay/internal/text"
)

var unmarshalOptions = json.JoinOptions(
	json.MatchCaseInsensitiveNames(false),
	json.WithUnmarshalers(unmarshalers),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// Unmarshal decodes data, exactly one JSON value, into v, a pointer. Member names match in their
// exact case; members without a field are ignored. Null gives the zero value. The error is an
// [*Error].
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v, unmarshalOptions); err != nil {
		return reword(err, "unmarshal")
	}
	return nil
}

// Error reports which part of a JSON value cannot be read or written, and why.
type Error struct {
	// Pointer is the RFC 6901 pointer to that part; empty for the whole value.
	Pointer string
	// Msg describes the fault, in lower case, in terms of JSON rather than Go.
	Msg string
	// Err is the cause, from the codec or from a method of the type.
	Err error
}

// Error returns `at "/a/b": want an integer, got a string`.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Msg
	}
	return fmt.Sprintf("at %.200q: %s", e.Pointer, e.Msg)
}

func (e *Error) Unwrap() error { return e.Err }

// reword turns an error of the codec into an Error.
func reword(err error, verb string) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		e := &Error{Pointer: string(syntactic.JSONPointer), Err: err}
		if errors.Is(err, jsontext.ErrDuplicateName) {
			e.Msg = "second member with the same name"
		} else {
			e.Msg = fmt.Sprintf("invalid JSON at byte %d: %s", syntactic.ByteOffset, problem(syntactic.Err))
		}
		return e
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return &Error{Msg: problem(err), Err: err}
	}
	e := &Error{Pointer: string(semantic.JSONPointer), Err: err}
	want := wantOf(semantic.GoType)
	switch {
	case verb == "unmarshal" && want != "" && (errors.Is(err, strconv.ErrRange) ||
		errors.Is(err, strconv.ErrSyntax) && bytes.HasPrefix(semantic.JSONValue, []byte("-"))): // -1 for a uint
		e.Msg = fmt.Sprintf("want %s%s, got %.40s", want, rangeOf(semantic.GoType), semantic.JSONValue)
	case verb == "unmarshal" && want != "" && errors.Is(err, strconv.ErrSyntax) && semantic.JSONKind == '0':
		e.Msg = fmt.Sprintf("want %s, got %.40s", want, semantic.JSONValue)
	case semantic.Err != nil:
		e.Msg = problem(semantic.Err)
	case semantic.JSONKind != 0 && want != "":
		e.Msg = fmt.Sprintf("want %s, got %s", want, gotOf(semantic.JSONKind))
	case semantic.GoType != nil:
		e.Msg = fmt.Sprintf("cannot %s type %s", verb, semantic.GoType)
	default:
		e.Msg = "cannot " + verb + " this value"
	}
	return e
}

// problem returns the text of the cause without the codec's own prefixes.
func problem(err error) string {
	if err == nil {
		return "unknown cause"
	}
	s := err.Error()
	for _, prefix := range []string{"jsontext: ", "json: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	s = strings.Replace(s, "unexpected EOF", "unexpected end", 1)
	return text.Clip(s, 300) // it may quote the peer
}

var (
	textUnmarshaler     = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	jsonUnmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
)

// wantOf returns the kind of JSON that a Go type is read from, or "".
func wantOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch p := reflect.PointerTo(t); {
	case p.Implements(textUnmarshaler):
		return "a string"
	case p.Implements(jsonUnmarshaler), p.Implements(jsonUnmarshalerFrom):
		return ""
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return ""
}

// rangeOf returns the range of a number type, to follow "an integer" or "a number".
func rangeOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(1)<<(t.Bits()-1) - 1
		return fmt.Sprintf(" from %d to %d", -most-1, most)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf(" from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	}
	return " in range"
}

func gotOf(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{', '}':
		return "an object"
	case '[', ']':
		return "an array"
	}
	return "nothing"
}
