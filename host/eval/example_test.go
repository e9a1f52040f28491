package eval_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A model must call the tool of a server, and answer with its result.
func ExampleRunner_Run() {
	suite, err := eval.Parse("suite.yaml", []byte(`
models: [scripted]
tasks:
  - name: sum
    prompt: What is 2 plus 3?
    expect:
      calls: [{tool: calc/add}]
      answer: {contains: ["5"]}
`))
	if err != nil {
		fmt.Println(err) // all faults of the file, each with its line
		return
	}
	calc := &mcp.Server{Name: "calc"}
	mcp.AddTool(calc, mcp.Tool{Name: "add"}, func(_ context.Context, in struct{ A, B int }) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	})
	web := httptest.NewServer(modeltest.Handler(modeltest.MustParse(`
turns:
  - when: {user: 2 plus 3}
    answer: [call: {name: calc_add, arguments: {A: 2, B: 3}}]
  - when: {results: {calc_add: "5"}}
    answer: [text: It is 5.]
`)))
	defer web.Close()

	runner := &eval.Runner{
		Model: func(string) (model.Model, error) { return modeltest.OpenAt(web.URL, "chat", "key") },
		Start: func(_ context.Context, h *host.Host) error {
			return h.Add(host.Server{Name: "calc", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) { return c.Open(ctx, calc) }})
		},
	}
	report, err := runner.Run(context.Background(), suite)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range report.Rows() {
		fmt.Println(row.Task, row.Passed, "of", row.Runs)
	}
	// Output: sum 1 of 1
}
