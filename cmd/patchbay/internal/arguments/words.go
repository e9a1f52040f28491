// Package arguments handles the arguments of tools for people: it reads them from the words of a
// command line, shows them as a table or in one line, and makes examples.
//
// The words are
//
//	key=value    typed by the schema of the tool; repeat a key for a list
//	key=@file    the contents of a file
//	key:=JSON    raw JSON, passed on as it is
//	{"a":1}      all arguments; also @file.json, and - for standard input
//
// Words are merged from left to right: [Read] parses them, then [Build] applies the schema. Both
// read an [Example] back into arguments that the schema accepts.
//
// A schema comes from the server and may be huge, cyclic or hostile: every function bounds depth,
// rows and bytes, and returns text without control characters.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// Word is one word of a command line. Its file, if it names one, has been read.
type Word struct {
	Key   string
	Value string          // of key=value
	Raw   json.RawMessage // of key:=JSON, or an object if Key is empty
}

// Error describes a mistake in the words.
type Error struct {
	Err    error
	Detail string // lines to show below; may be empty
	Next   string // what to type instead; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

func (e *Error) hint(next string) *Error {
	e.Next = next
	return e
}

// MaxInput bounds a file or standard input, in bytes.
const MaxInput = 64 << 20

// Read reads the words of a command line. The argument help is a command that explains them. An
// error is an [*Error], or comes from a file.
func Read(args []string, stdin io.Reader, help string) ([]Word, error) {
	var out []Word
	for _, arg := range args {
		w, err := read(arg, stdin, help)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

func read(arg string, stdin io.Reader, help string) (Word, error) {
	switch {
	case strings.HasPrefix(arg, "{"):
		return object([]byte(arg), "the argument")
	case arg == "-":
		data, err := ReadAll(stdin)
		if err != nil {
			return Word{}, fmt.Errorf("read standard input: %w", err)
		}
		return object(data, "standard input")
	case strings.HasPrefix(arg, "@"):
		data, err := ReadFile(arg[1:])
		if err != nil {
			return Word{}, err
		}
		return object(data, arg[1:])
	}
	key, value, ok := strings.Cut(arg, "=")
	if !ok || key == "" {
		return Word{}, errorf("argument %q is neither key=value nor a JSON object", arg).hint(help)
	}
	if name, isJSON := strings.CutSuffix(key, ":"); isJSON && name != "" {
		if err := jsonx.Valid([]byte(value), 0); err != nil {
			return Word{}, errorf("argument %q: the value after := is not JSON: %v", name, err).
				hint(screen.Shell([]string{name + "=" + value}) + " passes it as text")
		}
		return Word{Key: name, Raw: json.RawMessage(value)}, nil
	}
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		data, err := ReadFile(path)
		if err != nil {
			f := errorf("argument %q: %v", key, err)
			literal, _ := jsonx.Marshal(value)
			return Word{}, f.hint(screen.Shell([]string{key + ":=" + string(literal)}) + " passes the literal text")
		}
		if !utf8.Valid(data) {
			return Word{}, errorf("argument %q: %s is not UTF-8 text", key, path)
		}
		value = string(data)
	}
	if !utf8.ValidString(value) {
		return Word{}, errorf("argument %q is not UTF-8 text", key)
	}
	return Word{Key: key, Value: value}, nil
}

// object parses a JSON object; where names its source in errors.
func object(data []byte, where string) (Word, error) {
	data = []byte(strings.TrimSpace(string(data)))
	if err := jsonx.Valid(data, 0); err != nil {
		return Word{}, errorf("%s is not JSON: %v", where, err)
	}
	if jsonx.KindOf(data) != '{' {
		return Word{}, errorf("%s is JSON, but not an object", where)
	}
	return Word{Raw: data}, nil
}

// ReadFile reads a file of at most MaxInput bytes.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// ReadAll reads at most MaxInput bytes; more are an error.
func ReadAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err == nil && len(data) > MaxInput {
		err = fmt.Errorf("larger than %d MiB", MaxInput>>20)
	}
	return data, err
}

// NeedSchema reports whether the schema decides the type of any word.
func NeedSchema(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool { return w.Raw == nil })
}

