package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// markedFrames are the recorded frames, in the order in which they were told.
type markedFrames struct {
	mu   sync.Mutex
	list []trace.Frame // guarded by mu
}

// taker returns a function that keeps frames under another name of their connection.
func (m *markedFrames) taker(prefix string) func(trace.Frame) {
	return func(f trace.Frame) {
		f.Conn, f.Msg = prefix+f.Conn, bytes.Clone(f.Msg)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = append(m.list, f)
	}
}

func (m *markedFrames) all() []trace.Frame {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// markedServer has a tool that reports progress, asks and waits, and says the text of its caller each time.
func markedServer() *mcp.Server {
	s := &mcp.Server{Name: "up", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "work"}, func(ctx context.Context, in numbered) (string, error) {
		mcp.Progress(ctx, 1, 3, in.Text)
		if strings.Contains(in.Text, "ask") {
			if out, err := mcp.Elicit[numbered](ctx, in.Text); err != nil {
				return "", fmt.Errorf("%s: %w", out.Text, err)
			}
		}
		if strings.Contains(in.Text, "wait") {
			select {
			case <-ctx.Done():
				return "late " + in.Text, nil
			case <-time.After(time.Minute):
			}
		}
		mcp.Progress(ctx, 2, 3, in.Text)
		return in.Text, nil
	})
	return s
}

