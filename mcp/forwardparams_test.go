package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// laxServer is a server that reads as encoding/json does: of two names that differ in case the
// last wins. It notes the params of the requests that reach it.
type laxServer struct {
	conn jsonrpc.Conn
	rev  mcp.Revision

	mu   sync.Mutex
	seen []string // guarded by mu
}

// behindLax opens a session with a laxServer, which ends with the test.
func behindLax(t *testing.T, rev mcp.Revision) (*laxServer, *mcp.Session) {
	t.Helper()
	near, far := jsonrpc.Pipe()
	l := &laxServer{conn: far, rev: rev}
	done := make(chan struct{})
	go func() { defer close(done); l.serve() }()
	t.Cleanup(func() { <-done })
	c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return l, s
}

// take returns what has reached the server since the last time.
func (l *laxServer) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}

func (l *laxServer) serve() {
	for {
		frame, err := l.conn.Read(nil)
		if err != nil {
			return
		}
		var msg struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(frame, &msg) != nil || msg.ID == nil {
			continue
		}
		result := `{"resultType":"complete","content":[],"messages":[],"contents":[],"tools":[],"completion":{"values":[]},"ttlMs":0,"cacheScope":"private"}`
		const caps = `"capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{}}`
		switch msg.Method {
		case "initialize":
			result = `{"protocolVersion":"` + string(l.rev) + `",` + caps + `,"serverInfo":{"name":"lax","version":"1"}}`
		case "server/discover":
			result = `{"resultType":"complete","supportedVersions":["` + string(l.rev) + `"],` + caps + `,"ttlMs":0,"cacheScope":"private"}`
		case "subscriptions/listen", "logging/setLevel": // of the session itself
		default:
			l.mu.Lock()
			l.seen = append(l.seen, string(msg.Params))
			l.mu.Unlock()
		}
		if l.conn.Write([]byte(`{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":`+result+`}`)) != nil {
			return
		}
	}
}

// A server that ignores the case of names sees what was decided on in front of it, or nothing
// (trap 5): at every level of params, in every revision, whoever forwards.
func TestForwardedNames(t *testing.T) {
	const meta = `"_meta":{"com.example/trace":"1"}`
	tests := []struct {
		method, params string
		fault          string // empty: it passes
	}{
		{"tools/call", `{"name":"safe",` + meta + `,"arguments":{"Name":"x","name":"y"}}`, ""},
		{"tools/call", `{"name":"safe","com.example/extra":1,"nombre":"x"}`, ""},
		{"tools/call", `{"name":"safe","Name":"delete_all"}`, `"Name" must be written "name"`},
		{"tools/call", `{"NAME":"delete_all","name":"safe"}`, `"NAME" must be written "name"`},
		{"tools/call", `{"name":"safe","\u004eame":"delete_all"}`, `"Name" must be written "name"`},
		{"tools/call", `{"name":"safe","arguments":{},"Arguments":{"all":true}}`, `"Arguments" must be written "arguments"`},
		{"tools/call", `{"name":"safe","argumentſ":{"all":true}}`, `must be written "arguments"`},
		{"tools/call", `{"name":"safe","taſK":{}}`, `must be written "task"`},
		{"tools/call", `{"name":"safe","RequestState":"x"}`, `must be written "requestState"`},
		{"tools/call", `{"name":"safe","input_responses":{}}`, `must be written "inputResponses"`},
		{"tools/call", `{"name":"safe","meta":{"progressToken":1}}`, `"meta" must be written "_meta"`},
		{"tools/call", `{"name":"safe","_META":{"progressToken":1}}`, `"_META" must be written "_meta"`},
		{"tools/call", `{"name":"safe","_meta":{"ProgressToken":1}}`, `must be written "progressToken"`},
		{"tools/call", `{"name":"safe","_meta":{"progress_token":1}}`, `must be written "progressToken"`},
		{"tools/call", `{"name":"safe","_meta":{"IO.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, `must be written "io.modelcontextprotocol/clientCapabilities"`},
		{"prompts/get", `{"name":"safe","Name":"other"}`, `must be written "name"`},
		{"prompts/get", `{"name":"safe","ARGUMENTS":{}}`, `must be written "arguments"`},
		{"resources/read", `{"uri":"test://safe","Uri":"test://secret"}`, `"Uri" must be written "uri"`},
		{"resources/read", `{"uri":"test://safe","urı":"test://secret"}`, `must be written "uri"`},
		{"tools/list", `{"Cursor":"x"}`, `must be written "cursor"`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"safe"},"argument":{"name":"a","value":"b"}}`, ""},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"safe","Name":"other"},"argument":{"name":"a","value":"b"}}`, `must be written "name"`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"safe"},"Ref":{"name":"other"},"argument":{"name":"a","value":"b"}}`, `must be written "ref"`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"safe"},"argument":{"name":"a","value":"b","Value":"c"}}`, `must be written "value"`},
		{"com.example/own", `{"Name":"x","name":"y"}`, ""},
		{"com.example/own", `{"meta":{}}`, `must be written "_meta"`},
	}
	for _, back := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25, mcp.V2026_07_28} {
		lax, behind := behindLax(t, back)
		check := func(t *testing.T, method, params, fault string, err error) {
			t.Helper()
			var rpc *mcp.Error
			seen := lax.take()
			switch {
			case fault == "" && (err != nil || len(seen) != 1):
				t.Errorf("%s %s = %v, the server saw %q; want it to pass", method, params, err, seen)
			case fault == "":
			case !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams || !strings.Contains(rpc.Message, fault):
				t.Errorf("%s %s = %v, want -32602 with %s", method, params, err, fault)
			case len(seen) > 0:
				t.Errorf("%s %s was refused, and yet the server saw %q", method, params, seen)
			}
		}
		t.Run("session on "+string(back), func(t *testing.T) {
			for _, tt := range tests {
				_, err := behind.Handle(t.Context(), &mcp.Request{Method: tt.method, Params: json.RawMessage(tt.params)})
				check(t, tt.method, tt.params, tt.fault, err)
			}
		})
		for _, front := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				near, far := jsonrpc.Pipe()
				go (&mcp.Server{Name: "gw", Version: "1", Handler: behind}).Serve(t.Context(), far)
				s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{front}}).Connect(t.Context(), mcptest.Wire(near))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for _, tt := range tests {
					_, err := s.Raw(t.Context(), tt.method, json.RawMessage(tt.params))
					check(t, tt.method, tt.params, tt.fault, err)
				}
			})
		}
	}
}

// Middleware of a server decides on what its handler reads, however that reads (trap 5): limits
// and policies of any make need not look for it.
func TestExactNamesForMiddleware(t *testing.T) {
	reached := 0
	handler := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		reached++
		return mcp.RawResult(`{"content":[]}`), nil
	})
	through := func(next mcp.Handler) mcp.Handler { return next }
	for name, srv := range map[string]*mcp.Server{
		"a handler":  {Name: "s", Version: "1", Handler: handler},
		"middleware": {Name: "s", Version: "1"},
	} {
		if srv.Handler == nil {
			srv.Use(through, func(mcp.Handler) mcp.Handler { return handler })
		}
		reached = 0
		_, err := srv.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"a","Name":"b"}`)})
		if err == nil || reached > 0 {
			t.Errorf("%s: %v, and it was reached %d times", name, err, reached)
		}
		if _, err := srv.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"a","arguments":{"Name":1,"name":2}}`)}); err != nil || reached != 1 {
			t.Errorf("%s: %v, and it was reached %d times", name, err, reached)
		}
	}
}

// A request about a task is refused like any other.
func TestForwardedNamesOfTasks(t *testing.T) {
	lax, behind := behindLax(t, mcp.V2026_07_28)
	for _, params := range []string{`{"taskId":"a","TaskId":"b"}`, `{"taskId":"a","task_id":"b"}`, `{"taskId":"a","taskID":"b"}`} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			_, err := behind.Handle(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(params)})
			var rpc *mcp.Error
			if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams || !strings.Contains(rpc.Message, `must be written "taskId"`) || len(lax.take()) > 0 {
				t.Errorf("%s %s = %v, want -32602", method, params, err)
			}
		}
	}
}

// The declared capabilities and the name of a client reach a server of 2026-07-28 only as they were
// read here, without second members in other capitals.
func TestForwardedEnvelopeNames(t *testing.T) {
	lax, behind := behindLax(t, mcp.V2026_07_28)
	near, far := jsonrpc.Pipe()
	defer near.Close()
	go (&mcp.Server{Name: "gw", Version: "1", Handler: behind}).Serve(t.Context(), far)
	if err := near.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"mild","version":"1","Name":"other"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"Elicitation":{},"Tasks":{},"tasks":{},"Experimental":{},"roots":{},"com.example/x":{}}}}}`)); err != nil {
		t.Fatal(err)
	}
	if answer, err := near.Read(nil); err != nil || !strings.Contains(string(answer), `"result"`) {
		t.Fatalf("answered %s, %v", answer, err)
	}
	seen := lax.take()
	if len(seen) != 1 || !strings.Contains(seen[0], `"io.modelcontextprotocol/clientCapabilities":{"roots":{},"com.example/x":{}}`) || strings.Contains(seen[0], "other") {
		t.Errorf("the server was told %q", seen)
	}
}

