package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// counting is a modern server that answers by a function and counts the requests.
type counting struct {
	answer func(r *mcp.Request, n int) (mcp.Result, error) // n counts the method's requests

	mu   sync.Mutex
	seen map[string]int // guarded by mu
}

func (c *counting) Handle(_ context.Context, r *mcp.Request) (mcp.Result, error) {
	if r.Method == "server/discover" {
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "counting", Version: "1"}, Revisions: mcp.Revisions()}, nil
	}
	c.mu.Lock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[r.Method]++
	n := c.seen[r.Method]
	c.mu.Unlock()
	return c.answer(r, n)
}

func (c *counting) server() *mcp.Server {
	return &mcp.Server{Name: "counting", Version: "1", Handler: c}
}

// tools makes a list that names the request it answers.
func tools(n int, rest string) mcp.RawResult {
	return mcp.RawResult(fmt.Sprintf(`{"tools":[{"name":"n%d","inputSchema":{"type":"object"}}]%s}`, n, rest))
}

// CACHE-26-005 to -008, -010 to -012: a list is valid for ttlMs after it arrived, and never if that
// is missing, zero, negative or malformed. After that it is fetched again on the next request, not
// before.
func TestCacheTimes(t *testing.T) {
	for rest, kept := range map[string]bool{
		``: false, `,"ttlMs":0`: false, `,"ttlMs":-5`: false, `,"ttlMs":"60000"`: false, `,"ttlMs":null`: false, `,"cacheScope":"public"`: false,
		`,"ttlMs":60000`: true, `,"ttlMs":60000,"cacheScope":"private"`: true, `,"ttlMs":6e4,"cacheScope":"public"`: true, `,"ttlMs":1e300`: true,
	} {
		t.Run(rest, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counting{answer: func(_ *mcp.Request, n int) (mcp.Result, error) { return tools(n, rest), nil }}
				s := unchecked(t, c.server(), nothing())
				list := func() string { return fmt.Sprint(toolNames(t, s)) }
				first := list()
				time.Sleep(59 * time.Second)
				if again := list(); (again == first) != kept {
					t.Errorf("after 59 s: %s, first %s; want kept: %t", again, first, kept)
				}
				if !kept || strings.Contains(rest, "300") {
					return
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n := c.seen["tools/list"]; n != 1 {
					t.Errorf("%d requests, though nobody asked", n)
				}
				if again := list(); again != "[n2]" {
					t.Errorf("after 60 s: %s, want [n2]", again)
				}
			})
		})
	}
}

