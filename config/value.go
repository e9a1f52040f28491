package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Value is one value in the entry of a server or a model: its text in the file, and its expansion.
type Value struct {
	Member  string // command, args, env, envFile, cwd, url or headers; of a model baseUrl, key or headers
	Name    string // of a variable or header; of an argument its index
	Written string // as the file has it; empty if it is from an envFile
	Source  string // "path:line"

	pieces []piece
	place  Problem
}

// Problem returns a problem at the place of the value, unless that is an envFile.
func (v Value) Problem(text, fix string) Problem {
	p := v.place
	p.Text, p.Fix = text, fix
	return p
}

// Text returns the value with its variables replaced. Inputs stay ${input:ID}.
func (v Value) Text() string {
	var b strings.Builder
	for _, p := range v.pieces {
		if p.input != "" {
			b.WriteString("${input:" + p.input + "}")
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// From returns the origins, in words, of the parts of the value that are not from the file
// itself, such as "HOME of the environment".
func (v Value) From() []string {
	var out []string
	for _, p := range v.pieces {
		from := p.from
		if p.input != "" {
			from = "the input " + quote(p.input)
		}
		if from != "" && !slices.Contains(out, from) {
			out = append(out, from)
		}
	}
	return out
}

// Values returns the values in a server's entry with their origins, grouped by member. The texts
// may be secrets.
func (s Server) Values() []Value { return slices.Clone(s.values) }

// Inputs returns the inputs that a server needs: [Server.Resolve] inserts their values.
func (s Server) Inputs() []Input { return slices.Clone(s.inputs) }

// Secrets returns the secret values that the file itself does not mark: those of password inputs,
// and of the environment variables whose names are secret according to named.
func (s Server) Secrets(named func(variable string) bool) []string { return s.secrets(named) }

// CommandLine returns Command and Args as written in the file, with their variables, so that it
// can be shown.
func (s Server) CommandLine() []string {
	if s.values == nil {
		return append([]string{s.Command}, s.Args...)
	}
	var out []string
	for _, v := range s.values {
		if v.Member == "command" || v.Member == "args" {
			out = append(out, v.Written)
		}
	}
	return out
}

// Resolve returns the server with the values of its inputs inserted. It calls value once for each
// of them, and not at all if there are none. An error from value is returned with the names of the
// server and the input.
func (s Server) Resolve(value func(Input) (string, error)) (Server, error) {
	if len(s.inputs) == 0 {
		return s, nil
	}
	was := s
	s.Args, s.Env, s.Headers = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers)
	var err error
	if s.filled, err = s.filled.resolve("the server "+quote(s.Name), s.Source, value, s.set); err != nil {
		return was, err
	}
	return s, nil
}

// resolve returns the values with those of the inputs inserted, and calls set for each changed
// one. who and source name the server or model in errors.
func (f filled) resolve(who, source string, value func(Input) (string, error), set func(Value) error) (filled, error) {
	known := make(map[string]piece)
	for _, in := range f.inputs {
		text, err := value(in)
		if err != nil {
			return f, fmt.Errorf("%s needs the input %s: %w", who, quote(in.ID), err)
		}
		known[in.ID] = piece{text: text, from: "the input " + quote(in.ID), secret: in.Password}
	}
	out := filled{values: slices.Clone(f.values)}
	for i := range out.values {
		v := &out.values[i]
		if !v.unresolved() {
			continue
		}
		v.pieces = slices.Clone(v.pieces)
		for j, p := range v.pieces {
			if p.input != "" {
				v.pieces[j] = known[p.input]
			}
		}
		if err := set(*v); err != nil {
			return f, fmt.Errorf("%s: %s: %w", source, who, err)
		}
	}
	return out, nil
}

// secrets implements [Server.Secrets].
func (f filled) secrets(named func(variable string) bool) []string {
	var out []string
	for _, v := range f.values {
		for _, p := range v.pieces {
			if p.text != "" && (p.secret || p.variable != "" && named(p.variable)) {
				out = append(out, p.text)
			}
		}
	}
	return out
}

func (v *Value) unresolved() bool {
	return slices.ContainsFunc(v.pieces, func(p piece) bool { return p.input != "" })
}

// set puts a value into its field.
func (s *Server) set(v Value) error {
	text := v.Text()
	if strings.TrimSpace(text) == "" && (v.Member == "command" || v.Member == "url") {
		return fmt.Errorf("%q is empty after its inputs are replaced", v.Member)
	}
	switch v.Member {
	case "command":
		s.Command = text
	case "args":
		i, err := strconv.Atoi(v.Name)
		if err != nil || i >= len(s.Args) {
			return errors.New("an argument is out of place")
		}
		s.Args[i] = text
	case "env":
		s.Env[v.Name] = text
	case "headers":
		s.Headers[v.Name] = text
	case "cwd":
		s.Dir = absolute(s.workspace, text)
	case "url":
		s.URL = text
		if problem, fix := checkServerURL(text); problem != "" {
			return errors.New(problem + ": " + fix)
		}
	}
	return nil
}

// absolute makes a path relative to a folder absolute. An empty path stays empty.
func absolute(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
