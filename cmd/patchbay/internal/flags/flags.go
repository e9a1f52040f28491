// Package flags sets the fields of a struct from a command line. Each exported field is a flag; its
// tags say how it is written and explained:
//
//	Root    []string      `sep:"none" placeholder:"DIR" help:"Offer this folder to the server (repeatable)."`
//	Timeout time.Duration `default:"1m" placeholder:"TIME" help:"Time limit."`
//	Quiet   bool          `short:"q" help:"Hide progress."`
//	Tool    string        `arg:"" optional:"" help:"Name of the tool."`
//
// The name of a flag is that of the field in lower case, with dashes between words, or the tag name.
// A field with the tag arg is an argument instead; a list of arguments takes all that are left. The
// fields of embedded structs count as those of the struct itself, and a field with the tag flag:"-" is
// none. A repeated flag replaces its value, or adds to its list; without the tag sep:"none", a value is
// a list with commas. With the tag bare, the flag may be without a value at the end of a line and before
// another flag, and then has that of the tag.
//
// The package does not use methods by name, as most parsers do: with them the linker keeps every method
// of every type of the program.
package flags

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Flag is one flag. Set may be called often.
type Flag struct {
	Name        string // without dashes
	Short       string // one letter; empty: none
	Help        string
	Placeholder string // of the value; empty for a boolean flag
	Default     string // as it is written on a command line; empty: none
	Bare        string // the value if none is written; empty: one must be
	list        bool   // a value is a list with commas
	field       reflect.Value
}

// IsBool reports whether the flag has no value.
func (f *Flag) IsBool() bool { return f.field.Kind() == reflect.Bool }

// Set sets the field of the flag. The error names the flag, the kind of its values and the value. An
// empty value is an error, because it is usually a variable that is not set.
func (f *Flag) Set(value string) error {
	if value == "" {
		return fmt.Errorf("--%s needs a value: --%s %s", f.Name, f.Name, cmp.Or(f.Placeholder, "true"))
	}
	kind := set(f.field, value, f.list)
	if kind != "" {
		return fmt.Errorf("--%s takes %s, not %q", f.Name, kind, value)
	}
	return nil
}

// set sets a field. If the value is none for the field, set returns the kind of value that it takes.
func set(field reflect.Value, value string, list bool) (kind string) {
	switch at := field.Addr().Interface().(type) {
	case *string:
		*at = value
	case *[]string:
		if list {
			*at = append(*at, strings.Split(value, ",")...)
		} else {
			*at = append(*at, value)
		}
	case *bool:
		switch strings.ToLower(value) {
		case "true", "1", "yes":
			*at = true
		case "false", "0", "no":
			*at = false
		default:
			return "true or false"
		}
	case *int:
		n, err := strconv.ParseInt(value, 0, strconv.IntSize)
		if err != nil {
			return "a whole number"
		}
		*at = int(n)
	case *float64:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return "a number"
		}
		*at = n
	case *time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			return "a time such as 30s or 2m"
		}
		*at = d
	}
	return ""
}

// argument is a field that is given without a name.
type argument struct {
	name     string // for people, such as TRACE
	optional bool
	field    reflect.Value
}

// Set is the flags and arguments of one or more structs.
type Set struct {
	Flags  []*Flag
	byName map[string]*Flag // as they are written: --name and -n
	args   []argument
}

// Add adds the fields of the struct that target points to, and sets those that have defaults. It
// panics for tags that it does not understand and for a name that is there already.
func (s *Set) Add(target any) {
	if s.byName == nil {
		s.byName = map[string]*Flag{}
	}
	s.addStruct(reflect.ValueOf(target).Elem())
}

func (s *Set) addStruct(v reflect.Value) {
	for i := range v.NumField() {
		of, field := v.Type().Field(i), v.Field(i)
		switch {
		case of.Anonymous && field.Kind() == reflect.Struct:
			s.addStruct(field)
		case of.IsExported() && of.Tag.Get("flag") != "-":
			s.addField(of, field)
		}
	}
}

