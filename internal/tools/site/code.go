package main

import (
	"bytes"
	"go/scanner"
	"go/token"
	"strings"
)

// escape is for text, where quotation marks need none.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// colored returns the HTML of a block of code in a language.
func colored(language string, code []byte) string {
	switch language {
	case "go":
		return "<pre>" + highlight(code) + "</pre>\n"
	case "console":
		return `<pre class="console">` + commands(string(code)) + "</pre>\n"
	}
	return "<pre>" + escape(string(code)) + "</pre>\n"
}

// highlight marks the keywords (b), texts (u) and comments (i) of Go; comments that follow each other have one mark. What cannot be read as
// Go stays as it is.
func highlight(code []byte) string {
	var out strings.Builder
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	s.Init(file, code, func(token.Position, string) {}, scanner.ScanComments)
	done, open := 0, ""
	end := func() {
		if open != "" {
			out.WriteString("</" + open + ">")
		}
		open = ""
	}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		mark := ""
		switch {
		case tok == token.COMMENT:
			mark = "i"
		case tok.IsKeyword():
			mark = "b"
		case tok == token.STRING || tok == token.CHAR:
			mark = "u"
		}
		start := file.Offset(pos)
		if mark == "" || !bytes.HasPrefix(code[start:], []byte(lit)) { // a literal without its carriage returns
			continue
		}
		between := string(code[done:start])
		if mark != "i" || open != "i" || strings.TrimSpace(between) != "" {
			end()
		}
		out.WriteString(escape(between))
		if open == "" {
			out.WriteString("<" + mark + ">")
		}
		out.WriteString(escape(lit))
		if open = mark; mark != "i" {
			end()
		}
		done = start + len(lit)
	}
	end()
	out.WriteString(escape(string(code[done:])))
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
			out.WriteString("<b>" + escape(strings.TrimSuffix(line, "\n")) + "</b>\n")
		} else {
			out.WriteString(escape(line))
		}
	}
	return out.String()
}