// CACHE-26-003: a cached result answers only the same method and params. WithoutCache, and a Client
// without a cache, ask the server; a caller's trace context makes no difference.
func TestCacheKeys(t *testing.T) {
	c := &counting{answer: func(r *mcp.Request, n int) (mcp.Result, error) {
		if r.Method == "resources/read" {
			return mcp.RawResult(fmt.Sprintf(`{"contents":[{"uri":%s,"text":"%d"}],"ttlMs":60000,"cacheScope":"private"}`, r.Param("uri"), n)), nil
		}
		return tools(n, `,"ttlMs":60000,"cacheScope":"private"`), nil
	}}
	s := unchecked(t, c.server(), nothing())
	read := func(s *mcp.Session, uri string, opts ...mcp.CallOption) string {
		res, err := s.ReadResource(t.Context(), uri, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return res.Contents[0].URI + res.Contents[0].Text
	}
	got := []string{
		read(s, "a:"), read(s, "b:"), read(s, "a:"), read(s, "b:"), read(s, "a:", mcp.WithoutCache()), read(s, "a:"),
		read(s, "a:", mcp.WithMeta(mcp.Meta{"traceparent": []byte(`"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"`)})),
		read(s, "a:", mcp.WithMeta(mcp.Meta{"com.example/view": []byte(`1`)})),
	}
	if want := []string{"a:1", "b:2", "a:1", "b:2", "a:3", "a:3", "a:3", "a:4"}; !slices.Equal(got, want) {
		t.Errorf("reads = %q, want %q", got, want)
	}
	raw, err := s.Raw(t.Context(), "tools/list", map[string]string{"cursor": "x"})
	if other := fmt.Sprint(toolNames(t, s)); err != nil || !strings.Contains(string(raw), "n1") || other != "[n2]" {
		t.Errorf("tools with and without a cursor = %s, %v and %s", raw, err, other)
	}
	none := unchecked(t, c.server(), &mcp.Client{Name: "c", Limits: mcp.Limits{Cache: -1}})
	if a, b := read(none, "a:"), read(none, "a:"); a == b {
		t.Errorf("a client that keeps nothing reads %s twice", a)
	}
}

// CACHE-26-004: the result after an answered question is not cached.
func TestCacheAndQuestions(t *testing.T) {
	c := &counting{answer: func(r *mcp.Request, n int) (mcp.Result, error) { return nil, nil }}
	srv := c.server()
	srv.Handler = mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method != "resources/read" {
			return c.Handle(ctx, r)
		}
		if _, err := mcp.Confirm(ctx, "read it?"); err != nil {
			return nil, err
		}
		return mcp.RawResult(`{"contents":[],"ttlMs":60000,"cacheScope":"private"}`), nil
	})
	asked := 0
	s := unchecked(t, srv, &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}})
	for range 3 {
		if _, err := s.ReadResource(t.Context(), "a:"); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// CACHE-26-013: a session that serves others caches public results but none that are private to one
// of them; its own private results are not given to them.
func TestCacheIsNotShared(t *testing.T) {
	for scope, shared := range map[string]bool{`,"cacheScope":"public"`: true, `,"cacheScope":"private"`: false, ``: false, `,"cacheScope":"other"`: false} {
		t.Run(scope, func(t *testing.T) {
			c := &counting{answer: func(_ *mcp.Request, n int) (mcp.Result, error) { return tools(n, `,"ttlMs":60000`+scope), nil }}
			back := unchecked(t, c.server(), nothing())
			gateway := &mcp.Server{Name: "gateway", Version: "1", Handler: back}
			own := fmt.Sprint(toolNames(t, back))
			var got []string
			for range 3 {
				got = append(got, fmt.Sprint(toolNames(t, unchecked(t, gateway, nothing()))))
			}
			want := []string{"[n2]", "[n3]", "[n4]"}
			if shared {
				want = []string{"[n1]", "[n1]", "[n1]"}
			}
			if own != "[n1]" || !slices.Equal(got, want) {
				t.Errorf("own %s, callers %s; want %s", own, got, want)
			}
		})
	}
}

// CACHE-26-014: a notification drops only the results it affects, including an answer that has not
// arrived yet.
func TestCacheIsInvalidated(t *testing.T) {
	mcptest.LeakCheck(t)
	scoped := func(list string, n int) mcp.RawResult {
		return mcp.RawResult(fmt.Sprintf(`{%q:[{"name":"n%d","uri":"n%[2]d:","uriTemplate":"n%[2]d:{x}","inputSchema":{"type":"object"}}],"ttlMs":600000,"cacheScope":"private"}`, list, n))
	}
	var late func()
	emit := make(chan string)
	c := &counting{}
	c.answer = func(r *mcp.Request, n int) (mcp.Result, error) {
		switch r.Method {
		case "tools/list":
			if late != nil {
				late()
			}
			return scoped("tools", n), nil
		case "prompts/list":
			return scoped("prompts", n), nil
		case "resources/list":
			return scoped("resources", n), nil
		case "resources/templates/list":
			return scoped("resourceTemplates", n), nil
		}
		return mcp.RawResult(fmt.Sprintf(`{"contents":[{"uri":%s,"text":"n%d"}],"ttlMs":600000,"cacheScope":"private"}`, r.Param("uri"), n)), nil
	}
	server := c.server()
	server.Handler = mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method != "subscriptions/listen" {
			return c.Handle(ctx, r)
		}
		notify := func(method, params string) {
			if err := forward.Notify(ctx, "notifications/"+method, json.RawMessage(params)); err != nil {
				t.Error(err)
			}
		}
		notify("subscriptions/acknowledged", `{"notifications":`+string(r.Param("notifications"))+`}`)
		for {
			select {
			case n := <-emit:
				method, params, _ := strings.Cut(n, " ")
				notify(method, params)
			case <-ctx.Done():
				return mcp.RawResult(`{}`), nil
			}
		}
	})
	s := unchecked(t, server, nothing())
	events := watching(t, t.Context(), s, "f:", "g:")
	all := func() string {
		t.Helper()
		must := func(names []string, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			return names[0]
		}
		out := []string{
			must(gather(s.Tools(t.Context()), func(t *mcp.Tool) string { return t.Name })),
			must(gather(s.Prompts(t.Context()), func(t *mcp.Prompt) string { return t.Name })),
			must(gather(s.Resources(t.Context()), func(t *mcp.Resource) string { return t.Name })),
			must(gather(s.ResourceTemplates(t.Context()), func(t *mcp.ResourceTemplate) string { return t.Name })),
		}
		for _, uri := range []string{"f:", "g:"} {
			res, err := s.ReadResource(t.Context(), uri)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, res.Contents[0].Text)
		}
		return strings.Join(out, " ")
	}
	for _, step := range []struct{ note, want string }{
		{"", "n1 n1 n1 n1 n1 n2"},
		{"", "n1 n1 n1 n1 n1 n2"},
		{"tools/list_changed {}", "n2 n1 n1 n1 n1 n2"},
		{"prompts/list_changed {}", "n2 n2 n1 n1 n1 n2"},
		{"resources/list_changed {}", "n2 n2 n2 n2 n1 n2"},
		{`resources/updated {"uri":"g:"}`, "n2 n2 n2 n2 n1 n3"},
		{`resources/updated {"uri":"f:below"}`, "n2 n2 n2 n2 n4 n3"},
	} {
		if step.note != "" {
			emit <- step.note
			<-events
		}
		if got := all(); got != step.want {
			t.Errorf("after %q: %s, want %s", step.note, got, step.want)
		}
	}
	// The list changes while it is on its way.
	late = func() {
		late = nil
		emit <- "tools/list_changed {}"
		<-events
	}
	if _, err := gather(s.Tools(t.Context(), mcp.WithoutCache()), func(t *mcp.Tool) string { return t.Name }); err != nil {
		t.Fatal(err)
	}
	if got := all(); !strings.HasPrefix(got, "n4 ") {
		t.Errorf("a list that changed on its way was kept: %s", got)
	}
}

