package mcp_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// kitchen is a server with one handler of every sort: a structured result, questions in
// two rounds, a model's help, progress and log, work that is cancelled, a resource that
// changes, a task. None of them knows a revision or a wire.
type kitchen struct {
	*mcp.Server
	tickets atomic.Int64  // drawn in orders
	begun   chan struct{} // receives calls of simmer
	stopped chan struct{} // receives those that were cancelled
}

type dish struct {
	Name    string `json:"name"`
	Minutes int    `json:"minutes"`
}

func newKitchen() *kitchen {
	k := &kitchen{Server: &mcp.Server{Name: "kitchen", Version: "1", Tasks: quick()}, begun: make(chan struct{}, 1), stopped: make(chan struct{}, 1)}
	mcp.AddTool(k.Server, mcp.Tool{Name: "dish"}, func(_ context.Context, in dish) (dish, error) {
		return dish{in.Name, in.Minutes + 1}, nil
	})
	mcp.AddTool(k.Server, mcp.Tool{Name: "order"}, k.order)
	mcp.AddTool(k.Server, mcp.Tool{Name: "praise"}, func(ctx context.Context, in dish) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: []mcp.SampleMessage{{
			Role: "user", Content: []mcp.Content{mcp.TextContent{Text: "Praise " + in.Name}}}}})
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	mcp.AddTool(k.Server, mcp.Tool{Name: "bake"}, func(ctx context.Context, in dish) (string, error) {
		for i := range in.Minutes {
			mcp.Progress(ctx, float64(i+1), float64(in.Minutes), "")
			mcp.Log(ctx).Info("baking", "minute", i+1)
		}
		return "baked", nil
	})
	mcp.AddTool(k.Server, mcp.Tool{Name: "simmer"}, func(ctx context.Context, _ struct{}) (string, error) {
		k.begun <- struct{}{}
		<-ctx.Done()
		k.stopped <- struct{}{}
		return "", context.Cause(ctx)
	})
	mcp.AddResource(k.Server, mcp.Resource{URI: "kitchen://pot", Name: "pot"}, func(context.Context) (string, error) {
		return "soup", nil
	})
	mcp.AddTool(k.Server, mcp.Tool{Name: "stir"}, func(context.Context, struct{}) (string, error) {
		k.ResourceUpdated("kitchen://pot")
		return "stirred", nil
	})
	mcp.AddTool(k.Server, mcp.Tool{Name: "roast", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, k.order)
	return k
}

// order asks twice, and draws one ticket in between.
func (k *kitchen) order(ctx context.Context, in dish) (string, error) {
	ok, err := mcp.Confirm(ctx, "Is "+in.Name+" fine?")
	if errors.Is(err, mcp.ErrNotSupported) {
		return "cook's choice", nil // nobody to ask
	}
	if err != nil || !ok {
		return "", errors.Join(err, errors.New("not wanted"))
	}
	ticket, err := mcp.Once(ctx, "ticket", func(context.Context) (int64, error) { return k.tickets.Add(1), nil })
	if err != nil {
		return "", err
	}
	table, err := mcp.Elicit[struct {
		Table string `json:"table" title:"Table"`
	}](ctx, "Which table?")
	if err != nil {
		return "", err
	}
	return in.Name + " to " + table.Table + strings.Repeat("!", int(ticket)), nil
}

// The kitchen works with every client: all revisions on all wires.
func TestKitchenEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	var k *kitchen
	newServer := func() *mcp.Server { k = newKitchen(); return k.Server }
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "guest", Version: "1", LogLevel: slog.LevelInfo,
			OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if strings.HasPrefix(r.Message, "Which") {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"table": "table 4"}}, nil
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			},
			OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
				return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.TextContent{Text: "Superb."}}}, nil
			},
		}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		k, soup := k, dish{"soup", 3}
		t.Parallel()
		if got, err := mcp.CallAs[dish](t.Context(), s, "dish", soup); err != nil || got.Minutes != 4 {
			t.Errorf("dish = %v, %v", got, err)
		}
		served := "soup to table 4!"
		if !asks(s.Revision()) {
			served = "cook's choice"
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "order", soup); err != nil || got != served {
			t.Errorf("order = %q, %v; want %q", got, err, served)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "praise", soup); err != nil || got != "Superb." {
			t.Errorf("praise = %q, %v", got, err)
		}

		var steps, logs int
		got, err := mcp.CallAs[string](t.Context(), s, "bake", soup,
			mcp.OnProgress(func(float64, float64, string) { steps++ }), mcp.OnLog(func(mcp.LogMessage) { logs++ }))
		if err != nil || got != "baked" || steps != 3 || logs != 3 {
			t.Errorf("bake = %q, %v; %d steps, %d logs, want 3 and 3", got, err, steps, logs)
		}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-k.begun
			cancel()
		}()
		if _, err := s.CallTool(ctx, "simmer", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("simmer = %v", err)
		}
		select {
		case <-k.stopped:
		case <-time.After(time.Minute):
			t.Fatal("the server was not told that nobody waits")
		}

		events := watching(t, t.Context(), s, "kitchen://pot")
		if _, err := s.CallTool(t.Context(), "stir", nil); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "resources/updated kitchen://pot")

		task, err := s.StartTask(t.Context(), "roast", soup)
		if err != nil {
			t.Fatal(err)
		}
		if served != "cook's choice" {
			served += "!" // the second ticket
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != served {
			t.Errorf("roast = %v, %v; want %q", res, err, served)
		}
	})
}
