package push_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
	"github.com/patchbay-dev/patchbay/telemetry/push"
)

// The counters of a server go to a collector each minute, and at Shutdown.
func ExampleMetrics() {
	srv := &mcp.Server{Name: "shop"}
	mcp.AddTool(srv, mcp.Tool{Name: "search"}, func(context.Context, struct{}) (string, error) { return "a lamp", nil })
	counters := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	srv.Use(counters.Front(), counters.Server("shop"))

	exporter, err := otlp.New(otlp.Options{
		Endpoint: "http://localhost:4318",
		Metrics:  func() []otlp.Metric { return push.Metrics(counters) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer exporter.Shutdown(context.Background())
	// srv.ServeStdio(ctx)
}
