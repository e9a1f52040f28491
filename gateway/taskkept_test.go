package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// A result that another gateway had kept passes the middleware of its server, as it would have there. Without the store, or after the
// task's time, nothing is told.
func TestKeptResultsPassTheMiddleware(t *testing.T) {
	shared := new(cluster.Memory)
	node := &cluster.Node{Name: "n", State: shared, Bus: shared, Handler: http.NotFoundHandler()}
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Leave(context.Background()) })
	store := node.Tasks("gateway")
	tools := func(_ int, ops *mcp.Server) {
		ops.Tasks.Poll = 10 * time.Millisecond
		mcp.AddTool(ops, mcp.Tool{Name: "deploy", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) { return "the secret", nil })
	}
	open := func(g *gateway.Gateway) *mcp.Session {
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		ready := make(chan struct{})
		var once sync.Once
		running.Go(func() {
			g.Run(ctx, gateway.Source{Name: "ops", Open: (&farm{rev: mcp.V2025_11_25, more: tools}).Open, OnStatus: func(s gateway.Status) {
				if s.State == gateway.Ready {
					once.Do(func() { close(ready) })
				}
			}})
		})
		t.Cleanup(func() { stop(); running.Wait() })
		<-ready
		s, err := (&mcp.Client{Name: "c"}).Open(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	hides := func(string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				res, err := next.Handle(ctx, req)
				if err != nil || req.Method != "tasks/get" {
					return res, err
				}
				return mcp.RawResult(strings.ReplaceAll(string(res.JSON()), "secret", "[redacted]")), nil
			})
		}
	}
	first := open(&gateway.Gateway{Name: "gw", Tasks: store, Middleware: hides})
	task, err := first.StartTask(t.Context(), "ops_deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := task.Wait(t.Context()); err != nil || res.Text() != "the [redacted]" {
		t.Fatalf("%v, %v", res, err)
	}
	mcpErr := new(*mcp.Error)
	if err := first.Task(task.ID + "x").Cancel(t.Context()); !errors.As(err, mcpErr) {
		t.Errorf("an id that was changed: %v", err)
	}
	second := open(&gateway.Gateway{Name: "gw", Tasks: store, Middleware: hides})
	if res, err := second.Task(task.ID).Wait(t.Context()); err != nil || res.Text() != "the [redacted]" {
		t.Errorf("%v, %v", res, err)
	}
	if err := second.Task(task.ID).Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	var asked []string
	refuses := func(string) mcp.Middleware {
		return policy.Middleware("ops", policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
			if strings.HasPrefix(a.Method, "tasks/") {
				asked = append(asked, a.Name)
			}
			return policy.Decision{Allow: a.Name != "deploy"}
		}), nil)
	}
	strict := open(&gateway.Gateway{Name: "gw", Tasks: store, Middleware: refuses})
	if info, err := strict.Task(task.ID).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") || !slices.Equal(asked, []string{"deploy"}) {
		t.Errorf("a tool that its caller may not use there: %+v, %v; decided about %q", info, err, asked)
	}
	other := open(&gateway.Gateway{Name: "gw", Middleware: hides})
	if info, err := other.Task(task.ID).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%+v, %v", info, err)
	}
}
