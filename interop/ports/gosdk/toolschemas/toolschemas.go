// Package toolschemas is the port of go-sdk's examples/server/toolschemas: tools with schemas that are
// inferred, given, and adjusted. Arguments and results are checked in each case. Names of tools have
// no spaces.
package toolschemas

import (
	"context"
	"encoding/json"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

type Input struct {
	Name string `json:"name" doc:"the person to greet"`
}

type Output struct {
	Greeting string `json:"greeting" doc:"the greeting to send to the user"`
}

func greet(_ context.Context, in Input) (Output, error) { return Output{"Hi " + in.Name}, nil }

var (
	inputSchema  = json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}}`)
	outputSchema = json.RawMessage(`{"type": "object", "properties": {"greeting": {"type": "string"}}}`)
	userSchema   = json.RawMessage(`{"type": "object", "properties": {"user": {"type": "string"}}}`)
)

func Main() {
	srv := &mcp.Server{Name: "greeter"}
	mcp.AddTool(srv, mcp.Tool{Name: "simple-greeting"}, greet)
	mcp.AddTool(srv, mcp.Tool{Name: "customized-greeting-1", InputSchema: inputSchema}, greet)
	short, err := schema.For[Input]()
	if err == nil {
		short, err = short.With(`max:"10"`, "name")
	}
	if err != nil {
		log.Fatal(err)
	}
	mcp.AddTool(srv, mcp.Tool{Name: "customized-greeting-2", Input: short}, greet)
	raw := func(tool mcp.Tool, h func(args map[string]string) *mcp.ToolResult) {
		if err := srv.HandleTool(tool, func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
			var values map[string]string
			err := json.Unmarshal(args, &values)
			return h(values), err
		}); err != nil {
			log.Fatal(err)
		}
	}
	raw(mcp.Tool{Name: "manual-greeting", InputSchema: inputSchema, OutputSchema: outputSchema}, func(args map[string]string) *mcp.ToolResult {
		out, err := json.Marshal(Output{"Hi " + args["name"]})
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(out))}, Structured: out, IsError: err != nil}
	})
	raw(mcp.Tool{Name: "raw-greeting", InputSchema: userSchema}, func(args map[string]string) *mcp.ToolResult {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("Hi " + args["user"])}}
	})
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
