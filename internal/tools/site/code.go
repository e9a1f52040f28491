package main

import (
	"bytes"
	"go/scanner"
	"go/token"
	"html"
	"strings"
)

// colored returns the HTML of code in a language.
func colored(language string, code []byte) string {
	switch language {
	case "go":
		return highlight(code)
	case "console":
		return commands(string(code))
	}
	return html.EscapeString(string(code))
}

// highlight marks the keywords, texts and comments of Go. What cannot be read as Go stays as it is.
func highlight(code []byte) string {
	var out strings.Builder
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	s.Init(file, code, func(token.Position, string) {}, scanner.ScanComments)
	done := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		class := ""
		switch {
		case tok == token.COMMENT:
			class = "comment"
		case tok.IsKeyword():
			class = "keyword"
		case tok == token.STRING || tok == token.CHAR:
			class = "string"
		}
		start := file.Offset(pos)
		if class == "" || !bytes.HasPrefix(code[start:], []byte(lit)) { // a literal without its carriage returns
			continue
		}
		out.WriteString(html.EscapeString(string(code[done:start])))
		out.WriteString(`<span class="` + class + `">` + html.EscapeString(lit) + "</span>")
		done = start + len(lit)
	}
	out.WriteString(html.EscapeString(string(code[done:])))
	return out.String()
}

// commands marks the commands among what they print.
func commands(text string) string {
	var out strings.Builder
	more := false // the command goes on
	for line := range strings.Lines(text) {
		command := strings.HasPrefix(line, "$ ") || more
		more = command && strings.HasSuffix(strings.TrimRight(line, "\n"), `\`)
		if command {
			out.WriteString("<b>" + html.EscapeString(strings.TrimSuffix(line, "\n")) + "</b>\n")
		} else {
			out.WriteString(html.EscapeString(line))
		}
	}
	return out.String()
}
