// Command types shows how Go types become JSON Schema: nested structs, an enum, times, durations,
// lists, maps and bounds. Arguments that do not fit are all named in one error.
//
//	patchbay tools plan -- go run ./examples/types
package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Priority string

func (Priority) Enum() []string { return []string{"low", "normal", "high"} }

type Step struct {
	Title string        `json:"title" min:"1"`
	Takes time.Duration `json:"takes,omitempty" default:"30m" doc:"such as 1h30m"`
}

type Person struct {
	Name  string `json:"name"`
	EMail string `json:"email,omitempty" format:"email"`
}

type Plan struct {
	Start    time.Time         `json:"start"`
	Steps    []Step            `json:"steps" min:"1" max:"20"`
	Priority Priority          `json:"priority,omitempty" default:"normal"`
	Owner    *Person           `json:"owner,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Workers  int               `json:"workers,omitempty" default:"1" min:"1" max:"8"`
}

type Schedule struct {
	Ends     time.Time `json:"ends"`
	Priority Priority  `json:"priority"`
}

func plan(_ context.Context, in Plan) (*Schedule, error) {
	if in.Priority == "high" && in.Owner == nil {
		return nil, errors.New("a plan of high priority needs an owner")
	}
	var total time.Duration
	for _, s := range in.Steps {
		total += s.Takes
	}
	return &Schedule{in.Start.Add(total / time.Duration(in.Workers)), in.Priority}, nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "planner", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "plan", Description: "Calculate the end of a plan"}, plan)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
