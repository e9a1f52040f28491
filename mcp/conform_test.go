package mcp_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/schema"
)

// outputServer offers one tool with an output schema and answers its calls as told.
func outputServer(outputSchema func() string, result func() string) *mcp.Server {
	return &mcp.Server{Name: "s", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
		switch r.Method {
		case "tools/list":
			return mcp.RawResult(`{"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + outputSchema() + `}]}`), nil
		case "tools/call":
			return mcp.RawResult(result()), nil
		}
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "s", Version: "1"}, Revisions: mcp.Revisions()}, nil
	})}
}

// TOOL-26-024: a structured result is checked against the output schema of its tool, once that was
// listed; the error names the place, and the result is returned with it.
func TestResultsAreChecked(t *testing.T) {
	const object = `{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}}},"required":["list"]}`
	for _, tt := range []struct {
		schema, result, want string
	}{
		{object, `{"content":[],"structuredContent":{"list":[1,2]}}`, ""},
		{object, `{"content":[],"structuredContent":{"list":[1,"2"]}}`, "list[1]"},
		{object, `{"content":[],"structuredContent":{}}`, `list`},
		{object, `{"content":[{"type":"text","text":"hi"}]}`, "no structured content"},
		{object, `{"content":[],"isError":true}`, ""},
		{object, `{"content":[],"structuredContent":{"list":7},"isError":true}`, ""},
		{`{"type":"array","prefixItems":[{"type":"string"}]}`, `{"content":[],"structuredContent":[7]}`, "[0]"},
		{`true`, `{"content":[],"structuredContent":{"any":1}}`, ""},
	} {
		s := unchecked(t, outputServer(func() string { return tt.schema }, func() string { return tt.result }), nothing())
		if _, err := s.CallTool(t.Context(), "t", nil); err != nil {
			t.Errorf("%s, not listed: %v", tt.result, err)
		}
		toolNames(t, s)
		res, err := s.CallTool(t.Context(), "t", nil)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.result, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || res == nil):
			t.Errorf("%s = %v, %v; want the result and an error that names %q", tt.result, res, err, tt.want)
		}
		var invalid *schema.ValidationError
		if strings.Contains(tt.want, "[") && !errors.As(err, &invalid) {
			t.Errorf("%s = %T, want a *schema.ValidationError", tt.result, err)
		}
	}
}

// A list that came later replaces the schema; after the server has said that its tools
// changed none is known.
func TestResultsAreCheckedByTheLatestSchema(t *testing.T) {
	var outputSchema atomic.Value
	outputSchema.Store(`{"type":"object","required":["a"]}`)
	srv := outputServer(func() string { return outputSchema.Load().(string) }, func() string { return `{"content":[],"structuredContent":{"b":1}}` })
	var change atomic.Bool
	inner := srv.Handler
	srv.Handler = mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method == "tools/call" && change.Load() {
			if err := forward.Notify(ctx, "notifications/tools/list_changed", nil); err != nil {
				t.Error(err)
			}
		}
		return inner.Handle(ctx, r)
	})
	s := unchecked(t, srv, nothing())
	call := func() error {
		_, err := s.CallTool(t.Context(), "t", nil)
		return err
	}
	toolNames(t, s)
	if err := call(); err == nil {
		t.Error("a result without a is taken")
	}
	outputSchema.Store(`{"type":"object","required":["b"]}`)
	toolNames(t, s)
	if err := call(); err != nil {
		t.Errorf("with the new schema: %v", err)
	}
	outputSchema.Store(`{"type":"object","required":["c"]}`)
	toolNames(t, s)
	change.Store(true)
	if err := call(); err != nil {
		t.Errorf("after a change of the tools: %v", err)
	}
}

// JSON-26-006, -008, -011, -012: a server's schema that cannot be compiled, or that refers to other
// documents, is logged and not enforced, and nothing is fetched. Validation that would not end
// fails with an error, soon.
func TestHostileOutputSchemas(t *testing.T) {
	long.WithoutRace(t)
	var hits atomic.Int64
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.Write([]byte(`{"type":"string"}`))
	}))
	defer listener.Close()
	doubling := `{"type":"object","$defs":{"d0":{"type":"string"}`
	for i, names := 1, "0123456789abcdefghijklmnopqrstuvwxyz"; i < len(names); i++ {
		doubling += `,"d` + names[i:i+1] + `":{"anyOf":[{"$ref":"#/$defs/d` + names[i-1:i] + `"},{"$ref":"#/$defs/d` + names[i-1:i] + `"}]}`
	}
	doubling += `},"properties":{"x":{"$ref":"#/$defs/dz"}}}`
	deep := strings.Repeat(`{"x":`, 90) + `1` + strings.Repeat(`}`, 90)
	for name, tt := range map[string]struct {
		schema, value string
		logged, fails bool
	}{
		"network":          {`{"type":"object","properties":{"x":{"$ref":"` + listener.URL + `/s"}}}`, `{"x":1}`, true, false},
		"file":             {`{"$ref":"file:///etc/hostname"}`, `{}`, true, false},
		"other dialect":    {`{"$schema":"` + listener.URL + `/draft","type":"object"}`, `{}`, true, false},
		"no schema":        {`{"type":"nonsense"}`, `{}`, true, false},
		"10 MB":            {`{"type":"object","description":"` + strings.Repeat("x", 10<<20) + `"}`, `{}`, true, false},
		"circle":           {`{"$ref":"#"}`, `{}`, true, false},
		"recursion":        {`{"type":"object","properties":{"x":{"$ref":"#"}}}`, deep, false, true},
		"exponential":      {doubling, `{"x":1}`, false, true},
		"100,000 branches": {`{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 100_000) + `{"type":"string"}]}`, `{}`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			c := &mcp.Client{Name: "c", Logger: slog.New(slog.NewTextHandler(&log, nil))}
			s := unchecked(t, outputServer(func() string { return tt.schema }, func() string { return `{"content":[],"structuredContent":` + tt.value + `}` }), c)
			start := time.Now()
			toolNames(t, s)
			for range 2 {
				if _, err := s.CallTool(t.Context(), "t", nil); (err != nil) != tt.fails {
					t.Errorf("call = %v, want an error: %t", err, tt.fails)
				}
			}
			if n := strings.Count(log.String(), "output schema not enforced"); (n == 1) != tt.logged || n > 1 {
				t.Errorf("logged %d times, want logged: %t\n%.300s", n, tt.logged, log.String())
			}
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("%d requests to the network", n)
	}
}
