package main

import (
	"context"
	"iter"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// hosted is a session whose server a model uses. Its errors hold no secrets, and tell when a
// login is over: the model, events and logs are told them.
type hosted struct{ *launch.Upstream }

var _ host.Session = (*hosted)(nil) // a pointer: hosts compare sessions

func (h hosted) CallTool(ctx context.Context, name string, args any, o ...mcp.CallOption) (*mcp.ToolResult, error) {
	res, err := h.Upstream.CallTool(ctx, name, args, o...)
	return res, h.Told(err)
}

func (h hosted) Prompt(ctx context.Context, name string, args map[string]string, o ...mcp.CallOption) (*mcp.PromptResult, error) {
	res, err := h.Upstream.Prompt(ctx, name, args, o...)
	return res, h.Told(err)
}

func (h hosted) Read(ctx context.Context, uri string, o ...mcp.CallOption) (*mcp.ReadResult, error) {
	res, err := h.Upstream.Read(ctx, uri, o...)
	return res, h.Told(err)
}

func (h hosted) Complete(ctx context.Context, of mcp.Feature, argument, prefix string, others map[string]string) (*mcp.CompleteResult, error) {
	res, err := h.Upstream.Complete(ctx, of, argument, prefix, others)
	return res, h.Told(err)
}

func (h hosted) Tools(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Tool, error] {
	return toldEach(h, h.Upstream.Tools(ctx, o...))
}

func (h hosted) Prompts(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Prompt, error] {
	return toldEach(h, h.Upstream.Prompts(ctx, o...))
}

func (h hosted) Resources(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.Resource, error] {
	return toldEach(h, h.Upstream.Resources(ctx, o...))
}

func (h hosted) Templates(ctx context.Context, o ...mcp.CallOption) iter.Seq2[*mcp.ResourceTemplate, error] {
	return toldEach(h, h.Upstream.Templates(ctx, o...))
}

func (h hosted) Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error] {
	return toldEach(h, h.Upstream.Watch(ctx, uris...))
}

func toldEach[T any](h hosted, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if !yield(v, h.Told(err)) {
				return
			}
		}
	}
}