// A question of a server that its client could read in two ways is refused: the client declared
// what it can answer of the one.
func TestQuestionNames(t *testing.T) {
	asked := 0
	c := &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}
	const params = `{"message":"?","requestedSchema":{"type":"object","properties":{}},"Mode":"url","URL":"https://example.com"}`
	t.Run("legacy", func(t *testing.T) {
		near, far := jsonrpc.Pipe()
		answer := make(chan string, 1)
		go func() {
			defer far.Close()
			for {
				frame, err := far.Read(nil)
				msg, _ := jsonrpc.Decode(frame, jsonrpc.Limits{})
				switch {
				case err != nil:
					return
				case msg.Method == "initialize":
					far.Write(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)))
				case msg.Method == "tools/call":
					far.Write([]byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + params + `}`))
				case msg.Kind() == jsonrpc.KindResponse:
					answer <- string(frame)
					return
				}
			}
		}()
		c.Revisions = []mcp.Revision{mcp.V2025_11_25}
		s, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go s.CallTool(t.Context(), "x", nil)
		if got := <-answer; !strings.Contains(got, "-32602") || !strings.Contains(got, `must be written \"mode\"`) {
			t.Errorf("the question is answered by %s", got)
		}
	})
	t.Run("modern", func(t *testing.T) {
		near, far := jsonrpc.Pipe()
		go func() {
			defer far.Close()
			for {
				frame, err := far.Read(nil)
				msg, _ := jsonrpc.Decode(frame, jsonrpc.Limits{})
				switch {
				case err != nil:
					return
				case msg.Method == "server/discover":
					far.Write(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)))
				default:
					far.Write(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":`+params+`}}}`)))
				}
			}
		}()
		c.Revisions = []mcp.Revision{mcp.V2026_07_28}
		s, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.CallTool(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), `must be written "mode"`) {
			t.Errorf("the call ends with %v", err)
		}
	})
	if asked > 0 {
		t.Errorf("the user was asked %d times", asked)
	}
}
