package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// All 25 pairs of a client in front and servers at the back (TRANSLATION 2), through the gateway
// as the program runs it: two servers, kept by Run.

type color struct {
	Color string `json:"color"`
}

// asksAll is a server that uses everything that must pass through the gateway.
func asksAll(name string, causes chan<- error) *mcp.Server {
	s := newsServer(name)
	s.Tasks.Poll = 10 * time.Millisecond
	mcp.AddTool(s, mcp.Tool{Name: "book"}, func(ctx context.Context, _ struct{}) (string, error) {
		first, err := mcp.Elicit[color](ctx, name+": first?")
		if err != nil {
			return "", err
		}
		second, err := mcp.Elicit[color](ctx, name+": after "+first.Color+"?")
		return name + ": " + first.Color + ", " + second.Color, err
	})
	mcp.AddTool(s, mcp.Tool{Name: "sample"}, func(ctx context.Context, _ struct{}) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 9, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(name)}}}})
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "roots"}, func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil || len(roots) != 1 {
			return "", fmt.Errorf("%v, %w", roots, err)
		}
		return roots[0].URI, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "step")
			mcp.Log(ctx).Debug(fmt.Sprint(name, " ", i+1)) // T-90: only a server that was told sends it
		}
		return "done", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", ctx.Err()
	})
	mcp.AddTool(s, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, name+": job?")
			if errors.Is(err, mcp.ErrNotSupported) {
				return name + " unasked", nil
			}
			return name + " " + c.Color, err
		})
	mcp.AddTool(s, mcp.Tool{Name: "visit"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "visited", mcp.ElicitURL(ctx, "please log in", "https://login.example.com/")
	})
	return s
}

// frontClient is a client with a user, who remembers what was asked.
func frontClient(asked *[]string) *mcp.Client {
	var mu sync.Mutex
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, fmt.Sprintf(format, args...))
	}
	return &mcp.Client{
		Name: "c", Version: "1", LogLevel: slog.LevelDebug,
		OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			note("elicit %s", r.Message)
			if r.URL != "" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": map[bool]string{true: "red", false: "blue"}[strings.Contains(r.Message, "first")]}}, nil
		},
		OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			text := r.Messages[0].Content[0].(mcp.TextContent).Text
			note("sample %s", text)
			return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text("model of " + text)}}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///home"}}, nil },
	}
}

var elicits = func(r mcp.Revision) bool { return r >= mcp.V2025_06_18 }

// pair is a user in front of two servers.
type pair struct {
	front, back mcp.Revision
	servers     map[string]*mcp.Server // of the last connections
	causes      chan error             // why a wait ended
	asked       []string
	s           *mcp.Session
}

// openPair runs the servers. Wire makes the wire of one.
func openPair(t *testing.T, front, back mcp.Revision, wire func() (near, far jsonrpc.Conn)) (*pair, *gateway.Gateway) {
	p := &pair{front: front, back: back, servers: map[string]*mcp.Server{}, causes: make(chan error, 10)}
	there := make(chan string, 100)
	g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) {
		// A log message belongs to a call on a pipe if no other request is under way (T-91), so
		// the lists must have come.
		if s.State == gateway.Ready && s.Tools+s.Prompts+s.Resources > 0 {
			there <- s.Name
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	var mu sync.Mutex
	for _, name := range []string{"one", "two"} {
		running.Go(func() {
			g.Run(ctx, gateway.Source{Name: name, Open: func(ctx context.Context) (gateway.Upstream, error) {
				server := asksAll(name, p.causes)
				mu.Lock()
				p.servers[name] = server
				mu.Unlock()
				near, far := wire()
				go server.Serve(context.WithoutCancel(ctx), far)
				c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{back}}
				gateway.Relay(ctx, c)
				return c.Connect(ctx, mcptest.Wire(near))
			}})
		})
	}
	for seen := map[string]bool{}; len(seen) < 2; {
		seen[<-there] = true
	}
	return p, g
}

func TestPairs(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, g := openPair(t, front, back, jsonrpc.Pipe)
					p.s = mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, frontClient(&p.asked), front)
					p.testCalls(t)
					p.testTasks(t)
					p.testCancel(t)
					p.testChanges(t)
				})
			})
		}
	}
}

// TestPairsOverWires has HTTP in front and pipes, as of a child process, at the back.
func TestPairsOverWires(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			if front != mcp.V2026_07_28 && back != mcp.V2026_07_28 && front != back {
				continue // nothing differs from that in memory
			}
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				p, g := openPair(t, front, back, func() (jsonrpc.Conn, jsonrpc.Conn) { return mcptest.Pipes(t) })
				srv := httptest.NewServer(&mcp.Server{Name: "gw", Version: "1", Handler: g})
				t.Cleanup(srv.Close)
				c := frontClient(&p.asked)
				c.Revisions = []mcp.Revision{front}
				var err error
				if p.s, err = c.Dial(t.Context(), srv.URL); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { p.s.Close() })
				p.testCalls(t)
				p.testTasks(t)
			})
		}
	}
}

