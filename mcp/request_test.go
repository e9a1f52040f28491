package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A nil Request or Handler is an error of the caller, and not the end of the process.
func TestNilRequest(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	local, err := new(mcp.Client).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	seen := &mcp.Client{}
	seen.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) { return next.Handle(ctx, nil) })
	})
	passed, err := seen.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	remote := mcptest.Connect(t, srv, new(mcp.Client), mcp.V2026_07_28)
	for name, do := range map[string]func() (mcp.Result, error){
		"local Do":      func() (mcp.Result, error) { return local.Do(t.Context(), nil) },
		"local Handle":  func() (mcp.Result, error) { return local.Handle(t.Context(), nil) },
		"remote Do":     func() (mcp.Result, error) { return remote.Do(t.Context(), nil) },
		"remote Handle": func() (mcp.Result, error) { return remote.Handle(t.Context(), nil) },
		"server":        func() (mcp.Result, error) { return srv.Handle(t.Context(), nil) },
		"middleware":    func() (mcp.Result, error) { return passed.Do(t.Context(), &mcp.Request{Method: "tools/list"}) },
	} {
		if _, err := do(); err == nil || !strings.Contains(err.Error(), "the Request is nil") {
			t.Errorf("%s of a nil Request = %v, want an error that says so", name, err)
		}
	}
	for name, h := range map[string]mcp.Handler{"nil": nil, "server": (*mcp.Server)(nil), "session": (*mcp.Session)(nil), "function": mcp.HandlerFunc(nil)} {
		if _, err := new(mcp.Client).Open(t.Context(), h); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("Open of a nil %s = %v, want an error", name, err)
		}
	}
}

// Middleware and handlers get the same request: one that readers could read differently is refused
// in front of the first middleware, wherever it comes from.
func TestExactRequests(t *testing.T) {
	var ran, seen atomic.Int32
	srv := &mcp.Server{Name: "s", Version: "1"}
	type in struct {
		A int `json:"a"`
	}
	mcp.AddTool(srv, mcp.Tool{Name: "wipe"}, func(context.Context, in) (string, error) { ran.Add(1); return "", nil })
	behind := &mcp.Server{Name: "s", Version: "1", Handler: srv}
	see := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" {
				seen.Add(1)
			}
			return next.Handle(ctx, req)
		})
	}
	behind.Use(see)
	hs := httptest.NewServer(behind)
	defer hs.Close()
	plain, watched := &mcp.Client{}, &mcp.Client{}
	watched.Use(see)
	sessions := map[string]*mcp.Session{}
	for name, open := range map[string]func() (*mcp.Session, error){
		"Server.Use": func() (*mcp.Session, error) { return plain.Open(t.Context(), behind) },
		"Client.Use": func() (*mcp.Session, error) { return watched.Open(t.Context(), srv) },
		"Dial":       func() (*mcp.Session, error) { return watched.Dial(t.Context(), hs.URL) },
	} {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions[name] = s
	}
	for _, params := range []string{
		`{"name":"wipe","Name":"hi"}`,
		`{"name":"wipe","name":"hi"}`,
		`{"n\u0061me":"hi","name":"wipe"}`,
		`{"name":"wipe","arguments":{"a":1,"\u0061":2}}`,
		`{"name":"wipe","arguments":{"a":1}`,
		`{`,
		`[]`,
		`"wipe"`,
	} {
		for name, s := range sessions {
			req := &mcp.Request{Method: "tools/call", Params: json.RawMessage(params)}
			_, done := s.Do(t.Context(), req)
			_, handled := s.Handle(t.Context(), req)
			for way, err := range map[string]error{"Do": done, "Handle": handled} {
				var rpc *mcp.Error
				if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("%s, %s of %s = %v, want invalid params", name, way, params, err)
				}
			}
		}
		if _, err := behind.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(params)}); err == nil {
			t.Errorf("Server.Handle of %s succeeded", params)
		}
	}
	if ran.Load() > 0 || seen.Load() > 0 {
		t.Errorf("the tool ran %d times and middleware saw %d requests, want none", ran.Load(), seen.Load())
	}
	for name, s := range sessions {
		for _, params := range []string{`{"name":"wipe","arguments":{"a":1}}`, " {\"name\":\"wipe\",\n\"arguments\":{\"a\":1}} "} {
			if _, err := s.Do(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(params)}); err != nil {
				t.Errorf("%s, Do of %q: %v", name, params, err)
			}
		}
	}
}

