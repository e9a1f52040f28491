package inspector

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/trace"
)

// The filter of the wire screen, such as
//
//	server:db method:tools/* dur:>50ms status:error text:"no such table"
//
// A row must fit all terms. A term is a word, a colon and a value; a value in quotes may have spaces. Values of text can
// have *, which stands for any text, and alternatives with commas: status:error,open. A term after - must not fit. A word
// without a colon is text that must be in one of the row's frames.
type filter struct {
	terms []term
}

type term struct {
	word string
	not  bool

	any  []string // alternatives, in small letters
	text []byte   // of text, in small letters
	op   string   // of dur and size: "<", "<=", ">", ">="
	dur  time.Duration
}

// filterWord is a word of filters, as GET /ui/words sends it.
type filterWord struct {
	Word  string `json:"word"`
	About string `json:"about"`
}

// filterWords are the words of terms with what they are about.
var filterWords = []filterWord{
	{"server", "name of the server"},
	{"client", "name of the client"},
	{"conn", "name of the connection"},
	{"hop", "clients or servers: the side of the gateway"},
	{"method", "method, such as tools/*"},
	{"target", "tool, prompt or URI"},
	{"id", "id of the request"},
	{"kind", "request, note, http, start, exit, stderr, session, …"},
	{"dir", "in or out"},
	{"status", "ok, error, tool-error, canceled or open"},
	{"dur", "time to the answer, such as >50ms"},
	{"cause", "number of a row: what it caused, and itself"},
	{"text", "text in its frames"},
}

const (
	maxFilter = 2000 // bytes
	maxTerms  = 30
)

// parseFilter parses a filter. The error names the term that is wrong.
func parseFilter(s string) (*filter, error) {
	if len(s) > maxFilter || !utf8.ValidString(s) {
		return nil, fmt.Errorf("the filter is longer than %d bytes, or not UTF-8", maxFilter)
	}
	q := new(filter)
	for rest := strings.TrimSpace(s); rest != ""; rest = strings.TrimSpace(rest) {
		t, raw, after, err := nextTerm(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		if q.terms = append(q.terms, t); len(q.terms) > maxTerms {
			return nil, fmt.Errorf("the filter has more than %d terms; the first one too many is %s", maxTerms, raw)
		}
	}
	return q, nil
}

// nextTerm parses the first term of a filter.
func nextTerm(s string) (t term, raw, rest string, err error) {
	all := s
	if len(s) > 1 && s[0] == '-' && s[1] != ' ' {
		t.not, s = true, s[1:]
	}
	i := strings.IndexAny(s, ": \t\n\r\"")
	value, quoted := "", false
	if i > 0 && s[i] == ':' {
		t.word, s = strings.ToLower(s[:i]), s[i+1:]
	} else {
		t.word = "text"
	}
	if strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return t, "", "", fmt.Errorf("the quotes of %s are not closed", all)
		}
		value, s, quoted = s[1:1+end], s[end+2:], true
	} else {
		end := strings.IndexAny(s, " \t\n\r")
		if end < 0 {
			end = len(s)
		}
		value, s = s[:end], s[end:]
	}
	raw = all[:len(all)-len(s)]
	if value == "" {
		return t, raw, s, fmt.Errorf("the term %s has no value after the colon", raw)
	}
	if err := t.take(value, quoted); err != nil {
		return t, raw, s, fmt.Errorf("the term %s: %w", raw, err)
	}
	return t, raw, s, nil
}

// take sets the value of a term.
func (t *term) take(value string, quoted bool) error {
	known := slices.ContainsFunc(filterWords, func(w filterWord) bool { return w.Word == t.word })
	if !known {
		var words []string
		for _, w := range filterWords {
			words = append(words, w.Word+":")
		}
		return fmt.Errorf("%q is not a word of filters, which are %s; put text with a colon in quotes", t.word, strings.Join(words, " "))
	}
	switch t.word {
	case "text":
		t.text = []byte(strings.ToLower(value))
		return nil
	case "dur":
		t.op = ">="
		for _, op := range []string{">=", "<=", ">", "<"} {
			if v, ok := strings.CutPrefix(value, op); ok {
				t.op, value = op, v
				break
			}
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a time such as 50ms, 1.5s or 2m", value)
		}
		t.dur = d
		return nil
	case "cause":
		if _, err := strconv.Atoi(value); err != nil {
			return fmt.Errorf("%q is not the number of a row", value)
		}
	}
	value = strings.ToLower(value)
	t.any = []string{value}
	if !quoted {
		t.any = strings.Split(value, ",")
	}
	for i, v := range t.any {
		if t.word == "status" {
			t.any[i] = strings.ReplaceAll(v, "-", " ")
			v = t.any[i]
		}
		if choices := termChoices[t.word]; choices != nil && !slices.Contains(choices, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(choices, ", "))
		}
		if _, err := path.Match(flat(v), ""); err != nil {
			return fmt.Errorf("%q is not a pattern", v)
		}
	}
	return nil
}

