package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// counter is a model that calls a tool and repeats its result.
type counter struct{}

func (counter) Info() model.Info { return model.Info{Name: "example/counter"} }

func (counter) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	last := req.Messages[len(req.Messages)-1].Parts[0]
	answer := model.Part{Call: &model.Call{ID: "1", Name: "calc_add", Arguments: json.RawMessage(`{"a":2,"b":3}`)}}
	if last.Result != nil {
		answer = model.Part{Text: "That makes " + last.Result.Parts[0].Text + "."}
	}
	return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{answer}}}, nil
}

// calculator is a server in this process. Other servers are programs to start, or URLs to dial.
func calculator() host.Server {
	srv := &mcp.Server{Name: "calculator", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Adds two numbers."}, func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (int, error) {
		return in.A + in.B, nil
	})
	mcp.AddResource(srv, mcp.Resource{URI: "calc:history", Name: "history"}, func(context.Context) (string, error) { return "1 + 1 = 2", nil })
	return host.Local("calc", srv)
}

func Example() {
	h := &host.Host{Model: counter{}, Allow: []string{"calc/add"}}
	defer h.Close()
	if err := h.Add(calculator()); err != nil {
		log.Fatal(err)
	}
	c := h.NewConversation()
	c.OnEvent = func(e host.Event) {
		if e.Kind == host.Started {
			fmt.Printf("%s/%s %s\n", e.Call.Server, e.Call.Tool, e.Call.Arguments)
		}
	}
	reply, err := c.Send(context.Background(), "What is 2 plus 3?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output:
	// calc/add {"a":2,"b":3}
	// That makes 5.
}

// A mentioned resource is sent with the message.
func ExampleConversation_Send() {
	h := &host.Host{Model: counter{}, Allow: []string{"calc/add"}}
	defer h.Close()
	if err := h.Add(calculator()); err != nil {
		log.Fatal(err)
	}
	c := h.NewConversation()
	if _, err := c.Send(context.Background(), "Go on from @calc:calc:history, with #calc/add."); err != nil {
		log.Fatal(err)
	}
	for _, p := range c.Snapshot()[0].Parts {
		if p.Text != "" {
			fmt.Println(p.Text)
		}
	}
	// Output:
	// Go on from @calc:calc:history, with #calc/add.
	// [resource "calc:history" (text/plain)]
	// 1 + 1 = 2
}

// Mentions are completed while a person types.
func ExampleHost_Complete() {
	h := &host.Host{}
	defer h.Close()
	if err := h.Add(calculator()); err != nil {
		log.Fatal(err)
	}
	for _, r := range h.Resources(context.Background()) {
		fmt.Println(r.Server, r.URI)
	}
	text := "Go on from @calc:hi"
	c := h.Complete(context.Background(), text, len(text))
	for _, item := range c.Items {
		fmt.Println(text[:c.From] + item.Text)
	}
	// Output:
	// calc calc:history
	// Go on from @calc:calc:history
}

// A loop gets the events of a turn. It may be left, which ends the turn.
func ExampleConversation_Events() {
	h := &host.Host{Model: counter{}, Allow: []string{"calc/add"}}
	defer h.Close()
	if err := h.Add(calculator()); err != nil {
		log.Fatal(err)
	}
	for e, err := range h.NewConversation().Events(context.Background(), "What is 2 plus 3?") {
		if err != nil {
			log.Fatal(err)
		}
		switch e.Kind {
		case host.Started:
			fmt.Printf("%s/%s %s by %s %s\n", e.Call.Server, e.Call.Tool, e.Call.Arguments, e.Call.By, e.Call.Rule)
		case host.Ended:
			fmt.Println(e.Text)
		}
	}
	// Output:
	// calc/add {"a":2,"b":3} by rule calc/add
	// That makes 5.
}

// A function may approve calls by rules of its own; the audit log has their names.
func ExampleApprover() {
	h := &host.Host{Model: counter{}, Person: host.Approver(func(_ context.Context, a *host.Approval) (host.Verdict, error) {
		if strings.Contains(string(a.Arguments), `"a":2`) {
			return host.Verdict{Answer: host.AllowOnce, Rule: "twos"}, nil
		}
		return host.Verdict{Reason: "twos alone are allowed"}, nil
	})}
	defer h.Close()
	if err := h.Add(calculator()); err != nil {
		log.Fatal(err)
	}
	reply, err := h.NewConversation().Send(context.Background(), "What is 2 plus 3?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output:
	// That makes 5.
}
