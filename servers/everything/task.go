package everything

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// asTask marks tools that run as a task for callers that support tasks.
var asTask = mcp.ToolExecution{TaskSupport: mcp.TaskOptional}

// addTasks adds tools that run as tasks, the conformance suite's among them.
func addTasks(srv *mcp.Server) {
	type hello struct {
		Name string `json:"name" doc:"whom to greet"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "greet", Description: "Greets somebody. It never runs as a task.", Annotations: harmless,
	}, func(_ context.Context, in hello) (string, error) { return fmt.Sprintf("Hello, %s!", in.Name), nil })

	type work struct {
		Seconds float64 `json:"seconds,omitempty" doc:"how long to take" default:"1" min:"0" max:"600"`
		Label   string  `json:"label,omitempty" doc:"a name for the result"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "slow_compute", Title: "Slow computation", Annotations: harmless, Execution: asTask,
		Description: "Takes its time, as a task if the client allows one. Cancel it to see that work.",
	}, func(ctx context.Context, in work) (string, error) {
		const steps = 10
		for i := range steps {
			mcp.Progress(ctx, float64(i), steps, fmt.Sprintf("step %d of %d", i+1, steps))
			if err := pause(ctx, time.Duration(in.Seconds*float64(time.Second)/steps)); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s took %g seconds", in.Label, in.Seconds), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "failing_job", Description: "Fails, and only as a task.", Annotations: harmless, Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired},
	}, func(ctx context.Context, _ none) (string, error) {
		if err := pause(ctx, beat); err != nil {
			return "", err
		}
		return "", errors.New("the job failed, as it always does")
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "protocol_error_job", Description: "Ends with a protocol error.", Annotations: harmless, Execution: asTask,
	}, func(ctx context.Context, _ none) (string, error) {
		if err := pause(ctx, beat); err != nil {
			return "", err
		}
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the job broke the protocol, as it always does")
	})

	type file struct {
		Filename string `json:"filename,omitempty" doc:"the file that is not deleted" default:"notes.txt"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "confirm_delete", Description: "Asks before it deletes a file that does not exist.", Annotations: harmless, Execution: asTask,
	}, func(ctx context.Context, in file) (string, error) {
		yes, err := mcp.Confirm(ctx, fmt.Sprintf("Delete %s?", in.Filename), mcp.QuestionKey("confirm"))
		switch {
		case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed), err == nil && !yes:
			return in.Filename + " was kept.", nil
		case err != nil:
			return "", err
		}
		return in.Filename + " was deleted.", nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "multi_input", Description: "Asks two questions at once.", Annotations: harmless, Execution: asTask,
	}, func(ctx context.Context, _ none) (string, error) {
		type colour struct {
			Color string `json:"color" doc:"Your favourite colour"`
		}
		var (
			who        named
			likes      colour
			err1, err2 error
			asking     sync.WaitGroup
		)
		asking.Go(func() { who, err1 = mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("name")) })
		asking.Go(func() {
			likes, err2 = mcp.Elicit[colour](ctx, "What is your favourite colour?", mcp.QuestionKey("color"))
		})
		asking.Wait()
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s likes %s.", who.Name, likes.Color), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_tool_with_task", Description: "Asks for a name and greets it, as a task from then on.", Annotations: harmless, Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true},
	}, func(ctx context.Context, _ none) (string, error) {
		who, err := mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("user_name"))
		if err != nil {
			return "", err
		}
		mcp.Detach(ctx)
		if err := pause(ctx, beat); err != nil {
			return "", err
		}
		return fmt.Sprintf("Hello, %s!", who.Name), nil
	})
}
