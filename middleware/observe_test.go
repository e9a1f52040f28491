package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type word struct {
	Word string `json:"word" enum:"one,two"`
}

// newServer makes a server with a tool, prompt or resource for each outcome.
func newServer() *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "say"}, func(_ context.Context, in word) (string, error) { return in.Word, nil })
	mcp.AddTool(s, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("no") })
	mcp.AddTool(s, mcp.Tool{Name: "break"}, func(context.Context, struct{}) (string, error) {
		return "", mcp.Errorf(77, "broken")
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		w, err := mcp.Elicit[word](ctx, "which?")
		return w.Word, err
	})
	mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) { return "done", nil })
	mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(_ context.Context, in word) (string, error) { return in.Word, nil })
	mcp.AddResource(s, mcp.Resource{URI: "x://u:secret@hours?key=secret#secret", Name: "secret"}, func(context.Context) (string, error) { return "9 to 18", nil })
	mcp.AddResource(s, mcp.Resource{URI: "x://hours", Name: "hours"}, func(context.Context) (string, error) { return "9 to 18", nil })
	return s
}

func newClient() *mcp.Client {
	return &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"word": "two"}}, nil
	}}
}

// records collects the records of a server and of its client.
type records struct {
	mu   sync.Mutex
	list []middleware.Record
}

func (r *records) add(_ context.Context, one middleware.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, one)
}

// take returns the records so far of requests that name something.
func (r *records) take() (named []middleware.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.list {
		if one.Name != "" {
			named = append(named, one)
		}
	}
	r.list = nil
	return named
}

// Each request is a record, on each revision, at the server and at the client.
func TestObserve(t *testing.T) {
	var served, sent records
	server := func() *mcp.Server {
		s := newServer()
		s.Use(middleware.Observe(served.add))
		return s
	}
	client := func() *mcp.Client {
		c := newClient()
		c.Use(middleware.Observe(sent.add))
		return c
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		call := func(tool string, args any) func() {
			return func() { s.CallTool(t.Context(), tool, args) }
		}
		for _, tt := range []struct {
			name    string
			do      func()
			outcome middleware.Outcome
			code    int
		}{
			{"say", call("say", word{"one"}), middleware.OK, 0},
			{"say", call("say", word{"three"}), middleware.ToolError, 0},
			{"fail", call("fail", nil), middleware.ToolError, 0},
			{"break", call("break", nil), middleware.Failed, 77},
			{"none", call("none", nil), middleware.Failed, jsonrpc.CodeInvalidParams},
			{"p", func() { s.GetPrompt(t.Context(), "p", map[string]string{"word": "one"}) }, middleware.OK, 0},
			{"p", func() { s.GetPrompt(t.Context(), "p", map[string]string{"word": "secret"}) }, middleware.Failed, jsonrpc.CodeInvalidParams},
			{"x://hours", func() { s.ReadResource(t.Context(), "x://hours") }, middleware.OK, 0},
			{"p", func() { s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "p"}, "word", "o", nil) }, middleware.OK, 0},
		} {
			tt.do()
			for side, got := range map[string][]middleware.Record{"server": served.take(), "client": sent.take()} {
				if len(got) != 1 || got[0].Name != tt.name || got[0].Outcome != tt.outcome || got[0].Code != tt.code || got[0].Duration < 0 || (got[0].ID == "") != (side == "client") {
					t.Errorf("%s: %s: records %+v, want one with outcome %q and code %d", tt.name, side, got, tt.outcome, tt.code)
				}
			}
		}

		s.CallTool(t.Context(), "ask", nil)
		var outcomes []middleware.Outcome
		for _, r := range served.take() {
			outcomes = append(outcomes, r.Outcome)
		}
		want := []middleware.Outcome{middleware.OK}
		switch {
		case !s.Revision().Sessions():
			want = []middleware.Outcome{middleware.Question, middleware.OK}
		case s.Revision() < mcp.V2025_06_18:
			want = []middleware.Outcome{middleware.ToolError} // these clients cannot be asked
		}
		if !slices.Equal(outcomes, want) {
			t.Errorf("ask: outcomes %q, want %q", outcomes, want)
		}
		if got := sent.take(); len(got) != 1 || got[0].Outcome != want[len(want)-1] {
			t.Errorf("ask: the client's records are %+v, want one", got)
		}

		s.CallTool(t.Context(), "work", nil)
		if got := served.take(); !s.Revision().Sessions() && (len(got) < 2 || got[0].Outcome != middleware.Task || got[1].Method != "tasks/get") {
			t.Errorf("work: records %+v, want a task and its polls", got)
		}
		sent.take()
	})
}

// A refusal with an HTTP status is denied, and a request that its caller leaves is canceled.
func TestObserveEnds(t *testing.T) {
	var got records
	s := newServer()
	s.Use(middleware.Observe(got.add))
	s.Use((&limit.Limiter{Tools: map[string]limit.Rate{"say": {Count: 1, Per: 1 << 40}}}).Limit)
	begun, ended := make(chan bool), make(chan bool)
	wait := func(ctx context.Context) error {
		begun <- true
		<-ctx.Done()
		defer func() { go func() { ended <- true }() }()
		return context.Cause(ctx)
	}
	mcp.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) { return "", wait(ctx) })
	if err := s.HandleTool(mcp.Tool{Name: "hold"}, func(ctx context.Context, _ json.RawMessage) (*mcp.ToolResult, error) { return nil, wait(ctx) }); err != nil {
		t.Fatal(err)
	}
	session := mcptest.Connect(t, s, newClient(), mcp.V2026_07_28)
	session.CallTool(t.Context(), "say", word{"one"})
	session.CallTool(t.Context(), "say", word{"one"})
	if list := got.take(); len(list) != 2 || list[1].Outcome != middleware.Denied || list[1].Code != jsonrpc.CodeInternal {
		t.Errorf("records %+v, want the second to be denied", list)
	}
	for _, tool := range []string{"wait", "hold"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		session.CallTool(ctx, tool, nil)
		<-ended
	}
	if err := s.Shutdown(t.Context()); err != nil { // waits for the requests
		t.Fatal(err)
	}
	if list := got.take(); len(list) != 2 || list[0].Outcome != middleware.Canceled || list[1].Outcome != middleware.Canceled {
		t.Errorf("records %+v, want two that are canceled", list)
	}
}

