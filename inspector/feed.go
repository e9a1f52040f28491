package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Bounds of the answers of [Page.Feed]. They are for language models.
const (
	feedBytes    = 32 << 10 // of a list, about
	feedRows     = 50       // without a limit in the request
	feedMessage  = 4 << 10  // of a message, unless the request says more
	feedChanges  = 50
	feedHoldTime = 30 * time.Minute
)

// Feed answers the other programs of the owner of the page with what an administrator sees there, redacted in the same way,
// in small answers that say how to get the rest. All of it is GET:
//
//	/frames?q=FILTER&before=N&after=N&limit=N   rows of the wire
//	/frames/N?message=N&from=BYTE&bytes=N       a row with its messages
//	/state?server=NAME&from=N                   servers
//	/latency?range=R&server=NAME&tool=NAME&from=N
//	/watch                                      nothing
//
// From the first request on until 30 minutes after the last one, frames are kept as if somebody looked at the page. Feed
// checks nothing about the caller: it belongs behind a socket that only the owner can open.
func (p *Page) Feed() http.Handler {
	mux := http.NewServeMux()
	for pattern, of := range map[string]func(r *http.Request) (any, error){
		"GET /frames": p.feedFrames, "GET /frames/{n}": p.feedFrame, "GET /state": p.feedState, "GET /latency": p.feedLatency,
		"GET /watch": func(*http.Request) (any, error) { return struct{}{}, nil },
	} {
		mux.Handle(pattern, answered(func(r *http.Request) (any, error) {
			if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
				return nil, fail(http.StatusBadRequest, "the query cannot be read: %v", err)
			}
			began := p.hold()
			v, err := of(r)
			if rows, ok := v.(*feedRowList); ok && began {
				rows.Note = "Nobody looked before, so no frames were kept: they are from now on, until 30 minutes after the last request. Make the call again."
			}
			return v, err
		}))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fail(http.StatusNotFound, "nothing is at %s", r.URL.Path))
	})
	return mux
}

// lease keeps the watch of a page for a while, for readers of [Page.Feed], who do not say when they leave.
type lease struct {
	mu    sync.Mutex
	ends  *time.Timer // nil: nobody reads; guarded by mu
	done  func()      // guarded by mu
	ended bool        // the page is closed; guarded by mu
}

// hold keeps frames coming for another while, and reports whether they were not kept before.
func (p *Page) hold() (began bool) {
	l := &p.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return false
	case l.ends != nil:
		l.ends.Reset(feedHoldTime)
		return false
	}
	began = p.Watch != nil && !p.watch.looked()
	l.done = p.looks()
	if p.Frames != nil { // agents look for something
		left, found := l.done, p.Frames.search()
		l.done = func() { found(); left() }
	}
	l.ends = time.AfterFunc(feedHoldTime, func() { p.release(false) })
	return began
}

// release ends what hold has begun.
func (p *Page) release(ended bool) {
	l := &p.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends != nil {
		l.ends.Stop()
		l.done()
		l.ends, l.done = nil, nil
	}
	l.ended = l.ended || ended
}

// feedRowList is a part of the rows that fit a filter, the oldest first.
type feedRowList struct {
	Note   string         `json:"note,omitempty"`
	Start  string         `json:"start,omitempty"` // of the times of rows
	Kept   int            `json:"kept"`            // frames that are kept
	Rows   []wireRow      `json:"rows"`
	Rest   map[string]int `json:"rest,omitempty"` // the parameter for the rows next to these; absent: there are none
	Faults []string       `json:"faults,omitempty"`
}

