package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// called notes calls, with who made them.
type called struct {
	mu   sync.Mutex
	list []string
}

func (c *called) add(ctx context.Context, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, auth.From(ctx).ID+" "+what)
}

func (c *called) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// replays is a page with a server whose tools echo and counter it calls, and the recording of their calls: rows 1 (a list),
// 3 (echo) and 5 (count), which was answered with 1.
func replays(t *testing.T) (p *Page, calls *called) {
	t.Helper()
	calls = new(called)
	srv := &mcp.Server{Name: "db", Version: "1"}
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" && strings.Contains(string(req.Params), "forbidden") {
				return nil, mcp.Errorf(-32003, "the policy forbids it")
			}
			return next.Handle(ctx, req)
		})
	})
	mcp.AddTool(srv, mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)}}, func(ctx context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		calls.add(ctx, "echo "+in.Text)
		return in.Text, nil
	})
	n := 0
	mcp.AddTool(srv, mcp.Tool{Name: "count"}, func(ctx context.Context, in struct {
		By int `json:"by"`
	}) (string, error) {
		n += in.By
		calls.add(ctx, fmt.Sprint("count ", in.By))
		return fmt.Sprint("n is ", n), nil
	})
	f := new(Frames)
	p = &Page{Frames: f, Server: func(name string) *mcp.Server {
		if name == "db" {
			return srv
		}
		return nil
	}, Report: func() *health.Report { return new(health.Report) }}
	srv.OnFrame = func(frame trace.Frame) {}
	// The recording is made by the page's own way, with a hop behind it.
	both := func(id int, method, params, result string) {
		at := fmt.Sprintf(`"id":%d,"method":%q,"params":%s`, id, method, strings.TrimSuffix(params, "}")+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"host","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`)
		for _, line := range []string{
			`{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0",` + at + `}}`,
			fmt.Sprintf(`{"dir":"out","conn":"db/1","for":{"conn":"http-1","id":%d},"msg":{"jsonrpc":"2.0",%s}}`, id, at),
			fmt.Sprintf(`{"dir":"in","conn":"db/1","for":{"conn":"http-1","id":%d},"msg":{"jsonrpc":"2.0","id":%d,"result":%s}}`, id, id, result),
			fmt.Sprintf(`{"dir":"out","conn":"http-1","msg":{"jsonrpc":"2.0","id":%d,"result":%s}}`, id, result),
		} {
			frame := frameOf(t, line)
			frame.Time = begin
			f.Record(frame)
		}
	}
	both(1, "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`, `{"resultType":"complete","content":[{"type":"text","text":"hello"}]}`)
	both(2, "tools/call", `{"name":"count","arguments":{"by":2}}`, `{"resultType":"complete","content":[{"type":"text","text":"n is 1"}]}`)
	both(3, "tools/call", `{"name":"echo","arguments":{"text":"forbidden"}}`, `{"resultType":"complete","content":[{"type":"text","text":"forbidden"}]}`)
	both(4, "logging/setLevel", `{"level":"info"}`, `{}`)
	return p, calls
}

type replayAnswer struct {
	Answer
	Ask []replayAsk
}

func asksReplay(t *testing.T, ask func(method, path, body string) *httptest.ResponseRecorder, body string) replayAnswer {
	t.Helper()
	w := ask("POST", "/ui/replay", body)
	var got replayAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: HTTP %d %s", body, w.Code, w.Body)
	}
	return got
}

