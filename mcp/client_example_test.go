package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A list is fetched once while the server says that it is valid; WithoutCache fetches it again.
func ExampleWithoutCache() {
	srv := &mcp.Server{Name: "s", Cache: mcp.CacheHint{TTL: time.Hour}}
	mcp.AddTool(srv, mcp.Tool{Name: "one"}, func(context.Context, struct{}) (string, error) { return "", nil })
	s := connect(srv, &mcp.Client{})
	defer s.Close()
	count := func(opts ...mcp.CallOption) (n int) {
		for range s.Tools(context.Background(), opts...) {
			n++
		}
		return n
	}
	fmt.Println(count())
	mcp.AddTool(srv, mcp.Tool{Name: "two"}, func(context.Context, struct{}) (string, error) { return "", nil })
	fmt.Println(count(), count(mcp.WithoutCache()))
	// Output:
	// 1
	// 1 2
}

// The context of a trace travels in _meta.
func ExampleWithMeta() {
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "traced"}, func(ctx context.Context, _ struct{}) (string, error) {
		return string(mcp.CallFrom(ctx).Meta["traceparent"]), nil
	})
	s := connect(srv, &mcp.Client{})
	defer s.Close()
	trace := mcp.Meta{"traceparent": json.RawMessage(`"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"`)}
	fmt.Println(mcp.CallAs[string](context.Background(), s, "traced", nil, mcp.WithMeta(trace)))
	// Output: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01" <nil>
}

// A tool that needs a login elsewhere ends its call until the user has been there.
func ExampleRequireURL() {
	loggedIn := false
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "files"}, func(ctx context.Context, _ struct{}) (string, error) {
		if !loggedIn {
			return "", mcp.RequireURL(ctx, "Log in at Example", "https://login.example.com/")
		}
		return "a.txt", nil
	})
	s := connect(srv, &mcp.Client{OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Message, "at", r.URL)
		loggedIn = true // the user goes there
		return &mcp.ElicitResult{Action: "accept"}, nil
	}})
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "files", nil))
	// Output:
	// Log in at Example at https://login.example.com/
	// a.txt <nil>
}

// A program calls its own server, or a gateway, as a client would: no pipe, no port.
func ExampleClient_Open() {
	srv := &mcp.Server{Name: "greeter"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet"}, func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name, nil
	})
	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "greet", map[string]string{"name": "Ada"}))
	// Output: Hello, Ada <nil>
}

// Middleware stands around every request of a client, as it does around a server.
func ExampleClient_Use() {
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "look"}, func(context.Context, struct{}) (string, error) { return "a view", nil })
	client := &mcp.Client{}
	client.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			fmt.Println(req.Method, string(req.Param("name")))
			return next.Handle(ctx, req)
		})
	})
	s := connect(srv, client)
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "look", nil))
	// Output:
	// tools/call "look"
	// a view <nil>
}

// A tool calls a tool of another server, whose question goes to the caller of the first.
func ExampleOnBehalf() {
	shop := &mcp.Server{Name: "shop"}
	mcp.AddTool(shop, mcp.Tool{Name: "order"}, func(ctx context.Context, _ struct{}) (string, error) {
		if yes, err := mcp.Confirm(ctx, "Order a book?"); err != nil || !yes {
			return "not ordered", err
		}
		return "ordered", nil
	})
	declares := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, mcp.ErrNotSupported }
	inner, err := (&mcp.Client{OnElicit: declares}).Open(context.Background(), shop)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer inner.Close()

	assistant := &mcp.Server{Name: "assistant"}
	mcp.AddTool(assistant, mcp.Tool{Name: "gift"}, func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.CallAs[string](ctx, inner, "order", nil, mcp.OnBehalf())
	})
	s := connect(assistant, &mcp.Client{OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Message)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}})
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "gift", nil))
	// Output:
	// Order a book?
	// ordered <nil>
}
