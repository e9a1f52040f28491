// Command progress reports how far a call is, writes log messages to its caller, and stops when the
// caller cancels:
//
//	patchbay call count to:=5 -- go run ./examples/progress
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Count struct {
	To    int           `json:"to" min:"1" max:"1000"`
	Pause time.Duration `json:"pause,omitempty" default:"200ms"`
}

func count(ctx context.Context, in Count) (string, error) {
	for i := range in.To {
		select {
		case <-time.After(in.Pause):
		case <-ctx.Done(): // the caller cancelled or has gone, or the server shuts down
			return "", context.Cause(ctx)
		}
		mcp.Progress(ctx, float64(i+1), float64(in.To), fmt.Sprint("at ", i+1))
		mcp.Log(ctx).Debug("counted", "number", i+1)
	}
	mcp.Log(ctx).Info("done", "numbers", in.To)
	return fmt.Sprint("counted to ", in.To), nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "counter", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "count", Description: "Count slowly"}, count)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
