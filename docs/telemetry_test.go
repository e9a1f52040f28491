package docs_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// The code of docs/telemetry.md.

func observeBoth(srv *mcp.Server, client *mcp.Client) {
	srv.Use(telemetry.Server(nil))
	client.Use(telemetry.Client(nil))
}

func sendSpans(logger *slog.Logger, work func()) error {
	exporter, err := otlp.New(otlp.Options{Endpoint: "http://localhost:4318", Logger: logger})
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(exporter))
	otel.SetTracerProvider(provider)
	defer provider.Shutdown(context.Background())
	work()
	return nil
}

func observeGateway(g *gateway.Gateway) *mcp.Server {
	srv := &mcp.Server{Name: "gateway", Handler: g}
	srv.Use(telemetry.Server(nil))
	g.Middleware = func(server string) mcp.Middleware {
		return telemetry.Client(&telemetry.Options{Server: server})
	}
	return srv
}

func spanLogger() *slog.Logger {
	logger := slog.New(telemetry.LogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	return logger
}

var _ = []any{sendSpans, spanLogger} // they use a port and the standard error

// The middleware of the page reaches a provider that is set later, and the exporter of the page a
// collector.
func TestTelemetryPage(t *testing.T) {
	g := &gateway.Gateway{Name: "g"}
	tools := &mcp.Server{Name: "tools"}
	mcp.AddTool(tools, mcp.Tool{Name: "render"}, render)
	client := &mcp.Client{Name: "c"}
	srv := observeGateway(g)
	observeBoth(tools, client)
	if err := g.Set("tools", tools); err != nil {
		t.Fatal(err)
	}

	var requests atomic.Int32
	var found atomic.Bool
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests.Add(1)
		found.Store(found.Load() || bytes.Contains(body, []byte(`"tools/call tools_render"`)))
	}))
	defer collector.Close()
	exporter, err := otlp.New(otlp.Options{Endpoint: collector.URL, Uncompressed: true})
	if err != nil {
		t.Fatal(err)
	}
	before := otel.GetTracerProvider()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(exporter))
	otel.SetTracerProvider(provider)
	defer otel.SetTracerProvider(before)
	s, err := client.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.CallTool(t.Context(), "tools_render", nil); err != nil || res.Text() != "rendered" {
		t.Errorf("render = %v, %v", res, err)
	}
	s.Close()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if stats := exporter.Stats(); requests.Load() == 0 || !found.Load() || stats.Sent < 4 || stats.Dropped+stats.Failed > 0 {
		t.Errorf("%d requests, the call is there: %v, stats %+v", requests.Load(), found.Load(), stats)
	}
}
