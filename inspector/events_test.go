package inspector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/trace"
)

// asAdmin is the context of a request of the owner.
func asAdmin(ctx context.Context) context.Context {
	return context.WithValue(ctx, personKey{}, person{Admin: true})
}

// event is one server-sent event.
type event struct{ name, id, data string }

// listened is the stream of events of a page, without a network.
type listened struct {
	t      testing.TB
	stop   context.CancelFunc
	in     *bufio.Reader
	lastID string
	ended  chan struct{}
}

// pipeWriter is an http.ResponseWriter whose body is read elsewhere.
type pipeWriter struct {
	*io.PipeWriter
	header http.Header
}

func (w pipeWriter) Header() http.Header { return w.header }
func (w pipeWriter) WriteHeader(int)     {}
func (w pipeWriter) Flush()              {}

// hear opens the events of a page.
func hear(t testing.TB, p *Page, query, lastID string) *listened {
	return hearAs(asAdmin(t.Context()), t, p, query, lastID)
}

// hearAs is hear with the context of a person.
func hearAs(ctx context.Context, t testing.TB, p *Page, query, lastID string) *listened {
	ctx, stop := context.WithCancel(ctx)
	in, out := io.Pipe()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/ui/events?"+query, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	l := &listened{t: t, stop: func() { stop(); in.Close() }, in: bufio.NewReader(in), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		defer out.Close()
		p.events(pipeWriter{out, http.Header{}}, r)
	}()
	return l
}

// close ends the stream, as a browser that goes away, and waits for its handler.
func (l *listened) close() {
	l.stop()
	<-l.ended
}

// next reads an event.
func (l *listened) next() (e event) {
	l.t.Helper()
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			l.t.Fatalf("the stream has ended: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				if e.id != "" {
					l.lastID = e.id
				}
				return e
			}
		}
	}
}

// rowsEvent is the data of an event with rows.
type rowsEvent struct {
	Rows  []wireRow
	Gone  []int
	Seq   int
	Lost  int
	Reset bool

	Skipped int
}

// rows reads the next event with rows.
func (l *listened) rows() (got rowsEvent) {
	l.t.Helper()
	for {
		if e := l.next(); e.name == "rows" {
			if err := json.Unmarshal([]byte(e.data), &got); err != nil {
				l.t.Fatal(err)
			}
			return got
		}
	}
}

func ping(f *Frames, id int) {
	f.Record(trace.Frame{Dir: trace.Out, Conn: "c", Msg: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id)})
}

func pong(f *Frames, id int) {
	f.Record(trace.Frame{Dir: trace.In, Conn: "c", Msg: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, id)})
}

// A stream that breaks again and again has each change once, and none is left out.
func TestEventsGoOnWhereTheyBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(Frames)
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		first := f.page(nil, 0, 0, 10, func() bool { return false })
		lastID := fmt.Sprintf("%s-%d", first.Epoch, first.Seq)
		changes := map[int]int{} // how often a row came
		last := 0
		id := 0
		for round := range 50 {
			l := hear(t, p, "want=state,rows", lastID)
			for range round % 7 {
				id++
				ping(f, id)
			}
			for last < f.next-1 || l.lastID == "" {
				got := l.rows()
				for _, r := range got.Rows {
					changes[r.N]++
				}
				if got.Reset || got.Lost > 0 || got.Seq < last {
					t.Fatalf("round %d: %+v after %d", round, got, last)
				}
				last = got.Seq
			}
			if l.lastID != "" {
				lastID = l.lastID
			}
			l.close()
			for range round % 3 { // nobody listens
				id++
				ping(f, id)
			}
		}
		l := hear(t, p, "want=rows", lastID)
		for last < f.next-1 {
			got := l.rows()
			for _, r := range got.Rows {
				changes[r.N]++
			}
			last = got.Seq
		}
		l.close()
		if len(changes) != id {
			t.Errorf("%d of %d rows came", len(changes), id)
		}
		for n, times := range changes {
			if times != 1 {
				t.Errorf("row %d came %d times", n, times)
			}
		}
	})
}

