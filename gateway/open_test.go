package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A client in this process uses a gateway: questions of a server, over a pipe and in any revision,
// reach the handlers of the client, even when several calls run at once.
func TestOpenGateway(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			srv := &mcp.Server{Name: "old", Version: "1"}
			type args struct {
				Text string `json:"text"`
			}
			mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, in args) (string, error) {
				res, err := mcp.Sample(ctx, &mcp.SampleRequest{Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Text)}}}, MaxTokens: 5})
				if err != nil {
					return "", err
				}
				return res.Text(), nil
			})
			answers := func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
				return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.Text("re: " + r.Messages[0].Content[0].(mcp.TextContent).Text)}}, nil
			}
			near, far := mcptest.Pipes(t)
			go srv.Serve(t.Context(), far)
			behind := &mcp.Client{Revisions: []mcp.Revision{rev}, OnSample: answers}
			upstream, err := behind.Connect(t.Context(), mcptest.Wire(near))
			if err != nil {
				t.Fatal(err)
			}
			defer upstream.Close()
			g := &gateway.Gateway{Name: "g", Version: "1"}
			if err := g.Set("old", upstream); err != nil {
				t.Fatal(err)
			}
			s, err := (&mcp.Client{Name: "local", OnSample: answers}).Open(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					text := fmt.Sprint("q", i)
					if got, err := mcp.CallAs[string](t.Context(), s, "old_ask", args{text}); err != nil || got != "re: "+text {
						t.Errorf("call %d = %q, %v", i, got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
