package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A session knows whether a change of a list would reach it, and counts those that do.
func TestListVersion(t *testing.T) {
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "a"}, func(context.Context, struct{}) (string, error) { return "", nil })
		return s
	}
	noStream := func(s *mcp.Server) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			s.ServeHTTP(w, r)
		})
	}
	for _, tt := range []struct {
		name  string
		rev   mcp.Revision
		over  func(*mcp.Server) http.Handler // nil: a pipe
		heard bool
	}{
		{"pipe", mcp.V2025_11_25, nil, true},
		{"pipe, modern", mcp.V2026_07_28, nil, false}, // but for what is subscribed to
		{"HTTP", mcp.V2025_11_25, func(s *mcp.Server) http.Handler { return s }, true},
		{"HTTP without a GET stream", mcp.V2025_11_25, noStream, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer()
			c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{tt.rev}}
			var s *mcp.Session
			if tt.over == nil {
				s = mcptest.Connect(t, srv, c, tt.rev)
			} else {
				web := httptest.NewServer(tt.over(srv))
				t.Cleanup(web.Close)
				var err error
				if s, err = c.Dial(t.Context(), web.URL); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
			}
			if _, err := s.Raw(t.Context(), "tools/list", nil); err != nil { // the session is open on both sides
				t.Fatal(err)
			}
			before, heard := s.ListVersion("tools/list")
			for end := time.Now().Add(time.Minute); heard != tt.heard && time.Now().Before(end); before, heard = s.ListVersion("tools/list") {
				time.Sleep(time.Millisecond) // the GET stream may open later than the session
			}
			if heard != tt.heard {
				t.Errorf("changes are heard: %v, want %v", heard, tt.heard)
			}
			if _, heard := s.ListVersion("prompts/list"); heard {
				t.Error("changes of prompts are heard from a server that has none")
			}
			if !tt.heard {
				return
			}
			mcp.AddTool(srv, mcp.Tool{Name: "b"}, func(context.Context, struct{}) (string, error) { return "", nil })
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if now, _ := s.ListVersion("tools/list"); now > before {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the version did not grow")
				}
			}
		})
	}
}

// The key of a caller is the same in all of its calls, and other if it declares anything else.
func TestCallerKey(t *testing.T) {
	keys := make(chan string, 1)
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "key"}, func(ctx context.Context, _ struct{}) (string, error) {
		keys <- forward.CallerKey(ctx)
		return "", nil
	})
	whose := map[string]string{}
	for _, rev := range mcp.Revisions() {
		for name, c := range map[string]*mcp.Client{
			"plain":     {Name: "c", Version: "1"},
			"other":     {Name: "d", Version: "1"},
			"newer":     {Name: "c", Version: "2"},
			"extension": {Name: "c", Version: "1", Extensions: map[string]json.RawMessage{"x/y": json.RawMessage(`{}`)}},
			"roots":     {Name: "c", Version: "1", Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }},
		} {
			s := mcptest.Connect(t, srv, c, rev)
			for range 2 {
				if _, err := s.CallTool(t.Context(), "key", nil); err != nil {
					t.Fatal(err)
				}
				who, key := string(rev)+" "+name, <-keys
				if key == "" {
					t.Errorf("%s has no key", who)
				}
				if other, ok := whose[key]; ok && other != who {
					t.Errorf("%s and %s have one key", who, other)
				}
				whose[key] = who
			}
		}
	}
	if key := forward.CallerKey(t.Context()); key != "" {
		t.Errorf("outside of a call the key is %q", key)
	}
}

// A kept result has the form of a RawResult on each revision.
func TestKeptResult(t *testing.T) {
	raw := mcp.RawResult(`{"tools":[{"name":"x","title":"X","icons":[],"inputSchema":{"type":"object"},"x-new":[1,2.50]}],` + "\n" + `"ttlMs":5,"cacheScope":"public","_meta":{"a":1}}`)
	kept := raw.Keep()
	answer := func(res mcp.Result) mcp.Handler {
		return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "server/discover" {
				return mcp.RawResult(`{"capabilities":{"tools":{}}}`), nil
			}
			return res, nil
		})
	}
	one, other := &mcp.Server{Name: "s", Version: "1", Handler: answer(raw)}, &mcp.Server{Name: "s", Version: "1", Handler: answer(kept)}
	for _, rev := range mcp.Revisions() {
		a := mcptest.Connect(t, one, &mcp.Client{Name: "c", Version: "1"}, rev)
		b := mcptest.Connect(t, other, &mcp.Client{Name: "c", Version: "1"}, rev)
		want, err := a.Raw(t.Context(), "tools/list", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := b.Raw(t.Context(), "tools/list", nil, mcp.WithoutCache())
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: %s, %v, want %s", rev, got, err, want)
			}
		}
	}
	if got := string(mcp.RawResult(nil).Keep().JSON()); got != "{}" {
		t.Errorf("RawResult(nil).Keep() is %s, want {}", got)
	}
}
