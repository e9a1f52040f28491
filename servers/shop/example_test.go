package shop_test

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	srv := shop.New(shop.Options{}) // a shop in memory; Options.DB names a file
	near, far := jsonrpc.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(ctx, far)
	}()
	defer func() {
		cancel()
		<-served
		srv.Shutdown(context.Background())
	}()

	// The client has a model that the shop may ask.
	client := mcp.Client{OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return &mcp.SampleResult{Role: "assistant", Model: "example", Content: []mcp.Content{mcp.Text("A kettle that whistles.")}}, nil
	}}
	s, err := client.Connect(ctx, mcptest.Wire(near))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"create-product", map[string]any{"name": "Kettle", "category": "kitchen", "price": "39.50", "stock": 5}},
		{"place-order", map[string]any{"customer": "cus-1003", "items": []any{map[string]any{"product": "prd-1025", "quantity": 6}}}},
		{"get-cart", map[string]any{"cart": "crt-1001"}},
	} {
		res, err := s.CallTool(ctx, call.tool, call.args)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text())
	}
	// Output:
	// {"id":"prd-1025","name":"Kettle","category":"kitchen","price":"39.50 EUR","stock":5,"description":"A kettle that whistles."}
	// only 5 of Kettle (prd-1025) are left, and 6 are wanted; nothing was ordered
	// {"id":"crt-1001","customer":"cus-1002","created":"2026-04-27T18:22:10Z","items":4,"total":"164.60 EUR"}
}
