package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// A call is counted, has a span, and has two lines that name its trace. The program is short.
func TestObserved(t *testing.T) {
	mcptest.LeakCheck(t)
	var mu sync.Mutex
	var sent bytes.Buffer // what the collector got
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&sent, body); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)

	ctx, stop := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	served := make(chan error, 1)
	go func() { served <- serve(ctx, ln, file) }()

	wire := &http.Transport{}
	defer wire.CloseIdleConnections()
	web := &http.Client{Transport: wire}
	url := "http://" + ln.Addr().String()
	s, err := (&mcp.Client{Name: "desk", HTTPClient: web}).Dial(t.Context(), url+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.CallTool(t.Context(), "buy", map[string]any{"What": "a lamp"}); err != nil || res.Text() != "bought a lamp" {
		t.Fatal(res, err)
	}
	s.Close()
	res, err := web.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	counts, err := io.ReadAll(res.Body)
	res.Body.Close()
	if want := `patchbay_call_duration_seconds_count{server="shop",mcp_method_name="tools/call",gen_ai_tool_name="buy"} 1`; err != nil || !bytes.Contains(counts, []byte(want)) {
		t.Errorf("/metrics has no line %s, %v:\n%s", want, err, counts)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}

	var kinds []string
	trace := ""
	for e, err := range audit.Read(file) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Tool == "buy" {
			kinds, trace = append(kinds, string(e.Kind)), e.Trace
		}
	}
	if !slices.Equal(kinds, []string{"call.begin", "call.end"}) || trace == "" {
		t.Errorf("the lines of the call are %q, its trace is %q", kinds, trace)
	}
	mu.Lock()
	defer mu.Unlock()
	if text := sent.String(); !strings.Contains(text, `"tools/call buy"`) || !strings.Contains(text, trace) {
		t.Errorf("the collector got %s, want a span of the call with the trace %s", text, trace)
	}
	source, err := os.ReadFile("main.go")
	if n := bytes.Count(source, []byte("\n")); err != nil || n > 60 {
		t.Errorf("the program has %d lines, want at most 60; %v", n, err)
	}
}