// T-20 to T-22, T-34 to T-37: calls, and everything that belongs to them in both directions.
func (p *pair) testCalls(t *testing.T) {
	t.Helper()
	ctx, s := t.Context(), p.s
	both := elicits(p.front) && elicits(p.back)
	for _, name := range []string{"one", "two"} {
		p.asked = nil
		res, err := s.CallTool(ctx, name+"_book", nil)
		switch {
		case err == nil && both:
			if want := name + ": red, blue"; res.Text() != want {
				t.Errorf("%s_book = %q, want %q", name, res.Text(), want)
			}
			if want := []string{"elicit " + name + ": first?", "elicit " + name + ": after red?"}; !slices.Equal(p.asked, want) {
				t.Errorf("asked %q, want %q", p.asked, want)
			}
		case both:
			t.Errorf("%s_book = %v", name, err)
		case err != nil || !res.IsError || !strings.Contains(res.Text(), "elicitation"): // T-171, T-23
			t.Errorf("%s_book = %+v, %v; want a tool error that names elicitation", name, res, err)
		}
		if got, err := mcp.CallAs[string](ctx, s, name+"_sample", nil); err != nil || got != "model of "+name {
			t.Errorf("%s_sample = %q, %v", name, got, err)
		}
		if got, err := mcp.CallAs[string](ctx, s, name+"_roots", nil); err != nil || got != "file:///home" {
			t.Errorf("%s_roots = %q, %v", name, got, err)
		}
		var progress, logs []string
		res, err = s.CallTool(ctx, name+"_steps", nil,
			mcp.OnProgress(func(done, total float64, message string) {
				progress = append(progress, fmt.Sprint(done, total, message))
			}),
			mcp.OnLog(func(l mcp.LogMessage) { logs = append(logs, string(l.Data)) }))
		want := "[1 3step 2 3step 3 3step]"
		if min(p.front, p.back) < mcp.V2025_03_26 {
			want = "[1 3 2 3 3 3]" // T-69
		}
		if err != nil || res.Text() != "done" || fmt.Sprint(progress) != want {
			t.Errorf("%s_steps = %v, %v with progress %v", name, res, err, progress)
		}
		if got, want := fmt.Sprint(logs), fmt.Sprintf(`["%[1]s 1" "%[1]s 2" "%[1]s 3"]`, name); got != want {
			t.Errorf("logs %s, want %s", got, want)
		}
		if got, err := s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: name + "_brief"}, "topic", "", nil); err != nil || fmt.Sprint(got.Values) != "["+name+"-topic]" {
			t.Errorf("completion = %v, %v", got, err)
		}
		if got, err := s.GetPrompt(ctx, name+"_brief", map[string]string{"topic": "rain"}); err != nil || len(got.Messages) != 1 {
			t.Errorf("prompt = %v, %v", got, err)
		}
		if got, err := s.ReadResource(ctx, name+"://item/7"); err != nil || got.Contents[0].Text != name+" item 7" {
			t.Errorf("read = %v, %v", got, err)
		}
		res, err = s.CallTool(ctx, name+"_visit", nil)
		failed, want := true, "no elicitation by URL" // T-172
		switch {
		case min(p.front, p.back) >= mcp.V2025_11_25: // T-43
			failed, want = false, "visited"
		case p.front == mcp.V2025_06_18 && p.back == mcp.V2025_11_25: // T-26
			want = "please log in: visit https://login.example.com/"
		}
		if err != nil || res.IsError != failed || !strings.Contains(res.Text(), want) {
			t.Errorf("%s_visit = %+v, %v; want %q", name, res, err, want)
		}
	}
	missing := mcp.CodeResourceNotFound // T-130, T-131
	if p.front == mcp.V2026_07_28 {
		missing = jsonrpc.CodeInvalidParams
	}
	if _, err := s.ReadResource(ctx, "one://none"); !errors.Is(err, &mcp.Error{Code: missing}) {
		t.Errorf("a missing resource = %v, want %d", err, missing)
	}
	// Calls to both servers at once keep apart what they ask.
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		wg.Go(func() {
			if got, err := mcp.CallAs[string](ctx, s, name+"_sample", nil); err != nil || got != "model of "+name {
				t.Errorf("%s_sample beside another = %q, %v", name, got, err)
			}
		})
	}
	wg.Wait()
}

// T-100 to T-109: a call that may be a task ends with its result, whichever side has tasks.
func (p *pair) testTasks(t *testing.T) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		want := name + " blue"
		if !elicits(p.front) || !elicits(p.back) {
			want = name + " unasked"
		}
		task, err := p.s.StartTask(t.Context(), name+"_job", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.front >= mcp.V2025_11_25 && p.back >= mcp.V2025_11_25 && p.front != p.back && p.front < mcp.V2026_07_28 && task.ID == "" {
			t.Errorf("%s_job is no task", name)
		}
		res, err := task.Wait(t.Context())
		if err != nil || res.Text() != want {
			t.Errorf("%s_job = %+v, %v; want %s", name, res, err, want)
		}
	}
}

// T-27, T-44: the server learns that the caller has cancelled.
func (p *pair) testCancel(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.s.CallTool(ctx, "one_wait", nil)
		ended <- err
	}()
	time.Sleep(time.Second)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call = %v", err)
	}
	if cause := <-p.causes; cause == nil || !strings.Contains(cause.Error(), "cancel") {
		t.Errorf("the server's call ended with %v", cause)
	}
}

// T-50 to T-54: changes of lists and resources reach the listeners.
func (p *pair) testChanges(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := startListening(ctx, t, p.s, "two://front")
	l.want("notifications/subscriptions/acknowledged")
	time.Sleep(time.Second)
	p.servers["two"].ResourceUpdated("two://front")
	l.want("notifications/resources/updated")
	p.servers["one"].ResourceUpdated("one://front") // nobody wants to know
	mcp.AddTool(p.servers["one"], mcp.Tool{Name: "late"}, func(context.Context, struct{}) (string, error) { return "", nil })
	l.want("notifications/tools/list_changed")
	if n := tools(t, p.s); n != 2*9+1 {
		t.Errorf("%d tools, want 19", n)
	}
	cancel()
	for range l.events {
	}
}
