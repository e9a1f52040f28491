package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// recorded formats the frames that a tap gets.
type recorded struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (r *recorded) tap(f trace.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := string(f.Dir)
	if f.Kind != "" {
		s += " " + string(f.Kind)
	}
	if f.HTTP != nil {
		s += fmt.Sprintf(" %d %s%s", f.HTTP.Exchange, f.HTTP.Method, f.HTTP.Path)
		if f.HTTP.Status != 0 {
			s += fmt.Sprint(f.HTTP.Status)
		}
	}
	if f.Event != "" {
		s += " id=" + f.Event
	}
	if f.Note != "" {
		s += " note=" + f.Note
	}
	if f.Cut > 0 {
		s += fmt.Sprintf(" cut=%d", f.Cut)
	}
	if len(f.Msg)+len(f.Raw) > 0 {
		s += " " + string(f.Msg) + string(f.Raw)
	}
	r.lines = append(r.lines, s)
}

// TestRecord: the frames of either side for each kind of exchange.
func TestRecord(t *testing.T) {
	stream := "\xef\xbb\xbf: hi\n\nid: 1\ndata:\n\nid: 2\nevent: message\ndata: {\ndata: }\n\nevent: ping\ndata: x\n\ndata: cut o"
	exchanges.Store(0)
	var server recorded
	rec := &Recorder{Tap: &engine.Tap{Tell: server.tap}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w, r, end := rec.Record(w, r)
		defer end()
		switch r.URL.Path {
		case "/json":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Write(body)
		case "/refused":
			http.Error(w, "who are you?", http.StatusUnauthorized) // without reading
		case "/accepted":
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			for _, b := range []byte(stream) {
				w.Write([]byte{b})
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	defer srv.Close()
	var client recorded
	c, release := NewClient(nil, &engine.Tap{Tell: client.tap})
	defer release()
	do := func(method, path, body string) {
		t.Helper()
		var r io.Reader
		if body != "" {
			r = strings.NewReader(body)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, r)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	do("POST", "/json?a=1", `{"a":1}`)
	do("POST", "/refused", `{"b":2}`)
	do("POST", "/accepted", `{"c":3}`)
	do("GET", "/events", "")
	srv.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/gone", strings.NewReader(`{"d":4}`))
	if _, err := c.Do(req); err == nil {
		t.Fatal("the server is still there")
	}
	last := len(client.lines) - 1
	if !strings.HasPrefix(client.lines[last], "in close 5  note=") {
		t.Errorf("a broken exchange is told as %q", client.lines[last])
	}
	want := []string{
		`out 1 POST/json?a=1 {"a":1}`, `in 1 200 {"a":1}`,
		`out 2 POST/refused {"b":2}`, "in 2 401 who are you?\n",
		`out 3 POST/accepted {"c":3}`, `in 3 202`,
		`out 4 GET/events`, `in 4 200`,
		`in comment 4  note=hi`, `in event 4  id=1`, "in 4  id=2 {\n}", `in event 4  note=ping x`,
		`in event 4  note=the stream ended within an event data: cut o`, `in close 4  note=end of the stream`,
		`out 5 POST/gone {"d":4}`,
	}
	if diff := cmp.Diff(want, client.lines[:last]); diff != "" {
		t.Errorf("the client told (-want +got):\n%s", diff)
	}
	turn := strings.NewReplacer("in ", "out ", "out ", "in ")
	want = want[:14]
	for i, line := range want {
		dir, rest, _ := strings.Cut(line, " ")
		want[i] = turn.Replace(dir+" ") + rest
	}
	want[2] = `in 2 POST/refused` // its body was not read
	if diff := cmp.Diff(want, server.lines); diff != "" {
		t.Errorf("the server told (-want +got):\n%s", diff)
	}
}

// TestRecordedHeaders: a request is told with its own headers and the host, whatever others had, and the handler does not see
// the difference. An answer is told with its headers.
func TestRecordedHeaders(t *testing.T) {
	var told []string
	rec := &Recorder{Tap: &engine.Tap{Tell: func(f trace.Frame) {
		told = append(told, fmt.Sprint(f.HTTP.Method, f.HTTP.Status, " ", f.HTTP.Headers))
	}}}
	for i, name := range []string{"A", "B"} {
		r := httptest.NewRequest("POST", "http://example.com/", strings.NewReader("{}"))
		r.Header.Set(name, "1")
		w, r, end := rec.Record(&discard{http.Header{}}, r)
		io.Copy(io.Discard, r.Body)
		if len(r.Header) != 1 {
			t.Errorf("the handler got the headers %v", r.Header)
		}
		w.Header().Set("Answer", strconv.Itoa(i))
		io.WriteString(w, "{}")
		end()
	}
	want := []string{"POST0 map[A:[1] Host:[example.com]]", "200 map[Answer:[0]]", "POST0 map[B:[1] Host:[example.com]]", "200 map[Answer:[1]]"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestRecordNamesSessions: the frames of a session share a name, which is not its id.
func TestRecordNamesSessions(t *testing.T) {
	exchanges.Store(0)
	var conns []string
	rec := &Recorder{Tap: &engine.Tap{Tell: func(f trace.Frame) { conns = append(conns, f.Conn) }}}
	serve := func(r *http.Request, answer string) {
		w, _, end := rec.Record(httptest.NewRecorder(), r)
		if answer != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, answer)
		}
		end()
	}
	serve(httptest.NewRequest("GET", "/", nil), "")
	r := httptest.NewRequest("DELETE", "/", nil)
	r.Header.Set("Mcp-Session-Id", "secret-id")
	serve(r, "")
	serve(httptest.NewRequest("GET", "/sse", nil), "event: endpoint\ndata: /m?sessionId=secret-id\n\ndata: {}\n\n")
	serve(httptest.NewRequest("POST", "/m?sessionId=secret-id", nil), "")
	name := sessionName("secret-id")
	want := []string{"http-1", "http-1", name, name, "http-3", "http-3", name, name, name, name, name}
	if !slices.Equal(conns, want) {
		t.Errorf("connections %q, want %q", conns, want)
	}
	if strings.Contains(name, "secret") {
		t.Errorf("the name %q gives the id away", name)
	}
}

// TestBodyIsBounded: the bytes that are not kept are counted.
func TestBodyIsBounded(t *testing.T) {
	var b body
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range maxRecorded>>20 + 3 {
		b.Write(chunk)
	}
	f := b.frame(trace.In, nil)
	if len(f.Raw) != maxRecorded || f.Cut != 3<<20 || f.Size != maxRecorded+3<<20 || f.Msg != nil {
		t.Errorf("frame with %d bytes, %d cut of %d", len(f.Raw), f.Cut, f.Size)
	}
}

// FuzzEventTap: a tap finds the same messages as the reader of the stream, however the bytes are
// chunked.
func FuzzEventTap(f *testing.F) {
	f.Add([]byte("id: 1\nevent: message\ndata: {}\n\n: x\n\nretry: 1\ndata: a\r\ndata: b\r\n\r\n"))
	f.Add([]byte("\xef\xbb\xbfdata\rdata:\r\r"))
	f.Fuzz(func(t *testing.T, in []byte) {
		told := func(pieces bool) (all *recorded, messages []string) {
			all = &recorded{}
			x := &exchange{n: 1}
			x.tap = &engine.Tap{Tell: func(f trace.Frame) {
				all.tap(f)
				if f.Kind == trace.KindMessage {
					messages = append(messages, string(f.Msg))
				}
			}}
			e := &eventTap{x: x, dir: trace.In}
			if pieces {
				for i := range in {
					e.Write(in[i : i+1])
				}
			} else {
				e.Write(in)
			}
			return
		}
		whole, messages := told(false)
		pieces, _ := told(true)
		if !slices.Equal(whole.lines, pieces.lines) {
			t.Fatalf("%q is told as %q whole and as %q in pieces", in, whole.lines, pieces.lines)
		}
		want, _, err := readEvents(bytes.NewReader(in), 1<<20)
		if !errors.Is(err, io.EOF) || !slices.Equal(messages, want) {
			t.Fatalf("%q has the messages %q (%v), told were %q", in, want, err, messages)
		}
	})
}