// The cache is bounded: the least recently used result is dropped first.
func TestCacheIsBounded(t *testing.T) {
	c := &counting{answer: func(r *mcp.Request, n int) (mcp.Result, error) {
		return mcp.RawResult(fmt.Sprintf(`{"contents":[{"uri":%s,"text":"%d%s"}],"ttlMs":600000}`, r.Param("uri"), n, strings.Repeat("x", 1000))), nil
	}}
	s := unchecked(t, c.server(), &mcp.Client{Name: "c", Limits: mcp.Limits{Cache: 5000}})
	for i := range 100 {
		for _, uri := range []string{"hot:", fmt.Sprintf("cold:%d", i)} {
			if _, err := s.ReadResource(t.Context(), uri); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := c.seen["resources/read"]; n != 101 {
		t.Errorf("%d reads reached the server, want 101", n)
	}
	if _, err := s.ReadResource(t.Context(), "cold:0"); err != nil || c.seen["resources/read"] != 102 {
		t.Errorf("the oldest is still there: %d reads, %v", c.seen["resources/read"], err)
	}
}

// CACHE-26-015 to -017: pages are cached one by one; an expired page is fetched with its cursor. If
// the cursor is no longer valid, the list is read again from its beginning, once, and no entry is
// yielded twice.
func TestCachedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch, seen := "a", []string{}
		c := &counting{answer: func(r *mcp.Request, _ int) (mcp.Result, error) {
			cursor := strings.Trim(string(r.Param("cursor")), `"`)
			seen = append(seen, cursor)
			page := func(names, rest string) (mcp.Result, error) {
				var list []string
				for _, n := range strings.Fields(names) {
					list = append(list, `{"name":"`+n+`","inputSchema":{"type":"object"}}`)
				}
				return mcp.RawResult(`{"tools":[` + strings.Join(list, ",") + `]` + rest + `}`), nil
			}
			switch {
			case cursor == "":
				return page("one two", `,"ttlMs":100000,"nextCursor":"`+epoch+`2"`)
			case cursor == epoch+"2" && epoch == "a":
				return page("three", `,"ttlMs":10000`)
			case cursor == epoch+"2":
				return page("two four", `,"ttlMs":10000`)
			}
			return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no such cursor")
		}}
		s := unchecked(t, c.server(), nothing())
		list := func(want string, requests ...string) {
			t.Helper()
			seen = nil
			if got := strings.Join(toolNames(t, s), " "); got != want || !slices.Equal(seen, requests) {
				t.Errorf("list = %s by requests %q, want %s by %q", got, seen, want, requests)
			}
		}
		list("one two three", "", "a2")
		list("one two three")
		time.Sleep(20 * time.Second)
		list("one two three", "a2")
		time.Sleep(20 * time.Second)
		epoch = "b"
		list("one two four", "a2", "", "b2")
		list("one two two four")
		time.Sleep(200 * time.Second)

		// A server that refuses the cursor it has just given.
		refusing := &counting{answer: func(r *mcp.Request, n int) (mcp.Result, error) {
			if r.Param("cursor") != nil {
				return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no such cursor")
			}
			return tools(n, `,"nextCursor":"x","ttlMs":100000`), nil
		}}
		for range 2 {
			names, err := gather(unchecked(t, refusing.server(), nothing()).Tools(t.Context()), func(t *mcp.Tool) string { return t.Name })
			if len(names) != 1 || !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) || !strings.Contains(err.Error(), "refuses the cursor it gave after page 1") {
				t.Errorf("list = %q, %v", names, err)
			}
		}
	})
}

