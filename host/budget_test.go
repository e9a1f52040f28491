package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A turn stays within its tokens and its cost: the model answers before they are used up, and a
// request that would exceed them is not sent.
func TestBudget(t *testing.T) {
	taking := func(a answer) answer {
		return func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
			res, err := a(ctx, r, emit)
			res.Usage = model.Usage{Input: 1000, Output: 50}
			return res, err
		}
	}
	for name, tt := range map[string]struct {
		limits host.Limits
		said   string
		steps  int
		early  host.Early
		err    error
	}{
		"no bound":             {host.Limits{}, "go", 4, "", nil},
		"tokens":               {host.Limits{Tokens: 4000}, "go", 3, host.TooExpensive, nil},
		"cost":                 {host.Limits{Cost: 0.004}, "go", 3, host.TooExpensive, nil},
		"enough":               {host.Limits{Tokens: 6000, Cost: 0.006}, "go", 4, "", nil},
		"too little":           {host.Limits{Tokens: 100}, strings.Repeat("long ", 200), 0, "", host.ErrBudget},
		"used up at an answer": {host.Limits{Tokens: 1500}, "go", 1, "", host.ErrBudget},
	} {
		t.Run(name, func(t *testing.T) {
			m := &talker{info: model.Info{Price: model.Price{Input: 1, Output: 1}}}
			for range 3 {
				m.answers = append(m.answers, taking(func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
					if r.Choice.Mode == "none" {
						return say("so far")(ctx, r, emit)
					}
					return want("clock_tick")(ctx, r, emit)
				}))
			}
			m.answers = append(m.answers, taking(say("all")))
			h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: tt.limits}, inMemory("clock", clock()))
			r, err := h.NewConversation().Send(t.Context(), tt.said)
			if !errors.Is(err, tt.err) || r.Steps != tt.steps || r.Early != tt.early || m.asked() != tt.steps {
				t.Fatalf("Send = %+v, %v after %d requests; want %d steps, %q, %v", r, err, m.asked(), tt.steps, tt.early, tt.err)
			}
			if l := tt.limits; l.Tokens > 0 && r.Usage.Input+r.Usage.Output > l.Tokens || l.Cost > 0 && r.Cost > l.Cost {
				t.Errorf("%+v was used, at a cost of %v", r.Usage, r.Cost)
			}
			if tt.early != "" && (r.Text != "so far" || !strings.Contains(lastText(m.request(t, 2)), "almost used up")) {
				t.Errorf("the answer is %q, after %q", r.Text, lastText(m.request(t, 2)))
			}
		})
	}
}

// A server in a call gets no completion that would exceed the limits of the turn.
func TestBudgetOfCompletions(t *testing.T) {
	m := &talker{answers: []answer{want("greedy_ask")}}
	m.answers = append(m.answers, slices.Repeat([]answer{func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
		res, err := say("yes")(ctx, r, emit)
		res.Usage = model.Usage{Input: 1000}
		return res, err
	}}, 20)...)
	greedy := &mcp.Server{Name: "greedy", Version: "1"}
	mcp.AddTool(greedy, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		for range 10 {
			if _, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: userSays("again?")}); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, AutoSample: true, Limits: host.Limits{Tokens: 3500}}, inMemory("greedy", greedy))
	r, err := h.NewConversation().Send(t.Context(), "go")
	if !errors.Is(err, host.ErrBudget) || m.asked() != 1+4 { // the last one was expected to be short
		t.Errorf("Send = %+v, %v after %d requests, want 4 completions", r, err, m.asked())
	}
}

// Answers that break off count toward the limits before the request is repeated.
func TestBudgetOfLostAnswers(t *testing.T) {
	asked := 0
	m := model.Retry(&talker{info: model.Info{Price: model.Price{Input: 1, Output: 1}}, answers: slices.Repeat([]answer{
		func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
			asked++
			return &model.Response{Usage: model.Usage{Input: 1000}}, &model.Error{Kind: model.Unavailable, After: 1}
		}}, 5)}, &model.RetryOptions{Wait: 1})
	for name, tt := range map[string]struct {
		limits host.Limits
		asked  int
		err    error
	}{
		"tokens": {host.Limits{Tokens: 2500}, 3, host.ErrBudget},
		"cost":   {host.Limits{Cost: 0.0015}, 2, host.ErrBudget},
	} {
		asked = 0
		h := newHost(t, &host.Host{Model: m, Limits: tt.limits})
		c := h.NewConversation()
		r, err := c.Send(t.Context(), "go")
		if !errors.Is(err, tt.err) || asked != tt.asked || r.Usage.Input != int64(1000*asked) {
			t.Errorf("%s: Send = %+v, %v after %d requests, want %d", name, r, err, asked, tt.asked)
		}
	}
}

