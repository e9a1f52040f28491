package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// A call that a program decides about, and makes in several attempts, is one call in the log: its
// lines have the decision and one id, and it has one end.
func TestHeldCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	trail := &audit.Trail{Log: l}
	var answers []error
	server := func(mw ...mcp.Middleware) mcp.Handler {
		var h mcp.Handler = mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			err := answers[0]
			answers = answers[1:]
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("ok")}}, err
		})
		for _, m := range slices.Backward(mw) {
			h = m(h)
		}
		return h
	}
	refuse := policy.Foreign("s", true, policy.Func(func(context.Context, *policy.Access) policy.Decision {
		return policy.Decision{Rule: "none"}
	}), nil)
	lost := errors.New("the connection was lost")
	for _, tt := range []struct {
		name    string
		mw      []mcp.Middleware // around the server
		method  string
		answers []error
		outcome string
		reason  string
		want    []string
	}{
		{"one attempt", []mcp.Middleware{trail.Around("s")}, "tools/call", []error{nil}, "ok", "", []string{"call.begin x", "call.end x ok"}},
		{"with Outer", []mcp.Middleware{trail.Outer(), trail.Around("s")}, "tools/call", []error{nil}, "ok", "", []string{"call.begin x", "call.end x ok"}},
		{"three attempts", []mcp.Middleware{trail.Outer(), trail.Around("s")}, "tools/call", []error{lost, lost, nil}, "ok", "", []string{"call.begin x", "call.retry x 2", "call.retry x 3", "call.end x ok"}},
		{"an error of the server", []mcp.Middleware{trail.Around("s")}, "tools/call", []error{mcp.Errorf(-32000, "text of the server")}, "error", "a fault", []string{"call.begin x", "call.end x error -32000 protocol a fault"}},
		{"an answer that is of no use", []mcp.Middleware{trail.Around("s")}, "tools/call", []error{nil}, "error", "a fault", []string{"call.begin x", "call.end x error a fault"}},
		{"canceled between attempts", []mcp.Middleware{trail.Around("s")}, "tools/call", []error{mcp.Errorf(-32000, "no")}, "canceled", "enough", []string{"call.begin x", "call.end x canceled enough"}},
		{"refused by a policy", []mcp.Middleware{trail.Outer(), refuse, trail.Around("s")}, "tools/call", []error{nil}, "error", "a fault", []string{"denied x denied -32602 no tool \"x\"; see tools/list"}},
		{"by another method", []mcp.Middleware{trail.Outer(), trail.Around("s")}, "resources/read", []error{nil}, "ok", "", []string{"call.begin resources/read app:x", "call.end resources/read app:x ok"}},
		{"refused by the person", nil, "", nil, "denied", "not now", []string{"denied x denied not now"}},
		{"from a cache", nil, "", nil, "ok", "", []string{"call.end x ok"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(calls(t, path))
			h := server(tt.mw...)
			ctx := trail.Begin(t.Context(), audit.Entry{Conversation: "c1", Server: &audit.Server{Name: "s"}, Tool: "x", Arguments: &audit.Arguments{Value: json.RawMessage(`{"n":1}`)}, Decision: &audit.Decision{Effect: "allow", By: "person"}})
			answers = tt.answers
			for range tt.answers {
				h.Handle(ctx, &mcp.Request{Method: tt.method, Params: json.RawMessage(`{"name":"x","uri":"app:x","arguments":{"n":1}}`)})
			}
			trail.End(ctx, audit.Entry{Outcome: tt.outcome, Reason: tt.reason, Millis: 7})
			if err := l.Write(t.Context(), audit.Entry{Kind: "mark"}); err != nil {
				t.Fatal(err)
			}
			var got []string
			ids := map[string]bool{}
			for _, e := range calls(t, path)[before:] {
				if e.Kind == "mark" || e.Kind == audit.Node {
					continue
				}
				line := []any{e.Kind, e.Tool, e.Method, e.Name, e.Outcome}
				if e.Attempt > 0 {
					line = append(line, e.Attempt)
				}
				if e.Code != 0 {
					line = append(line, e.Code)
				}
				got = append(got, strings.Join(strings.Fields(fmt.Sprintln(append(line, e.Fault, e.Reason)...)), " "))
				if ids[e.Call] = true; e.Conversation != "c1" || e.Decision == nil || e.Decision.By != "person" || e.Server == nil || e.Arguments == nil || e.Arguments.Digest != audit.Digest(json.RawMessage(`{"n":1}`)) {
					t.Errorf("a line is %s", e.Line())
				}
			}
			if !slices.Equal(got, tt.want) || len(ids) != 1 {
				t.Errorf("lines with %d ids:\n%s\nwant:\n%s", len(ids), strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A request of another method in the context of a call has lines and an id of its own, and a call that
// did not begin has one line.
func TestBesideHeldCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	trail := &audit.Trail{Log: l}
	h := trail.Around("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ToolResult{}, nil
	}))
	ctx := trail.Begin(t.Context(), audit.Entry{Tool: "x"})
	for _, method := range []string{"tools/call", "resources/read", "tools/list"} {
		h.Handle(ctx, &mcp.Request{Method: method, Params: json.RawMessage(`{"name":"x","uri":"app:x"}`)})
	}
	trail.End(ctx, audit.Entry{Outcome: "ok"})
	trail.End(t.Context(), audit.Entry{Tool: "y", Outcome: "denied"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range calls(t, path) {
		if e.Call != "" && e.Kind != audit.List {
			count[e.Call]++
		}
	}
	list := []int{}
	for _, n := range count {
		list = append(list, n)
	}
	slices.Sort(list)
	if !slices.Equal(list, []int{1, 2, 2}) {
		t.Errorf("lines per call: %v, want 1, 2 and 2", list)
	}
}
