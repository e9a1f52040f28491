package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type trip struct {
	Date string `json:"date" doc:"day of the trip"`
}

type alternative struct {
	Date string `json:"date" title:"Date"`
}

// book is the handler of ARCHITECTURE.md, section 4: one question, at most.
func book(ctx context.Context, in trip) (string, error) {
	if in.Date != "2026-12-24" {
		return "booked " + in.Date, nil
	}
	alt, err := mcp.Elicit[alternative](ctx, "No trips on "+in.Date+". Another date?")
	if err != nil {
		return "", err
	}
	return "booked " + alt.Date, nil
}

// deployer asks twice; the plan in between must be made once however often the
// handler runs.
type deployer struct{ plans atomic.Int64 }

type service struct {
	Name string `json:"name"`
}

func (d *deployer) deploy(ctx context.Context, in service) (string, error) {
	ok, err := mcp.Confirm(ctx, "Plan "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "nothing planned", nil
	}
	plan, err := mcp.Once(ctx, "plan", func(context.Context) (string, error) {
		return fmt.Sprintf("plan-%d", d.plans.Add(1)), nil
	})
	if err != nil {
		return "", err
	}
	w, err := mcp.Elicit[struct {
		Hour int `json:"hour" title:"Hour" min:"0" max:"23"`
	}](ctx, "When shall "+plan+" run?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s of %s at %d", plan, in.Name, w.Hour), nil
}

// asker is a server with both.
func asker(d *deployer) *mcp.Server {
	s := &mcp.Server{Name: "asker", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "book"}, book)
	mcp.AddTool(s, mcp.Tool{Name: "deploy"}, d.deploy)
	return s
}

// user is a client whose user answers the questions of asker.
func user() *mcp.Client {
	return &mcp.Client{Name: "user", Version: "1", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		answer := map[string]any{}
		switch {
		case strings.Contains(r.Message, "Another date?"):
			answer["date"] = "2026-12-27"
		case strings.HasPrefix(r.Message, "Plan "):
			answer["confirm"] = true
		case strings.HasPrefix(r.Message, "When shall "):
			answer["hour"] = 4
		default:
			return nil, fmt.Errorf("unexpected question %q", r.Message)
		}
		return &mcp.ElicitResult{Action: "accept", Content: answer}, nil
	}}
}

// asks reports whether a revision has elicitation.
func asks(r mcp.Revision) bool { return r >= mcp.V2025_06_18 }

// MRTR-26, ELIC-25: one handler asks on every revision and wire. Before 2025-06-18 elicitation does
// not exist; the tool fails in words (T-23, T-71).
func TestBookEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	mcptest.Every(t, func() *mcp.Server { return asker(new(deployer)) }, user, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[string](t.Context(), s, "book", trip{"2026-12-24"})
		if !asks(s.Revision()) {
			var te *mcp.ToolError
			if !errors.As(err, &te) || !strings.Contains(te.Error(), "elicitation") {
				t.Fatalf("book = %q, %v; want a tool error that names elicitation", got, err)
			}
			return
		}
		if err != nil || got != "booked 2026-12-27" {
			t.Fatalf("book = %q, %v; want booked 2026-12-27", got, err)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "book", trip{"2026-12-25"}); err != nil || got != "booked 2026-12-25" {
			t.Errorf("book without a question = %q, %v", got, err)
		}
	})
}

func TestDeployEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	var d *deployer
	mcptest.Every(t, func() *mcp.Server { d = new(deployer); return asker(d) }, user, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[string](t.Context(), s, "deploy", service{"api"})
		if !asks(s.Revision()) {
			var te *mcp.ToolError
			if !errors.As(err, &te) || !strings.Contains(te.Error(), "elicitation") {
				t.Fatalf("deploy = %q, %v; want a tool error that names elicitation", got, err)
			}
			return
		}
		if err != nil || got != "plan-1 of api at 4" {
			t.Fatalf("deploy = %q, %v; want plan-1 of api at 4", got, err)
		}
		if n := d.plans.Load(); n != 1 {
			t.Errorf("Once ran its function %d times, want 1", n)
		}
	})
}

// MRTR-26: a retry may reach any node that shares the keys.
func TestDeployOnNodes(t *testing.T) {
	mcptest.LeakCheck(t)
	d := new(deployer)
	cluster := mcptest.Nodes(t, 3, func() *mcp.Server { return asker(d) })
	s := cluster.Dial(t, user(), mcp.V2026_07_28)
	for i := range 20 {
		got, err := mcp.CallAs[string](t.Context(), s, "deploy", service{"api"})
		if want := fmt.Sprintf("plan-%d of api at 4", i+1); err != nil || got != want {
			t.Fatalf("deploy = %q, %v; want %s", got, err, want)
		}
	}
	for i, n := range cluster.Served() {
		if n == 0 {
			t.Errorf("node %d got no request of %v", i, cluster.Served())
		}
	}
}
