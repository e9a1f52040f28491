package mcptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// In a test this is the *testing.T that the test was given.
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
