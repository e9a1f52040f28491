// Command client is the program that the client suites of the official conformance suite run:
//
//	client URL
//
// The environment selects the work: MCP_CONFORMANCE_SCENARIO names the scenario,
// MCP_CONFORMANCE_PROTOCOL_VERSION the revision, and MCP_CONFORMANCE_CONTEXT holds further data
// as JSON. The exit code is 0 for success, 1 for a failure, and 2 for an unknown scenario.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stderr))
}

// patience is shorter than the suite's timeout, so that a hang is reported instead of killed.
const patience = 100 * time.Second

func run(ctx context.Context, args []string, env func(string) string, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: client URL")
		return 2
	}
	name := env("MCP_CONFORMANCE_SCENARIO")
	play, ok := scenarios[name]
	if !ok {
		fmt.Fprintf(stderr, "client: no scenario %q\n", name)
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &mcp.Client{
		Name: "patchbay", Version: "1",
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil // the defaults of the form are filled in by the client
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Model: "none", Content: []mcp.Content{mcp.Text("Nothing to say.")}}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil },
	}
	if v := env("MCP_CONFORMANCE_PROTOCOL_VERSION"); v != "" {
		client.Revisions = []mcp.Revision{mcp.Revision(v)}
	}
	given := env("MCP_CONFORMANCE_CONTEXT")
	if strings.HasPrefix(name, "auth/") {
		t, err := transport(args[0], name, given)
		if err != nil {
			fmt.Fprintf(stderr, "client: %s: %v\n", name, err)
			return 1
		}
		client.HTTPClient = &http.Client{Transport: t}
	}
	s, err := client.Dial(ctx, args[0])
	if err == nil {
		err = play(ctx, s, given)
		s.Close()
	}
	switch {
	case name == "auth/scope-retry-limit":
		err = forbidden(err)
	case deceptive[name]:
		err = refused(err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "client: %s: %v\n", name, err)
		return 1
	}
	return 0
}
