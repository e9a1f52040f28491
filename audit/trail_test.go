package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

type order struct {
	N int `json:"n"`
}

// shop is a server with tools that read, write and fail.
func shop(seen func(tool string)) *mcp.Server {
	s := &mcp.Server{Name: "shop", Version: "1"}
	for _, name := range []string{"list", "buy", "fail"} {
		yes := name == "list"
		mcp.AddTool(s, mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, func(_ context.Context, in order) (string, error) {
			seen(name)
			if name == "fail" {
				return "", errors.New("no")
			}
			return "done", nil
		})
	}
	return s
}

// trailed returns a session with a gateway in front of the shop, whose requests are logged.
func trailed(t *testing.T, trail *audit.Trail, rule policy.Policy, seen func(string)) *mcp.Session {
	t.Helper()
	gw := &gateway.Gateway{Name: "gw", Version: "1", Middleware: func(server string) mcp.Middleware {
		decide, around := policy.Foreign(server, true, rule, nil), trail.Around(server)
		return func(next mcp.Handler) mcp.Handler { return decide(around(next)) }
	}}
	if err := gw.Set("shop", shop(seen)); err != nil {
		t.Fatal(err)
	}
	front := &mcp.Server{Name: "front", Version: "1", Handler: gw}
	front.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return next.Handle(auth.With(ctx, &auth.Principal{ID: "https://idp#ada", Issuer: "https://idp"}), req)
		})
	}, trail.Outer())
	c := &mcp.Client{Name: "desk", Version: "2"}
	session, err := c.Open(t.Context(), front)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func parseRules(t *testing.T) policy.Policy {
	t.Helper()
	set, err := rules.Parse("policy.yaml", []byte("default: allow\nrules:\n  - {name: no bulk, when: 'name == \"buy\" && arguments.n > 10', effect: deny}\n  - {name: all tools, when: 'kind == \"tool\"', effect: allow}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The lines of a call name its caller, client, server, tool and rule, and how it ended.
func TestTrail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone})
	rule := parseRules(t)
	trail := &audit.Trail{Log: l, Team: func(context.Context) string { return "dev" }, IP: func(context.Context) string { return "10.0.0.7" }, Identity: func(string) string { return "https://shop" }}
	var begun []string
	s := trailed(t, trail, rule, func(tool string) {
		for _, e := range calls(t, path) { // the begin is written before the call leaves
			if e.Kind == audit.CallBegin && e.Tool == tool {
				begun = append(begun, tool)
			}
		}
	})
	ctx := t.Context()
	meta := mcp.WithMeta(mcp.Meta{"traceparent": json.RawMessage(`"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`)})
	if _, err := s.CallTool(ctx, "shop_buy", map[string]any{"n": 1}, meta); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(ctx, "shop_fail", map[string]any{"n": 1}); err != nil && !strings.Contains(err.Error(), "no") {
		t.Fatal(err)
	}
	if _, err := s.CallTool(ctx, "shop_buy", map[string]any{"n": 100}); err == nil {
		t.Fatal("the policy allows what it refuses")
	}
	if _, err := s.CallTool(ctx, "unknown", nil); err == nil {
		t.Fatal("an unknown tool is called")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"buy", "fail"}; !slices.Equal(begun, want) {
		t.Errorf("begins before their calls: %v, want %v", begun, want)
	}
	var got []string
	for _, e := range calls(t, path) {
		if e.Kind == audit.List {
			continue
		}
		word := string(e.Kind) + " " + e.Tool
		if e.Server != nil {
			word += " at " + e.Server.Name
			if e.Server.Identity != "https://shop" {
				t.Errorf("%s has the server %+v", word, e.Server)
			}
		}
		if e.Decision != nil {
			word += " by " + e.Decision.Rule
		}
		got = append(got, word+" "+e.Outcome)
	}
	want := []string{
		"call.begin buy at shop by all tools ", "call.end buy at shop by all tools ok",
		"call.begin fail at shop by all tools ", "call.end fail at shop by all tools tool error",
		"denied buy at shop by no bulk denied",
		"call.end unknown error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	list := calls(t, path)
	i := slices.IndexFunc(list, func(e *audit.Entry) bool { return e.Kind == audit.CallBegin })
	begin, end := list[i], list[i+1]
	if begin.Principal == nil || begin.Principal.ID != "https://idp#ada" || begin.Team != "dev" || begin.Client == nil || begin.Client.Name != "desk" || begin.Client.IP != "10.0.0.7" ||
		begin.Server.Identity != "https://shop" || begin.Trace != "4bf92f3577b34da6a3ce929d0e0e4736" || begin.Arguments.Digest != audit.Digest(json.RawMessage(`{"n":1}`)) || begin.Decision.Policy == "" {
		raw, _ := json.Marshal(begin)
		t.Errorf("the begin is %s", raw)
	}
	if end.Call != begin.Call || len(end.Call) != 26 || end.Result == "" || end.Bytes == 0 || end.Millis <= 0 {
		raw, _ := json.Marshal(end)
		t.Errorf("the end is %s", raw)
	}
}

// A call whose begin cannot be written is refused in words, or passed on if the trail says so.
func TestTrailFailure(t *testing.T) {
	for _, failure := range []audit.Failure{audit.Refuse, audit.Pass} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, path, &audit.Options{Sync: audit.SyncNone})
		called := false
		s := trailed(t, &audit.Trail{Log: l, OnFailure: failure, Trusted: func(string) bool { return true }}, parseRules(t), func(string) { called = true })
		if _, err := s.CallTool(t.Context(), "shop_buy", map[string]any{"n": 1}); err != nil {
			t.Fatal(err)
		}
		called = false
		if err := l.Close(); err != nil { // as if it could not be written
			t.Fatal(err)
		}
		_, err := s.CallTool(t.Context(), "shop_buy", map[string]any{"n": 1})
		if failure == audit.Pass && (err != nil || !called) || failure == audit.Refuse && (called || err == nil || !strings.Contains(err.Error(), "audit log") || strings.Contains(err.Error(), path)) {
			t.Errorf("%v: called %t, error %v", failure, called, err)
		}
		// a read-only tool of a trusted server does not wait for its line, which is lost here
		called = false
		for _, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.CallTool(t.Context(), "shop_list", map[string]any{"n": 1}); called != (failure == audit.Pass) || called != (err == nil) {
			t.Errorf("%v: a read-only tool: called %t, error %v", failure, called, err)
		}
	}
}

