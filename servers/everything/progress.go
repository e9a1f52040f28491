package everything

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// beat is the time between notifications in the tools that the conformance suite
// measures.
const beat = 50 * time.Millisecond

func addProgress(srv *mcp.Server) {
	type duration struct {
		Steps   int     `json:"steps,omitempty" doc:"how many steps to take" default:"5" min:"1" max:"1000"`
		Seconds float64 `json:"seconds,omitempty" doc:"how long to take in all" default:"2" min:"0" max:"600"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "long_operation", Title: "Long operation",
		Description: "Takes its time and reports progress. Cancel it to see that work.",
		Annotations: harmless,
	}, func(ctx context.Context, in duration) (string, error) {
		step := time.Duration(in.Seconds * float64(time.Second) / float64(in.Steps))
		for i := range in.Steps {
			mcp.Progress(ctx, float64(i), float64(in.Steps), fmt.Sprintf("step %d of %d", i+1, in.Steps))
			if err := pause(ctx, step); err != nil {
				return "", err
			}
		}
		mcp.Progress(ctx, float64(in.Steps), float64(in.Steps), "done")
		return fmt.Sprintf("%d steps in %g seconds", in.Steps, in.Seconds), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_tool_with_progress", Description: "Reports progress 0, 50 and 100 of 100.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		for i, done := range []float64{0, 50, 100} {
			if i > 0 {
				if err := pause(ctx, beat); err != nil {
					return "", err
				}
			}
			mcp.Progress(ctx, done, 100, fmt.Sprintf("%g of 100", done))
		}
		return "Progress reported.", nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_tool_with_logging", Description: "Sends three log messages at level info.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		for i, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if i > 0 {
				if err := pause(ctx, beat); err != nil {
					return "", err
				}
			}
			mcp.Log(ctx).Info(text)
		}
		return "Messages logged.", nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_logging_tool", Description: "Logs at every level; only what the caller asked for is sent.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		log := mcp.Log(ctx).With("logger", "everything")
		for _, level := range []slog.Level{
			slog.LevelDebug, slog.LevelInfo, level.Notice, slog.LevelWarn,
			slog.LevelError, level.Critical, level.Alert, level.Emergency,
		} {
			log.Log(ctx, level, "a message to try the level with", "value", int(level))
		}
		return "Logged at eight levels.", nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_reconnection", Description: "Answers after a moment, for clients that lose their connection meanwhile.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		mcp.Detach(ctx)
		if err := pause(ctx, 2*beat); err != nil {
			return "", err
		}
		return "The call went on.", nil
	})
}
