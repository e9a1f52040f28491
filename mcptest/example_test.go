package mcptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// In a test this is the *testing.T that the test was given. The examples without output are not run,
// because nothing ends what they start; the tests of docs/testing.md run the same calls.
var t testing.TB = exampleT{}

type exampleT struct{ testing.TB }

func (exampleT) Helper()        {}
func (exampleT) Cleanup(func()) {}

// A handler is a function: call it, with the answers to its questions.
func ExampleRun() {
	type Order struct {
		Item string `json:"item"`
	}
	buy := func(ctx context.Context, in Order) (string, error) {
		yes, err := mcp.Confirm(ctx, "Buy "+in.Item+"?")
		if err != nil || !yes {
			return "not bought", err
		}
		return "bought " + in.Item, nil
	}
	got, err := mcptest.Run(t, buy, Order{Item: "a bicycle"}, true)
	fmt.Println(got, err)
	got, err = mcptest.Run(t, buy, Order{Item: "a boat"}, false)
	fmt.Println(got, err)
	// Output:
	// bought a bicycle <nil>
	// not bought <nil>
}

// A session in memory, in one revision. It ends with the test.
func ExampleConnect() {
	srv := &mcp.Server{Name: "greeter"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet"}, func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name, nil
	})
	s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2025_06_18)
	got, err := mcp.CallAs[string](t.Context(), s, "greet", map[string]string{"name": "Ada"})
	if err != nil || got != "Hello, Ada" {
		t.Errorf("greet = %q, %v", got, err)
	}
}

// One body tests every revision and wire.
func ExampleEvery() {
	newServer := func() *mcp.Server {
		srv := &mcp.Server{Name: "clock"}
		mcp.AddTool(srv, mcp.Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
		return srv
	}
	newClient := func() *mcp.Client { return &mcp.Client{} }
	var t *testing.T // of the test

	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		if got, err := mcp.CallAs[string](t.Context(), s, "now", nil); err != nil || got != "noon" {
			t.Errorf("now = %q, %v", got, err)
		}
	})
}

// A handler is called directly, with the answer to its question.
func ExampleContext() {
	ctx := mcptest.Context(t, true)
	if yes, err := mcp.Confirm(ctx, "Go on?"); err != nil || !yes {
		t.Errorf("Confirm = %t, %v", yes, err)
	}
}

// The frames of a session are those in a file. The flag -mcptest.update writes it.
func ExampleGolden() {
	srv := &mcp.Server{Name: "clock", Version: "1"}
	client := &mcp.Client{Name: "test", Version: "1"}
	mcptest.Golden(t, "testdata/read.txt", srv, client, mcp.V2026_07_28, func(s *mcp.Session) {
		s.ReadResource(t.Context(), "clock:now")
	})
}

// A test of a client gets its answers from a recording, such as one of patchbay --trace.
func ExampleMock() {
	s := mcptest.Connect(t, mcptest.Mock(t, "testdata/read.txt"), &mcp.Client{}, mcp.V2025_11_25)
	if res, err := s.ReadResource(t.Context(), "clock:now"); err != nil || len(res.Contents) != 1 {
		t.Errorf("read = %v, %v", res, err)
	}
}

// Several servers behind one address, as a load balancer has them.
func ExampleNodes() {
	cluster := mcptest.Nodes(t, 3, func() *mcp.Server { return &mcp.Server{Name: "node"} })
	s := cluster.Dial(t, &mcp.Client{}, mcp.V2026_07_28)
	if name := s.Server().Name; name != "node" {
		t.Errorf("the name is %q", name)
	}
}
