package model_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Calls in an answer are found in the forms of several models. Code and prose are none.
func TestWritten(t *testing.T) {
	tools := []model.Tool{{Name: "shop_products"}}
	for text, want := range map[string]string{
		`<tool_call>{"name": "shop_products", "arguments": {"category": "tents"}}</tool_call>`: "shop_products",
		`[TOOL_CALLS][{"name": "shop_products", "arguments": {}}]`:                             "shop_products",
		"I look.\n```json\n{\"tool\": \"shop_products\", \"arguments\": {}}\n```":              "shop_products",
		`{"name": "shop_drop", "arguments": {}}`:                                               "",
		"Call shop_products to see them.":                                                      "",
		"```json\n{\"products\": [{\"name\": \"Ember Stove\", \"price\": 3}]}\n```":            "",
		`{"name": "Ada", "tools": ["shop_products"]}`:                                          "",
		"": "",
	} {
		if got := model.Written(text, tools); got != want {
			t.Errorf("Written(%q) = %q, want %q", text, got, want)
		}
	}
}
