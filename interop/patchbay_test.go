package interop

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"os/exec"

	"github.com/patchbay-dev/patchbay/mcp"
)

// serveOurs is the world on Patchbay.
func serveOurs(ctx context.Context, w wire) error {
	s := &mcp.Server{Name: "patchbay", Version: "1"}
	var room waitRoom
	type none struct{}
	tool := func(name string, h func(ctx context.Context) (string, error)) {
		mcp.AddTool(s, mcp.Tool{Name: name, Description: name},
			func(ctx context.Context, _ none) (string, error) { return h(ctx) })
	}
	type echo struct {
		Message string `json:"message"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "echo", Description: "echo"},
		func(_ context.Context, in echo) (string, error) { return in.Message, nil })
	type person struct {
		Name string `json:"name"`
	}
	tool("ask", func(ctx context.Context) (string, error) {
		p, err := mcp.Elicit[person](ctx, "What is your name?")
		return "hello " + p.Name, err
	})
	tool("twice", func(ctx context.Context) (string, error) {
		first, err := mcp.Elicit[person](ctx, "What is your name?")
		if err != nil {
			return "", err
		}
		second, err := mcp.Elicit[person](ctx, "And that of your friend?")
		return first.Name + " and " + second.Name, err
	})
	tool("sample", func(ctx context.Context) (string, error) {
		r, err := mcp.Sample(ctx, &mcp.SampleRequest{
			MaxTokens: 10,
			Messages:  []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}},
		})
		if err != nil {
			return "", err
		}
		return "the model said " + r.Text(), nil
	})
	tool("steps", func(ctx context.Context) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "")
			apart()
		}
		mcp.Log(ctx).Info("working")
		return "done", nil
	})
	tool("grow", func(context.Context) (string, error) {
		tool("grown", func(context.Context) (string, error) { return "grown", nil })
		return "done", nil
	})
	tool("wait", func(ctx context.Context) (string, error) {
		room.wait(ctx)
		return "", ctx.Err()
	})
	tool("waits", func(context.Context) (string, error) { return room.String(), nil })
	mcp.AddResource(s, mcp.Resource{URI: "test://greeting", Name: "greeting", MIMEType: "text/plain"},
		func(context.Context) (string, error) { return "hello", nil })
	type item struct {
		ID string `json:"id"`
	}
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "test://item/{id}", Name: "item", MIMEType: "text/plain"},
		func(_ context.Context, in item) (string, error) { return "item " + in.ID, nil })
	mcp.AddPrompt(s, mcp.Prompt{Name: "greet", Description: "greet"},
		func(_ context.Context, in person) (string, error) { return "Hello " + in.Name, nil })

	if w == web {
		return serveHTTP(s)
	}
	return s.ServeStdio(ctx)
}

// askOurs is a client on Patchbay.
func askOurs(ctx context.Context, to target) (report, error) {
	h := newHeard()
	client := &mcp.Client{
		Name: "patchbay", Version: "1", LogLevel: slog.LevelDebug,
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Model: "none", Content: []mcp.Content{mcp.Text("pong")}}, nil
		},
		// Up to 2025-11-25, logs on stdio do not belong to a call.
		OnEvent: func(_ *mcp.Session, e mcp.Event) { hearLog(h, e.Log) },
	}
	if to.revision != auto {
		client.Revisions = []mcp.Revision{mcp.Revision(to.revision)}
	}
	var s *mcp.Session
	var err error
	if to.wire == stdio {
		s, err = client.Start(ctx, exec.Command(to.command[0], to.command[1:]...))
	} else {
		s, err = client.Dial(ctx, to.url)
	}
	if err != nil {
		return report{}, err
	}
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() {
		for e, err := range s.Watch(ctx) {
			if err != nil {
				watched <- err
				return
			}
			if e.Method == "notifications/tools/list_changed" {
				h.changed()
			}
		}
		watched <- nil
	}()

	c := &caller{server: s.Server().Name, revision: string(s.Revision()), heard: h}
	c.tools = func(ctx context.Context) ([]string, error) {
		return names(s.Tools(ctx), func(t *mcp.Tool) string { return t.Name })
	}
	c.resources = func(ctx context.Context) ([]string, error) {
		return names(s.Resources(ctx), func(r *mcp.Resource) string { return r.URI })
	}
	c.prompts = func(ctx context.Context) ([]string, error) {
		return names(s.Prompts(ctx), func(p *mcp.Prompt) string { return p.Name })
	}
	c.call = func(ctx context.Context, tool string, args map[string]any, f func(float64)) (string, error) {
		opts := []mcp.CallOption{mcp.OnLog(func(m mcp.LogMessage) { hearLog(h, &m) })}
		if f != nil {
			opts = append(opts, mcp.OnProgress(func(done, _ float64, _ string) { f(done) }))
		}
		var in any // nil: a call without arguments
		if args != nil {
			in = args
		}
		r, err := s.CallTool(ctx, tool, in, opts...)
		if err != nil {
			return "", err
		}
		if r.IsError {
			return "", errors.New("tool error: " + r.Text())
		}
		return r.Text(), nil
	}
	c.read = func(ctx context.Context, uri string) (string, error) {
		r, err := s.ReadResource(ctx, uri)
		if err != nil {
			return "", err
		}
		return r.Contents[0].Text, nil
	}
	c.prompt = func(ctx context.Context, name string, args map[string]string) (string, error) {
		r, err := s.GetPrompt(ctx, name, args)
		if err != nil {
			return "", err
		}
		return r.Messages[0].Content.(mcp.TextContent).Text, nil
	}
	r := probe(ctx, c, to)
	stop()
	if err := <-watched; err != nil {
		r.Errors["watch"] = err.Error()
	}
	if err := s.Close(); err != nil {
		r.Errors["close"] = err.Error()
	}
	return r, nil
}

// hearLog passes on the text of a log message, if it is one.
func hearLog(h *heard, m *mcp.LogMessage) {
	if m == nil {
		return
	}
	var data any
	if err := json.Unmarshal(m.Data, &data); err == nil {
		h.log(logText(data))
	}
}

// names collects one field of a listing.
func names[T any](list iter.Seq2[*T, error], name func(*T) string) (all []string, err error) {
	for v, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, name(v))
	}
	return all, nil
}
