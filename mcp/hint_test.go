package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// hints returns the caching hints of a result, as JSON.
func hints(raw json.RawMessage) string {
	var w struct {
		TTL   json.RawMessage `json:"ttlMs"`
		Scope json.RawMessage `json:"cacheScope"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s", w.TTL, w.Scope)
}

// CACHE-26-001, -018 to -021: each of the six results says how long and for whom it is
// good: not at all and for the caller alone, unless the server was told otherwise. All
// pages of a list say the same. A server that shows each caller something else says so.
func TestHints(t *testing.T) {
	hidden := func(_ context.Context, f mcp.Feature) bool { return f.Name != "t003" }
	for _, tt := range []struct {
		name        string
		set         func(*mcp.Server)
		lists, read string
	}{
		{"nothing", func(*mcp.Server) {}, `0 "private"`, `0 "private"`},
		{"a time", func(s *mcp.Server) { s.Cache.TTL = time.Minute }, `60000 "private"`, `0 "private"`},
		{"public", func(s *mcp.Server) { s.Cache = mcp.CacheHint{TTL: time.Second, Public: true} }, `1000 "public"`, `0 "private"`},
		{"negative", func(s *mcp.Server) { s.Cache.TTL = -time.Minute }, `0 "private"`, `0 "private"`},
		{"not all see the same", func(s *mcp.Server) { s.Cache, s.Visible = mcp.CacheHint{TTL: time.Second, Public: true}, hidden }, `1000 "private"`, `0 "private"`},
		{"a resource", func(s *mcp.Server) {
			mcp.AddResource(s, mcp.Resource{URI: "lib:text", Name: "text"}, func(context.Context) (*mcp.ReadResult, error) {
				return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: "lib:text"}}, Cache: mcp.CacheHint{TTL: time.Hour, Public: true}}, nil
			})
		}, `0 "private"`, `3600000 "public"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := library()
			srv.Limits.PageSize = 2
			addTools(srv, 0, 5)
			mcp.AddPrompt(srv, mcp.Prompt{Name: "p"}, func(context.Context, struct{}) (string, error) { return "", nil })
			tt.set(srv)
			s := unchecked(t, srv, &mcp.Client{Name: "c", Limits: mcp.Limits{Cache: -1}})
			check := func(method, want string, params any) (next any) {
				t.Helper()
				raw, err := s.Raw(t.Context(), method, params)
				if got := hints(raw); err != nil || got != want {
					t.Errorf("%s: %s, %v; want %s", method, got, err, want)
				}
				var page struct {
					Next any `json:"nextCursor"`
				}
				_ = json.Unmarshal(raw, &page)
				return page.Next
			}
			check("server/discover", tt.lists, nil)
			check("prompts/list", tt.lists, nil)
			check("resources/list", tt.lists, nil)
			check("resources/templates/list", tt.lists, nil)
			check("resources/read", tt.read, map[string]string{"uri": "lib:text"})
			pages := 0
			for next := check("tools/list", tt.lists, nil); next != nil; pages++ {
				next = check("tools/list", tt.lists, map[string]any{"cursor": next})
			}
			if pages != 2-strings.Count(tt.name, "same") {
				t.Errorf("%d more pages of tools", pages)
			}
			// CACHE-26-022: a cached list does not grant access.
			if _, err := s.CallTool(t.Context(), "t003", nil); (err != nil) != (srv.Visible != nil) {
				t.Errorf("a call of t003: %v", err)
			}
			res, err := s.ReadResource(t.Context(), "lib:text")
			if err != nil || fmt.Sprintf("%d %t", res.Cache.TTL.Milliseconds(), res.Cache.Public) != strings.NewReplacer(`"private"`, "false", `"public"`, "true").Replace(tt.read) {
				t.Errorf("read: %+v, %v", res, err)
			}
			// Older revisions have no word for it.
			old := unchecked(t, srv, &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}})
			if raw, err := old.Raw(t.Context(), "tools/list", nil); err != nil || hints(raw) != " " {
				t.Errorf("2025-11-25: %s, %v", raw, err)
			}
		})
	}
}

// CACHE-26-009: what a handler says of its result is passed on if it is sound, else what
// is safe is said instead.
func TestUnsoundHints(t *testing.T) {
	for rest, want := range map[string]string{
		``:                                   `0 "private"`,
		`,"ttlMs":5,"cacheScope":"public"`:   `5 "public"`,
		`,"ttlMs":5`:                         `5 "private"`,
		`,"cacheScope":"public"`:             `0 "public"`,
		`,"ttlMs":-5,"cacheScope":"public"`:  `0 "public"`,
		`,"ttlMs":1.5,"cacheScope":"all"`:    `0 "private"`,
		`,"ttlMs":"5","cacheScope":7`:        `0 "private"`,
		`,"ttlMs":null,"cacheScope":null`:    `0 "private"`,
		`,"ttlMs":1e300,"cacheScope":"none"`: `1e300 "private"`,
	} {
		c := &counting{answer: func(*mcp.Request, int) (mcp.Result, error) { return tools(1, rest), nil }}
		s := unchecked(t, c.server(), &mcp.Client{Name: "c", Limits: mcp.Limits{Cache: -1}})
		if raw, err := s.Raw(t.Context(), "tools/list", nil); err != nil || hints(raw) != want {
			t.Errorf("%s becomes %s, %v; want %s", rest, hints(raw), err, want)
		}
	}
}

// CACHE-26-002: a result that asks for input lacks hints.
func TestQuestionsHaveNoHints(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1", Cache: mcp.CacheHint{TTL: time.Hour}}
	mcp.AddResource(srv, mcp.Resource{URI: "a:", Name: "a"}, func(ctx context.Context) (*mcp.ReadResult, error) {
		_, err := mcp.Confirm(ctx, "read it?")
		return &mcp.ReadResult{Cache: mcp.CacheHint{TTL: time.Hour}}, err
	})
	asked := 0
	c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}, OnFrame: func(f trace.Frame) {
		if strings.Contains(string(f.Msg), "input_required") {
			if asked++; strings.Contains(string(f.Msg), "ttlMs") || strings.Contains(string(f.Msg), "cacheScope") {
				t.Errorf("hints in %s", f.Msg)
			}
		}
	}}
	if _, err := unchecked(t, srv, c).ReadResource(t.Context(), "a:"); err != nil || asked != 1 {
		t.Errorf("read: %v, asked %d times", err, asked)
	}
}