func (p *Page) feedFrames(r *http.Request) (any, error) {
	query := r.URL.Query()
	if p.Frames == nil {
		return nil, fail(http.StatusNotFound, "this program keeps no frames")
	}
	if query.Get("limit") == "" {
		query.Set("limit", strconv.Itoa(feedRows))
	}
	list, err := p.rowsOf(r.Context(), query)
	if err != nil {
		return nil, err
	}
	out := &feedRowList{Start: list.Start, Kept: list.Seq - list.Oldest + 1, Rows: list.Rows, Faults: list.Faults}
	if list.Note != "" {
		out.Faults = append(slices.Clip(out.Faults), list.Note)
	}
	on := query.Get("after") != ""
	if !on {
		slices.Reverse(out.Rows) // the newest are kept
	}
	var left int
	out.Rows, left = within(out.Rows, 0)
	if last := len(out.Rows) - 1; last >= 0 && (left > 0 || list.More) {
		name := "before"
		if on {
			name = "after"
		}
		out.Rest = map[string]int{name: out.Rows[last].N}
	}
	if !on {
		slices.Reverse(out.Rows)
	}
	return out, nil
}

// within returns the elements of a list from one on that have room in an answer, at least one, and the number of the first
// one that has not; zero: all of the rest have.
func within[T any](list []T, from int) (part []T, next int) {
	list = list[min(from, len(list)):]
	bytes := 0
	for i, v := range list {
		raw, err := json.Marshal(v)
		if bytes += len(raw); err != nil || bytes > feedBytes && i > 0 {
			return list[:i], from + i
		}
	}
	return list, 0
}

// feedMessageOf is a message of a row, or a part of it.
type feedMessageOf struct {
	N        int       `json:"n"`
	Time     string    `json:"time,omitempty"`
	Dir      string    `json:"dir"`
	Conn     string    `json:"conn"`
	Revision string    `json:"revision,omitempty"`
	HTTP     *sideHTTP `json:"http,omitempty"`
	Text     string    `json:"text"`
	Bytes    int       `json:"bytes"`
	Cut      int       `json:"cut,omitempty"`    // bytes that were not recorded
	Rest     int       `json:"rest,omitempty"`   // the byte from which the rest of the text is, with the message as a parameter
	Faults   []string  `json:"faults,omitempty"` // what the schema says against it
	Checked  bool      `json:"checked"`
}

// feedDetail is a row with its messages.
type feedDetail struct {
	Row      wireRow         `json:"row"`
	Messages []feedMessageOf `json:"messages"`
	More     []int           `json:"more,omitempty"` // further messages, each a parameter
	Before   int             `json:"before,omitempty"`
	OtherHop *wireRow        `json:"otherHop,omitempty"`
	Changed  []change        `json:"changed,omitempty"` // by the translation between the hops
	Left     int             `json:"left,omitempty"`    // further changes
}

func (p *Page) feedFrame(r *http.Request) (any, error) {
	query := r.URL.Query()
	if p.Frames == nil {
		return nil, fail(http.StatusNotFound, "this program keeps no frames")
	}
	only, err1 := count(query, "message", 0)
	from, err2 := count(query, "from", 0)
	limit, err3 := count(query, "bytes", feedMessage)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	v, err := p.details(r)
	if err != nil {
		return nil, err
	}
	d := v.(*detail)
	out := &feedDetail{Row: d.Row, Messages: []feedMessageOf{}, Before: d.Before}
	if o := d.Other; o != nil && only == 0 {
		out.OtherHop, out.Changed = &o.Row, o.Changed
		if over := len(out.Changed) - feedChanges; over > 0 {
			out.Changed, out.Left = out.Changed[:feedChanges], over
		}
	}
	limit = min(max(limit, 1), feedBytes)
	for _, s := range d.Sides {
		if only != 0 && s.N != only {
			continue
		}
		m := feedMessageOf{N: s.N, Time: s.Time, Dir: s.Dir, Conn: s.Conn, Revision: s.Revision, HTTP: s.HTTP, Bytes: s.Bytes, Cut: s.Cut, Faults: s.Faults, Checked: s.Checked}
		m.Text, m.Rest = partOf(s.Raw, from, limit)
		out.Messages = append(out.Messages, m)
	}
	if only != 0 && len(out.Messages) == 0 {
		return nil, fail(http.StatusNotFound, "row %d has no message %d", d.Row.N, only)
	}
	all := out.Messages
	var next int
	if out.Messages, next = within(all, 0); next > 0 {
		for _, m := range all[next:] {
			out.More = append(out.More, m.N)
		}
	}
	return out, nil
}

