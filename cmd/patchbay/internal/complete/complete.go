// Package complete implements the shell side of command line completion: the scripts that a user
// sources, the call that they make, and the answer in the form of each shell; and the params and
// the result of completion/complete. The caller supplies the candidates.
//
// # Guarantees
//
//   - A candidate that does not continue the current word is left out, and so is one with a line
//     break, a tab or invisible characters: nothing invisible reaches a command line.
//   - For bash, every special character of a candidate is quoted.
//   - [Keep] and [Kept] store lists for [KeepTime] in the user's cache folder, readable by the user
//     alone.
//
// To begin, print [Script] for a user, and answer the verb [Verb] with [Parse] and [Request.Write].
package complete

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Verb is the hidden verb that the scripts call:
//
//	patchbay __complete bash LINE WORDBREAKS      the line up to the cursor
//	patchbay __complete zsh|fish|powershell WORD ... CURRENT
//
// It prints one candidate per line; for other shells than bash, a tab and the description follow.
const Verb = "__complete"

// maxAbout bounds a description, in columns.
const maxAbout = 60

// Candidate is a possible text for the current word.
type Candidate struct {
	Text  string
	About string // one line for people, may be empty
}

// Request is the request of a shell.
type Request struct {
	Before  []string // words after the program
	Current string   // the word before the cursor, empty after a space

	shell, breaks string
	quote         byte // bash: the quote that is open at the cursor; 0: none
	quoted        int  // bash: index in Current of the text behind that quote
}

// Parse reads the arguments of [Verb]. It reports false if there is nothing to complete: too few
// arguments.
func Parse(args []string) (r *Request, ok bool) {
	if len(args) < 2 {
		return nil, false
	}
	r = &Request{shell: args[0]}
	words := args[1:]
	if r.shell == "bash" {
		if len(args) > 2 {
			r.breaks = args[2]
		}
		if words, r.quote, r.quoted = split(args[1]); len(words) < 2 {
			return nil, false
		}
		words = words[1:] // without the program
	}
	r.Before, r.Current = words[:len(words)-1], words[len(words)-1]
	if r.shell == "powershell" { // PowerShell drops empty words, so the script puts a sign before them
		r.Current = strings.TrimPrefix(r.Current, "=")
	}
	return r, true
}

// Write writes the candidates that continue the current word, in the form of the shell.
func (r *Request) Write(w io.Writer, list []Candidate) error {
	out := bufio.NewWriter(w)
	for _, c := range list {
		if !strings.HasPrefix(c.Text, r.Current) || c.Text != screen.Visible(c.Text) || strings.ContainsAny(c.Text, "\n\t") {
			continue
		}
		if r.shell == "bash" {
			if r.quote == '\'' && strings.Contains(c.Text[r.quoted:], "'") {
				continue // single quotes cannot hold it
			}
			if r.quote != 0 { // bash replaces the text behind the quote, and closes it
				out.WriteString(within(c.Text[r.quoted:], r.quote) + "\n")
				continue
			}
			out.WriteString(forBash(c.Text, r.Current, r.breaks) + "\n")
		} else {
			out.WriteString(c.Text + "\t" + screen.Cut(screen.OneLine(c.About), maxAbout) + "\n")
		}
	}
	return out.Flush()
}

// Split returns the words of the last command in line, which ends at the cursor. It splits as bash
// does, without expanding anything. The last word is empty if the cursor follows a space. Split
// returns false if the cursor is within quotes.
func Split(line string) (words []string, ok bool) {
	words, quote, _ := split(line)
	if quote != 0 {
		return nil, false
	}
	return words, true
}

// split is Split that accepts a quote which is open at the cursor. It returns that quote, and the
// index in the last word of the text behind it.
func split(line string) (words []string, quote byte, quoted int) {
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
			continue
		case '|', '&', ';', '(':
			words = nil // another command begins
			word.Reset()
			begun = false
			continue
		case '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		case '\'', '"':
			end := closing(line[i+1:], c)
			if end < 0 {
				quote, quoted, end = c, word.Len(), len(line)-i-1
			}
			text := line[i+1 : i+1+end]
			if c == '"' {
				text = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(text)
			}
			word.WriteString(text)
			i += end + 1
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	return append(words, word.String()), quote, quoted
}

// within returns a text for the inside of quotes.
func within(text string, quote byte) string {
	if quote == '"' {
		text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text)
	}
	return text
}

// closing returns the index of the quote that ends a text.
func closing(s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && quote == '"' {
			i++
		} else if s[i] == quote {
			return i
		}
	}
	return -1
}

// forBash returns a candidate in the form that bash expects: the text after the last word break,
// with special characters quoted.
func forBash(candidate, current, breaks string) string {
	from := 0
	for i := range current {
		if strings.IndexByte(breaks, current[i]) >= 0 && strings.IndexByte("=:@", current[i]) >= 0 {
			from = i + 1
		}
	}
	var out strings.Builder
	for _, r := range candidate[from:] {
		if r < 0x80 && !slices.Contains([]byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-"), byte(r)) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
