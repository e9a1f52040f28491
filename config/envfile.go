package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// envLine is one variable of an environment file.
type envLine struct {
	name, value string
	line        int
}

// parseEnv reads an environment file, a line NAME=VALUE for each variable. Empty lines and those
// that begin with # are skipped, "export " before a name too. Spaces around a value are not part
// of it, nor is a comment, # after a space. In single quotes every character is literal; in
// double quotes \n, \r, \t, \" and \\ are read as in JSON. A quoted value may have several lines.
// Nothing is replaced. For an invalid line, bad is called with the line, the fault and the fix;
// none of them holds a value.
func parseEnv(data []byte, bad func(line int, text, fix string)) []envLine {
	var out []envLine
	rest := strings.ReplaceAll(string(bytes.TrimPrefix(data, utf8BOM)), "\r\n", "\n")
	for line := 1; rest != ""; line++ {
		text, after, _ := strings.Cut(rest, "\n")
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			rest = after
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "export "))
		value = strings.TrimSpace(value)
		first := line
		switch {
		case !ok || name == "" || strings.ContainsAny(name, " \t\x00\"'"):
			bad(line, "a line that is not NAME=VALUE", "write NAME=VALUE, or # before a comment")
			rest = after
			continue
		case value != "" && (value[0] == '"' || value[0] == '\''):
			open := strings.IndexByte(rest, value[0])
			got, end := unquoteEnv(rest[open:])
			if end < 0 {
				bad(line, "a value without its closing quote", "close it, or remove the first quote")
				rest = after
				continue
			}
			value = got
			line += strings.Count(rest[open:open+end], "\n")
			_, after, _ = strings.Cut(rest[open+end:], "\n")
		default:
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		rest = after
		if strings.ContainsRune(value, 0) {
			bad(first, "a value with a NUL in it", "remove it")
			continue
		}
		out = append(out, envLine{name, value, first})
	}
	return out
}

// unquoteEnv returns what is in the quotes that s begins with, and the offset after
// the closing one, or -1 if there is none.
func unquoteEnv(s string) (value string, end int) {
	if s[0] == '\'' {
		if n := strings.IndexByte(s[1:], '\''); n >= 0 {
			return s[1 : 1+n], n + 2
		}
		return "", -1
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), i + 1
		case s[i] == '\\' && i+1 < len(s):
			i++
			if at := strings.IndexByte(`nrt"\`, s[i]); at >= 0 {
				b.WriteByte("\n\r\t\"\\"[at])
			} else {
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", -1
}

// envFile adds the variables of an environment file that "env" does not have.
func (v values) envFile(n *node, s *Server) {
	if n == nil || len(v.into.values) == 0 || v.into.values[len(v.into.values)-1].Member != "envFile" {
		return // missing or invalid
	}
	from := &v.into.values[len(v.into.values)-1]
	if from.unresolved() {
		v.fail(n.pos, `"envFile" has an input in it`, "write the path, or use the input in \"env\"")
		return
	}
	path := absolute(v.expander.workspace, from.Text())
	s.EnvFile = path
	data, text := readText(path)
	if text != "" {
		if !s.Disabled {
			v.fail(n.pos, `the "envFile" `+quote(path)+" "+text, `make it a text file, or remove "envFile"`)
		}
		return
	}
	own := maps.Clone(s.Env)
	if s.Env == nil {
		s.Env = make(map[string]string)
	}
	lines := parseEnv(data, func(line int, text, fix string) {
		if !s.Disabled && len(v.problems) < maxProblems {
			v.problems = append(v.problems, Problem{Path: path, Line: line, Column: 1, Text: text, Fix: fix, Server: v.about})
		}
	})
	places := make(map[string]int)
	for _, e := range lines {
		if _, ok := own[e.name]; ok {
			continue
		}
		value := Value{Member: "env", Name: e.name, Source: fmt.Sprintf("%s:%d", path, e.line), pieces: []piece{{text: e.value}}}
		if at, ok := places[e.name]; ok {
			v.into.values[at] = value
		} else {
			places[e.name] = len(v.into.values)
			v.into.values = append(v.into.values, value)
		}
		s.Env[e.name] = e.value
	}
}

// readText reads a text file, or returns the reason why it cannot be read, in words.
func readText(path string) (data []byte, text string) {
	if info, err := os.Stat(path); err != nil {
		return nil, "is not there"
	} else if !info.Mode().IsRegular() { // reading a pipe would block
		return nil, "is not a file"
	}
	data, err := ownfile.ReadNow(path, MaxBytes)
	switch {
	case err != nil:
		return nil, "cannot be read"
	case len(data) > MaxBytes:
		return nil, fmt.Sprintf("is over %d bytes", MaxBytes)
	case !utf8.Valid(data):
		return nil, "is not UTF-8"
	}
	return data, ""
}
