package inspector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/trace"
)

// change is a place in which two messages differ.
type change struct {
	Path string `json:"path"` // such as request.params.name
	Kind string `json:"kind"` // "added", "removed" or "changed", from the first to the second
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

const (
	maxDiff  = 200 // places
	maxLevel = 40  // below which values are compared as a whole
)

// translation returns what the translation between two hops has changed, from the client's side to the server's in requests and
// from the server's to the client's in answers.
func (f *Frames) translation(a, b *snapshot) []change {
	front, back := a, b
	if a.server != "" {
		front, back = b, a
	}
	list := []change{}
	if front.first != nil && back.first != nil {
		list = difference(list, "request", f.Redactor.Frame(*front.first).Msg, f.Redactor.Frame(*back.first).Msg, 0)
	}
	if front.reply != nil && back.reply != nil {
		list = difference(list, "answer", f.Redactor.Frame(*back.reply).Msg, f.Redactor.Frame(*front.reply).Msg, 0)
	}
	return list
}

// difference adds the places in which two JSON values differ, at most maxDiff in all.
func difference(list []change, path string, a, b json.RawMessage, level int) []change {
	if len(list) >= maxDiff || bytes.Equal(a, b) {
		return list
	}
	switch kind := jsonx.KindOf(a); {
	case level < maxLevel && kind == '{' && jsonx.KindOf(b) == '{':
		theirs := map[string]json.RawMessage{} // not in a
		for name, v := range jsonx.Members(b) {
			theirs[string(name)] = v
		}
		for name, v := range jsonx.Members(a) {
			at := path + member(string(name))
			if w, ok := theirs[string(name)]; ok {
				list = difference(list, at, v, w, level+1)
				delete(theirs, string(name))
			} else {
				list = append(list, change{Path: shown(at), Kind: "removed", From: value(v)})
			}
		}
		for name, w := range jsonx.Members(b) {
			if _, ok := theirs[string(name)]; ok {
				list = append(list, change{Path: shown(path + member(string(name))), Kind: "added", To: value(w)})
			}
		}
	case level < maxLevel && kind == '[' && jsonx.KindOf(b) == '[':
		x, y := slices.Collect(jsonx.Elements(a)), slices.Collect(jsonx.Elements(b))
		for i := range max(len(x), len(y)) {
			at := path + "[" + strconv.Itoa(i) + "]"
			switch {
			case i >= len(y):
				list = append(list, change{Path: shown(at), Kind: "removed", From: value(x[i])})
			case i >= len(x):
				list = append(list, change{Path: shown(at), Kind: "added", To: value(y[i])})
			default:
				list = difference(list, at, x[i], y[i], level+1)
			}
			if len(list) >= maxDiff {
				break
			}
		}
	case !bytes.Equal(jsonx.Canonical(a), jsonx.Canonical(b)):
		list = append(list, change{Path: shown(path), Kind: "changed", From: value(a), To: value(b)})
	}
	return list[:min(len(list), maxDiff)]
}

// member writes the name of a member behind a path.
func member(name string) string {
	if name == "" || strings.ContainsAny(name, ". []\"/") {
		return "[" + strconv.Quote(name) + "]"
	}
	return "." + name
}

func value(v json.RawMessage) string { return shown(string(v)) }

// compare returns what differs between two rows: their requests, and their answers.
func (f *Frames) compare(from, to int) ([]change, bool) {
	f.mu.Lock()
	f.init()
	a, b := f.at(from), f.at(to)
	if a == nil || b == nil || a.r == nil || b.r == nil {
		f.mu.Unlock()
		return nil, false
	}
	x, y := f.snap(a.r), f.snap(b.r)
	f.mu.Unlock()
	content := func(frame *trace.Frame) json.RawMessage {
		if frame == nil {
			return nil
		}
		msg := f.Redactor.Frame(*frame).Msg
		if jsonx.KindOf(msg) != '{' {
			return msg
		}
		return jsonx.Without(nil, msg, "id", "jsonrpc")
	}
	list := difference([]change{}, "request", content(x.first), content(y.first), 0)
	return difference(list, "answer", content(x.reply), content(y.reply), 0), true
}

// compared answers with what differs between two rows.
func (p *Page) compared(r *http.Request) (any, error) {
	from, err1 := count(r.URL.Query(), "from", 0)
	to, err2 := count(r.URL.Query(), "to", 0)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	f, err := p.framesFor(r.Context(), r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, ok := f.compare(from, to)
	if !ok {
		return nil, fail(http.StatusNotFound, "row %d or row %d is not kept any more, or never was a row", from, to)
	}
	return list, nil
}
