package otlp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// An endpoint with the path of a signal is refused with the URL to give instead.
func TestEndpointOfASignal(t *testing.T) {
	for _, path := range []string{"/v1/traces", "/v1/metrics/", "/v1/logs"} {
		_, err := otlp.New(otlp.Options{Endpoint: "https://c.test/otlp" + path})
		if err == nil || !strings.HasSuffix(err.Error(), "give only the base URL: https://c.test/otlp") {
			t.Errorf("New with %s = %v, want an error with the base URL", path, err)
		}
	}
}

// ForceFlush of a provider sends the spans, whichever way the exporter is used.
func TestForceFlushOfAProvider(t *testing.T) {
	for name, use := range map[string]func(*otlp.Exporter) sdktrace.TracerProviderOption{
		"processor": func(e *otlp.Exporter) sdktrace.TracerProviderOption { return sdktrace.WithSpanProcessor(e) },
		"batcher":   func(e *otlp.Exporter) sdktrace.TracerProviderOption { return sdktrace.WithBatcher(e) },
	} {
		e, _ := start(t, new(collector), otlp.Options{Delay: time.Hour})
		p := sdktrace.NewTracerProvider(use(e))
		end(p, 10)
		if err := p.ForceFlush(t.Context()); err != nil || e.Stats().Sent != 10 {
			t.Errorf("%s: ForceFlush = %v, and %+v; want 10 spans sent", name, err, e.Stats())
		}
		p.Shutdown(t.Context())
	}
}

// An exporter in two providers ends with the first. The log says why the spans of the other are missing.
func TestTwoProviders(t *testing.T) {
	var log bytes.Buffer
	e, p := start(t, new(collector), otlp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	other := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	end(other, 3)
	if n := strings.Count(log.String(), "exporter of its own"); n != 1 || e.Stats().Dropped != 3 {
		t.Errorf("%d lines, %+v; want one line and 3 spans dropped:\n%s", n, e.Stats(), log.String())
	}
}

// A function of the program that panics ends neither the process nor the exporter.
func TestFunctionPanics(t *testing.T) {
	var log bytes.Buffer
	c := &collector{answer: func(n int, r *http.Request) (*http.Response, error) { panic("transport") }}
	e, p := start(t, c, otlp.Options{
		Delay: time.Millisecond, Interval: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Metrics: func() []otlp.Metric { panic("metrics") },
	})
	end(p, 2)
	if err := p.ForceFlush(t.Context()); err == nil && e.Stats().Failed == 0 {
		t.Errorf("ForceFlush = nil, %+v", e.Stats())
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Failed != 2 || s.FailedPushes != 1 {
		t.Errorf("%+v, want 2 failed spans and a failed push", s)
	}
	for _, in := range []string{"Options.Metrics", "Options.Client"} {
		if n := strings.Count(log.String(), "in="+in); n != 1 {
			t.Errorf("%d lines about %s:\n%s", n, in, log.String())
		}
	}
}
