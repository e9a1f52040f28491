package structured_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/structured"
)

type weather struct {
	Celsius float64 `json:"celsius"`
}

// A program reads the numbers, and a model the sentence.
func Example() {
	srv := &mcp.Server{Name: "weather", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "weather"}, func(context.Context, struct{}) (structured.Result[weather], error) {
		return structured.Result[weather]{Value: weather{21.5}, Content: []mcp.Content{mcp.Text("It is warm.")}}, nil
	})
	session, err := (&mcp.Client{Name: "example", Version: "1.0.0"}).Open(context.Background(), srv)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	res, err := session.CallTool(context.Background(), "weather", nil)
	fmt.Println(res.Text(), string(res.Structured), err)
	// Output: It is warm. {"celsius":21.5} <nil>
}
