// Command observed serves a tool, and everything about its calls: counters for Prometheus at /metrics,
// spans for the collector that OTEL_EXPORTER_OTLP_ENDPOINT names, and an audit log in which every later
// change shows.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"os/signal"
	"syscall"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func serve(ctx context.Context, ln net.Listener, file string) error {
	var options []sdktrace.TracerProviderOption
	if to, ok, err := otlp.FromEnvironment(); err != nil {
		return err
	} else if ok {
		exporter, err := otlp.New(to)
		if err != nil {
			return err
		}
		options = append(options, sdktrace.WithSpanProcessor(exporter))
	}
	lines, err := audit.Open(file, nil)
	if err != nil {
		return err
	}
	spans := sdktrace.NewTracerProvider(options...)

	srv := &mcp.Server{Name: "shop", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "buy"}, func(_ context.Context, in struct{ What string }) (string, error) { return "bought " + in.What, nil })
	counters := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	trail := &audit.Trail{Log: lines, TraceID: telemetry.TraceID} // its lines name the spans
	srv.Use(telemetry.Server(&telemetry.Options{Provider: spans}), counters.Front(), trail.Outer(), counters.Server("shop"), trail.Around("shop"))

	err = (&endpoint.HTTP{Server: srv, Handler: counters}).Serve(ctx, ln) // counters are what is beside /mcp
	return errors.Join(err, spans.Shutdown(context.Background()), lines.Close())
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:7420")
	if err == nil {
		err = serve(ctx, ln, "audit.jsonl")
	}
	if err != nil {
		log.Fatal(err)
	}
}
