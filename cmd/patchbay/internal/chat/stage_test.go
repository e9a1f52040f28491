package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// stage is the environment variable that makes the test binary a chat on its terminal, with a
// scripted model and server.
const stage = "PATCHBAY_CHAT_STAGE"

func TestMain(m *testing.M) {
	if os.Getenv(stage) != "" {
		if err := play(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play runs a chat until the person leaves.
func play() error {
	h := &host.Host{Model: actor{}, Condition: allow.Condition}
	defer h.Close()
	if os.Getenv(stage) == "console" {
		h.Model = nil
	}
	c := New(h, Options{
		Title: "patchbay test", Color: os.Getenv("NO_COLOR") == "", History: os.Getenv("PATCHBAY_CHAT_HISTORY"),
		NoModel: "No model is configured.\nSet OPENAI_API_KEY and name one with --model.",
		Models:  []string{"test/actor", "test/other"},
	})
	if err := h.Add(theatre(context.Background())); err != nil {
		return err
	}
	return c.Run(context.Background(), os.Stdin, os.Stdout)
}

// theatre is an in-memory server with tools that ask, wait and fail. It ends with ctx.
func theatre(ctx context.Context) host.Server {
	srv := &mcp.Server{Name: "theatre", Version: "1"}
	type words struct {
		Text string `json:"text" doc:"what to say"`
	}
	yes := true
	mcp.AddTool(srv, mcp.Tool{Name: "say", Description: "Says it again.", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}},
		func(_ context.Context, in words) (string, error) { return in.Text, nil })
	mcp.AddTool(srv, mcp.Tool{Name: "lines", Description: "Says many lines."},
		func(context.Context, struct{}) (string, error) {
			var b strings.Builder
			for i := range 40 {
				fmt.Fprintf(&b, "line %d\n", i+1)
			}
			return b.String(), nil
		})
	mcp.AddTool(srv, mcp.Tool{Name: "wait", Description: "Waits until it is cancelled."},
		func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 4, "halfway to somewhere")
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
	mcp.AddTool(srv, mcp.Tool{Name: "fail", Description: "Fails."},
		func(context.Context, struct{}) (string, error) { return "", errors.New("the curtain is stuck") })
	type trip struct {
		Name  string   `json:"name" title:"Your name" min:"2"`
		Mail  string   `json:"mail,omitempty" format:"email"`
		Seats int      `json:"seats" min:"1" max:"9" default:"2"`
		Box   bool     `json:"box,omitempty" title:"In a box"`
		Row   string   `json:"row" enum:"stalls,circle,gallery" default:"circle"`
		Snack []string `json:"snack,omitempty" enum:"ice,nuts,wine"`
	}
	mcp.AddTool(srv, mcp.Tool{Name: "book", Description: "Books seats."},
		func(ctx context.Context, _ struct{}) (string, error) {
			in, err := mcp.Elicit[trip](ctx, "Which seats would you like?")
			if err != nil {
				return "", err
			}
			raw, err := json.Marshal(in)
			return "booked " + string(raw), err
		})
	mcp.AddTool(srv, mcp.Tool{Name: "pay", Description: "Has you pay on a page."},
		func(ctx context.Context, _ struct{}) (string, error) {
			err := mcp.ElicitURL(ctx, "Please pay here.", "https://pay.example.com/bill/0123456789?return=https%3A%2F%2Ftheatre.example")
			return "paid", err
		})
	mcp.AddTool(srv, mcp.Tool{Name: "muse", Description: "Has a model write a line."},
		func(ctx context.Context, _ struct{}) (string, error) {
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{
				MaxTokens: 100, SystemPrompt: "You are a poet.",
				Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("One line about the sea.")}}},
			})
			if err != nil {
				return "", err
			}
			return "the muse says: " + res.Text(), nil
		})
	mcp.AddResource(srv, mcp.Resource{URI: "play://programme", Name: "programme"},
		func(context.Context) (string, error) { return "# Tonight\n\n**Hamlet**, in `5` acts", nil })
	return host.Server{Name: "theatre", Open: func(opening context.Context, c *mcp.Client) (mcp.Handler, error) {
		near, far := jsonrpc.Pipe()
		go srv.Serve(ctx, far)
		return c.Connect(opening, wire{near})
	}}
}

type wire struct{ conn jsonrpc.Conn }

func (w wire) Connect(context.Context) (jsonrpc.Conn, error) { return w.conn, nil }

// actor is a model that follows the message: "call TOOL {ARGUMENTS}" calls a tool, "think",
// "stream" and "hang" do these, and it echoes everything else.
type actor struct{}

func (actor) Info() model.Info {
	return model.Info{Name: "test/actor", Window: 100_000, Price: model.Price{Input: 1, Output: 2}}
}

const tour = "# A tour\n\nSome **bold** and *slanted* words, `code`, 日本語 and 👩\u200d🚀.\n\n" +
	"- one\n- two, which is long enough to be broken when the terminal has no more than eighty columns to show\n\n" +
	"```go\nfunc main() {\n\tprintln(\"hi\")\n\n\treturn\n}\n```\n\n| name | legs |\n|---|---|\n| cat | 4 |\n| bird | 2 |\n\nThe end."

func (actor) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	usage := model.Usage{Input: 1200, Output: 34}
	answer := func(text string) (*model.Response, error) {
		for i, piece := range strings.SplitAfter(text, " ") {
			if emit != nil {
				emit(model.Delta{Text: piece})
			}
			if i%20 == 19 {
				time.Sleep(time.Millisecond)
			}
		}
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}, Usage: usage, Model: "test/actor"}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	for _, p := range last.Parts {
		if p.Result != nil {
			return answer("It said: " + partsText(p.Result.Parts))
		}
	}
	text := strings.TrimSpace(last.Text())
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "call":
		var calls []model.Part
		for i, one := range strings.Split(rest, " & ") {
			name, args, ok := strings.Cut(one, " ")
			if !ok {
				args = "{}"
			}
			calls = append(calls, model.Part{Call: &model.Call{ID: fmt.Sprintf("c%d.%d", len(req.Messages), i), Name: "theatre_" + name, Arguments: json.RawMessage(args)}})
		}
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: calls}, Stop: model.StopCalls, Usage: usage}, nil
	case "think":
		emit(model.Delta{Thinking: "First this.\nThen that.\nAnd then, after some more of it, the rest."})
		return answer("I have thought.")
	case "stream":
		return answer(tour)
	case "hang":
		emit(model.Delta{Text: "I begin, and"})
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "panic":
		panic("the actor fell off the stage")
	}
	return answer("You said: " + text)
}
