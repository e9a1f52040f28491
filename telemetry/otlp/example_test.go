package otlp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

func Example() {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}))
	defer collector.Close()

	exporter, err := otlp.New(otlp.Options{Endpoint: collector.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(exporter))
	_, span := provider.Tracer("example").Start(context.Background(), "work")
	span.End()
	if err := provider.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(exporter.Stats().Sent, "sent")
	// Output:
	// POST /v1/traces application/json
	// 1 sent
}
