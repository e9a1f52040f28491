package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// read asks a feed and decodes its answer.
func read(t testing.TB, h http.Handler, path string, into any) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code == http.StatusOK && into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v, %s", path, err, w.Body)
		}
	}
	return w
}

// A feed has the rows that fit a filter, redacted, and says how to get the rest, until all have been read once.
func TestFeedFrames(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d","arguments":{"password":"planted-%d"}}}}`, i, i, i),
			fmt.Sprintf(`{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"%s"}}}`, i, strings.Repeat("x", 290)))
	}
	h := (&Page{Frames: recorded(t, lines...), Report: func() *health.Report { return new(health.Report) }}).Feed()
	for _, start := range []string{"/frames?limit=200", "/frames?limit=200&after=0"} {
		seen, path := map[int]bool{}, start
		for range 50 {
			var got feedRowList
			if w := read(t, h, path, &got); w.Code != http.StatusOK || w.Body.Len() > feedBytes+4<<10 || strings.Contains(w.Body.String(), "planted") {
				t.Fatalf("%s: HTTP %d, %d bytes: %.300s", path, w.Code, w.Body.Len(), w.Body)
			}
			for i, r := range got.Rows {
				if seen[r.N] || i > 0 && r.N < got.Rows[i-1].N {
					t.Fatalf("%s: row %d comes twice, or too early", path, r.N)
				}
				seen[r.N] = true
			}
			path = ""
			for name, n := range got.Rest {
				path = fmt.Sprintf("/frames?limit=200&%s=%d", name, n)
			}
			if path == "" {
				break
			}
		}
		if len(seen) != 300 {
			t.Errorf("%s and its rests have %d rows, not 300", start, len(seen))
		}
	}
	var one feedRowList
	if read(t, h, "/frames?q=target:t7", &one); len(one.Rows) != 1 || one.Rows[0].Target != "t7" || one.Rows[0].Status != statusError || one.Rest != nil || one.Kept != 600 {
		t.Errorf("a filter gives %+v", one)
	}
	for path, status := range map[string]int{"/frames?q=color:red": 400, "/frames?after=x": 400, "/frames/1?from=-1": 400, "/frames/9999": 404, "/frames/1?message=77": 404, "/elsewhere": 404, "/latency": 404, "/frames?q=%zz": 400} {
		if w := read(t, h, path, nil); w.Code != status || !strings.Contains(w.Body.String(), `"detail":"`) {
			t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
		}
	}
}

// A long message is read in parts, which together are the whole; secrets are in none.
func TestFeedFrame(t *testing.T) {
	text := strings.Repeat("häuser ", 3000)
	h := (&Page{Frames: recorded(t,
		`{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"password":"planted"}}}}`,
		`{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`+text+`"}]}}}`,
	), Report: func() *health.Report { return new(health.Report) }}).Feed()
	var got feedDetail
	w := read(t, h, "/frames/1", &got)
	if len(got.Messages) != 2 || got.Messages[1].Rest == 0 || strings.Contains(w.Body.String(), "planted") || w.Body.Len() > 12<<10 {
		t.Fatalf("the row is %d bytes: %.2000s", w.Body.Len(), w.Body)
	}
	whole, from := "", 0
	for range 20 {
		var part feedDetail
		if read(t, h, fmt.Sprintf("/frames/1?message=2&from=%d&bytes=9001", from), &part); len(part.Messages) != 1 {
			t.Fatalf("the part from %d is %+v", from, part)
		}
		whole += part.Messages[0].Text
		if from = part.Messages[0].Rest; from == 0 {
			break
		}
	}
	var msg struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(whole), &msg); err != nil || msg.Result.Content[0].Text != text {
		t.Errorf("the parts are %d bytes together, %v", len(whole), err)
	}
}

