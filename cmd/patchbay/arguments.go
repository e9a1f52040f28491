package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// Arguments of a tool on the command line:
//
//	key=value    typed by the tool's schema; several of a key make a list
//	key=@file    the contents of a file
//	key:=JSON    raw JSON, not looked at
//	{"a":1}      all arguments; also @file.json, and - for standard input
//
// They are merged from left to right.

// word is one of them, its files read.
type word struct {
	key   string
	value string          // of key=value
	raw   json.RawMessage // of key:=JSON, or an object if key is empty
}

// maxInput bounds what is read of a file or of standard input.
const maxInput = 64 << 20

// readArguments reads the words of a command line.
func (a *app) readArguments(args []string) ([]word, error) {
	var out []word
	for _, arg := range args {
		w, err := a.readArgument(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

func (a *app) readArgument(arg string) (word, error) {
	switch {
	case strings.HasPrefix(arg, "{"):
		return object([]byte(arg), "the argument")
	case arg == "-":
		data, err := readAll(a.stdin)
		if err != nil {
			return word{}, fmt.Errorf("read standard input: %w", err)
		}
		return object(data, "standard input")
	case strings.HasPrefix(arg, "@"):
		data, err := readFile(arg[1:])
		if err != nil {
			return word{}, err
		}
		return object(data, arg[1:])
	}
	key, value, ok := strings.Cut(arg, "=")
	if !ok || key == "" {
		return word{}, usagef("argument %q is neither key=value nor a JSON object", arg).hint("patchbay help " + a.verb)
	}
	if name, isJSON := strings.CutSuffix(key, ":"); isJSON && name != "" {
		if err := jsonx.Valid([]byte(value), 0); err != nil {
			return word{}, usagef("argument %q: what stands after := is not JSON: %v", name, err).
				hint(shell([]string{name + "=" + value}) + " takes it as text")
		}
		return word{key: name, raw: json.RawMessage(value)}, nil
	}
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		data, err := readFile(path)
		if err != nil {
			f := usagef("argument %q: %v", key, err)
			literal, _ := jsonx.Marshal(value)
			return word{}, f.hint(shell([]string{key + ":=" + string(literal)}) + " sends the text itself")
		}
		if !utf8.Valid(data) {
			return word{}, usagef("argument %q: %s is not text in UTF-8", key, path)
		}
		value = string(data)
	}
	if !utf8.ValidString(value) {
		return word{}, usagef("argument %q is not text in UTF-8", key)
	}
	return word{key: key, value: value}, nil
}

// object reads a JSON object from where.
func object(data []byte, where string) (word, error) {
	data = []byte(strings.TrimSpace(string(data)))
	if err := jsonx.Valid(data, 0); err != nil {
		return word{}, usagef("%s is not JSON: %v", where, err)
	}
	if jsonx.KindOf(data) != '{' {
		return word{}, usagef("%s is JSON, but not an object", where)
	}
	return word{raw: data}, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("more than %d MiB", maxInput>>20)
	}
	return data, err
}

// needsSchema reports whether a word is to be typed.
func needsSchema(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.raw == nil })
}

// buildArguments makes the arguments of a call. Form and input are what the tool
// takes; form is nil if that is not known, and then values that read as JSON numbers,
// booleans, lists or objects are those. Help is a command that shows the arguments.
func buildArguments(words []word, form *schema.Form, input json.RawMessage, help string) (json.RawMessage, error) {
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
		case w.raw != nil && w.key == "":
			for name, v := range jsonx.Members(w.raw) {
				key := string(name)
				delete(several, key)
				set(key, v)
			}
		case w.raw != nil:
			delete(several, w.key)
			set(w.key, w.raw)
		default:
			several[w.key] = append(several[w.key], w.value)
			v, err := typedValue(w.key, several[w.key], form, input)
			if err != nil {
				return nil, usageOf(err).hint(help)
			}
			if !slices.Contains(typed, w.key) {
				typed = append(typed, w.key)
			}
			set(w.key, v)
		}
	}
	if form != nil && len(typed) > 0 {
		var bad *schema.ValidationError
		if err := form.Check(values); errors.As(err, &bad) {
			return nil, usageOf(err).hint(help)
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

// usageOf makes a fault of what does not fit a schema: one line each.
func usageOf(err error) *fault {
	var bad *schema.ValidationError
	if !errors.As(err, &bad) {
		var f *fault
		if errors.As(err, &f) {
			return f
		}
		return &fault{code: exitUsage, err: err}
	}
	var lines []string
	for _, f := range bad.Faults {
		lines = append(lines, f.String())
	}
	if bad.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", bad.More))
	}
	if len(lines) == 1 {
		return usagef("argument %s", lines[0])
	}
	return &fault{code: exitUsage, err: errors.New("the arguments do not fit the tool"), detail: strings.Join(lines, "\n")}
}

// typedValue makes JSON of what was typed for one key, in one or several words.
func typedValue(key string, texts []string, form *schema.Form, input json.RawMessage) (json.RawMessage, error) {
	if form == nil {
		if len(texts) == 1 {
			return guess(texts[0]), nil
		}
		return arrayOf(texts, func(s string) (json.RawMessage, error) { return guess(s), nil })
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
				takes = "there are " + strings.Join(names, ", ")
			}
			return nil, usagef("no argument %q%s; %s", key, didYouMean(key, names), takes)
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
				return guess(s), nil
			}
			return item.Parse(s)
		})
	}
	if len(texts) > 1 {
		return nil, usagef("argument %q takes one value, not %d", key, len(texts))
	}
	return field.Parse(texts[0])
}

// guess types a text that no schema says anything about.
func guess(s string) json.RawMessage {
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

// takesMore reports whether a schema says that it takes arguments it does not name. To say
// nothing allows them too, but then a misspelt name is likelier.
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
