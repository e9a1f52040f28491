package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type Sum struct {
	A float64 `json:"a" doc:"first addend"`
	B float64 `json:"b" doc:"second addend"`
}

func add(ctx context.Context, in Sum) (float64, error) { return in.A + in.B, nil }

// A server is three statements; a Server is an http.Handler too.
func Example() {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add two numbers"}, add)
	web := httptest.NewServer(srv) // or: srv.ServeStdio(ctx)
	defer web.Close()

	client := &mcp.Client{Name: "example", Version: "1.0.0"}
	s, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	sum, err := mcp.CallAs[float64](context.Background(), s, "add", Sum{A: 1, B: 2.5})
	fmt.Println(sum, err)
	// Output: 3.5 <nil>
}

// connect opens a session with srv in memory, for the examples.
func connect(srv *mcp.Server, client *mcp.Client) *mcp.Session {
	near, far := jsonrpc.Pipe()
	go srv.Serve(context.Background(), far)
	s, err := client.Connect(context.Background(), mcptest.Wire(near))
	if err != nil {
		log.Fatal(err)
	}
	return s
}

func ExampleSession_Tools() {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add two numbers"}, add)
	s := connect(srv, &mcp.Client{Name: "example"})
	defer s.Close()

	for tool, err := range s.Tools(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n%s\n", tool.Name, tool.Description, tool.InputSchema)
	}
	res, err := s.CallTool(context.Background(), "add", map[string]any{"a": 1, "b": "two"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.IsError, res.Text())
	// Output:
	// add: Add two numbers
	// {"type":"object","properties":{"a":{"type":"number","description":"first addend"},"b":{"type":"number","description":"second addend"}},"required":["a","b"],"additionalProperties":false}
	// true b: must be a number, got string
}

// A handler asks the user in the middle of its work, on every revision that can.
func ExampleElicit() {
	type Choice struct {
		Date string `json:"date" title:"Another date"`
	}
	srv := &mcp.Server{Name: "travel", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "book"}, func(ctx context.Context, in struct {
		Date string `json:"date"`
	}) (string, error) {
		other, err := mcp.Elicit[Choice](ctx, "No trips on "+in.Date+". Another date?")
		if err != nil {
			return "", err
		}
		return "booked " + other.Date, nil
	})

	client := &mcp.Client{Name: "example", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println("the user is asked:", r.Message)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"date": "2026-12-27"}}, nil
	}}
	s := connect(srv, client)
	defer s.Close()
	got, err := mcp.CallAs[string](context.Background(), s, "book", map[string]string{"date": "2026-12-24"})
	fmt.Println(got, err)
	// Output:
	// the user is asked: No trips on 2026-12-24. Another date?
	// booked 2026-12-27 <nil>
}

// Middleware is a function from Handler to Handler.
func ExampleServer_Use() {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add"}, add)
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			fmt.Println(req.Method, err)
			return res, err
		})
	})
	srv.Handle(context.Background(), &mcp.Request{Method: "tools/list"})
	srv.Handle(context.Background(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"sub"}`)})
	// Output:
	// tools/list <nil>
	// tools/call "no tool \"sub\"; see tools/list" (code -32602)
}

// A Session is a Handler: put behind a Server, it makes a proxy, here one that speaks
// the newest revision in front of a server of the oldest.
func ExampleServer_handler() {
	old := &mcp.Server{Name: "calc", Version: "0.1", Revisions: []mcp.Revision{mcp.V2024_11_05}}
	mcp.AddTool(old, mcp.Tool{Name: "add"}, add)
	back := connect(old, &mcp.Client{Name: "proxy"})
	defer back.Close()

	s := connect(&mcp.Server{Name: "proxy", Handler: back}, &mcp.Client{Name: "example"})
	defer s.Close()
	sum, err := mcp.CallAs[float64](context.Background(), s, "add", Sum{A: 20, B: 22})
	fmt.Println(back.Revision(), s.Revision(), sum, err)
	// Output: 2024-11-05 2026-07-28 42 <nil>
}

func ExampleOnce() {
	srv := &mcp.Server{Name: "shop", Version: "1.0.0"}
	orders := 0
	mcp.AddTool(srv, mcp.Tool{Name: "order"}, func(ctx context.Context, in struct{}) (string, error) {
		id, err := mcp.Once(ctx, "reserve", func(context.Context) (int, error) {
			orders++
			return 1000 + orders, nil
		})
		if err != nil {
			return "", err
		}
		yes, err := mcp.Confirm(ctx, fmt.Sprintf("Buy order %d?", id))
		if err != nil || !yes {
			return "not bought", err
		}
		return fmt.Sprintf("bought order %d", id), nil
	})
	client := &mcp.Client{Name: "example", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}}
	s := connect(srv, client)
	defer s.Close()
	got, err := mcp.CallAs[string](context.Background(), s, "order", nil)
	fmt.Println(got, err, orders)
	// Output: bought order 1001 <nil> 1
}

func ExampleOnProgress() {
	srv := &mcp.Server{Name: "worker", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(ctx context.Context, in struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half way")
		mcp.Progress(ctx, 2, 2, "there")
		return "done", nil
	})
	s := connect(srv, &mcp.Client{Name: "example"})
	defer s.Close()
	res, err := s.CallTool(context.Background(), "work", nil,
		mcp.IdleTimeout(time.Minute),
		mcp.OnProgress(func(done, total float64, message string) { fmt.Printf("%v of %v: %s\n", done, total, message) }))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
	// Output:
	// 1 of 2: half way
	// 2 of 2: there
	// done
}
