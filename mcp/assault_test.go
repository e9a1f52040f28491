package mcp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// assaults are frames that no honest client sends. Each is answered with what has
// to be in the answer, or the wire is closed; want is empty where silence is right.
var assaults = []struct {
	name, want string
	frame      func() io.Reader
}{
	{"truncated", "-32700", said(`{"jsonrpc":"2.0","id":1,"method":"server/disc`)},
	{"nested 100,000 deep", "", said(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat(`}`, 100_001))},
	{"100 MB", "", func() io.Reader {
		return io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`), io.LimitReader(letters{}, 100<<20), strings.NewReader(`"}`))
	}},
	{"invalid UTF-8", "-32700", said("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}")},
	{"a member twice", "-32700", said(`{"jsonrpc":"2.0","id":1,"method":"server/discover","method":"ping"}`)},
	{"wrong case", "-32600", said(`{"jsonrpc":"2.0","ID":1,"Method":"server/discover"}`)},
	{"a huge id", "", said(strings.Replace(discover, `"id":1`, `"id":`+strings.Repeat("9", 400), 1))},
	{"a negative id", `"id":-7`, said(strings.Replace(discover, `"id":1`, `"id":-7`, 1))},
	{"a fraction as id", "-32600", said(strings.Replace(discover, `"id":1`, `"id":1.5`, 1))},
	{"a null id", "-32600", said(strings.Replace(discover, `"id":1`, `"id":null`, 1))},
	{"a megabyte of string id", "", said(strings.Replace(discover, `"id":1`, `"id":"`+strings.Repeat("i", 1<<20)+`"`, 1))},
	{"an answer nobody asked for", "", said(`{"jsonrpc":"2.0","id":4711,"result":{}}`)},
	{"a request before initialize", "-32", said(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)},
	{"a batch of 100,000", "", said(`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 100_000) + `1]`)},
	{"a panic", "-32603", said(modern(1, "tools/call", `{}`, `"name":"panic"`))},
}

var discover = modern(1, "server/discover", `{}`, "")

// assaultWires carry a frame to a server and return what comes back, and whether the
// server closed the wire, or refused the HTTP request.
var assaultWires = []struct {
	name string
	send func(t *testing.T, w *workshop, frame io.Reader, want string) (answer string, closed bool)
}{
	{"stream", assaultStream},
	{"http", assaultHTTP},
	{"websocket", assaultWebSocket},
}

// Any frame of one client is answered or ends only its own wire; the calls of others go on, and
// memory stays bounded.
func TestAssaults(t *testing.T) {
	long.WithoutRace(t)
	mcptest.LeakCheck(t)
	for _, wire := range assaultWires {
		for _, a := range assaults {
			t.Run(wire.name+"/"+a.name, func(t *testing.T) {
				w := newWorkshop()
				bystander := mcptest.Connect(t, w.Server, &mcp.Client{Name: "bystander"}, mcp.V2025_11_25)
				stuck := make(chan error, 1)
				go func() {
					_, err := bystander.CallTool(t.Context(), "stuck", nil)
					stuck <- err
				}()
				<-w.started
				peak := watchMemory(t)
				answer, closed := wire.send(t, w, a.frame(), a.want)
				if !strings.Contains(answer, a.want) && !closed {
					t.Errorf("answer = %.200q, want %q or the end of the wire", answer, a.want)
				}
				if grown := peak(); grown > 80<<20 {
					t.Errorf("memory grew by %d MiB", grown>>20)
				}
				echo(t, bystander)
				close(w.release)
				if err := <-stuck; err != nil {
					t.Errorf("the bystander's call: %v", err)
				}
			})
		}
	}
}

// after is sent behind a frame: its answer says that the frame has been dealt with.
var after = strings.Replace(discover, `"id":1`, `"id":"after"`, 1)

// assaultBound is how long a wire may take for a frame.
const assaultBound = 30 * time.Second

func assaultStream(t *testing.T, w *workshop, frame io.Reader, want string) (answers string, closed bool) {
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.Serve(t.Context(), jsonrpc.NewLineConn(far, far, far.Close, 16<<20))
	}()
	defer func() { near.Close(); <-served }()
	go io.Copy(near, io.MultiReader(frame, strings.NewReader("\n"+after+"\n"))) // ends with the wire
	near.SetReadDeadline(time.Now().Add(assaultBound))
	lines := bufio.NewReader(near)
	return answersTo(t, want, func() (string, error) { return lines.ReadString('\n') })
}

// answersTo reads messages until those with want and the answer to after, which may
// overtake each other, or the end of the wire.
func answersTo(t *testing.T, want string, read func() (string, error)) (answers string, closed bool) {
	var all strings.Builder
	for done := false; !done || !strings.Contains(all.String(), want); {
		msg, err := read()
		var slow net.Error
		switch {
		case errors.As(err, &slow) && slow.Timeout(), errors.Is(err, context.DeadlineExceeded):
			t.Errorf("no answer with %q and no end within %v", want, assaultBound)
			return all.String(), false
		case err != nil:
			return all.String(), true
		case strings.Contains(msg, `"after"`):
			done = true
		default:
			all.WriteString(msg)
		}
	}
	return all.String(), false
}

func assaultHTTP(t *testing.T, w *workshop, frame io.Reader, _ string) (string, bool) {
	srv := httptest.NewServer(w)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, frame)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
	} {
		req.Header.Set(k, v)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		return "", true // the server did not want to read it all
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 500 && !bytes.Contains(answer, []byte("-32603")) {
		t.Errorf("HTTP status %d: %.200s", res.StatusCode, answer)
	}
	return string(answer), res.StatusCode/100 == 4
}

func assaultWebSocket(t *testing.T, w *workshop, frame io.Reader, want string) (string, bool) {
	srv := httptest.NewServer(w.WebSocket())
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), assaultBound)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(srv.URL, "http"), &websocket.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	go func() {
		if out, err := conn.Writer(ctx, websocket.MessageText); err == nil {
			io.Copy(out, frame)
			out.Close()
			conn.Write(ctx, websocket.MessageText, []byte(after))
		}
	}()
	return answersTo(t, want, func() (string, error) {
		_, msg, err := conn.Read(ctx)
		return string(msg), err
	})
}

// letters is an endless stream of one letter.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func said(frame string) func() io.Reader { return func() io.Reader { return strings.NewReader(frame) } }

// watchMemory returns a function that tells by how many bytes the heap grew, at most,
// since.
func watchMemory(t *testing.T) func() int64 {
	t.Helper()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runtime.GC()
	before, most := heap(), int64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap()-before)
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int64 { close(stop); <-done; return most }
}

// A call to a hostile HTTP server ends with an error in its time, and memory stays bounded.
func TestHostileHTTPServers(t *testing.T) {
	long.WithoutRace(t)
	mcptest.LeakCheck(t)
	stream := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
	}
	// forever writes b until the client leaves.
	forever := func(w io.Writer, b []byte) {
		for {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	block := bytes.Repeat([]byte("a"), 64<<10)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"an event without end": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)
			io.WriteString(w, "data: ")
			forever(w, block)
		},
		"events without end": func(w http.ResponseWriter, _ *http.Request) { stream(w); forever(w, []byte("data: {}\n\n")) },
		"lines without an event": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)
			forever(w, []byte("data: aaaaaaaaaaaaaaaa\n"))
		},
		"comments without end": func(w http.ResponseWriter, _ *http.Request) { stream(w); forever(w, []byte(": still here\n\n")) },
		"an id without end":    func(w http.ResponseWriter, _ *http.Request) { stream(w); io.WriteString(w, "id: "); forever(w, block) },
		"a retry of a century": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)
			io.WriteString(w, "id: 1\nretry: 3155760000000\ndata:\n\n")
		},
		"a body without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			forever(w, block)
		},
		"a body that unpacks without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			forever(gzip.NewWriter(w), block)
		},
		"an event that unpacks without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			stream(w)
			z := gzip.NewWriter(w)
			io.WriteString(z, "data: ")
			forever(z, block)
		},
		"a failure that unpacks without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusBadRequest)
			forever(gzip.NewWriter(w), block)
		},
		"arrays in arrays without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			forever(w, bytes.Repeat([]byte("["), 64<<10))
		},
		"a body that drips":       func(w http.ResponseWriter, r *http.Request) { drip(w, r, "application/json", `{"jsonrpc":"2.0",`) },
		"a stream that is silent": func(w http.ResponseWriter, r *http.Request) { drip(w, r, "text/event-stream", ":") },
		"headers without end": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			forever(conn, []byte("X-More: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"))
		},
		"redirects without end": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"another content type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			forever(w, block)
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a cut connection": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)
			io.WriteString(w, "data: {\"jsonrpc\"")
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := &mcp.Server{Name: "s", Version: "1"}
			mcp.AddTool(good, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Name") == "bad" {
					io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
					answer(w, r)
					return
				}
				good.ServeHTTP(w, r)
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			c := &mcp.Client{Name: "c"}
			s, err := c.Dial(t.Context(), srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			peak := watchMemory(t)
			start := time.Now()
			if res, err := s.CallTool(t.Context(), "bad", nil, mcp.IdleTimeout(500*time.Millisecond)); err == nil {
				t.Errorf("the call returned %v, want an error", res)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("the call took %v", d)
			}
			if grown := peak(); grown > 80<<20 {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
			echo(t, s)
		})
	}
}

// drip sends the beginning of an answer and never the rest.
func drip(w http.ResponseWriter, r *http.Request, contentType, begin string) {
	w.Header().Set("Content-Type", contentType)
	io.WriteString(w, begin)
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// A handler that floods a client which does not read holds up nobody else.
func TestFloodingHandler(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	flooding := make(chan struct{}, 1)
	mcp.AddTool(w.Server, mcp.Tool{Name: "flood"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := 0; ctx.Err() == nil; i++ {
			mcp.Progress(ctx, float64(i+1), 0, strings.Repeat("x", 1<<10))
			if i == 100 {
				flooding <- struct{}{}
			}
		}
		return "", ctx.Err()
	})
	bystander := mcptest.Connect(t, w.Server, &mcp.Client{Name: "bystander"}, mcp.V2026_07_28)
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.Serve(t.Context(), jsonrpc.NewLineConn(far, far, far.Close, 0))
	}()
	call := strings.Replace(modern(1, "tools/call", `{}`, `"name":"flood"`), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
	if _, err := io.WriteString(near, call+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(near)
	for range 200 { // reads for a while, and then no more
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	<-flooding
	peak := watchMemory(t)
	for range 100 {
		echo(t, bystander)
	}
	if grown := peak(); grown > 40<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	near.Close()
	<-served
}