// A row that changes comes again, once for all changes of a batch, and one that does not fit any more is gone.
func TestEventsOfAFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(Frames)
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		ping(f, 1)
		l := hear(t, p, "want=rows&q=status:open", "")
		defer l.close()
		l.rows()
		synctest.Wait()
		time.Sleep(lull) // it was quiet
		began := time.Now()
		ping(f, 2)
		if got := l.rows(); len(got.Rows) != 1 || got.Rows[0].N != 2 {
			t.Fatalf("the new row is %+v", got)
		}
		synctest.Wait()
		ping(f, 3)
		pong(f, 3)
		pong(f, 1)
		pong(f, 2)
		if got := l.rows(); len(got.Rows) != 0 || fmt.Sprint(got.Gone) != "[1 2]" {
			t.Errorf("after the answers: %+v", got)
		}
		if took := time.Since(began); took != lull {
			t.Errorf("the batch came after %v", took)
		}
	})
}

// After a start of the program, or when the frames are gone, the event says so.
func TestEventsOfAnotherTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Frames{Max: 10}
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		ping(f, 1)
		l := hear(t, p, "want=rows", "0a1b2c3d-17")
		if got := l.rows(); !got.Reset {
			t.Errorf("after an id of another process: %+v", got)
		}
		l.close()
		for i := range 100 {
			ping(f, i+2)
		}
		l = hear(t, p, "want=rows", l.lastID)
		if got := l.rows(); got.Lost != 90 || len(got.Rows) != 10 || got.Reset {
			t.Errorf("after 100 frames in a ring of 10: lost %d, %d rows", got.Lost, len(got.Rows))
		}
		l.close()
	})
}

// An event has at most 64 kB, however large the rows are, and 5,000 frames come in batches.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(Frames)
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		l := hear(t, p, "want=rows", "")
		defer l.close()
		l.rows()
		const n = 5_000
		for range n {
			f.Record(trace.Frame{Dir: trace.In, Conn: "c", Kind: trace.KindStderr, Raw: bytes.Repeat([]byte("\x01"), 300)})
		}
		rows, events := 0, 0
		for last := 0; last < n; events++ {
			e := l.next()
			if len(e.data) > maxEvent+4096 {
				t.Fatalf("an event has %d bytes", len(e.data))
			}
			var got rowsEvent
			if err := json.Unmarshal([]byte(e.data), &got); err != nil {
				t.Fatal(err)
			}
			rows += len(got.Rows)
			if e.id != "" {
				last = got.Seq
			}
		}
		if rows != n || events > n/10 {
			t.Errorf("%d rows in %d events", rows, events)
		}
	})
}

// Of more frames than a page can use the newest rows come, with the changes of those that it has. In a while all come again.
func TestEventsOfTooManyFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(Frames)
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		ping(f, 1)
		l := hear(t, p, "want=rows&after=0", "")
		defer l.close()
		l.rows()
		ping(f, 2)
		for len(l.rows().Rows) == 0 {
		}
		synctest.Wait()
		const n = 20_000
		for i := range n {
			ping(f, 3+i)
		}
		pong(f, 2)
		skipped, newest, answered := 0, 0, false
		for last := 0; last < n+3 || newest < n+2; { // the last frame is not a row of its own
			got := l.rows()
			if got.Lost > 0 || got.Reset || len(got.Rows) > maxChanges+1 {
				t.Fatalf("%+v", got)
			}
			last = got.Seq
			skipped += got.Skipped
			answered = answered || got.Rows[0].N == 2 && got.Rows[0].Status == statusOK
			newest = max(newest, got.Rows[len(got.Rows)-1].N)
		}
		if !answered {
			t.Error("the row that the page had did not come again")
		}
		if skipped < n-mostAtOnce-2*maxChanges {
			t.Errorf("%d frames were left out", skipped)
		}
		time.Sleep(time.Second)
		for i := range 4000 {
			ping(f, 2*n+i)
		}
		rows := 0
		for rows < 4000 {
			got := l.rows()
			if rows += len(got.Rows); got.Skipped > 0 {
				t.Fatalf("%d frames are left out after a quiet time", got.Skipped)
			}
		}
	})
}

