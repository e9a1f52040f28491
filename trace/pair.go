package trace

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A secret may stand beside its name instead of under it: {"name":"X-Api-Key","value":"…"},
// ["Authorization","Bearer …"], "Cookie: a=b", "API_KEY=…". This file finds them.

// Members that name what is in another member of their object, and those that have it.
var (
	namingMembers = spelled("name", "key", "header", "field", "variable", "param", "parameter", "k")
	valueMembers  = spelled("value", "values", "val", "v", "default")
)

// namedMembers have headers or variables. A member of theirs is a secret if its last word says so.
var namedMembers = spelled("headers", "header", "env", "environment", "environ")

// spelled returns names in small letters, with a capital and in capitals.
func spelled(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, n := range names {
		upper := strings.ToUpper(n)
		all[n], all[upper[:1]+n[1:]], all[upper] = true, true, true
	}
	return all
}

// maxLookahead is the depth of objects up to which a name may stand behind its value. A value deeper
// than that counts as a secret, so that the work is bounded.
const maxLookahead = 32

// pairs knows which objects of a message have a member that names a secret.
type pairs struct {
	src   []byte
	named map[int]bool // by the beginning of the object
}

// value reports whether p is the value of a secret that another member of its object names.
func (s *pairs) value(r *Redactor, p *place) bool {
	if !valueMembers[p.name] {
		return false
	}
	named, known := s.named[p.object]
	if !known {
		if s.named == nil {
			s.named = map[int]bool{}
		}
		named = p.depth > maxLookahead || r.namedIn(s.src[p.object:])
		s.named[p.object] = named
	}
	return named
}

// namedIn reports whether the object at the beginning of src has a member that names a secret.
func (r *Redactor) namedIn(src []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(src), lax)
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		tok, err := d.ReadToken()
		if err != nil {
			return false
		}
		if !namingMembers[tok.String()] || d.PeekKind() != '"' {
			if d.SkipValue() != nil {
				return false
			}
			continue
		}
		name, err := d.ReadToken()
		if err != nil || r.secretHeader(name.String()) {
			return err == nil
		}
	}
	return false
}

// follows reports whether the string in an array is a secret because of the string before it. The
// argument nested says that the array is in another array, last that the string is the last element.
func (r *Redactor) follows(p *place, i int, before jsontext.Value, nested, last bool) bool {
	name, err := unquote(before)
	if err != nil || name == "" || len(name) > maxLabel {
		return false
	}
	of := fold(p.name)
	switch {
	case name[0] == '-': // a command line
		return !strings.Contains(name, "=") && r.flag(name)
	case of == "required" || of == "enum": // of a schema
		return false
	case i == 1 && last && nested:
		return r.secretHeader(name)
	case i == 1 && last && !strings.HasSuffix(of, "headers"), i%2 == 1 && (of == "headers" || of == "rawheaders"):
		return r.rules().headers[fold(name)]
	}
	return false
}

// maybeLine reports whether a JSON string may have a line that [Redactor.inLines] redacts.
func maybeLine(value []byte) bool {
	i := bytes.IndexAny(value, ":=")
	return i > 0 && (bytes.ContainsAny(value, `\'`) || bytes.IndexByte(bytes.TrimSpace(value[:i]), ' ') < 0 || bytes.Contains(value[:i], []byte("export ")))
}

// inLines redacts the values of lines that are a header or a variable, such as "Cookie: a=b" and
// "API_KEY=…", at the beginning of a line or of quotes.
func (r *Redactor) inLines(s string) string {
	var out strings.Builder
	done := 0 // s[:done] is in out
	for at := 0; at < len(s); {
		if from, to := r.secretLine(s, at); from < to && s[from:to] != Redacted {
			out.WriteString(s[done:from])
			out.WriteString(Redacted)
			done, at = to, to
		}
		next := strings.IndexAny(s[at:], "\n'\"")
		if next < 0 {
			break
		}
		at += next + 1
	}
	if done == 0 {
		return s
	}
	return out.String() + s[done:]
}

// secretLine returns the place of the secret in the line or quotes that begin at s[at].
func (r *Redactor) secretLine(s string, at int) (from, to int) {
	end := "\r\n"
	if at > 0 && s[at-1] != '\n' {
		end = s[at-1:at] + "\r\n"
	}
	line := s[at:]
	if i := strings.IndexAny(line, end); i >= 0 {
		line = line[:i]
	}
	sep := strings.IndexAny(line, ":=")
	if sep <= 0 || sep > maxLabel {
		return 0, 0
	}
	name := strings.TrimPrefix(strings.Trim(line[:sep], " \t\\\"'"), "export ")
	value := strings.TrimLeft(line[sep+1:], " \t")
	from, to = at+len(line)-len(value), at+len(line)
	if value == "" || strings.ContainsAny(name, " \t/") || strings.HasPrefix(value, "//") || !r.secretHeader(strings.TrimLeft(name, "-")) {
		return 0, 0
	}
	if line[sep] == '=' {
		stop := "" // a variable goes on to the end of the line
		if name != strings.ToUpper(name) {
			stop = " \t"
		}
		if i := strings.IndexByte(value, '&'); i >= 0 && strings.Contains(value[i:], "=") { // a form
			stop += "&"
		}
		if i := strings.IndexAny(value, stop); i >= 0 {
			to = from + i
		}
		return from, to
	}
	if scheme, rest, ok := strings.Cut(value, " "); ok && schemes[strings.ToLower(scheme)] {
		if prose(rest) && strings.Contains(rest, " ") {
			return 0, 0
		}
		return from + len(scheme) + 1, to
	}
	header := r.rules().headers[fold(name)]
	if !header && strings.ContainsAny(value, " \t") || prose(value) && (!header || strings.Contains(value, " ")) {
		return 0, 0
	}
	return from, to
}

// schemes of HTTP authentication, which are kept.
var schemes = map[string]bool{"basic": true, "bearer": true, "digest": true, "token": true, "negotiate": true}

// prose reports whether a text consists of words, without a digit and a symbol.
func prose(s string) bool {
	for i := range len(s) {
		if c := s[i]; classOf[c]&(isUpper|isLower) == 0 && strings.IndexByte(" ,.;()-'", c) < 0 && c < 0x80 {
			return false
		}
	}
	return true
}