// runMarked runs a gateway in front of two servers: "pipe" speaks 2025-11-25 over one shared
// connection, and "http" speaks 2026-07-28.
func runMarked(t testing.TB, frames *markedFrames) *mcp.Server {
	web := httptest.NewServer(markedServer())
	t.Cleanup(web.Close)
	ready := make(chan struct{}, 100)
	g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready && s.Tools > 0 {
			ready <- struct{}{}
		}
	}}
	source := func(name string, rev mcp.Revision, connect func(context.Context, *mcp.Client) (*mcp.Session, error)) gateway.Source {
		return gateway.Source{Name: name, Share: gateway.Shared, Open: func(ctx context.Context) (gateway.Upstream, error) {
			c := &mcp.Client{Name: "gw", Version: "1", OnFrame: frames.taker("up/" + name + "/")}
			gateway.Relay(ctx, c)
			c.Revisions = []mcp.Revision{rev}
			return connect(ctx, c)
		}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, src := range []gateway.Source{
		source("pipe", mcp.V2025_11_25, func(ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			near, far := jsonrpc.Pipe()
			go markedServer().Serve(context.WithoutCancel(ctx), far)
			return c.Connect(ctx, mcptest.Wire(near))
		}),
		source("http", mcp.V2026_07_28, func(ctx context.Context, c *mcp.Client) (*mcp.Session, error) { return c.Dial(ctx, web.URL) }),
	} {
		running.Go(func() { g.Run(ctx, src) })
	}
	<-ready
	<-ready
	return &mcp.Server{Name: "gw", Version: "1", Handler: g, OnFrame: frames.taker("front/")}
}

var mark = regexp.MustCompile(`mark-\d+-\d+-[a-z]*`)

// TestFramesNameTheirCause: 16 callers at once, of two revisions, with progress, questions and
// cancellations. Every frame to or from a server that belongs to a call names the request of that
// call, which the text in its arguments tells from the others.
func TestFramesNameTheirCause(t *testing.T) {
	const callers = 16
	calls := 100
	if testing.Short() {
		calls = 20
	}
	var frames markedFrames
	front := runMarked(t, &frames)
	front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("Test-Caller") }
	web := httptest.NewServer(front)
	t.Cleanup(web.Close)
	dial := func(n int) *mcp.Session {
		c := (&person{}).client([]mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28}[n%2])
		c.Header = http.Header{"Test-Caller": {fmt.Sprint(n)}}
		s, err := c.Dial(t.Context(), web.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	// After its first question the older server's callers take turns, so that each question on the
	// pipe can have only one caller.
	if _, err := dial(0).CallTool(t.Context(), "pipe_work", numbered{"mark-0-0-ask"}); err != nil {
		t.Fatal(err)
	}
	call := func(s *mcp.Session, tool, kind, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		text += kind
		res, err := s.CallTool(ctx, tool, numbered{text}, mcp.OnProgress(func(float64, float64, string) {
			if kind == "wait" {
				cancel()
			}
		}))
		switch {
		case kind == "wait" && err == nil:
			t.Errorf("%s: not cancelled", text)
		case kind != "wait" && (err != nil || res.Text() != text):
			t.Errorf("%s: %v %+v", text, err, res)
		}
	}
	var wg sync.WaitGroup
	for n := range callers {
		s := dial(n)
		wg.Go(func() {
			for i := range calls {
				tool, kind := []string{"pipe_work", "http_work"}[i%2], map[int]string{3: "ask", 4: "ask", 7: "wait"}[i%10]
				if n == 0 && i == 38 { // a cancelled call keeps its turn at the older server for 5 seconds
					kind = "wait"
				}
				call(s, tool, kind, fmt.Sprintf("mark-%d-%d-", n+1, i))
			}
		})
	}
	wg.Wait()
	last := dial(0)
	for i := range 5 {
		call(last, "pipe_work", "wait", fmt.Sprintf("mark-99-%d-", i))
	}
	call(last, "pipe_work", "", "mark-99-9-") // the server has read the cancellations

	list := frames.all()
	texts := map[trace.Cause]string{} // of the requests in front
	get := func(f trace.Frame, name string) string {
		m, err := jsonrpc.Decode(f.Msg, jsonrpc.Limits{})
		if err != nil {
			return ""
		}
		if name == "id" {
			return string(m.ID.AppendJSON(nil))
		}
		raw, _ := m.Param(name)
		return string(raw)
	}
	for _, f := range list {
		if f.For != (trace.Cause{}) && strings.HasPrefix(f.Conn, "front/") {
			t.Fatalf("a frame of the front has a cause: %+v", f)
		}
		if strings.HasPrefix(f.Conn, "front/") && f.Dir == trace.In && bytes.Contains(f.Msg, []byte(`"tools/call"`)) {
			texts[trace.Cause{Conn: strings.TrimPrefix(f.Conn, "front/"), ID: get(f, "id")}] = string(mark.Find(f.Msg))
		}
	}
	asked := map[string]string{} // the text by connection and id of a request to a server
	exchanges := map[string]trace.Cause{}
	seen := map[string]int{}
	for _, f := range list {
		if !strings.HasPrefix(f.Conn, "up/") {
			continue
		}
		want := string(mark.Find(f.Msg))
		kind := "marked"
		switch {
		case want != "" && f.Dir == trace.Out && bytes.Contains(f.Msg, []byte(`"tools/call"`)):
			asked[f.Conn+" "+get(f, "id")] = want
			kind = "call"
		case bytes.Contains(f.Msg, []byte(`"notifications/cancelled"`)) && f.Dir == trace.Out:
			want = asked[f.Conn+" "+get(f, "requestId")]
			kind = "cancellation"
		case bytes.Contains(f.Msg, []byte(`"notifications/progress"`)):
			kind = "progress"
		case bytes.Contains(f.Msg, []byte(`"elicitation/create"`)):
			kind = "question"
		case want != "" && f.Dir == trace.Out:
			kind = "answer to a question"
		}
		if want != "" {
			seen[f.Conn[:len("up/pipe")]+" "+kind]++
			if got := texts[f.For]; got != want {
				t.Errorf("%s of %s at %s is for %s (%q): %s", kind, want, f.Conn, f.For, got, f.Msg)
			}
		}
		if f.HTTP != nil { // the other frames of the exchange too
			key := fmt.Sprint(f.Conn, f.HTTP.Exchange)
			if cause, ok := exchanges[key]; ok && cause != f.For {
				t.Errorf("exchange %s is for %s and %s", key, cause, f.For)
			}
			exchanges[key] = f.For
		}
	}
	t.Log(seen)
	for what, least := range map[string]int{
		"up/pipe call": callers * calls / 2, "up/http call": callers * calls / 2, "up/pipe progress": callers * calls / 2, "up/pipe cancellation": 3,
		"up/pipe question": callers * calls / 20, "up/pipe answer to a question": callers * calls / 20, "up/http question": callers * calls / 20,
	} {
		if seen[what] < least {
			t.Errorf("%d frames are %q, want at least %d", seen[what], what, least)
		}
	}
}

// BenchmarkWatched is a call through a gateway over HTTP whose frames nobody takes: with and
// without OnFrame.
func BenchmarkWatched(b *testing.B) {
	for _, name := range []string{"no OnFrame", "not watched", "watched"} {
		b.Run(name, func(b *testing.B) {
			var tee trace.Tee
			if name == "watched" {
				defer tee.Add(func(trace.Frame) {})()
			}
			up := httptest.NewServer(markedServer())
			defer up.Close()
			c := &mcp.Client{Name: "gw", Version: "1"}
			front := &mcp.Server{Name: "gw", Version: "1"}
			if name != "no OnFrame" {
				c.OnFrame, c.Watched = tee.Record, tee.Watched()
				front.OnFrame, front.Watched = tee.Record, tee.Watched()
			}
			back, err := c.Dial(b.Context(), up.URL)
			if err != nil {
				b.Fatal(err)
			}
			defer back.Close()
			g := &gateway.Gateway{Name: "gw", Version: "1"}
			if err := g.Set("up", back); err != nil {
				b.Fatal(err)
			}
			front.Handler = g
			web := httptest.NewServer(front)
			defer web.Close()
			s, err := (&mcp.Client{Name: "c", Version: "1"}).Dial(b.Context(), web.URL)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.CallTool(b.Context(), "up_work", numbered{"x"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
