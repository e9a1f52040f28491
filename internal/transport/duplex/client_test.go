package duplex

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// nobody is an Inbox that ignores everything.
type nobody struct{}

func (nobody) Note(string, json.RawMessage) {}

func (nobody) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("nobody is here")
}

// counter counts the notifications of a call.
type counter struct{ n *int }

func (c counter) Note(string, json.RawMessage) { *c.n++ }

func (counter) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("nobody is here")
}

// plain hides the optional methods of a connection.
type plain struct{ jsonrpc.Conn }

// CANC-25-001, CANC-26: a server that does not read blocks a call only until its context ends; if
// it reads later, the request is followed by its cancellation.
func TestCallOfAServerThatDoesNotRead(t *testing.T) {
	for name, hide := range map[string]func(jsonrpc.Conn) jsonrpc.Conn{
		"line":  func(c jsonrpc.Conn) jsonrpc.Conn { return c },
		"plain": func(c jsonrpc.Conn) jsonrpc.Conn { return plain{c} },
	} {
		t.Run(name, func(t *testing.T) {
			in, toClient := io.Pipe()
			fromClient, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			conn := jsonrpc.NewLineConn(in, out, func() error { in.Close(); return out.Close() }, 0)
			c := NewClient(hide(conn), ClientOptions{Inbox: nobody{}, Logger: slog.New(slog.DiscardHandler)})
			defer c.Close()
			server := jsonrpc.NewLineConn(fromClient, toClient, fromClient.Close, 0)
			defer server.Close()

			cause := errors.New("waited long enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			called := make(chan error, 1)
			go func() {
				params := json.RawMessage(`{"x":"` + strings.Repeat("y", 1<<20) + `"}`)
				_, err := c.Call(ctx, &engine.Outgoing{Method: "tools/call", Params: params})
				called <- err
			}()
			head := make([]byte, 1) // the request is being written
			if _, err := io.ReadFull(fromClient, head); err != nil {
				t.Fatal(err)
			}
			cancel(cause)
			if err := <-called; err != cause {
				t.Fatalf("Call = %v, want the cause of its context", err)
			}
			for _, want := range []string{`"jsonrpc":"2.0","id":1,"method":"tools/call"`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1`} {
				frame, err := server.Read(nil)
				if err != nil || !strings.HasPrefix(string(frame), want) {
					t.Fatalf("the server got %.100q, %v; want %s", frame, err, want)
				}
			}
		})
	}
}

// A reused call has no state of the previous one.
func TestCallsAreUsedAgain(t *testing.T) {
	near, far := jsonrpc.Pipe()
	c := NewClient(near, ClientOptions{Inbox: nobody{}, Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	go func() {
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			msg, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil {
				t.Error(err)
				return
			}
			switch msg.Method {
			case "fail":
				far.Write(jsonrpc.AppendNotification(nil, "notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`)))
				far.Write(jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Code: -32000, Message: "no", Data: json.RawMessage(`"data"`)}))
			case "work":
				answer := jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{"of":`+msg.ID.String()+`}`))
				far.Write(answer)
				far.Write(answer) // twice
			}
		}
	}()
	notes := 0
	inbox := counter{&notes}
	for i := range 100 {
		var rpc *jsonrpc.Error
		_, err := c.Call(t.Context(), &engine.Outgoing{Method: "fail", Token: json.RawMessage(`1`), Inbox: inbox})
		if !errors.As(err, &rpc) || string(rpc.Data) != `"data"` || notes != i+1 {
			t.Fatalf("the failing call gave %v and %d notes, want its error and %d", err, notes, i+1)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Call(gone, &engine.Outgoing{Method: "never"}); !errors.Is(err, context.Canceled) {
			t.Fatalf("Call = %v, want context.Canceled", err)
		}
		raw, err := c.Call(t.Context(), &engine.Outgoing{Method: "work"})
		if want := `{"of":` + jsonrpc.IntID(int64(3*i+3)).String() + `}`; string(raw) != want || err != nil {
			t.Fatalf("Call = %s, %v; want %s", raw, err, want)
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Requests of concurrent calls are sent together: each is sent once and answered, and when the
// wire fails no call hangs because another goroutine wrote its request.
func TestCallsGoAlong(t *testing.T) {
	const calls, turns = 32, 50
	in, toClient := io.Pipe()
	fromClient, out := io.Pipe()
	conn := jsonrpc.NewLineConn(in, out, func() error { in.Close(); return out.Close() }, 0)
	c := NewClient(conn, ClientOptions{Inbox: nobody{}, Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	// A write ends only when its last frame is being read.
	server := jsonrpc.NewLineConn(readerFunc(func(p []byte) (int, error) { return fromClient.Read(p[:7]) }), toClient, nil, 0)
	ended := make(chan int)
	go func() {
		n := 0
		defer func() { ended <- n }()
		for ; ; n++ {
			frame, err := server.Read(nil)
			if err != nil {
				return
			}
			msg, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil {
				t.Errorf("the server got %q: %v", frame, err)
				return
			}
			if msg.Method == "last" {
				fromClient.CloseWithError(errors.New("no more")) // the error of the client's writes
				return
			}
			server.Write(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{"of":`+msg.ID.String()+`}`)))
		}
	}()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			for range turns {
				if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "work"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for range calls {
		wg.Go(func() {
			if raw, err := c.Call(t.Context(), &engine.Outgoing{Method: "last"}); err == nil {
				t.Errorf("a call over a broken wire gave %s", raw)
			}
		})
	}
	if n := <-ended; n != calls*turns {
		t.Errorf("the server got %d requests, want %d", n, calls*turns)
	}
	wg.Wait()
}

