package mcp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that goes on as a task: the handle comes at once, the result when it is asked for.
func ExampleSession_StartTask() {
	paper := make(chan struct{})
	srv := &mcp.Server{Name: "press", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "print", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-paper:
				return "printed", nil
			case <-ctx.Done(): // the task was cancelled, or took too long
				return "", context.Cause(ctx)
			}
		})
	s := connect(srv, &mcp.Client{Name: "example"})
	defer s.Close()

	ctx := context.Background()
	task, err := s.StartTask(ctx, "print", nil)
	if err != nil {
		log.Fatal(err)
	}
	info, err := task.Info(ctx)
	fmt.Println(info.Status, err)
	close(paper)

	// A caller with the id finds the task again.
	res, err := s.Task(task.ID).Wait(ctx)
	fmt.Println(res.Text(), err)
	// Output:
	// working <nil>
	// printed <nil>
}
