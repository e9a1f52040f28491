// Command sse serves clients of 2024-11-05, which know only HTTP with server-sent events, beside all others.
//
//	patchbay call count to=3 -s http://127.0.0.1:7420/sse
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Count struct {
	To int `json:"to" min:"1" max:"10"`
}

func count(ctx context.Context, in Count) (string, error) {
	for n := range in.To {
		mcp.Progress(ctx, float64(n+1), float64(in.To), "")
	}
	return fmt.Sprint("counted to ", in.To), nil
}

func newHandler() http.Handler {
	srv := &mcp.Server{Name: "counter", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "count", Description: "Count, with progress"}, count)
	mux := http.NewServeMux()
	old := srv.SSE("/messages")
	mux.Handle("/sse", old)      // GET: the stream of events
	mux.Handle("/messages", old) // POST: the messages of its client
	mux.Handle("/mcp", srv)      // Streamable HTTP
	return mux
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", newHandler())) }