// An answer is ended when it has taken what was left of the limits, and the text that came until then
// is kept.
func TestBudgetOfOneLongAnswer(t *testing.T) {
	const size = 10_000 // tokens
	ended := 0
	m := &talker{info: model.Info{Price: model.Price{Input: 1, Output: 10}}, answers: []answer{
		func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
			n := 0
			for ; n < size && ctx.Err() == nil; n++ {
				switch n % 3 {
				case 0:
					emit(model.Delta{Text: "four"})
				case 1:
					emit(model.Delta{Thinking: "four"})
				default:
					emit(model.Delta{Call: &model.CallDelta{Arguments: "four"}})
				}
			}
			ended = n
			res, _ := say("said")(ctx, r, func(model.Delta) {})
			res.Usage = model.Usage{Output: int64(n)}
			return res, context.Cause(ctx)
		}}}
	for name, tt := range map[string]struct {
		limits  host.Limits
		longest int // tokens of the answer
		err     error
	}{
		"no bound": {host.Limits{}, size, nil},
		"enough":   {host.Limits{Tokens: 2 * size, Cost: 1}, size, nil},
		"tokens":   {host.Limits{Tokens: 2000}, 2000, host.ErrBudget},
		"cost":     {host.Limits{Cost: 0.02}, 2000, host.ErrBudget},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, &host.Host{Model: m, Limits: tt.limits})
			c := h.NewConversation()
			r, err := c.Send(t.Context(), "go")
			if tt.err == nil && err == nil {
				return
			}
			if !errors.Is(err, tt.err) || ended < tt.longest/2 || ended > tt.longest || r.Usage.Output != int64(ended) || r.Stop != "" || r.Text != "said" {
				t.Errorf("Send = %+v, %v after %d tokens, want about %d", r, err, ended, tt.longest)
			}
			if u, cost := c.Used(); u != r.Usage || cost != r.Cost || tt.limits.Cost > 0 && cost > tt.limits.Cost {
				t.Errorf("the conversation used %+v, at a cost of %v; the reply says %+v", u, cost, r)
			}
		})
	}
}

// Requests in progress count: several completions for a server at the same time do not each take what
// is left.
func TestBudgetOfCompletionsAtOnce(t *testing.T) {
	const most = 6
	var decided atomic.Int32
	all := make(chan struct{})
	decide := func() {
		if decided.Add(1) == most {
			close(all)
		}
	}
	long := strings.Repeat("four", 1000)
	m := &talker{answers: []answer{want("greedy_ask"), func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
		if lastText(r) != long {
			return say("done")(ctx, r, emit)
		}
		decide()
		select {
		case <-all:
		case <-ctx.Done():
		}
		res, err := say("yes")(ctx, r, emit)
		res.Usage = model.Usage{Input: 1000}
		return res, err
	}}}
	greedy := &mcp.Server{Name: "greedy", Version: "1"}
	mcp.AddTool(greedy, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		var asking sync.WaitGroup
		for range most {
			asking.Go(func() { mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: userSays(long)}) })
		}
		asking.Wait()
		return "", nil
	})
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, AutoSample: true, Limits: host.Limits{Tokens: 3500}}, inMemory("greedy", greedy))
	c := h.NewConversation()
	c.OnEvent = func(e host.Event) {
		if strings.HasPrefix(e.Text, "no completion for server") {
			decide()
		}
	}
	if r, _ := c.Send(t.Context(), "go"); r.Usage.Input > 3500 || m.asked() != 1+3+1 {
		t.Errorf("%+v was used, after %d requests; want 3 completions between two answers", r.Usage, m.asked())
	}
}
