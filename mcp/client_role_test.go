package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// ROOT-25-001, ROOT-26-004: roots may change while a session is open. Legacy servers are
// told, those of 2026-07-28 are not, and handlers see the change on all.
func TestRootsChange(t *testing.T) {
	mcptest.LeakCheck(t)
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "roots"}, func(ctx context.Context, _ struct{}) (string, error) {
			roots, err := mcp.Roots(ctx)
			if err != nil {
				return "", err
			}
			return roots[0].URI, nil
		})
		return s
	}
	var n, told atomic.Int64
	var client *mcp.Client
	newClient := func() *mcp.Client {
		n.Store(1)
		told.Store(0)
		client = &mcp.Client{Name: "c", Version: "1", Roots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: fmt.Sprintf("file:///%d", n.Load())}}, nil
		}, OnFrame: func(f trace.Frame) {
			if f.Dir == trace.Out && strings.Contains(string(f.Msg), "notifications/roots/list_changed") {
				told.Add(1)
			}
		}}
		return client
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		call := func() string {
			res, err := s.CallTool(t.Context(), "roots", nil)
			if err != nil {
				t.Fatal(err)
			}
			return res.Text()
		}
		before := call()
		n.Add(1)
		client.RootsChanged(t.Context())
		if after := call(); before != "file:///1" || after != "file:///2" {
			t.Errorf("roots were %s and are %s", before, after)
		}
		want := int64(1)
		if s.Revision() == mcp.V2026_07_28 {
			want = 0
		}
		if got := told.Load(); got != want {
			t.Errorf("the server was told %d times, want %d", got, want)
		}
		s.Close()
		client.RootsChanged(t.Context()) // nobody is there
		if got := told.Load(); got != want {
			t.Errorf("a closed session was told")
		}
	})
}

// A Handler may answer the notification without a result; for a request that is a fault.
func TestRootsChangeWithoutResult(t *testing.T) {
	told, panics := make(chan string, 2), make(chan any, 2)
	srv := &mcp.Server{Name: "s", Version: "1", OnPanic: func(_ context.Context, v any, _ []byte) { panics <- v }}
	srv.Handler = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == "server/discover" {
			return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no")
		}
		if strings.HasSuffix(req.Method, "/list_changed") || req.Method == "tools/call" {
			told <- req.Method
			return nil, nil
		}
		return mcp.RawResult(`{"tools":[]}`), nil
	})
	client := &mcp.Client{Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }}
	s := mcptest.Connect(t, srv, client, mcp.V2025_11_25)
	client.RootsChanged(t.Context())
	if method := <-told; method != "notifications/roots/list_changed" {
		t.Fatalf("the Handler is called with %q", method)
	}
	if _, err := s.CallTool(t.Context(), "x", nil); err == nil || len(panics) != 1 {
		t.Errorf("a call without a result = %v; %d panics, want that of the call alone", err, len(panics))
	}
}

// A client declares its extensions to servers of every revision, but none without an identifier
// (VER-26-004, -005).
func TestExtensionsOfAClient(t *testing.T) {
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "declared"}, func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
			return mcp.CallFrom(ctx).Capabilities["extensions"], nil
		})
		return s
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", Version: "1", Extensions: map[string]json.RawMessage{"io.modelcontextprotocol/ui": json.RawMessage(`{"mimeTypes":["text/html"]}`), "com.example/x": json.RawMessage(`{}`)}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		res, err := s.CallTool(t.Context(), "declared", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}`, `"com.example/x":{}`} {
			if !strings.Contains(res.Text(), want) {
				t.Errorf("declared %s, want %s", res.Text(), want)
			}
		}
	})
	for id, settings := range map[string]string{"nameless": `{}`, "com.example/": `{}`, "com.example/x": `[]`, "com.example/y": `{`, "com.example/z": ``} {
		c := &mcp.Client{Extensions: map[string]json.RawMessage{id: json.RawMessage(settings)}}
		near, far := mcptest.Pipes(t)
		if _, err := c.Connect(t.Context(), mcptest.Wire(near)); err == nil || !strings.Contains(err.Error(), "Client.Extensions") {
			t.Errorf("%q: %s = %v, want an error that names Client.Extensions", id, settings, err)
		}
		near.Close()
		far.Close()
	}
}

// OnProgress may call the session it belongs to, also with what comes between two rounds
// of questions, which is read by the goroutine that reads the answers.
func TestOnProgressMayCall(t *testing.T) {
	mcptest.LeakCheck(t)
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 5 {
				mcp.Progress(ctx, float64(i+1), 5, "")
			}
			ok, err := mcp.Confirm(ctx, "go on?")
			mcp.Progress(ctx, 6, 6, "")
			return fmt.Sprint(ok), err
		})
		mcp.AddTool(s, mcp.Tool{Name: "other"}, func(context.Context, struct{}) (string, error) { return "", nil })
		return s
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		var got []float64
		_, err := s.CallTool(t.Context(), "work", nil, mcp.OnProgress(func(done, _ float64, _ string) {
			got = append(got, done)
			if _, err := s.CallTool(t.Context(), "other", nil); err != nil {
				t.Errorf("a call from OnProgress: %v", err)
			}
		}))
		if old := s.Revision() == mcp.V2024_11_05 || s.Revision() == mcp.V2025_03_26; err != nil && !old {
			t.Fatal(err)
		}
		if len(got) < 5 {
			t.Errorf("progress %v", got)
		}
	})
}

