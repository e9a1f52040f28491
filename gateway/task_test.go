package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func jobServer() *mcp.Server {
	s := &mcp.Server{Name: "jobs", Version: "1", Tasks: mcp.TaskConfig{Poll: 10 * time.Millisecond}}
	mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			ok, err := mcp.Confirm(ctx, "go on?")
			if errors.Is(err, mcp.ErrNotSupported) || err == nil && ok {
				return "done", nil
			}
			return "", errors.Join(err, errors.New("stopped"))
		})
	return s
}

// Tasks pass the gateway, to servers within the process and behind a wire, on every
// revision (T-112).
func TestTasksPass(t *testing.T) {
	mcptest.LeakCheck(t)
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
	}
	newServer := func() *mcp.Server {
		near := mcptest.Connect(t, jobServer(), newClient(), mcp.V2026_07_28)
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		for name, h := range map[string]mcp.Handler{"in": jobServer(), "out/side": near} {
			if err := g.Set(name, h); err != nil {
				t.Fatal(err)
			}
		}
		return &mcp.Server{Name: "gw", Version: "1", Handler: g}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		for _, name := range []string{"in_work", "out-side_work"} {
			task, err := s.StartTask(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Revision() == mcp.V2026_07_28 && !strings.Contains(task.ID, "/") {
				t.Errorf("%s has the id %q", name, task.ID)
			}
			if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
				t.Errorf("%s = %v, %v", name, res, err)
			}
			if task.ID == "" {
				continue
			}
			// The id is of no use in another form.
			other := strings.Replace(task.ID, "/", "/x", 1)
			var rpc *mcp.Error
			if info, err := s.Task(other).Info(t.Context()); !errors.As(err, &rpc) || rpc.Code != mcp.CodeInvalidParams {
				t.Errorf("task %q = %v, %v", other, info, err)
			}
		}
	})
}
