package collector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
)

// program builds patchbay, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "patchbay")
	build := exec.Command("go", "build", "-o", path, "./cmd/patchbay")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build patchbay: %v\n%s", err, out)
	}
	return path
}

// gateway is a patchbay up.
type gateway struct {
	url  string
	stop func()
}

// startGateway starts a gateway for one server that sends telemetry to c.
func startGateway(t *testing.T, program string, c *collector, name string, server map[string]any) *gateway {
	t.Helper()
	dir := t.TempDir()
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: server}})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"mcp.json": string(servers), "gateway.yaml": "telemetry: {otlp: '" + c.url() + "'}\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer // read when the process has ended
	cmd := exec.Command(program, "up", "--http", addr, "--config", filepath.Join(dir, "mcp.json"), "--gateway", filepath.Join(dir, "gateway.yaml"))
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "OTEL_SERVICE_NAME="+name)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &gateway{url: "http://" + addr + "/mcp"}
	g.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("up of %s: %v\n%s", name, err, &said)
		}
	})
	t.Cleanup(g.stop)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return g
			}
		}
		if time.Now().After(end) {
			t.Fatalf("up of %s is not ready within a minute: %v", name, err)
		}
	}
}

// The spans of a call through two gateways are one tree in the collector, whether its trace begins in
// _meta, in an HTTP header, or at the first gateway, and each span says how the call has failed. The
// histogram of durations has each call.
func TestTwoGateways(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted")
	}
	c := newCollector(t)
	patchbay := program(t)
	back := startGateway(t, patchbay, c, "back", map[string]any{"builtin": "everything"})
	front := startGateway(t, patchbay, c, "front", map[string]any{"url": back.url})
	const callers = "b7ad6b7169203331" // the span of the caller
	outcomes := map[string]string{"echo": "", "test_error_handling": "tool_error"}
	calls := 0
	for i, where := range []string{"_meta", "header", "nowhere"} {
		traceparent := fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319%d-%s-01", i, callers)
		for _, revision := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
			s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{revision}}).Dial(t.Context(), front.url)
			if err != nil {
				t.Fatal(err)
			}
			for tool, failure := range outcomes {
				var options []mcp.CallOption
				switch where {
				case "_meta":
					options = append(options, mcp.WithMeta(mcp.Meta{"traceparent": json.RawMessage(`"` + traceparent + `"`)}))
				case "header":
					options = append(options, mcp.WithHeader(http.Header{"Traceparent": {traceparent}}))
				}
				res, err := s.CallTool(t.Context(), "front_back_"+tool, map[string]any{"message": "hi"}, options...)
				if err != nil || res.IsError != (failure != "") {
					t.Errorf("%s: %v, %v", tool, res, err)
				}
				calls++
			}
			s.Close()
		}
	}
	var all []span
	for end := time.Now().Add(time.Minute); len(all) < 4*calls && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all = slices.DeleteFunc(c.spans(), func(s span) bool { return s.text("mcp.method.name") != "tools/call" })
	}
	front.stop() // it sends its metrics
	m, ok := c.metric("front", "mcp.server.operation.duration")
	if !ok || m.Type() != pmetric.MetricTypeHistogram {
		t.Fatal("the histogram of the first gateway has not arrived")
	}
	counted := uint64(0)
	for _, p := range m.Histogram().DataPoints().All() {
		if text(p.Attributes(), "mcp.method.name") == "tools/call" && p.Sum() > 0 && p.StartTimestamp() > 0 {
			counted += p.Count()
		}
	}
	if counted != uint64(calls) || m.Unit() != "s" {
		t.Errorf("the histogram of the first gateway has %d calls in %q, want %d", counted, m.Unit(), calls)
	}
	children := func(parent span) (found []span) {
		for _, s := range all {
			if s.ParentSpanID() == parent.SpanID() && s.TraceID() == parent.TraceID() {
				found = append(found, s)
			}
		}
		return found
	}
	trees, begun := 0, map[string]int{}
	for _, first := range all {
		if first.service != "front" || first.Kind() != ptrace.SpanKindServer {
			continue
		}
		trees++
		parent := first.ParentSpanID()
		begun[parent.String()]++
		var tree []string
		at := first
		for {
			tree = append(tree, fmt.Sprint(at.service, " ", at.Kind(), " ", at.Name()))
			if failure := outcomes[last(at.text("gen_ai.tool.name"))]; at.text("error.type") != failure {
				t.Errorf("%s has error.type %q, want %q", at.Name(), at.text("error.type"), failure)
			}
			next := children(at)
			if len(next) != 1 {
				if len(next) > 1 {
					t.Errorf("%d spans are children of %s", len(next), at.Name())
				}
				break
			}
			at = next[0]
		}
		tool := last(first.text("gen_ai.tool.name"))
		want := []string{"front Server tools/call front_back_" + tool, "front Client tools/call back_" + tool, "back Server tools/call back_" + tool, "back Client tools/call " + tool}
		if !slices.Equal(tree, want) {
			t.Errorf("the spans are %q, want %q", tree, want)
		}
	}
	if trees != calls || len(all) != 4*calls || begun[callers] != calls*2/3 || begun[""] != calls/3 {
		t.Errorf("%d trees with %d spans for %d calls; they begin at %v", trees, len(all), calls, begun)
	}
}

// last returns the name of a tool without those of gateways.
func last(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "front_"), "back_")
}
