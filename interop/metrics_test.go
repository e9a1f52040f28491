package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// odd is a name with quotes and newlines that is not UTF-8.
const odd = "a\"b\\c\nd\xffé"

// scraped returns what Prometheus reads of counters that have counted each metric.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	c := &metrics.Counters{Version: "1.0", Upstreams: func() []metrics.Upstream {
		return []metrics.Upstream{{Name: odd, State: "needs login", Connections: 1, Restarts: 3, MemoryBytes: 1 << 40, Breakers: []metrics.Breaker{{Replica: odd, Open: true, Failures: map[string]int{"lost": 2}}}}}
	}}
	c.Audit = func() metrics.AuditLog { return metrics.AuditLog{} }
	c.Faults = func() int { return 1 }
	c.Refused("invalid_token")
	c.Cached(odd, true)
	c.Cached(odd, false)
	c.Team = func(context.Context) string { return odd }
	h := c.Front()(c.Around(nil)(odd)(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if string(req.Param("name")) == `"bad"` {
			return nil, mcp.Errorf(-32000, "bad")
		}
		switch {
		case string(req.Param("name")) == `"job"`:
			return &mcp.CreateTaskResult{Task: json.RawMessage(`{"taskId":"1"}`)}, nil
		case req.Method == "tasks/get":
			return mcp.RawResult(`{"taskId":"1","status":"cancelled"}`), nil
		}
		return mcp.RawResult(`{"isError":true}`), nil
	})))
	for _, tool := range []string{"t", `q"`, "bad", "job"} {
		params, err := json.Marshal(map[string]string{"name": tool})
		if err != nil {
			t.Fatal(err)
		}
		h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: params})
	}
	h.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
	h.Handle(t.Context(), &mcp.Request{Method: "tasks/get", Params: json.RawMessage(`{"taskId":"1"}`)})
	c.Closed(odd, time.Minute)
	c.Waited(odd, time.Millisecond)
	c.Decided(false, odd)
	session, end := context.WithCancel(t.Context())
	c.Session(session)
	end()
	var text *bytes.Buffer
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if text = w.Body; strings.Contains(text.String(), "\nmcp_server_session_duration_seconds_count") { // a session is counted after its end
			break
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// The parser of Prometheus reads the text of package metrics, names with quotes and newlines
// included, and finds each metric with its type.
func TestMetricsParse(t *testing.T) {
	families := scraped(t)
	for _, m := range metrics.Metrics() {
		f := families[m.Name]
		if f == nil || len(f.Metric) == 0 {
			t.Errorf("there is no %s", m.Name)
			continue
		}
		if got := map[string]string{"COUNTER": "counter", "GAUGE": "gauge", "HISTOGRAM": "histogram"}[f.Type.String()]; got != m.Type || f.GetHelp() != m.Help {
			t.Errorf("%s: %s, %q", m.Name, got, f.GetHelp())
		}
		for _, one := range f.Metric {
			for _, l := range one.Label {
				if l.GetName() == "server" && l.GetValue() != "a\"b\\c\nd\uFFFDé" {
					t.Errorf("%s: server %q", m.Name, l.GetValue())
				}
			}
			if h := one.Histogram; h != nil {
				last := h.Bucket[len(h.Bucket)-1]
				if len(h.Bucket) != 18 || last.GetCumulativeCount() != h.GetSampleCount() || h.GetSampleCount() == 0 {
					t.Errorf("%s: %v", m.Name, h)
				}
			}
		}
	}
}
