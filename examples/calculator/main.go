// Command calculator has one of each feature: a tool, a resource template and a prompt.
//
//	patchbay call calculate a=6 op=times b=7 -- go run ./examples/calculator
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Calculation struct {
	A  float64 `json:"a"`
	Op string  `json:"op" enum:"plus,minus,times,over"`
	B  float64 `json:"b"`
}

type Answer struct {
	Value float64 `json:"value"`
}

func calculate(_ context.Context, in Calculation) (*Answer, error) {
	switch in.Op {
	case "plus":
		return &Answer{in.A + in.B}, nil
	case "minus":
		return &Answer{in.A - in.B}, nil
	case "times":
		return &Answer{in.A * in.B}, nil
	}
	if in.B == 0 {
		return nil, errors.New("division by zero: choose another b")
	}
	return &Answer{in.A / in.B}, nil
}

// table is the multiplication table of one number.
func table(_ context.Context, in struct {
	N int `json:"n"`
}) (string, error) {
	var rows strings.Builder
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&rows, "%d x %d = %d\n", i, in.N, i*in.N)
	}
	return rows.String(), nil
}

func numbers(context.Context, string, map[string]string) ([]string, error) {
	return []string{"2", "3", "5", "7"}, nil
}

func explain(_ context.Context, in struct {
	Expression string `json:"expression" doc:"such as 6*7"`
}) (string, error) {
	return "Calculate " + in.Expression + " with the tool, and explain each step.", nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "calculator", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "calculate", Description: "Calculate with two numbers"}, calculate)
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: "table://{n}", Name: "table", Description: "A multiplication table",
		Complete: map[string]mcp.CompleteFunc{"n": numbers},
	}, table)
	mcp.AddPrompt(srv, mcp.Prompt{Name: "explain", Description: "Explain a calculation"}, explain)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