// PAGE-26-001, -004, -006, -007: pages may have any size, a cursor is given back as it
// came, the empty one too, and a page without one is the last. PAGE-25-001: it is not kept
// for another session.
func TestCursorsAreOpaque(t *testing.T) {
	cursors := []string{`""`, `"\u0000\ud83d\ude00 /+=\"\\"`, `"1"`, `"` + strings.Repeat("x", 5000) + `"`}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			at := 0
			pipe := stub(t, func(m jsonrpc.Message) []string {
				switch m.Method {
				case "server/discover":
					return result(m, discovered)
				case "initialize":
					return initialized(m, string(rev))
				case "tools/list":
					cursor, has := m.Param("cursor")
					if at == 0 == has || has && string(cursor) != cursors[at-1] {
						t.Errorf("request %d has the cursor %s", at, cursor)
					}
					rest := `,"resultType":"complete"`
					if at < len(cursors) {
						rest += `,"nextCursor":` + cursors[at]
					}
					list := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"name":"n%d","inputSchema":{"type":"object"}},`, at), at%3), ",")
					at++
					return result(m, `{"tools":[`+list+`]`+rest+`}`)
				}
				return []string{}
			})
			s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}}).Connect(t.Context(), pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := fmt.Sprint(toolNames(t, s)); got != "[n1 n2 n2 n4]" || at != len(cursors)+1 {
				t.Errorf("tools %s in %d pages", got, at)
			}
		})
	}
}
