package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/middleware"
)

// A server at an address, until the program is told to end.
func ExampleHTTP() {
	srv := &mcp.Server{Name: "tuner", Version: "1.0.0"}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stop() // a real program waits for the signal
	err := (&endpoint.HTTP{Server: srv}).ListenAndServe(ctx, "127.0.0.1:0")
	fmt.Println(err)
	// Output: <nil>
}

// Metrics beside the server: a middleware counts, and a page of the program shows the numbers. The
// handler of a metrics library fits in the same place.
func ExampleHTTP_metrics() {
	var failed atomic.Int64
	srv := &mcp.Server{Name: "tuner", Version: "1.0.0"}
	srv.Use(middleware.Observe(func(_ context.Context, r middleware.Record) {
		if r.Outcome == middleware.ToolError || r.Outcome == middleware.Failed {
			failed.Add(1)
		}
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE mcp_requests_failed_total counter\nmcp_requests_failed_total %d\n", failed.Load())
	})
	web := &endpoint.HTTP{Server: srv, Handler: mux}

	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(web.ListenAndServe(ctx, "127.0.0.1:0"))
	// Output: <nil>
}