// A browser that was slow, so that frames were dropped before they could be sent, gets the newest rows too.
func TestEventsOfTooManyFramesForASlowBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 8000
		f := &Frames{Max: kept}
		p := &Page{Frames: f, Report: func() *health.Report { return new(health.Report) }}
		l := hear(t, p, "want=rows", "")
		defer l.close()
		l.rows()
		synctest.Wait()
		const n = 5 * kept
		for i := range n {
			ping(f, 1+i)
		}
		rows, lost, skipped := map[int]bool{}, 0, 0
		for last := 0; last < n || len(rows) < n-lost-skipped; {
			got := l.rows()
			last, lost, skipped = got.Seq, lost+got.Lost, skipped+got.Skipped
			for _, r := range got.Rows {
				rows[r.N] = true
			}
		}
		if lost != n-kept || skipped != kept-maxChanges || !rows[n] {
			t.Errorf("of %d frames %d are lost, %d left out, and %d came; the newest one: %t", n, lost, skipped, len(rows), rows[n])
		}
	})
}

// The JSON of rows, which is written by hand, is that of their fields.
func TestRowInJSON(t *testing.T) {
	ms := 0.25
	for _, w := range []wireRow{
		{N: 1},
		{N: 7, At: 1234567.891, Conn: "a\"b", Server: "s", Client: "c", Dir: "in", Kind: "request", Method: "tools/call", Target: "\u2028<x>", ID: `"1"`, Cause: 3, Depth: 2, Bytes: 10, Back: 20, Ms: &ms, Status: "ok", Text: "hällo\x01", Count: 4, Lost: 5},
	} {
		var got, want map[string]any
		body, err := json.Marshal(&w)
		if err != nil || json.Unmarshal(body, &want) != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(w.append(nil), &got); err != nil {
			t.Fatalf("%s: %v", w.append(nil), err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// A document comes when it changes, at once if somebody rings.
func TestEventsOfDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var report atomic.Pointer[health.Report] // the stream reads it in its own time
		report.Store(new(health.Report))
		p := &Page{Report: report.Load}
		l := hear(t, p, "want=state", "")
		defer l.close()
		l.next()
		synctest.Wait()
		began := time.Now()
		report.Store(&health.Report{Servers: []health.Server{{Name: "db"}}})
		p.bell.ring()
		if e := l.next(); !strings.Contains(e.data, `"db"`) || time.Since(began) != 0 {
			t.Errorf("after the bell, in %v: %+v", time.Since(began), e)
		}
		synctest.Wait()
		report.Store(&health.Report{Servers: []health.Server{{Name: "web"}}})
		if e := l.next(); !strings.Contains(e.data, `"web"`) || time.Since(began) > beat {
			t.Errorf("after a beat, in %v: %+v", time.Since(began), e)
		}
	})
}

// Streams are bounded, and a filter that is wrong is refused with its term.
func TestEventsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Page{Frames: new(Frames), Report: func() *health.Report { return new(health.Report) }}
		get := func(query string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p.events(w, httptest.NewRequestWithContext(asAdmin(t.Context()), http.MethodGet, "http://127.0.0.1/ui/events?"+query, nil))
			return w
		}
		if w := get("want=rows&q=colour:red"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "colour:red") {
			t.Errorf("a wrong filter: HTTP %d %s", w.Code, w.Body)
		}
		var open []*listened
		for i := range maxStreams {
			if i == maxOwn { // they are bob's
				w := httptest.NewRecorder()
				p.events(w, httptest.NewRequestWithContext(asPerson(t.Context(), bob), http.MethodGet, "http://127.0.0.1/ui/events?want=state", nil))
				if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "25 streams of events of yours") {
					t.Errorf("one stream of a person too many: HTTP %d %s", w.Code, w.Body)
				}
			}
			by := bob
			if i >= maxOwn {
				by = &auth.Principal{ID: fmt.Sprint("as#", i/maxOwn)}
			}
			l := hearAs(asPerson(t.Context(), by), t, p, "want=state", "")
			l.next()
			open = append(open, l)
		}
		if w := get("want=rows"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "100 streams") {
			t.Errorf("one stream too many: HTTP %d %s", w.Code, w.Body)
		}
		for _, l := range open {
			l.close()
		}
		l := hear(t, p, "want=state", "")
		l.next()
		l.close()
	})
}

// The wire is for administrators alone.
func TestWireIsForAdministrators(t *testing.T) {
	p := &Page{Frames: new(Frames), Report: func() *health.Report { return new(health.Report) }}
	p.once.Do(p.route)
	for _, path := range []string{"/ui/events?want=rows", "/ui/rows"} {
		w := httptest.NewRecorder()
		p.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
		}
	}
}
