package model_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/host/model"
)

// A model without tool calls makes one in its text.
func ExampleText() {
	plain := &fake{generate: func(_ context.Context, _ *model.Request, _ func(model.Delta)) (*model.Response, error) {
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{
			Text: "I look it up.\n```json\n{\"tool\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```",
		}}}}, nil
	}}
	resp, err := model.Text(plain).Generate(context.Background(), &model.Request{
		Messages: []model.Message{model.UserText("How is the weather in Oslo?")},
		Tools:    []model.Tool{{Name: "weather", Schema: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}}`)}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Message.Text())
	for _, call := range resp.Message.Calls() {
		fmt.Printf("%s %s\n", call.Name, call.Arguments)
	}
	// Output:
	// I look it up.
	// weather {"city": "Oslo"}
}

// A request to a busy provider is retried.
func ExampleRetry() {
	attempts := 0
	busy := &fake{generate: func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
		if attempts++; attempts == 1 {
			return nil, &model.Error{Kind: model.Overloaded, Model: "openai/x", Status: 529, Message: "busy"}
		}
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "hello"}}}}, nil
	}}
	resp, err := model.Retry(busy, &model.RetryOptions{Wait: 1}).Generate(context.Background(), &model.Request{}, nil)
	fmt.Println(resp.Message.Text(), err, attempts)
	// Output: hello <nil> 2
}
