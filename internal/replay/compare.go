package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Difference is one place in which two answers differ. An empty text means that there is no
// value.
type Difference struct {
	Path     string // "result.content[0].text"
	Recorded string // JSON, bounded
	Now      string // JSON, bounded
}

const (
	maxDifferences = 20
	maxShown       = 300 // bytes of a value
)

// document returns the compared parts of an exchange, as one JSON object.
//
// Parts that only one of the two revisions can express are left out of both sides. Log messages are
// compared only if logs is set, because servers log freely, and on a pipe log messages do not name
// their request.
func document(x *Exchange, mine, other *revision.Table, logs bool) []byte {
	notes := !x.Overlaps
	t, newer := mine, other
	if other.Index() < mine.Index() {
		t, newer = other, mine
	}
	across := mine.Sessions != other.Sessions
	if across && len(x.Questions()) > 0 {
		notes = false // a modern server runs again after each question and repeats its notifications
	}
	var out []byte
	add := func(name string, value []byte) {
		if out == nil {
			out = append(out, '{')
		} else {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendString(out, name), ':'), value...)
	}
	if x.Error != nil {
		add("error", errorDocument(x.Error, across))
	} else {
		result := x.Result
		if jsonx.KindOf(result) == '{' {
			result = t.Result(x.Method, newer.Result(x.Method, result, revision.Unknown), revision.Unknown)
			if across {
				result = jsonx.Without(nil, result, "ttlMs", "cacheScope")
			}
		}
		add("result", result)
	}
	list := func(name string, items [][]byte) {
		if len(items) > 0 {
			add(name, append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']'))
		}
	}
	var questions, told [][]byte
	for _, s := range x.Steps {
		for _, q := range s.Questions {
			if q.Method == revision.MethodRoots && (mine.Sessions || other.Sessions) {
				continue // up to 2025-11-25 servers ask at any time, independently of calls
			}
			params := q.Params
			if mine != other {
				params = onlyMembers(params, "message", "messages", "url", "maxTokens")
			}
			questions = append(questions, entry(q.Method, params))
		}
		if s.Note != nil && notes && (logs || s.Note.Method != revision.NoteMessage) {
			told = append(told, entry(s.Note.Method, t.Notification(s.Note.Method, s.Note.Params)))
		}
	}
	list("questions", questions)
	list("notifications", told)
	return append(out, '}')
}

func errorDocument(e *jsonrpc.Error, across bool) []byte {
	code := e.Code
	if across { // codes of one era converted to the other
		code = revision.V20251125.Code(revision.V20260728.Code(code))
	}
	out := strconv.AppendInt([]byte(`{"code":`), int64(code), 10)
	out = jsonx.AppendString(append(out, `,"message":`...), e.Message)
	if len(e.Data) > 0 {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

func entry(method string, params json.RawMessage) []byte {
	out := jsonx.AppendString([]byte(`{"method":`), method)
	return append(append(append(out, `,"params":`...), params...), '}')
}

// onlyMembers returns the object with some of its members.
func onlyMembers(obj json.RawMessage, names ...string) json.RawMessage {
	out := json.RawMessage(`{}`)
	for _, name := range names {
		if v, ok := jsonx.Lookup(obj, name); ok {
			out = jsonx.With(nil, out, name, v)
		}
	}
	return out
}

// stable replaces values that differ from run to run with placeholders, equal for equal values
// within one call.
func stable(documents [][]byte) []any {
	frames := make([]trace.Frame, len(documents))
	for i, d := range documents {
		frames[i] = trace.Frame{Dir: trace.In, Msg: d}
	}
	out := make([]any, len(documents))
	for i, f := range trace.Normalise(frames, &trace.NormaliseOptions{Names: map[string]string{"nextCursor": "cursor", "cursor": "cursor"}}) {
		d := json.NewDecoder(bytes.NewReader(f.Msg))
		d.UseNumber()
		if err := d.Decode(&out[i]); err != nil {
			out[i] = string(f.Msg)
		}
	}
	return out
}

// differ finds the places in which two decoded documents differ. Members whose name is in ignore
// are skipped.
type differ struct {
	ignore []string
	found  []Difference
	more   int
}

func (d *differ) compare(path string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range max(len(a), len(b)) {
				at := fmt.Sprintf("%s[%d]", path, i)
				switch {
				case i >= len(a):
					d.report(at, nil, b[i], false, true)
				case i >= len(b):
					d.report(at, a[i], nil, true, false)
				default:
					d.compare(at, a[i], b[i])
				}
			}
			return
		}
	case json.Number:
		if b, ok := b.(json.Number); ok && sameNumber(a, b) {
			return
		}
	default:
		switch b.(type) {
		case map[string]any, []any:
		default:
			if a == b {
				return
			}
		}
	}
	d.report(path, a, b, true, true)
}

func (d *differ) objects(path string, a, b map[string]any) {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(d.ignore, name) {
			continue
		}
		at := name
		if strings.ContainsAny(name, `.[]" `) || name == "" {
			at = strconv.Quote(name)
		}
		if path != "" {
			at = path + "." + at
		}
		x, inA := a[name]
		y, inB := b[name]
		if inA && inB {
			d.compare(at, x, y)
		} else {
			d.report(at, x, y, inA, inB)
		}
	}
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	_, err3 := a.Int64()
	_, err4 := b.Int64()
	return err1 == nil && err2 == nil && x == y && (err3 != nil || err4 != nil)
}

func (d *differ) report(path string, a, b any, inA, inB bool) {
	if len(d.found) == maxDifferences {
		d.more++
		return
	}
	diff := Difference{Path: path}
	if inA {
		diff.Recorded = shown(a)
	}
	if inB {
		diff.Now = shown(b)
	}
	if sa, ok := a.(string); ok && inA && inB {
		if sb, ok := b.(string); ok && len(sa)+len(sb) > maxShown {
			diff.Recorded, diff.Now = around(sa, sb)
		}
	}
	d.found = append(d.found, diff)
}

// shown returns a value as JSON of bounded length.
func shown(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	return clip(strings.TrimSuffix(b.String(), "\n"))
}

// around returns the parts of two long texts around their first difference.
func around(a, b string) (string, string) {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	from := max(0, n-40)
	part := func(s string) string {
		text := strings.ToValidUTF8(s[from:min(len(s), from+maxShown/2)], "")
		head, tail := "", ""
		if from > 0 {
			head = "…"
		}
		if len(s) > from+maxShown/2 {
			tail = "…"
		}
		return shown(head + text + tail)
	}
	return part(a), part(b)
}

func clip(s string) string { return text.Clip(s, maxShown) }
