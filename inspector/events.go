package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	beat = time.Second            // between two looks at documents
	lull = 100 * time.Millisecond // between two events with rows
	pace = 30 * time.Second       // that a browser may take for an event

	maxStreams = 100      // that are open at the same time
	maxOwn     = 25       // the same of one person
	maxEvent   = 64 << 10 // bytes
	maxChanges = 512      // frames in an event

	// Rows of more frames than a person, a browser and a core have time for are left out: the page shows the newest ones, and
	// loads the others when somebody scrolls to them.
	mostFrames = 3_000                  // a second
	mostAtOnce = 6_000                  // after a quiet time
	rest       = 250 * time.Millisecond // between two events that leave rows out
)

// streams counts the streams that are open.
type streams struct {
	mu  sync.Mutex
	all int            // guarded by mu
	own map[string]int // by the ID of the principal; guarded by mu
}

// enter counts a stream, until leave is called. Those of all links are streams of the same person.
func (s *streams) enter(who person) (leave func(), err error) {
	id := ""
	if who.Principal != nil {
		id = who.Principal.ID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= maxStreams:
		return nil, fail(http.StatusServiceUnavailable, "%d streams of events are open already; close some pages", maxStreams)
	case s.own[id] >= maxOwn:
		return nil, fail(http.StatusServiceUnavailable, "%d streams of events of yours are open already; close some pages", maxOwn)
	}
	if s.own == nil {
		s.own = map[string]int{}
	}
	s.all++
	s.own[id]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.own[id]--; s.own[id] == 0 {
			delete(s.own, id)
		}
	}, nil
}

// documents are sent whole whenever they change, by the names of their events, on the page at a host.
func (p *Page) documents(ctx context.Context, host string) map[string]func() any {
	return map[string]func() any{
		"state": func() any { return p.state(ctx, host) },
	}
}

// events sends what changes, while the browser listens. The parameter want has the names of the events:
//
//	state, inbox, …  a document, whenever it is another (looked at each second, and when the page's bell rings)
//	rows             rows of the wire screen that are new or have changed, in batches; q is a filter
//
// Events with rows have an id. A stream that begins after such an id, by Last-Event-ID or the parameter after, goes on there:
// no change is left out, and none comes twice. Without one it begins with the next frame. If the frames are not those of the
// id, because the program was started again, or not kept any more, the event says so with reset or lost. If more frames came
// than a page can use, it says with skipped how many of them are left out, and with note what was not taken at all.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	want := strings.Split(query.Get("want"), ",")
	q, err := parseFilter(query.Get("q"))
	if err != nil {
		refuse(w, fail(http.StatusBadRequest, "%v", err))
		return
	}
	if slices.Contains(want, "rows") && p.Frames != nil && !personOf(r.Context()).Admin {
		refuse(w, errAdmins)
		return
	}
	leave, err := p.open.enter(personOf(r.Context()))
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	s := &stream{w: w, control: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	s.write("retry: 1000\n\n")

	documents, last := p.documents(r.Context(), r.Host), map[string]string{}
	var rows *rowEvents
	if slices.Contains(want, "rows") && p.Frames != nil {
		after := r.Header.Get("Last-Event-ID")
		if after == "" {
			after = query.Get("after")
		}
		rows = p.Frames.follow(after, q)
		if q.searches() {
			defer p.Frames.search()()
		}
	}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for s.err == nil {
		bell := p.bell.heard()
		for _, name := range want {
			of := documents[name]
			if of == nil {
				continue
			}
			if body, err := json.Marshal(of()); err == nil && string(body) != last[name] {
				last[name] = string(body)
				s.event(name, "", body)
			}
		}
		for again := true; again && s.err == nil; {
			var wake <-chan struct{}
			pause := lull
			if rows != nil {
				wake, pause = rows.send(s)
			}
			select {
			case <-wake: // documents wait for their time
				again = s.pause(r.Context(), pause-time.Since(s.last))
			case <-bell:
				again = false
			case <-ticker.C:
				again = false
			case <-r.Context().Done():
				return
			}
		}
		if r.Context().Err() != nil {
			return
		}
	}
}

// stream writes events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    time.Time // of the last event
	err     error
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(pace)) // not every writer has one
	if _, s.err = fmt.Fprint(s.w, text); s.err == nil {
		s.err = s.control.Flush()
	}
	s.last = time.Now()
}

