package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/telemetry"
)

// The span of the server is a child of the client's.
func Example() {
	spans := tracetest.NewSpanRecorder()
	o := &telemetry.Options{Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}

	srv := &mcp.Server{Name: "greeter"}
	srv.Use(telemetry.Server(o))
	mcp.AddTool(srv, mcp.Tool{Name: "greet"}, func(context.Context, struct{}) (string, error) { return "hello", nil })

	client := &mcp.Client{Name: "example"}
	client.Use(telemetry.Client(o))
	s, err := client.Open(context.Background(), srv)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	if _, err := s.CallTool(context.Background(), "greet", nil); err != nil {
		fmt.Println(err)
	}
	for _, span := range spans.Ended() {
		if span.Name() == "tools/call greet" {
			fmt.Println(span.SpanKind(), span.Parent().IsValid())
		}
	}
	// Output:
	// server true
	// client false
}