func (s *Set) addField(of reflect.StructField, field reflect.Value) {
	switch field.Addr().Interface().(type) {
	case *string, *[]string, *bool, *int, *float64, *time.Duration:
	default:
		panic(fmt.Sprintf("flags: the field %s is %s, which a command line cannot set", of.Name, of.Type))
	}
	name := of.Tag.Get("name")
	if name == "" {
		name = dashed(of.Name)
	}
	if _, ok := of.Tag.Lookup("arg"); ok {
		_, optional := of.Tag.Lookup("optional")
		if n := len(s.args); n > 0 && (s.args[n-1].list() || s.args[n-1].optional && !optional) {
			panic(fmt.Sprintf("flags: no value can reach the argument %s", of.Name))
		}
		s.args = append(s.args, argument{strings.ToUpper(name), optional, field})
		return
	}
	f := &Flag{
		Name: name, Short: of.Tag.Get("short"), Help: of.Tag.Get("help"), Placeholder: of.Tag.Get("placeholder"), Default: of.Tag.Get("default"), Bare: of.Tag.Get("bare"),
		list: of.Tag.Get("sep") != "none", field: field,
	}
	if (f.Placeholder == "") != f.IsBool() {
		panic(fmt.Sprintf("flags: --%s needs a placeholder if it has a value, and only then", name))
	}
	if f.Default != "" {
		if err := f.Set(f.Default); err != nil {
			panic("flags: default: " + err.Error())
		}
	}
	for _, written := range []string{"--" + f.Name, "-" + f.Short} {
		if s.byName[written] != nil {
			panic("flags: two flags " + written)
		}
		if written != "-" {
			s.byName[written] = f
		}
	}
	s.Flags = append(s.Flags, f)
}

func (a argument) list() bool { return a.field.Kind() == reflect.Slice }

// dashed returns the name of a field as that of a flag: TraceMax is trace-max, JSON is json.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' && !('A' <= name[i-1] && name[i-1] <= 'Z') {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// Written returns the flag with a name as it is written, --name or -n; nil: there is none.
func (s *Set) Written(name string) *Flag { return s.byName[name] }

// Read sets the fields of flags, each in one word with its value: --name, --name=value, -n, -nvalue,
// -n=value, or several letters such as -vq.
func (s *Set) Read(words []string) error {
	for _, word := range words {
		if err := s.read(word); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) read(word string) error {
	if name, value, joined := strings.Cut(word, "="); strings.HasPrefix(word, "--") {
		f := s.byName[name]
		switch {
		case f == nil:
			return fmt.Errorf("unknown flag %s", name)
		case joined:
			return f.Set(value)
		case !f.IsBool():
			return fmt.Errorf("%s needs a value: %s %s", name, name, f.Placeholder)
		}
		return f.Set("true")
	}
	for rest := strings.TrimPrefix(word, "-"); rest != ""; {
		name := "-" + rest[:1]
		f := s.byName[name]
		value, joined := strings.CutPrefix(rest[1:], "=")
		switch {
		case f == nil:
			return fmt.Errorf("unknown flag %s", name)
		case joined || !f.IsBool() && value != "":
			return f.Set(value)
		case !f.IsBool():
			return fmt.Errorf("%s needs a value: %s %s", name, name, f.Placeholder)
		}
		if err := f.Set("true"); err != nil {
			return err
		}
		rest = rest[1:]
	}
	return nil
}

// Among returns the first of some words that is one of the flags of some names, without its value; empty: there is none.
func Among(words []string, names ...string) string {
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if slices.Contains(names, strings.TrimPrefix(flag, "--")) {
			return flag
		}
	}
	return ""
}

// Place sets the fields of arguments, in their order.
func (s *Set) Place(words []string) error {
	for _, a := range s.args {
		switch {
		case len(words) == 0 && !a.optional:
			return fmt.Errorf("missing %s", a.name)
		case len(words) == 0:
			return nil
		}
		n := 1
		if a.list() {
			n = len(words)
		}
		for _, word := range words[:n] {
			if kind := set(a.field, word, false); kind != "" {
				return fmt.Errorf("%s must be %s, not %q", a.name, kind, word)
			}
		}
		words = words[n:]
	}
	if len(words) > 0 {
		return fmt.Errorf("unexpected argument %q", words[0])
	}
	return nil
}

// Corrected returns a command line with each unknown flag replaced by the result of put; if that is
// nil, the flag stays. The argument value is "" if the flag has none. Words after "--" stay.
func (s *Set) Corrected(args []string, put func(unknown, value string) []string) (words []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, joined := strings.Cut(arg, "=")
		known := s.Written(name)
		if known == nil && len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			known, joined = s.Written(arg[:2]), true
		}
		hasNext := i+1 < len(args) && (!strings.HasPrefix(args[i+1], "-") || args[i+1] == "-")
		switch {
		case arg == "--":
			return append(words, args[i:]...)
		case len(arg) < 2 || arg[0] != '-':
			words = append(words, arg)
		case known != nil:
			words = append(words, arg)
			if !known.IsBool() && !joined && i+1 < len(args) {
				i++
				words = append(words, args[i])
			}
		default:
			if !joined && hasNext {
				value = args[i+1]
			}
			better := put(name, value)
			if better == nil {
				words = append(words, arg)
				continue
			}
			if words = append(words, better...); !joined && hasNext {
				i++
			}
		}
	}
	return words
}