// partOf returns a part of a text between characters, and the byte at which it goes on; zero: it does not.
func partOf(s string, from, limit int) (part string, rest int) {
	from = min(from, len(s))
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	end := min(from+limit, len(s))
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	if end < len(s) {
		rest = end
	}
	return s[from:end], rest
}

// feedState has the state, with a part of the servers.
func (p *Page) feedState(r *http.Request) (any, error) {
	query := r.URL.Query()
	from, err := count(query, "from", 0)
	if err != nil {
		return nil, err
	}
	out := struct {
		*State
		Rest map[string]int `json:"rest,omitempty"` // the parameter for further servers
	}{State: p.state(context.WithValue(r.Context(), personKey{}, person{p.Local, true}), "")}
	name := query.Get("server")
	list := slices.Clone(out.Servers)
	if name != "" {
		list = slices.DeleteFunc(list, func(s health.Server) bool { return s.Name != name })
		if len(list) == 0 {
			return nil, fail(http.StatusNotFound, "no server has the name %q", name)
		}
	} else {
		for i := range list {
			list[i].Largest = nil
		}
	}
	var next int
	if out.Servers, next = within(list, from); next > 0 {
		out.Rest = map[string]int{"from": next}
	}
	return out, nil
}

// feedTimes are the times of a server or a tool.
type feedTimes struct {
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"` // empty: all of the server
	metrics.Stats
	Upstream *metrics.Stats `json:"upstream,omitempty"` // what the server itself answers, without the gateway
}

// windows are the values of range.
var windows = map[string]metrics.Window{"minute": metrics.Minute, "hour": metrics.Hour, "total": metrics.Total}

// feedLatency has the times of servers, each followed by its tools.
func (p *Page) feedLatency(r *http.Request) (any, error) {
	query := r.URL.Query()
	from, err := count(query, "from", 0)
	if err != nil {
		return nil, err
	}
	span := cmp.Or(query.Get("range"), "hour")
	window, ok := windows[span]
	server, tool := query.Get("server"), query.Get("tool")
	_, bad1 := path.Match(server, "")
	_, bad2 := path.Match(tool, "")
	switch {
	case p.Gateway.Counters == nil:
		return nil, fail(http.StatusNotFound, "this program does not count calls")
	case !ok:
		return nil, fail(http.StatusBadRequest, "range=%s is not minute, hour or total", span)
	case bad1 != nil || bad2 != nil:
		return nil, fail(http.StatusBadRequest, "the server or the tool is not a pattern")
	}
	fits := func(pattern, name string) bool {
		is, _ := path.Match(flat(pattern), flat(name))
		return pattern == "" || is
	}
	list := []feedTimes{}
	for _, s := range p.Gateway.Counters.Read(window).Servers {
		if !fits(server, s.Name) {
			continue
		}
		if tool == "" {
			list = append(list, feedTimes{s.Name, "", s.Stats, measured(s.Upstream)})
		}
		for _, t := range s.Tools {
			if fits(tool, t.Name) {
				list = append(list, feedTimes{s.Name, t.Name, t.Stats, measured(t.Upstream)})
			}
		}
	}
	out := struct {
		Range string         `json:"range"`
		Times []feedTimes    `json:"times"` // in milliseconds
		Rest  map[string]int `json:"rest,omitempty"`
	}{Range: span}
	var next int
	if out.Times, next = within(list, from); next > 0 {
		out.Rest = map[string]int{"from": next}
	}
	return out, nil
}

func measured(s metrics.Stats) *metrics.Stats {
	if s.Calls == 0 {
		return nil
	}
	return &s
}