// Progress between two rounds of questions belongs to the call, and its function may call the
// session too. Progress that does not grow, or belongs to no call, is ignored (PROG-26-003, -005).
func TestProgressBetweenRounds(t *testing.T) {
	progress := func(token json.RawMessage, done int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, done)
	}
	var token json.RawMessage
	var events atomic.Int64
	called := make(chan struct{})
	c := &mcp.Client{Name: "c", OnElicit: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		select {
		case <-called:
		case <-ctx.Done():
		}
		return &mcp.ElicitResult{Action: "decline"}, nil
	}, OnEvent: func(_ *mcp.Session, e mcp.Event) { events.Add(1) }}
	s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
		name, _ := m.Param("name")
		switch {
		case m.Method == "server/discover":
			return result(m, discovered)
		case string(name) == `"other"`:
			return append([]string{progress(json.RawMessage(`"nobody"`), 1)}, result(m, `{"resultType":"complete","content":[]}`)...)
		case token == nil:
			raw, _ := m.ParamIn("_meta", "progressToken")
			token = append(token, raw...)
			ask := result(m, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}}}`)
			return append(ask, progress(token, 2), progress(token, 1), progress(token, 2), progress(token, 3))
		}
		n := 4
		if string(name) == `"after"` {
			n = 5
		}
		return append([]string{progress(token, n)}, result(m, `{"resultType":"complete","content":[]}`)...)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []float64
	_, err = s.CallTool(t.Context(), "work", nil, mcp.OnProgress(func(done, _ float64, _ string) {
		if _, err := s.CallTool(t.Context(), "other", nil); err != nil {
			t.Error(err)
		}
		if got = append(got, done); len(got) == 2 {
			close(called)
		}
	}))
	if _, err := s.CallTool(t.Context(), "after", nil); err != nil {
		t.Error(err)
	}
	if err != nil || fmt.Sprint(got) != "[2 3 4]" {
		t.Errorf("progress %v, %v; want 2, 3, 4", got, err)
	}
	if n := events.Load(); n > 0 {
		t.Errorf("%d events of progress that belongs to no call", n)
	}
}

// SUB-26-005: Watch compares what the server acknowledges with what was asked, says what is
// missing, and tells the caller what is honoured. A legacy server is not asked for what it
// does not offer.
func TestWatchSaysWhatIsNotHonoured(t *testing.T) {
	for _, tt := range []struct {
		rev       mcp.Revision
		caps, ack string
		want      string // params of the first event
		log       string // part of the log, empty for none
	}{
		{mcp.V2026_07_28, `{"tools":{"listChanged":true}}`, `{"toolsListChanged":true,"resourceSubscriptions":["a:","b:"]}`, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:","b:"]}}`, ""},
		{mcp.V2026_07_28, `{"tools":{"listChanged":true},"prompts":{"listChanged":true}}`, `{"toolsListChanged":true,"resourceSubscriptions":["b:","other:"]}`, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["b:"]}}`, `left_out="{\"promptsListChanged\":true,\"resourceSubscriptions\":[\"a:\"]}"`},
		{mcp.V2026_07_28, `{}`, `{}`, `{"notifications":{}}`, `left_out="{\"resourceSubscriptions\":[\"a:\",\"b:\"]}"`},
		{mcp.V2025_11_25, `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`, "", `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:","b:"]}}`, ""},
		{mcp.V2025_11_25, `{"resources":{}}`, "", `{"notifications":{}}`, `left_out="{\"resourceSubscriptions\":[\"a:\",\"b:\"]}"`},
	} {
		t.Run(string(tt.rev)+tt.ack+tt.caps, func(t *testing.T) {
			var log strings.Builder
			c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{tt.rev}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
				switch m.Method {
				case "server/discover":
					return result(m, strings.Replace(discovered, `"capabilities":{}`, `"capabilities":`+tt.caps, 1))
				case "initialize":
					return result(m, `{"protocolVersion":"2025-11-25","capabilities":`+tt.caps+`,"serverInfo":{"name":"stub","version":"1"}}`)
				case "subscriptions/listen":
					return []string{fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%v}}}`, tt.ack, m.ID)}
				case "resources/subscribe", "resources/unsubscribe":
					if !strings.Contains(tt.caps, "subscribe") {
						t.Errorf("the server got %s, which it does not offer", m.Method)
					}
					return result(m, `{}`)
				}
				return []string{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for e, err := range s.Watch(t.Context(), "a:", "b:") {
				if err != nil || e.Method != "notifications/subscriptions/acknowledged" || string(e.Params) != tt.want {
					t.Errorf("the first event is %s %s, %v; want %s", e.Method, e.Params, err, tt.want)
				}
				break
			}
			if got := log.String(); tt.log == "" && strings.Contains(got, "not honoured") || !strings.Contains(got, tt.log) {
				t.Errorf("log %s, want %s", got, tt.log)
			}
		})
	}
}