var termChoices = map[string][]string{
	"dir":    {"in", "out"},
	"status": {statusOK, statusError, statusTool, statusCanceled, statusOpen},
	"hop":    {"clients", "servers"},
}

// flat makes "/" an ordinary character of patterns.
func flat(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// matches reports whether one of the alternatives fits a name.
func (t *term) matches(name string) bool {
	name = strings.ToLower(name)
	for _, p := range t.any {
		if p == name {
			return true
		}
		if ok, _ := path.Match(flat(p), flat(name)); ok {
			return true
		}
	}
	return false
}

// searches reports whether a filter may be for calls that are left out while many come: see share.
func (q *filter) searches() bool {
	is := false
	for i := range q.terms {
		switch t := &q.terms[i]; {
		case t.word == "status" && !t.not && !slices.Contains(t.any, statusOK), t.word == "dur" && !t.not && t.op[0] == '>' && t.dur >= slowTime:
			return false // these are not left out
		case t.word != "hop":
			is = true
		}
	}
	return is
}

// early reports whether a row may fit, by what needs no redaction.
func (q *filter) early(r *row) bool {
	if q == nil {
		return true
	}
	for i := range q.terms {
		t := &q.terms[i]
		var ok bool
		switch t.word {
		case "conn":
			ok = t.matches(r.conn.name)
		case "kind":
			ok = t.matches(r.kind)
		case "dir":
			ok = t.matches(string(r.dir))
		case "status":
			ok = t.matches(r.status) || r.status == statusTool && slices.Contains(t.any, statusError)
		case "cause":
			ok = t.matches(strconv.Itoa(r.cause)) || t.matches(strconv.Itoa(r.n))
		default:
			continue
		}
		if ok == t.not {
			return false
		}
	}
	return true
}

// fits reports whether a row fits the terms that early does not decide.
func (q *filter) fits(f *Frames, s *snapshot, w *wireRow) bool {
	if q == nil {
		return true
	}
	for i := range q.terms {
		t := &q.terms[i]
		var ok bool
		switch t.word {
		case "server":
			ok = t.matches(w.Server)
		case "client":
			ok = t.matches(w.Client)
		case "hop":
			ok = t.any[0] == "servers" == (w.Server != "") || len(t.any) > 1
		case "method":
			ok = t.matches(w.Method)
		case "target":
			ok = t.matches(w.Target)
		case "id":
			ok = t.matches(strings.Trim(w.ID, `"`))
		case "dur":
			ok = w.Ms != nil && t.compares(*w.Ms)
		case "text":
			ok = t.within(f, s, w)
		default:
			continue
		}
		if ok == t.not {
			return false
		}
	}
	return true
}

func (t *term) compares(ms float64) bool {
	than := float64(t.dur) / 1e6
	switch t.op {
	case "<":
		return ms < than
	case "<=":
		return ms <= than
	case ">":
		return ms > than
	}
	return ms >= than
}

// within reports whether a text is in the row or in its frames, as they are shown: redacted.
func (t *term) within(f *Frames, s *snapshot, w *wireRow) bool {
	for _, part := range []string{w.Method, w.Target, w.Text, w.Conn, w.Server, w.Client} {
		if strings.Contains(strings.ToLower(part), string(t.text)) {
			return true
		}
	}
	for _, frame := range []*trace.Frame{s.first, s.reply, s.end} {
		if frame == nil || frame == s.reply && s.reply == s.end {
			continue
		}
		clean := f.Redactor.Frame(*frame)
		if bytes.Contains(bytes.ToLower(clean.Msg), t.text) || bytes.Contains(bytes.ToLower(clean.Raw), t.text) {
			return true
		}
		if clean.HTTP != nil && strings.Contains(strings.ToLower(clean.HTTP.Path), string(t.text)) {
			return true
		}
	}
	return false
}