// A feed has the state as an administrator sees it, a part of the servers at a time.
func TestFeedState(t *testing.T) {
	report := &health.Report{}
	for i := range 200 {
		report.Servers = append(report.Servers, health.Server{Name: fmt.Sprint("s", i), State: "crashing", Reason: strings.Repeat("r", 200), Said: []string{"last words"}, Largest: []health.Tool{{Name: "big"}}})
	}
	h := (&Page{Report: func() *health.Report { return report }, Local: &auth.Principal{ID: "local#ada"}}).Feed()
	type answer struct {
		Servers []health.Server
		Rest    map[string]int
	}
	n := 0
	for range 20 {
		var got answer
		if w := read(t, h, fmt.Sprintf("/state?from=%d", n), &got); w.Body.Len() > feedBytes+4<<10 || !strings.Contains(w.Body.String(), "last words") || strings.Contains(w.Body.String(), "big") {
			t.Fatalf("the state has %d bytes: %.300s", w.Body.Len(), w.Body)
		}
		if n += len(got.Servers); got.Rest == nil {
			break
		}
	}
	if n != 200 {
		t.Errorf("the parts have %d servers", n)
	}
	if w := read(t, h, "/state?server=s3", nil); !strings.Contains(w.Body.String(), `"big"`) || strings.Contains(w.Body.String(), `"s4"`) {
		t.Errorf("one server is %s", w.Body)
	}
	if w := read(t, h, "/state?server=none", nil); w.Code != http.StatusNotFound {
		t.Errorf("an unknown server is HTTP %d", w.Code)
	}
}

// A feed has the quantiles of servers and of their tools, which can be selected.
func TestFeedLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := &metrics.Counters{}
		call := func(server, tool string, took time.Duration) {
			h := counters.Server(server)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				time.Sleep(took)
				return &mcp.ToolResult{}, nil
			}))
			if _, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + tool + `"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 99 {
			call("db", "query", 10*time.Millisecond)
		}
		call("db", "query", time.Second)
		call("web", "get", 50*time.Millisecond)
		h := (&Page{Report: func() *health.Report { return new(health.Report) }, Gateway: Gateway{Counters: counters}}).Feed()
		var got struct{ Times []feedTimes }
		read(t, h, "/latency?tool=q*", &got)
		if len(got.Times) != 1 || got.Times[0].Server != "db" || got.Times[0].Tool != "query" || got.Times[0].Calls != 100 {
			t.Fatalf("the times are %+v", got.Times)
		}
		near := func(d metrics.Latency, want time.Duration) bool {
			return d.Duration > want*93/100 && d.Duration < want*107/100
		}
		if one := got.Times[0]; !near(one.P50, 10*time.Millisecond) || !near(one.P95, 10*time.Millisecond) || !near(one.P99, 10*time.Millisecond) {
			t.Errorf("the quantiles are %v, %v, %v", one.P50, one.P95, one.P99)
		}
		got.Times = nil
		if read(t, h, "/latency?range=total", &got); len(got.Times) != 4 || got.Times[2].Server != "web" || got.Times[2].Tool != "" {
			t.Errorf("all times are %+v", got.Times)
		}
		for _, path := range []string{"/latency?range=week", "/latency?server=[", "/latency?from=x"} {
			if w := read(t, h, path, nil); w.Code != http.StatusBadRequest {
				t.Errorf("%s: HTTP %d", path, w.Code)
			}
		}
	})
}

// Frames are kept from the first request on until 30 minutes after the last one, or the end of the page.
func TestFeedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Int32
		p := &Page{Frames: new(Frames), Report: func() *health.Report { return new(health.Report) }, Watch: func() func() {
			on.Add(1)
			return func() { on.Add(-1) }
		}}
		h := p.Feed()
		var got feedRowList
		if read(t, h, "/frames", &got); on.Load() != 1 || got.Note == "" {
			t.Fatalf("%d watch after the first request, which says %q", on.Load(), got.Note)
		}
		time.Sleep(29 * time.Minute)
		got = feedRowList{}
		if read(t, h, "/frames", &got); on.Load() != 1 || got.Note != "" {
			t.Errorf("%d watch after the second request, which says %q", on.Load(), got.Note)
		}
		time.Sleep(29 * time.Minute)
		if synctest.Wait(); on.Load() != 1 {
			t.Errorf("%d watch 29 minutes after the second request", on.Load())
		}
		time.Sleep(2 * time.Minute)
		if synctest.Wait(); on.Load() != 0 {
			t.Errorf("%d watch 31 minutes after the last request", on.Load())
		}
		read(t, h, "/watch", nil)
		if on.Load() != 1 {
			t.Errorf("%d watch after another request", on.Load())
		}
		p.Close()
		if read(t, h, "/watch", nil); on.Load() != 0 {
			t.Errorf("%d watch after the end of the page", on.Load())
		}
	})
}