// The error of a refused call says that the audit log is the reason, so that metrics do not count it as the server's.
func TestTrailUnlogged(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"), &audit.Options{Sync: audit.SyncNone})
	if err := l.Close(); err != nil { // as if it could not be written
		t.Fatal(err)
	}
	h := (&audit.Trail{Log: l}).Around("shop")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		t.Error("the call was made")
		return nil, nil
	}))
	_, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"buy"}`)})
	var unlogged interface{ Unlogged() bool }
	var rpc *mcp.Error
	if !errors.As(err, &unlogged) || !unlogged.Unlogged() || !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
		t.Errorf("%#v", err)
	}
	if kind := metrics.KindOf(t.Context(), nil, err); kind != metrics.Unlogged {
		t.Errorf("the kind is %v", kind)
	}

	path := filepath.Join(t.TempDir(), "audit.jsonl") // of a log that has room again at the end of the call
	after := open(t, path, nil)
	h = (&audit.Trail{Log: after}).Outer()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, err }))
	h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"buy"}`)})
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for e := range audit.Read(path) {
		if e.Kind == audit.CallEnd && e.Fault == "audit" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends with the fault audit, want 1", ends)
	}
}

// Around alone writes both lines, and Note adds to them.
func TestAroundAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	server := shop(func(string) {})
	server.Use((&audit.Trail{Log: l}).Around("shop"), func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			audit.Note(ctx, func(e *audit.Entry) { e.Cached = true })
			return next.Handle(ctx, req)
		})
	})
	c := &mcp.Client{Name: "desk", Version: "2"}
	s, err := c.Open(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "buy", map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	audit.Note(t.Context(), func(*audit.Entry) { t.Error("Note outside of a request") })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(calls(t, path), func(e *audit.Entry) bool { return e.Kind == audit.List })
	if len(list) != 2 || list[0].Kind != audit.CallBegin || list[1].Kind != audit.CallEnd || !list[1].Cached || list[0].Cached {
		data, _ := os.ReadFile(path)
		t.Errorf("the log has %s", data)
	}
}

// A call through a gateway behind a gateway is one call: each server has its begin, and the end names
// the first. It is not a retry.
func TestNestedGateways(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone})
	trail := &audit.Trail{Log: l}
	inner := &gateway.Gateway{Name: "inner", Version: "1", Middleware: trail.Around}
	outer := &gateway.Gateway{Name: "outer", Version: "1", Middleware: trail.Around}
	if err := errors.Join(inner.Set("shop", shop(func(string) {})), outer.Set("in", inner)); err != nil {
		t.Fatal(err)
	}
	front := &mcp.Server{Name: "front", Version: "1", Handler: outer}
	front.Use(trail.Outer())
	bought(t, front, "in_shop_buy")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(t, path), "call.begin in/shop_buy, call.begin shop/buy, call.end in/shop_buy"; got != want {
		t.Errorf("the log has %s; want %s", got, want)
	}
}

// Each of two Trails has its own begin and end, so that no log has one without the other.
func TestTwoTrails(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "first.jsonl"), filepath.Join(t.TempDir(), "second.jsonl")
	a, b := open(t, first, nil), open(t, second, nil)
	server := shop(func(string) {})
	server.Use((&audit.Trail{Log: a}).Outer(), (&audit.Trail{Log: b}).Around("shop"))
	bought(t, server, "buy")
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(t, first), "call.end buy"; got != want {
		t.Errorf("the first log has %s; want %s", got, want)
	}
	if got, want := kinds(t, second), "call.begin shop/buy, call.end shop/buy"; got != want {
		t.Errorf("the second log has %s; want %s", got, want)
	}
}

// bought calls a tool of a server.
func bought(t *testing.T, server *mcp.Server, tool string) {
	t.Helper()
	s, err := (&mcp.Client{Name: "desk", Version: "2"}).Open(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if res, err := s.CallTool(t.Context(), tool, map[string]any{"n": 1}); err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
}

// kinds returns the kinds of the lines of calls, with their servers and tools. All must be of one call.
func kinds(t *testing.T, path string) string {
	t.Helper()
	var out []string
	call := ""
	for _, e := range calls(t, path) {
		if e.Kind == audit.List {
			continue
		}
		if call == "" {
			call = e.Call
		}
		if e.Call != call {
			t.Errorf("%s is of another call", e.Line())
		}
		name := e.Tool
		if e.Server != nil {
			name = e.Server.Name + "/" + name
		}
		out = append(out, string(e.Kind)+" "+name)
	}
	return strings.Join(out, ", ")
}

// A Trail without a Log is refused before the first request.
func TestTrailWithoutLog(t *testing.T) {
	for name, make := range map[string]func(){"Outer": func() { new(audit.Trail).Outer() }, "Around": func() { new(audit.Trail).Around("s")(nil) }} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, "no Log") {
					t.Errorf("%s: %v", name, p)
				}
			}()
			make()
		}()
	}
}