// A tool that fails because it takes longer than the server allows is a tool error.
func TestObserveCallTimeout(t *testing.T) {
	var got records
	s := &mcp.Server{Name: "s", Limits: mcp.Limits{CallTimeout: time.Millisecond}}
	s.Use(middleware.Observe(got.add))
	mcp.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	mcptest.Connect(t, s, newClient(), mcp.V2026_07_28).CallTool(t.Context(), "wait", nil)
	if list := got.take(); len(list) != 1 || list[0].Outcome != middleware.ToolError {
		t.Errorf("records %+v, want a tool error", list)
	}
}

// A line has the attributes that the documentation promises, and no arguments.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	s := newServer()
	s.Use(middleware.Log(slog.New(slog.NewTextHandler(&out, nil))))
	session := mcptest.Connect(t, s, newClient(), mcp.V2025_11_25)
	out.Reset()
	session.CallTool(t.Context(), "say", word{"secret"})
	session.GetPrompt(t.Context(), "p", map[string]string{"word": "secret"})
	session.CallTool(t.Context(), "break", nil)
	session.ReadResource(t.Context(), "x://hours")
	session.ReadResource(t.Context(), "x://u:secret@hours?key=secret#secret")
	session.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "p"}, "word", "secret", nil)
	got := regexp.MustCompile(`(?m)^time=\S+ |ms=[\d.]+`).ReplaceAllStringFunc(out.String(), func(s string) string {
		if strings.HasPrefix(s, "ms") {
			return "ms=1"
		}
		return ""
	})
	const want = `level=INFO msg=request method=tools/call tool=say ms=1 outcome="tool error"
level=WARN msg=request method=prompts/get prompt=p ms=1 outcome=error code=-32602
level=WARN msg=request method=tools/call tool=break ms=1 outcome=error code=77
level=INFO msg=request method=resources/read uri=x://hours ms=1 outcome=ok
level=INFO msg=request method=resources/read uri=x://hours ms=1 outcome=ok
level=INFO msg=request method=completion/complete ref=p ms=1 outcome=ok
`
	if got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}

// No line has text of arguments or results, also not in errors, URIs and templates.
func TestLogHasNoSecrets(t *testing.T) {
	type answer struct {
		Word string `json:"word" enum:"one,two"`
	}
	fault := map[string]error{
		"x://http":    &mcp.HTTPError{Status: http.StatusBadGateway, Body: "secret"},
		"x://connect": fmt.Errorf("secret: %w", &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("secret: %w", syscall.ECONNREFUSED)}),
		"x://lookup":  &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "secret"}},
		"x://lost":    fmt.Errorf("secret: %w", mcp.ErrSessionLost),
		"x://plain":   errors.New("secret"),
	}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		var out bytes.Buffer
		s := newServer()
		s.Use(middleware.Log(slog.New(slog.NewTextHandler(&out, nil))), middleware.MaxResult(100))
		mcp.AddTool(s, mcp.Tool{Name: "answer"}, func(context.Context, struct{}) (answer, error) { return answer{"secret"}, nil })
		mcp.AddResource(s, mcp.Resource{URI: "x://u:secret@long?key=secret", Name: "long"}, func(context.Context) (string, error) { return strings.Repeat("x", 200), nil })
		for uri, err := range fault {
			mcp.AddResource(s, mcp.Resource{URI: uri, Name: uri}, func(context.Context) (string, error) { return "", err })
		}
		session := mcptest.Connect(t, s, newClient(), rev)
		session.CallTool(t.Context(), "answer", nil)
		for _, uri := range []string{"x://u:secret@long?key=secret", "x://u:secret@none?key=secret", "x:u:secret@none", "x://none#secret"} {
			session.ReadResource(t.Context(), uri)
		}
		for uri := range fault {
			session.ReadResource(t.Context(), uri)
		}
		for _, template := range []string{"x://u:secret@h/{id}{?secret}", "x://{host}/{id}"} {
			session.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: template}, "id", "secret", nil)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "secret") {
			t.Errorf("%s: a line has a secret:\n%s", rev, got)
		}
		for _, want := range []string{`uri=x://http .*err="HTTP 502 Bad Gateway"`, `uri=x://connect .*err="dial tcp: .+"`, `uri=x://lookup .*err="dial tcp: no such host"`, `uri=x://lost .*err="mcp: the server has ended the session"`,
			`uri=x://plain .*code=-32603\n`, `uri=x://long .*code=-32603\n`, `uri=x://none .*code=-3\d+\n`, `ref=x://h/{id} `, `ref=x://{host}/{id} `} {
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("%s: no line matches %s:\n%s", rev, want, out.String())
			}
		}
	}
}