// Frames are held back also while they are recorded: each is in the recording before it can be sent, with its cause.
func TestStageWhileRecorded(t *testing.T) {
	var sent, told []string
	conn := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) { sent = append(sent, string(p)); return len(p), nil }), nil, 0)
	w := stagerOf(conn, &engine.Tap{Tell: func(f trace.Frame) {
		if len(sent) > 0 {
			t.Errorf("%s is recorded after it was sent", f.Msg)
		}
		told = append(told, f.For.ID+" "+string(f.Msg))
	}})
	for _, id := range []string{"1", "2"} {
		if !w.stage([]byte(`{"id":`+id+`}`), trace.Cause{Conn: "front", ID: "10" + id}) {
			t.Fatalf("frame %s is not held back", id)
		}
	}
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"{\"id\":1}\n{\"id\":2}\n"}; !slices.Equal(sent, want) {
		t.Errorf("%q was sent, want %q", sent, want)
	}
	if want := []string{`101 {"id":1}`, `102 {"id":2}`}; !slices.Equal(told, want) {
		t.Errorf("%q was recorded, want %q", told, want)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// listener answers questions with its name.
type listener string

func (listener) Note(string, json.RawMessage) {}

func (l listener) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"by":"` + string(l) + `"}`), nil
}

// A question on a pipe does not say which call it belongs to. It goes to the inbox of the wire,
// whose owner knows the calls in flight.
func TestWhoIsAsked(t *testing.T) {
	tests := []struct {
		name  string
		calls []string // methods in flight
		want  string
	}{
		{"none", nil, "session"},
		{"one", []string{"tools/call"}, "session"},
		{"two", []string{"tools/call", "prompts/get"}, "session"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			near, far := jsonrpc.Pipe()
			c := NewClient(near, ClientOptions{Inbox: listener("session"), Logger: slog.New(slog.DiscardHandler)})
			defer c.Close()
			for i, method := range tt.calls {
				go c.Call(t.Context(), &engine.Outgoing{Method: method, Inbox: listener(fmt.Sprint(method, " ", i))})
				if _, err := far.Read(nil); err != nil { // it is in flight
					t.Fatal(err)
				}
			}
			if err := far.Write(jsonrpc.AppendRequest(nil, jsonrpc.IntID(7), "roots/list", nil)); err != nil {
				t.Fatal(err)
			}
			frame, err := far.Read(nil)
			if err != nil {
				t.Fatal(err)
			}
			msg, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if want := `{"by":"` + tt.want + `"}`; err != nil || string(msg.Result) != want {
				t.Errorf("the server was answered %s (%v), want %s", frame, err, want)
			}
		})
	}
}

// noter sends its notes to a channel.
type noter struct {
	listener
	heard chan<- string
}

func (n noter) Note(string, json.RawMessage) { n.heard <- string(n.listener) }

// A log message does not name its call either: it goes to the only call that asked for logs
// (LOG-26-005).
func TestWhoseLog(t *testing.T) {
	tests := []struct {
		name  string
		calls []engine.Outgoing // in flight
		want  string
	}{
		{"none", nil, "session"},
		{"one", []engine.Outgoing{{Method: "tools/call"}}, "0"},
		{"one beside lists and a subscription", []engine.Outgoing{
			{Method: "tools/list"}, {Method: "tools/call", Logs: true}, {Method: "subscriptions/listen"}}, "1"},
		{"two that asked", []engine.Outgoing{{Method: "tools/call", Logs: true}, {Method: "prompts/get", Logs: true}}, "session"},
		{"two that did not", []engine.Outgoing{{Method: "tools/call"}, {Method: "tools/list"}}, "session"},
		{"a subscription alone", []engine.Outgoing{{Method: "subscriptions/listen", Logs: true}}, "session"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			near, far := jsonrpc.Pipe()
			heard := make(chan string, 1)
			c := NewClient(near, ClientOptions{Inbox: noter{"session", heard}, Logger: slog.New(slog.DiscardHandler)})
			defer c.Close()
			for i, out := range tt.calls {
				out.Inbox = noter{listener(fmt.Sprint(i)), heard}
				go c.Call(t.Context(), &out)
				if _, err := far.Read(nil); err != nil { // it is in flight
					t.Fatal(err)
				}
			}
			if err := far.Write(jsonrpc.AppendNotification(nil, "notifications/message", json.RawMessage(`{"level":"info","data":1}`))); err != nil {
				t.Fatal(err)
			}
			if got := <-heard; got != tt.want {
				t.Errorf("the message went to %s, want %s", got, tt.want)
			}
		})
	}
}

// An answer without an end fails its call at once, and ends the connection (F2).
func TestAnswerWithoutEnd(t *testing.T) {
	in, toClient := io.Pipe()
	fromClient, out := io.Pipe()
	conn := jsonrpc.NewLineConn(in, out, func() error { in.Close(); return out.Close() }, 64<<10)
	c := NewClient(conn, ClientOptions{Inbox: nobody{}, Logger: slog.New(slog.DiscardHandler)})
	flooded := make(chan int, 1)
	go func() {
		bufio.NewReader(fromClient).ReadString('\n')
		n, chunk := 0, bytes.Repeat([]byte("x"), 64<<10)
		for {
			w, err := toClient.Write(chunk)
			if n += w; err != nil {
				flooded <- n
				return
			}
		}
	}()
	_, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/call", Params: json.RawMessage(`{}`)})
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "too large: frame is over the limit of 65536 bytes") {
		t.Errorf("the call ended with %v, want the limit named at once", err)
	}
	<-c.Done()
	var end *jsonrpc.EndlessFrameError
	if err := c.Err(); !errors.As(err, &end) || end.Limit != 64<<10 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the connection ended with %v, want an EndlessFrameError as it is lost", err)
	}
	c.Close()
	if n := <-flooded; n > (jsonrpc.EndlessFrame+2)*64<<10 {
		t.Errorf("%d bytes were read", n)
	}
}

// An answer that is too large fails only its call: the one whose id is at its beginning, else the
// only one that waits for an answer, subscriptions aside.
func TestAnswerTooLarge(t *testing.T) {
	in, toClient := io.Pipe()
	fromClient, out := io.Pipe()
	conn := jsonrpc.NewLineConn(in, out, func() error { in.Close(); return out.Close() }, 64<<10)
	c := NewClient(conn, ClientOptions{Inbox: nobody{}, Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	server := jsonrpc.NewLineConn(fromClient, toClient, fromClient.Close, 0)
	defer server.Close()
	call := func(method string) (jsonrpc.ID, chan error) {
		over := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), &engine.Outgoing{Method: method, Params: json.RawMessage(`{}`)})
			over <- err
		}()
		frame, err := server.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		msg, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return msg.ID, over
	}
	send := func(format string, args ...any) {
		t.Helper()
		if err := server.Write(fmt.Appendf(nil, format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	big := `{"x":"` + strings.Repeat("y", 65<<10) + `"}`

	open := func(id jsonrpc.ID) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.calls[id] != nil
	}
	standing, _ := call("subscriptions/listen")
	a, aOver := call("tools/call")
	b, bOver := call("tools/call")
	send(`{"jsonrpc":"2.0","result":%s,"id":%v}`, big, a)                       // the call is not known
	send(`{"jsonrpc":"2.0","id":%v,"method":"roots/list","params":%s}`, a, big) // this is not an answer
	send(`{"jsonrpc":"2.0","id":%v,"result":%s}`, a, big)
	if err := <-aOver; err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("the call ended with %v", err)
	}
	if !open(b) {
		t.Error("another call has ended")
	}
	send(`{"jsonrpc":"2.0","result":%s,"id":%v}`, big, b)
	if err := <-bOver; err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("the only call ended with %v", err)
	}
	last, lastOver := call("tools/call")
	send(`{"jsonrpc":"2.0","id":%v,"result":{}}`, last)
	if err := <-lastOver; err != nil {
		t.Error(err)
	}
	if !open(standing) {
		t.Error("the subscription has ended")
	}
}
