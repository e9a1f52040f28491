package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// inquirer is a server whose tools ask questions.
func inquirer() *mcp.Server {
	s := &mcp.Server{Name: "inquirer", Version: "1"}
	type form struct {
		Age int `json:"age" min:"18"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "age"}, func(ctx context.Context, in struct {
		Times int `json:"times,omitempty"`
	}) (string, error) {
		for n := range max(in.Times, 1) {
			f, err := mcp.Elicit[form](ctx, fmt.Sprintf("How old, for the %dth time?", n+1), mcp.QuestionKey(fmt.Sprint(n)))
			switch {
			case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed), errors.Is(err, mcp.ErrNotSupported):
				return "no answer: " + err.Error(), nil
			case err != nil:
				return "", err
			case n == max(in.Times, 1)-1:
				return fmt.Sprint(f.Age), nil
			}
		}
		return "", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "visit"}, func(ctx context.Context, in struct {
		URL string `json:"url"`
	}) (string, error) {
		if err := mcp.ElicitURL(ctx, "Log in there", in.URL); err != nil {
			return "not visited: " + err.Error(), nil
		}
		return "visited", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "where"}, func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil {
			return "", err
		}
		return roots[0].URI, nil
	})
	// think lets the model use a tool of the server's own, and returns the model's final text.
	mcp.AddTool(s, mcp.Tool{Name: "think"}, func(ctx context.Context, _ struct{}) (string, error) {
		req := &mcp.SampleRequest{Messages: userSays("What is 2+3?"), MaxTokens: 10, Tools: []*mcp.Tool{{Name: "add.numbers", InputSchema: []byte(`{"type":"object"}`)}}}
		for n := range 3 {
			res, err := mcp.Sample(ctx, req, mcp.QuestionKey(fmt.Sprint("think", n)))
			if errors.Is(err, mcp.ErrNotSupported) {
				return "no tools", nil
			}
			if err != nil {
				return "", err
			}
			use, ok := res.Content[len(res.Content)-1].(mcp.ToolUseContent)
			if !ok {
				return res.Text(), nil
			}
			req.Messages = append(req.Messages, mcp.SampleMessage{Role: "assistant", Content: res.Content}, by("user", mcp.ToolResultContent{ToolUseID: use.ID, Result: mcp.ToolResult{Content: []mcp.Content{mcp.Text(use.Name + " says 5")}}}))
		}
		return "", errors.New("it does not end")
	})
	return s
}

// callTool calls a tool through the loop, and returns the result and all events.
func callTool(t *testing.T, h *host.Host, tool, args string) (string, *diary) {
	t.Helper()
	m := calls([]string{tool + " " + args})
	c, d := h.NewConversation(), &diary{}
	c.Model, c.OnEvent = m, d.note
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	return m.result(t, "c1.1"), d
}

// Questions that nobody can answer are declined, and an event reports it.
func TestQuestionToNobody(t *testing.T) {
	everywhere(t, "q", inquirer, func() *host.Host { return &host.Host{Allow: []string{"q/*"}} }, func(t *testing.T, h *host.Host) {
		got, d := callTool(t, h, "q_age", "{}")
		if !strings.HasPrefix(got, "no answer: mcp:") {
			t.Errorf("age = %s", got)
		}
		if notes := d.of(host.Noted); revisionOf(t, h, "q") >= mcp.V2025_06_18 && (len(notes) != 1 || !strings.Contains(notes[0].Text, `declined the question "How old, for the 1th time?" of server "q": there is nobody`)) {
			t.Errorf("notes: %+v", notes)
		}
	})
}

// The person sees the whole URL and is asked before a page is opened. A URL that is not a web page
// is declined automatically.
func TestQuestionOfURL(t *testing.T) {
	const page = "https://example.com/login?state=1"
	everywhere(t, "q", inquirer, func() *host.Host {
		return &host.Host{Allow: []string{"q/*"}, Person: &agreeable{elicit: func(_ context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
			if q.URL != page || q.Message != "Log in there" || q.Schema != nil {
				return nil, fmt.Errorf("a page: %+v", q.ElicitRequest)
			}
			return &mcp.ElicitResult{Action: "accept"}, nil
		}}}
	}, func(t *testing.T, h *host.Host) {
		rev := revisionOf(t, h, "q")
		if got, _ := callTool(t, h, "q_visit", `{"url":"`+page+`"}`); rev >= mcp.V2025_11_25 && got != "visited" || rev < mcp.V2025_11_25 && !strings.HasPrefix(got, "not visited") {
			t.Errorf("visit = %s", got)
		}
		if got, d := callTool(t, h, "q_visit", `{"url":"ssh://example.com/x"}`); !strings.HasPrefix(got, "not visited") || rev >= mcp.V2025_11_25 && len(d.of(host.Noted)) != 1 {
			t.Errorf("visit = %s, notes %+v", got, d.of(host.Noted))
		}
	})
}

// ELIC-26-046: an answer that does not fit the form is never sent. ELIC-25-012: a server that keeps
// asking gets no more answers.
func TestQuestionBounds(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			tries, age := 0, 17
			h := &host.Host{Allow: []string{"q/*"}, Limits: host.Limits{Questions: 3}, Person: &agreeable{elicit: func(_ context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
				if tries++; (q.Problem != "") != (age < 18 && tries > 1) {
					return nil, fmt.Errorf("the %dth time, problem %q", tries, q.Problem)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"age": age}}, nil
			}}}
			defer h.Close()
			added(t, h, host.Server{Name: "q", Open: speaking(t, rev, inquirer)})
			if got, d := callTool(t, h, "q_age", "{}"); !strings.HasPrefix(got, "no answer") || tries != 3 || len(d.of(host.Noted)) != 1 {
				t.Errorf("age = %s after %d tries, notes %+v", got, tries, d.of(host.Noted))
			}
			age = 18
			if got, _ := callTool(t, h, "q_age", `{"times":3}`); got != "18" {
				t.Errorf("age = %s", got)
			}
			got, d := callTool(t, h, "q_age", `{"times":4}`)
			if !strings.Contains(got, "allows 3 questions in one call") || d.outcome(t, "c1.1") != host.Failed {
				t.Errorf("age = %s, %s", got, d.outcome(t, "c1.1"))
			}
		})
	}
}

// An older server over one wire does not say which call its question belongs to. It belongs to the
// only call in progress; if there are several, it belongs to their conversation and to none of
// them. Calls of several conversations take turns.
func TestQuestionOfWhichCall(t *testing.T) {
	for _, over := range []string{"memory", "http"} {
		t.Run(over, func(t *testing.T) {
			asked, answered := make(chan host.Elicitation), make(chan struct{})
			h := &host.Host{Allow: []string{"q/*"}, Person: &agreeable{elicit: func(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
				asked <- *q
				<-answered
				return nil, mcp.ErrDeclined
			}}}
			defer h.Close()
			var mu sync.Mutex
			both, in := make(chan struct{}), 0
			newServer := func() *mcp.Server {
				s := inquirer()
				mcp.AddTool(s, mcp.Tool{Name: "together", Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)}}, func(ctx context.Context, _ struct{ N int }) (string, error) {
					mu.Lock()
					all := both
					if in++; in == 2 {
						close(both)
						both, in = make(chan struct{}), 0
					}
					mu.Unlock()
					select {
					case <-all:
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
					_, err := mcp.Confirm(ctx, "Well?")
					return fmt.Sprint(err), nil
				})
				return s
			}
			open := speaking(t, mcp.V2025_06_18, newServer)
			if over == "http" {
				srv := newServer()
				web := httptest.NewServer(srv)
				t.Cleanup(web.Close) // after the host
				open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
					c.Revisions = []mcp.Revision{mcp.V2025_06_18}
					return c.Dial(ctx, web.URL)
				}
			}
			added(t, h, host.Server{Name: "q", Open: open})
			talks := func(turns ...[]string) (ids []string, end func()) {
				var wg sync.WaitGroup
				for _, turn := range turns {
					c := h.NewConversation()
					c.Model = calls(turn)
					ids = append(ids, c.ID)
					wg.Go(func() { c.Send(t.Context(), "go") })
				}
				return ids, wg.Wait
			}
			ids, end := talks([]string{"q_age {}"})
			if q := <-asked; q.Conversation != ids[0] || q.Call != "c1.1" {
				t.Errorf("the only call: %+v", q)
			}
			answered <- struct{}{}
			end()

			byItself := over == "http" // a question comes on the stream of its call
			turns := [][]string{{`q_together {"N":1}`}, {`q_together {"N":2}`}}
			if !byItself { // after one question of the server, conversations take turns
				turns = [][]string{{`q_age {}`}, {`q_age {}`}}
			}
			ids, end = talks(turns...)
			var of []string
			for range 2 {
				q := <-asked
				if of = append(of, q.Conversation); q.Call != "c1.1" || q.Server != "q" {
					t.Errorf("one of two conversations: %+v", q)
				}
				if !byItself {
					answered <- struct{}{}
				}
			}
			if slices.Sort(of); !slices.Equal(of, slices.Sorted(slices.Values(ids))) {
				t.Errorf("questions of the conversations %q, want %q", of, ids)
			}
			if byItself {
				answered <- struct{}{}
				answered <- struct{}{}
			}
			end()

			ids, end = talks([]string{`q_together {"N":1}`, `q_together {"N":2}`})
			for range 2 {
				if q := <-asked; q.Conversation != ids[0] || (q.Call != "") != byItself {
					t.Errorf("one of two calls: %+v", q)
				}
			}
			close(answered)
			end()
		})
	}
}

// When a call is cancelled, its question ends, and the person need not answer it.
func TestQuestionEndsWithItsCall(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			asked, over := make(chan struct{}), make(chan error, 1)
			h := &host.Host{Allow: []string{"q/*"}, Person: &agreeable{elicit: func(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
				close(asked)
				<-ctx.Done()
				over <- context.Cause(ctx)
				return nil, ctx.Err()
			}}}
			defer h.Close()
			added(t, h, host.Server{Name: "q", Open: speaking(t, rev, inquirer)})
			c := h.NewConversation()
			c.Model = calls([]string{"q_age {}"})
			left := errors.New("I have changed my mind")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-asked
				cancel(left)
			}()
			if _, err := c.Send(ctx, "go"); !errors.Is(err, left) {
				t.Errorf("Send = %v", err)
			}
			if err := <-over; err == nil {
				t.Error("the question goes on")
			}
		})
	}
}

// The host does not wait for a person who keeps answering a question that has ended.
func TestQuestionIsOver(t *testing.T) {
	sample := func(ctx context.Context, c *mcp.Client) error {
		_, err := c.OnSample(ctx, &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5})
		return err
	}
	for _, tt := range []struct {
		name   string
		person func(stuck func()) *agreeable
		ask    func(context.Context, *mcp.Client) error
	}{
		{"a form", func(stuck func()) *agreeable {
			return &agreeable{elicit: func(context.Context, *host.Elicitation) (*mcp.ElicitResult, error) { stuck(); return nil, nil }}
		}, func(ctx context.Context, c *mcp.Client) error {
			_, err := c.OnElicit(ctx, &mcp.ElicitRequest{Message: "?"})
			return err
		}},
		{"a request", func(stuck func()) *agreeable {
			return &agreeable{request: func(s *host.Sampling) (*mcp.SampleRequest, error) { stuck(); return s.Request, nil }}
		}, sample},
		{"an answer", func(stuck func()) *agreeable {
			return &agreeable{answer: func(_ *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) { stuck(); return r, nil }}
		}, sample},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host.Host{Person: tt.person(func() { time.Sleep(time.Hour) }), Model: script(func(*model.Request) string { return "x" })}
				defer h.Close()
				n := &node{name: "n"}
				added(t, h, n.server(""))
				synctest.Wait()
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(enough) })
				began := time.Now()
				if err := tt.ask(ctx, n.client); !errors.Is(err, enough) || time.Since(began) != time.Second {
					t.Errorf("%v after %v, want the cause of the end after 1s", err, time.Since(began))
				}
				time.Sleep(time.Hour) // the person is done
			})
		})
	}
}

// The time that a server waits for a person does not count as its latency.
func TestQuestionTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n"}
		h := &host.Host{Person: &agreeable{elicit: func(context.Context, *host.Elicitation) (*mcp.ElicitResult, error) {
			time.Sleep(time.Hour)
			return nil, mcp.ErrDismissed
		}}}
		defer h.Close()
		added(t, h, n.server(""))
		n.set(func() {
			n.at = func(ctx context.Context) error {
				time.Sleep(time.Second)
				for _, ctx := range []context.Context{ctx, t.Context()} { // the second one does not say which call asks
					if res, err := n.client.OnElicit(ctx, &mcp.ElicitRequest{Message: "?"}); err != nil || res.Action != "cancel" {
						return fmt.Errorf("OnElicit = %v, %v", res, err)
					}
				}
				return nil
			}
		})
		began := time.Now()
		if _, err := work(t.Context(), h, "n"); err != nil {
			t.Fatal(err)
		}
		if s := status(t, h, "n"); s.Latency != time.Second || time.Since(began) != 2*time.Hour+time.Second {
			t.Errorf("the latency is %v after %v", s.Latency, time.Since(began))
		}
	})
}

// SAMP-26-005: tools in sampling, both ways, from 2025-11-25 on.
func TestSampleWithTools(t *testing.T) {
	everywhere(t, "q", inquirer, func() *host.Host {
		return &host.Host{
			Allow: []string{"q/*"}, AutoSample: true,
			Sampler: func(*mcp.ModelPreferences) model.Model {
				return answering{model.Info{Name: "m"}, func(_ context.Context, r *model.Request) (*model.Response, error) {
					last := r.Messages[len(r.Messages)-1].Parts[0]
					if last.Result == nil {
						return wants("u1", r.Tools[0].Name, map[string]any{"a": 2}), nil
					}
					return said(last.Result.Parts[0].Text + " as " + last.Result.ID), nil
				}}
			},
		}
	}, func(t *testing.T, h *host.Host) {
		want := "add.numbers says 5 as u1"
		if revisionOf(t, h, "q") < mcp.V2025_11_25 {
			want = "no tools"
		}
		if got, d := callTool(t, h, "q_think", "{}"); got != want {
			t.Errorf("think = %s, want %s; %+v", got, want, d.of(host.Noted))
		}
	})
}

// Before 2025-11-25 a completion is one block; an older server gets one block made of several.
func TestSampleOfSeveralBlocks(t *testing.T) {
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "draw"}, func(ctx context.Context, _ struct{}) (string, error) {
			r, err := mcp.Sample(ctx, &mcp.SampleRequest{Messages: userSays("a fish"), MaxTokens: 5})
			return resultLine(r, err), nil
		})
		return s
	}
	everywhere(t, "q", newServer, func() *host.Host {
		return &host.Host{Allow: []string{"q/*"}, AutoSample: true, Sampler: func(*mcp.ModelPreferences) model.Model {
			return answering{model.Info{Name: "m"}, func(context.Context, *model.Request) (*model.Response, error) {
				r := said("see")
				r.Message.Parts = append(r.Message.Parts, model.Part{Media: &model.Media{MIME: "image/png", Data: pngData}})
				return r, nil
			}}
		}}
	}, func(t *testing.T, h *host.Host) {
		want := "endTurn: see image"
		if revisionOf(t, h, "q") < mcp.V2025_11_25 {
			want = "endTurn: see"
		}
		if got, _ := callTool(t, h, "q_draw", "{}"); !strings.Contains(got, want) || strings.Contains(got, "image") != strings.Contains(want, "image") {
			t.Errorf("draw = %s, want %s", got, want)
		}
	})
}

// ROOT-26-006: servers learn the roots of the host and no others; older servers are notified of
// changes.
func TestRootsOfAHost(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			changed := make(chan struct{}, 1)
			h := &host.Host{Allow: []string{"q/*"}, Roots: []mcp.Root{{URI: "file:///work"}}}
			defer h.Close()
			open := speaking(t, rev, inquirer)
			added(t, h, host.Server{Name: "q", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
				c.OnFrame = func(f trace.Frame) {
					if f.Dir == trace.Out && strings.Contains(string(f.Msg), "notifications/roots/list_changed") {
						changed <- struct{}{}
					}
				}
				return open(ctx, c)
			}})
			if got, _ := callTool(t, h, "q_where", "{}"); got != "file:///work" {
				t.Errorf("where = %s", got)
			}
			h.SetRoots(t.Context(), []mcp.Root{{URI: "file:///elsewhere"}})
			if rev < mcp.V2026_07_28 { // 2026-07-28 has no such notification
				<-changed
			}
			if got, _ := callTool(t, h, "q_where", "{}"); got != "file:///elsewhere" {
				t.Errorf("where = %s", got)
			}
		})
	}
}
