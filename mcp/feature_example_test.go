package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A text that clients read. Other types than string become blobs or JSON.
func ExampleAddResource() {
	srv := &mcp.Server{Name: "library"}
	mcp.AddResource(srv, mcp.Resource{URI: "library://hours", Name: "hours"},
		func(context.Context) (string, error) { return "9 to 18", nil })

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.ReadResource(context.Background(), "library://hours")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Contents[0].MIMEType, res.Contents[0].Text)
	// Output: text/plain 9 to 18
}

// A family of resources: the variable of the URI is a field, and clients can ask for its values.
func ExampleAddResourceTemplate() {
	type City struct {
		Name string `json:"name"`
	}
	cities := func(_ context.Context, prefix string, _ map[string]string) (found []string, err error) {
		for _, c := range []string{"Lima", "Lisbon", "Oslo"} {
			if strings.HasPrefix(c, prefix) {
				found = append(found, c)
			}
		}
		return found, nil
	}
	srv := &mcp.Server{Name: "weather"}
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: "weather://{name}",
		Name:        "weather",
		Complete:    map[string]mcp.CompleteFunc{"name": cities},
	}, func(_ context.Context, c City) (string, error) {
		if c.Name == "Atlantis" {
			return "", mcp.ResourceNotFound("weather://Atlantis")
		}
		return "It rains in " + c.Name, nil
	})

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.ReadResource(context.Background(), "weather://Oslo")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Contents[0].Text)
	_, err = s.ReadResource(context.Background(), "weather://Atlantis")
	fmt.Println(err)
	// Output:
	// It rains in Oslo
	// read "weather://Atlantis": "no resource \"weather://Atlantis\"" (code -32602)
}

func ExampleSession_Complete() {
	srv := &mcp.Server{Name: "weather"}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "forecast", Complete: map[string]mcp.CompleteFunc{
		"city": func(_ context.Context, prefix string, others map[string]string) ([]string, error) {
			if others["country"] == "Portugal" {
				return []string{"Lisbon", "Porto"}, nil
			}
			return []string{"Oslo"}, nil
		},
	}}, func(_ context.Context, in struct {
		Country string `json:"country"`
		City    string `json:"city"`
	}) (string, error) {
		return "What is the weather in " + in.City + "?", nil
	})

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.Complete(context.Background(), mcp.Feature{Kind: mcp.KindPrompt, Name: "forecast"}, "city", "", map[string]string{"country": "Portugal"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Values)
	// Output: [Lisbon Porto]
}

// A prompt with one optional argument and two messages.
func ExampleAddPrompt() {
	type Review struct {
		Code  string `json:"code" doc:"the code to review"`
		Focus string `json:"focus,omitempty"`
	}
	srv := &mcp.Server{Name: "reviews"}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "review"}, func(_ context.Context, in Review) ([]mcp.PromptMessage, error) {
		return []mcp.PromptMessage{
			mcp.User("Review this code: " + in.Code),
			{Role: "assistant", Content: mcp.Text("I begin with errors that are ignored.")},
		}, nil
	})

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.GetPrompt(context.Background(), "review", map[string]string{"code": "f(x)"})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range res.Messages {
		fmt.Println(m.Role, m.Content.(mcp.TextContent).Text)
	}
	// Output:
	// user Review this code: f(x)
	// assistant I begin with errors that are ignored.
}

// A tool that is known only at run time. Its schema checks the arguments.
func ExampleServer_HandleTool() {
	srv := &mcp.Server{Name: "plugins"}
	schema := `{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}`
	err := srv.HandleTool(mcp.Tool{Name: "count", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("got " + string(args))}}, nil
		})
	if err != nil {
		log.Fatal(err) // AddTool panics; here the name and the schema may come from a file
	}

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, args := range []string{`{"n":3}`, `{"n":0}`} {
		res, err := s.CallTool(context.Background(), "count", json.RawMessage(args))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.IsError, res.Text())
	}
	// Output:
	// false got {"n":3}
	// true n: must be at least 1, got 0
}

// A client reads a resource again when it has changed.
func ExampleSession_Watch() {
	price := 10
	srv := &mcp.Server{Name: "market"}
	mcp.AddResource(srv, mcp.Resource{URI: "market://tea", Name: "tea"}, func(context.Context) (int, error) { return price, nil })

	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Watch(context.Background(), "market://tea") {
		if err != nil {
			log.Fatal(err)
		}
		if e.Method == "notifications/subscriptions/acknowledged" { // no later change is missed
			price = 12
			srv.ResourceUpdated("market://tea")
			continue
		}
		res, err := s.ReadResource(context.Background(), e.URI)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.URI, res.Contents[0].Text)
		break
	}
	// Output: market://tea 12
}

// Some callers do not see some tools: they are not listed, and cannot be called.
func ExampleServer_visible() {
	srv := &mcp.Server{Name: "shop", Visible: func(ctx context.Context, f mcp.Feature) bool {
		return f.Name != "refund" || mcp.CallFrom(ctx).Client.Name == "office"
	}}
	for _, name := range []string{"order", "refund"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "done", nil })
	}
	for _, client := range []string{"office", "customer"} {
		s, err := (&mcp.Client{Name: client}).Open(context.Background(), srv)
		if err != nil {
			log.Fatal(err)
		}
		for tool, err := range s.Tools(context.Background()) {
			fmt.Println(client, tool.Name, err)
		}
		s.Close()
	}
	// Output:
	// office order <nil>
	// office refund <nil>
	// customer order <nil>
}

// A graceful end over HTTP: first the MCP server, which ends event streams, then the HTTP server.
func ExampleServer_Shutdown() {
	srv := &mcp.Server{Name: "calc", OnShutdown: func(context.Context) error {
		fmt.Println("the database is closed")
		return nil
	}}
	mcp.AddTool(srv, mcp.Tool{Name: "add"}, add)
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	web := httptest.NewServer(mux)

	s, err := new(mcp.Client).Dial(context.Background(), web.URL+"/mcp")
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[float64](context.Background(), s, "add", Sum{1, 2}))

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(srv.Shutdown(ctx), web.Config.Shutdown(ctx))
	// Output:
	// 3 <nil>
	// the database is closed
	// <nil> <nil>
}

// A method of an extension, beside those of the protocol.
func ExampleServer_HandleMethod() {
	srv := &mcp.Server{Name: "clock", Extensions: map[string]json.RawMessage{"com.example/time": json.RawMessage("{}")}}
	srv.HandleMethod("com.example/time", func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(`{"hour": 12}`), nil
	})
	s, err := new(mcp.Client).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.Raw(context.Background(), "com.example/time", nil)
	fmt.Println(string(res), err)
	// Output: {"hour": 12} <nil>
}