// Build returns the arguments of a call. The form and the input schema are the tool's; if form is
// nil, texts that read as JSON numbers, booleans, lists or objects become those. The argument help
// is a command that shows the tool's arguments.
func Build(words []Word, form *schema.Form, input json.RawMessage, help string) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	var order, typed []string
	set := func(key string, v json.RawMessage) {
		if _, ok := values[key]; !ok {
			order = append(order, key)
		}
		values[key] = v
	}
	several := map[string][]string{}
	for _, w := range words {
		switch {
		case w.Raw != nil && w.Key == "":
			for name, v := range jsonx.Members(w.Raw) {
				key := string(name)
				delete(several, key)
				set(key, v)
			}
		case w.Raw != nil:
			delete(several, w.Key)
			set(w.Key, w.Raw)
		default:
			several[w.Key] = append(several[w.Key], w.Value)
			v, err := typedValue(w.Key, several[w.Key], form, input)
			if err != nil {
				return nil, misfit(err).hint(help)
			}
			if !slices.Contains(typed, w.Key) {
				typed = append(typed, w.Key)
			}
			set(w.Key, v)
		}
	}
	if form != nil && len(typed) > 0 {
		var bad *schema.ValidationError
		if err := form.Check(values); errors.As(err, &bad) {
			return nil, misfit(err).hint(help)
		}
	}
	out := []byte{'{'}
	for i, key := range order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendString(out, key), ':'), values[key]...)
	}
	return append(out, '}'), nil
}

// misfit describes the values that do not fit a schema, one per line.
func misfit(err error) *Error {
	var bad *schema.ValidationError
	if !errors.As(err, &bad) {
		var own *Error
		if errors.As(err, &own) {
			return own
		}
		return &Error{Err: err}
	}
	var lines []string
	for _, f := range bad.Faults {
		lines = append(lines, f.String())
	}
	if bad.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", bad.More))
	}
	if len(lines) == 1 {
		return errorf("argument %s", lines[0])
	}
	return &Error{Err: errors.New("the arguments do not fit the tool"), Detail: strings.Join(lines, "\n")}
}

// typedValue converts the texts of one key, from one or several words, to JSON.
func typedValue(key string, texts []string, form *schema.Form, input json.RawMessage) (json.RawMessage, error) {
	if form == nil {
		if len(texts) == 1 {
			return Guess(texts[0]), nil
		}
		return arrayOf(texts, func(s string) (json.RawMessage, error) { return Guess(s), nil })
	}
	field := form.Field(key)
	if field == nil {
		if !takesMore(input) {
			var names []string
			for _, f := range form.Fields {
				names = append(names, f.Name)
			}
			takes := "the tool takes no arguments"
			if len(names) > 0 {
				takes = "available: " + strings.Join(names, ", ")
			}
			return nil, errorf("unknown argument %q; %s%s", key, takes, screen.DidYouMean(key, names))
		}
		return typedValue(key, texts, nil, nil)
	}
	item, isList := field.Elements(), slices.Contains(field.Types(), "array")
	if field.Kind == schema.MultiEnum && len(texts) > 1 {
		all := []byte{'['}
		for _, s := range texts {
			v, err := field.Parse(s)
			var e *schema.ValidationError
			if err != nil && !errors.As(err, &e) {
				return nil, err
			}
			for choice := range jsonx.Elements(v) {
				if len(all) > 1 {
					all = append(all, ',')
				}
				all = append(all, choice...)
			}
		}
		return append(all, ']'), nil
	}
	if isList && field.Kind != schema.MultiEnum {
		if s := strings.TrimSpace(texts[0]); len(texts) == 1 && strings.HasPrefix(s, "[") && jsonx.Valid([]byte(s), 0) == nil {
			return json.RawMessage(s), nil
		}
		return arrayOf(texts, func(s string) (json.RawMessage, error) {
			if item == nil {
				return Guess(s), nil
			}
			return item.Parse(s)
		})
	}
	if len(texts) > 1 {
		return nil, errorf("argument %q takes one value, not %d", key, len(texts))
	}
	return field.Parse(texts[0])
}

// Guess gives a type to a text without a schema.
func Guess(s string) json.RawMessage {
	if t := []byte(strings.TrimSpace(s)); jsonx.Valid(t, 0) == nil {
		return t
	}
	return jsonx.AppendString(nil, s)
}

func arrayOf(texts []string, each func(string) (json.RawMessage, error)) (json.RawMessage, error) {
	out := []byte{'['}
	for i, s := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		v, err := each(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
	return append(out, ']'), nil
}

// takesMore reports whether a schema says that it accepts arguments it does not name. A schema that
// says nothing accepts them too, but then a misspelt name is likelier.
func takesMore(input json.RawMessage) bool {
	if v, ok := jsonx.Lookup(input, "additionalProperties"); ok {
		return string(v) != "false"
	}
	if _, ok := jsonx.Lookup(input, "patternProperties"); ok {
		return true
	}
	props, ok := jsonx.Lookup(input, "properties")
	if !ok {
		return true
	}
	return jsonx.KindOf(props) != '{'
}