// A request that middleware makes is checked as one from a wire is, and is read as it is.
func TestMiddlewareMakesRequest(t *testing.T) {
	change := func(change func(*mcp.Request)) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				out := *req
				if req.Method == "tools/call" || req.Method == "alias" {
					change(&out)
				}
				return next.Handle(ctx, &out)
			})
		}
	}
	var got string
	read := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" {
				got = string(req.Param("name"))
			}
			return next.Handle(ctx, req)
		})
	}
	for _, tt := range []struct {
		name   string
		method string
		change func(*mcp.Request)
		want   string
	}{
		{"other params", "tools/call", func(r *mcp.Request) { r.Params = json.RawMessage(`{"name":"b"}`) }, `"b"`},
		{"two names", "tools/call", func(r *mcp.Request) { r.Params = json.RawMessage(`{"name":"b","name":"a"}`) }, ""},
		{"two cases", "tools/call", func(r *mcp.Request) { r.Params = json.RawMessage(`{"name":"b","Name":"a"}`) }, ""},
		{"other method", "alias", func(r *mcp.Request) { r.Method = "tools/call" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := &mcp.Server{Name: "s", Version: "1"}
			for _, name := range []string{"a", "b"} {
				mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
			}
			srv.Use(change(tt.change), read)
			local, err := new(mcp.Client).Open(t.Context(), srv)
			if err != nil {
				t.Fatal(err)
			}
			defer local.Close()
			params, sessions := map[string]any{"name": "a", "Name": "b"}, []*mcp.Session{local}
			if tt.method == "tools/call" {
				params, sessions = map[string]any{"name": "a"}, append(sessions, mcptest.Connect(t, srv, new(mcp.Client), mcp.V2026_07_28))
			}
			for _, s := range sessions {
				got = ""
				_, err := s.Raw(t.Context(), tt.method, params)
				if got != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("the next middleware read %s, error %v; want %s", got, err, tt.want)
				}
			}
		})
	}
}

// Do does not replace a method that the revision of the server does not have.
func TestDoMethods(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "x", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) { return "", nil })
	hs := httptest.NewServer(srv)
	defer hs.Close()
	pass := func(next mcp.Handler) mcp.Handler { return next }
	for _, tt := range []struct {
		method, params         string
		legacy, modern, behind bool // 2025-11-25, 2026-07-28, and 2025-11-25 behind middleware have it
	}{
		{"tools/list", `{}`, true, true, true},
		{"server/discover", `{}`, false, true, true},
		{"tasks/update", `{"taskId":"x"}`, false, true, true},
		{"subscriptions/listen", `{"notifications":{}}`, false, true, true},
		{"ping", `{}`, true, false, true},
		{"logging/setLevel", `{"level":"info"}`, true, false, true},
	} {
		for name, want := range map[string]bool{"legacy": tt.legacy, "modern": tt.modern, "behind": tt.behind} {
			c := &mcp.Client{}
			if name != "modern" {
				c.Revisions = []mcp.Revision{mcp.V2025_11_25}
			}
			if name == "behind" {
				c.Use(pass)
			}
			s, err := c.Dial(t.Context(), hs.URL)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if tt.method == "subscriptions/listen" && want {
				cancel() // it would last
				ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
			}
			_, err = s.Do(ctx, &mcp.Request{Method: tt.method, Params: json.RawMessage(tt.params)})
			cancel()
			var rpc *mcp.Error
			if refused := errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound; refused == want {
				t.Errorf("%s at a %s server = %v", tt.method, name, err)
			}
			s.Close()
		}
	}
}
