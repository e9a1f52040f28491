package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
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