// event writes an event with JSON, which has no line breaks.
func (s *stream) event(name, id string, body []byte) {
	if id != "" {
		id = "id: " + id + "\n"
	}
	s.write("event: " + name + "\n" + id + "data: " + string(body) + "\n\n")
}

// pause waits, and reports whether the browser still listens.
func (s *stream) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rowEvents follows the changes of rows.
type rowEvents struct {
	f     *Frames
	q     *filter
	seq   int  // the newest frame that was taken into account
	reset bool // the frames are not those of the id that the browser had
	begun bool
	spent float64   // frames that count against mostAtOnce; fewer with time
	at    time.Time // when spent had its value
	out   []byte    // of the last event, for its room
}

// follow begins after an id of an event, or with the next frame.
func (f *Frames) follow(id string, q *filter) *rowEvents {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	e := &rowEvents{f: f, q: q, seq: f.next - 1}
	epoch, n, ok := strings.Cut(id, "-")
	if !ok {
		return e
	}
	seq, err := strconv.Atoi(n)
	if epoch != f.epoch || err != nil || seq < 0 || seq >= f.next {
		e.reset = true
		return e
	}
	e.seq = seq
	return e
}

// send writes what has changed, and returns a channel that is closed at the next change, and the time until which the next
// call is to wait.
func (e *rowEvents) send(s *stream) (wake <-chan struct{}, pause time.Duration) {
	skip := e.skip(time.Now())
	pause = lull
	if skip > 0 {
		pause = rest
	}
	for s.err == nil {
		c := e.f.since(e.seq, skip, maxChanges, e.q)
		if c.Seq == e.seq && e.begun && !e.reset {
			break
		}
		e.spent += float64(c.Seq - e.seq - c.Lost - c.Skipped)
		c.Reset, skip = e.reset, 0
		e.write(s, &c)
		e.seq, e.reset, e.begun = c.Seq, false, true
	}
	return e.f.wait(e.seq + 1), pause
}

// skip returns the newest of the frames that are too many; zero: none are.
func (e *rowEvents) skip(now time.Time) int {
	e.spent, e.at = max(e.spent-mostFrames*now.Sub(e.at).Seconds(), 0), now
	newest := e.f.newest()
	came := newest - e.seq
	if !e.begun || came <= maxChanges || float64(came)+e.spent <= mostAtOnce {
		return 0
	}
	return newest - maxChanges
}

// write writes changes as one event, or as several if they are large. The last one has the id, the first one what was left out.
func (e *rowEvents) write(s *stream, c *changes) {
	begin := func(out []byte) []byte { return append(out[:0], `{"rows":[`...) }
	end := func(out []byte, gone []int) []byte {
		out = append(out, ']')
		if len(gone) > 0 {
			out = append(out, `,"gone":[`...)
			for i, n := range gone {
				if i > 0 {
					out = append(out, ',')
				}
				out = strconv.AppendInt(out, int64(n), 10)
			}
			out = append(out, ']')
		}
		out = strconv.AppendInt(append(out, `,"seq":`...), int64(c.Seq), 10)
		out = appendCount(out, `,"lost":`, c.Lost)
		out = appendCount(out, `,"skipped":`, c.Skipped)
		if c.Reset {
			out = append(out, `,"reset":true`...)
		}
		if c.Note != "" {
			out = jsonx.AppendString(append(out, `,"note":`...), c.Note)
		}
		c.Lost, c.Skipped, c.Reset, c.Note = 0, 0, false, "" // only the first event has them
		return append(out, '}')
	}
	out := begin(e.out)
	gone := c.Gone
	for i := range c.Rows {
		at := len(out)
		if i > 0 && out[at-1] != '[' {
			out = append(out, ',')
		}
		out = c.Rows[i].append(out)
		if room := maxEvent - 100 - 10*len(gone); len(out) > room && out[at-1] != '[' {
			row := bytes.Clone(bytes.TrimPrefix(out[at:], []byte(",")))
			s.event("rows", "", end(out[:at], gone))
			gone = nil
			out = append(begin(out), row...)
		}
	}
	e.out = end(out, gone)
	s.event("rows", e.f.epoch+"-"+strconv.Itoa(c.Seq), e.out)
}
