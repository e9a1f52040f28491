package provider_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// A local model with retries. Here it is a script.
func ExampleOpen() {
	server := httptest.NewServer(modeltest.Handler(modeltest.MustParse(`
turns:
  - fault: {status: 503}
  - answer: [text: Good day.]
`)))
	defer server.Close()

	m, err := provider.Open("openai/qwen3", provider.Options{
		BaseURL: server.URL + "/v1",
		Env:     func(string) string { return "" }, // nothing of the environment
		Info:    func(i *model.Info) { i.Window = 32_768 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := model.Retry(m, &model.RetryOptions{Wait: 1}).Generate(context.Background(), &model.Request{
		Messages: []model.Message{model.UserText("Hello!")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Message.Text())

	_, err = provider.Open("anthropic/claude-sonnet-4-5", provider.Options{Env: func(string) string { return "" }})
	fmt.Println(err)
	// Output:
	// Good day.
	// model "anthropic/claude-sonnet-4-5": no key: set ANTHROPIC_API_KEY, or a base URL if it is served elsewhere
}
