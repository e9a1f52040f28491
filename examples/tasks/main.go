// Command tasks renders in the background: a call becomes a task if its caller takes one, and the
// result outlives the process, in a database.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store/sqlite"
)

type Scene struct {
	Name   string        `json:"name"`
	Frames int           `json:"frames" min:"1" max:"1000"`
	Each   time.Duration `json:"each,omitempty" default:"1s"`
}

func render(ctx context.Context, in Scene) (string, error) {
	for i := range in.Frames {
		select {
		case <-time.After(in.Each):
			mcp.Progress(ctx, float64(i+1), float64(in.Frames), "rendering "+in.Name)
		case <-ctx.Done(): // the task was cancelled, or its time is over; not: the caller has gone
			return "", context.Cause(ctx)
		}
	}
	return in.Name + " is rendered", nil
}

func newServer(db *sqlite.Store) *mcp.Server {
	srv := &mcp.Server{Name: "studio", Version: "1.0.0", Tasks: mcp.TaskConfig{Store: db.Tasks(), TTL: 24 * time.Hour}}
	mcp.AddTool(srv, mcp.Tool{
		Name: "render", Description: "Render a scene",
		Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional},
	}, render)
	return srv
}

func main() {
	db, err := sqlite.Open("tasks.db")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	log.Print(http.ListenAndServe("127.0.0.1:7420", newServer(db)))
}
