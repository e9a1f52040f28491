package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/patchbay-dev/patchbay/interop/telemetry"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type nothing struct{}

// The numbers are right on every revision and wire: one for each call, whether it asks, fails, or
// becomes a task. Its spans belong to the caller's trace.
func TestNumbers(t *testing.T) {
	var (
		srv      *mcp.Server
		spans    *tracetest.SpanRecorder
		registry *prometheus.Registry
	)
	newServer := func() *mcp.Server {
		spans, registry = tracetest.NewSpanRecorder(), prometheus.NewRegistry()
		provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
		observed := telemetry.New(provider.Tracer("test"), registry)
		srv = &mcp.Server{Name: "s", Version: "1", Tasks: mcp.TaskConfig{Poll: 20 * time.Millisecond, OnEnd: observed.TaskEnded}}
		srv.Use(observed.Middleware)
		add := func(name string, how mcp.TaskSupport, f func(context.Context, nothing) (string, error)) {
			mcp.AddTool(srv, mcp.Tool{Name: name, Execution: mcp.ToolExecution{TaskSupport: how}}, f)
		}
		add("works", "", func(context.Context, nothing) (string, error) { return "done", nil })
		add("fails", "", func(context.Context, nothing) (string, error) { return "", errors.New("no paper") })
		add("breaks", "", func(context.Context, nothing) (string, error) { return "", mcp.Errorf(7001, "broken") })
		add("asks", "", func(ctx context.Context, _ nothing) (string, error) {
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("hello")}}}})
			if err != nil {
				return "", err
			}
			return "asked " + res.Model, nil
		})
		add("renders", mcp.TaskOptional, func(context.Context, nothing) (string, error) { return "rendered", nil })
		add("misrenders", mcp.TaskOptional, func(context.Context, nothing) (string, error) { return "", errors.New("no paper") })
		return srv
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.Text("hi")}}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		ctx, caller := trace.NewTracerProvider().Tracer("caller").Start(t.Context(), "caller")
		meta := mcp.Meta{}
		propagation.TraceContext{}.Inject(ctx, telemetry.Carrier(meta))
		for _, name := range []string{"works", "fails", "asks", "renders", "misrenders"} {
			task, err := s.StartTask(ctx, name, nil, mcp.WithMeta(meta))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if res, err := task.Wait(ctx); err != nil || res.IsError != slices.Contains([]string{"fails", "misrenders"}, name) {
				t.Errorf("%s = %v, %v", name, res, err)
			}
		}
		var rpc *jsonrpc.Error
		if _, err := s.CallTool(ctx, "breaks", nil, mcp.WithMeta(meta)); !errors.As(err, &rpc) || rpc.Code != 7001 {
			t.Errorf("breaks: %v", err)
		}
		if _, err := s.CallTool(ctx, "invented", nil, mcp.WithMeta(meta)); err == nil {
			t.Error("a tool that does not exist works")
		}
		s.Close()
		if err := srv.Shutdown(t.Context()); err != nil { // after it, nothing more is counted
			t.Error(err)
		}

		want := []string{"asks  1", "breaks 7001 1", "fails tool_error 1", "misrenders tool_error 1", "renders  1", "works  1", " -32602 1"}
		slices.Sort(want)
		if got := calls(t, registry); !slices.Equal(got, want) {
			t.Errorf("the calls are %q, want %q", got, want)
		}
		rounds := map[string]int{}
		for _, span := range spans.Ended() {
			if !strings.HasPrefix(span.Name(), "tools/call") {
				continue
			}
			rounds[strings.TrimPrefix(span.Name(), "tools/call ")]++
			if span.Parent().TraceID() != caller.SpanContext().TraceID() || span.Parent().SpanID() != caller.SpanContext().SpanID() {
				t.Errorf("the parent of %q is %v, want the caller's span", span.Name(), span.Parent())
			}
		}
		asks := 1
		if s.Revision() == mcp.V2026_07_28 { // one run ends with the question, one with the result
			asks = 2
		}
		if rounds["asks"] != asks || rounds["renders"] != 1 || rounds["misrenders"] != 1 || len(spans.Started()) != len(spans.Ended()) {
			t.Errorf("the spans are %v; %d started, %d ended", rounds, len(spans.Started()), len(spans.Ended()))
		}
	})
}

// calls returns the tool calls of a registry, as "name error count".
func calls(t *testing.T, registry *prometheus.Registry) (found []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["method"] == "tools/call" {
				found = append(found, fmt.Sprint(labels["name"], " ", labels["error_type"], " ", m.GetHistogram().GetSampleCount()))
			}
		}
	}
	slices.Sort(found)
	return found
}