// A call is sent again only if the person has confirmed it, under the principal of the person, through everything in front
// of its server, and the comparison says what differs.
func TestReplay(t *testing.T) {
	p, calls := replays(t)
	ask := visit(t, p)
	got := asksReplay(t, ask, `{"rows":[1,5]}`)
	if len(got.Ask) != 2 || got.Ask[1] != (replayAsk{5, "db/count", `{"by":2}`}) || len(got.Rows) != 0 || len(calls.take()) != 0 {
		t.Fatalf("before it is confirmed: %+v", got)
	}
	got = asksReplay(t, ask, `{"rows":[1,5],"confirmed":[1]}`)
	if want := [][]string{{"1 tools/call echo", "same", "", ""}}; fmt.Sprint(got.Rows) != fmt.Sprint(want) || !strings.Contains(strings.Join(got.Notes, ""), "Row 5 is left out: nobody confirmed the call.") {
		t.Errorf("one of two is confirmed: %+v", got)
	}
	if list := calls.take(); !slices.Equal(list, []string{"local#ada echo hello"}) {
		t.Errorf("the server got %q", list)
	}
	got = asksReplay(t, ask, `{"rows":[5,6,1],"confirmed":[1,5]}`) // 6 is the other hop of 5
	if got.Summary != "1 same, 1 differ, 0 skipped" || len(got.Rows) != 2 || fmt.Sprint(got.Rows[1]) != `[5 tools/call count ! differs in result.content[0].text "n is 1" "n is 2"]` {
		t.Errorf("both are confirmed: %+v", got)
	}
	if list := calls.take(); !slices.Equal(list, []string{"local#ada echo hello", "local#ada count 2"}) {
		t.Errorf("the server got %q", list)
	}
	got = asksReplay(t, ask, `{"rows":[9],"confirmed":[9]}`)
	if len(got.Rows) == 0 || !strings.Contains(fmt.Sprint(got.Rows), "the policy forbids it") || len(calls.take()) != 0 {
		t.Errorf("a call that is refused now: %+v", got)
	}
	got = asksReplay(t, ask, `{"rows":[13,2000],"confirmed":[]}`)
	if len(got.Rows) != 0 || !strings.Contains(strings.Join(got.Notes, ""), "logging/setLevel is not replayed") || !strings.Contains(strings.Join(got.Notes, ""), "Row 2000 is left out: it is not kept") {
		t.Errorf("what cannot be replayed: %+v", got)
	}
	// Tools that only read, of servers that are trusted, are not asked about.
	p.Gateway.Harmless = func(server, tool string) bool { return server == "db" && tool == "echo" }
	if got := asksReplay(t, ask, `{"rows":[1,5]}`); len(got.Ask) != 1 || got.Ask[0].Row != 5 || len(calls.take()) != 0 {
		t.Errorf("a tool that only reads beside another one: %+v", got)
	}
	if got := asksReplay(t, ask, `{"rows":[1]}`); got.Ask != nil || got.Summary != "1 same, 0 differ, 0 skipped" || len(calls.take()) != 1 {
		t.Errorf("a tool that only reads: %+v", got)
	}
}

// Replays are for administrators, bounded, and one at a time.
func TestReplayRefusals(t *testing.T) {
	p, calls := replays(t)
	ask := visit(t, p)
	for _, tt := range []struct {
		body string
		code int
		want string
	}{
		{`{"rows":[]}`, 400, "0 rows are chosen"},
		{`{"rows":[` + strings.Repeat("1,", maxReplay) + `1]}`, 400, "101 rows are chosen"},
		{`{"rows":["x"]}`, 400, "cannot be used"},
		{`{"rows":[1],"server":"x"}`, 400, "unknown field"},
		{`{"rows":[1],"file":"../x"}`, 404, "no recording of this program"},
		{`{"rows":[` + strings.Repeat("1,", maxReplayBody) + `1]}`, 413, "has more than"},
	} {
		if w := ask("POST", "/ui/replay", tt.body); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%.50s: HTTP %d %s, want %d %s", tt.body, w.Code, w.Body, tt.code, tt.want)
		}
	}
	p.replaying.Lock()
	if w := ask("POST", "/ui/replay", `{"rows":[1],"confirmed":[1]}`); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "another replay is running") {
		t.Errorf("during another one: HTTP %d %s", w.Code, w.Body)
	}
	p.replaying.Unlock()
	r := asked("POST", "/ui/replay", `{"rows":[1],"confirmed":[1]}`)
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, r.WithContext(asPerson(r.Context(), bob)))
	if w.Code != http.StatusForbidden {
		t.Errorf("by bob: HTTP %d %s", w.Code, w.Body)
	}
	if w := answerOf(p, asked("POST", "/ui/replay", `{"rows":[1],"confirmed":[1]}`)); w.Code != http.StatusUnauthorized {
		t.Errorf("by nobody: HTTP %d %s", w.Code, w.Body)
	}
	p.Server = nil
	if w := ask("POST", "/ui/replay", `{"rows":[1]}`); w.Code != http.StatusNotFound {
		t.Errorf("without servers: HTTP %d %s", w.Code, w.Body)
	}
	if list := calls.take(); len(list) != 0 {
		t.Errorf("the server got %q", list)
	}
}
