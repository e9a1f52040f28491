package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// counting is a server whose results count the runs of its tools.
func counting(runs *atomic.Int64) *mcp.Server {
	srv := &mcp.Server{Name: "s", Version: "1"}
	add := func(name string, hints *mcp.ToolAnnotations, f func(n int64) (string, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: name, Annotations: hints}, func(ctx context.Context, in struct {
			X any `json:"x,omitempty"`
			Y any `json:"y,omitempty"`
		}) (string, error) {
			return f(runs.Add(1))
		})
	}
	read := &mcp.ToolAnnotations{ReadOnly: ptr(true)}
	add("read", read, func(n int64) (string, error) { return fmt.Sprint(n), nil })
	add("fails", read, func(n int64) (string, error) { return "", fmt.Errorf("%d", n) })
	add("large", read, func(n int64) (string, error) { return strings.Repeat("x", 1<<20), nil })
	add("some", read, func(n int64) (string, error) { return strings.Repeat("x", 400<<10), nil })
	add("slow", read, func(n int64) (string, error) { time.Sleep(2 * time.Second); return fmt.Sprint(n), nil })
	add("change", nil, func(n int64) (string, error) { time.Sleep(time.Second); return fmt.Sprint(n), nil })
	add("plain", nil, func(n int64) (string, error) { return fmt.Sprint(n), nil })
	return srv
}

// The cache keeps and drops results by its rules.
func TestResponseCache(t *testing.T) {
	var many [][]string
	for i := range 20 {
		many = append(many, []string{fmt.Sprintf(`s_some {"x":%d}`, i)})
	}
	tests := []struct {
		name  string
		ttl   time.Duration
		turns [][]string
		runs  int64
		pause time.Duration // between turns
	}{
		{"the same", time.Minute, [][]string{{`s_read {"x":1,"y":2}`}, {`s_read {"y":2, "x":1}`}}, 1, time.Second},
		{"the same in one answer", time.Minute, [][]string{{`s_read {}`, `s_read {}`, `s_read null`}}, 1, 0},
		{"other arguments", time.Minute, [][]string{{`s_read {"x":1}`}, {`s_read {"x":2}`}}, 2, 0},
		{"too old", time.Minute, [][]string{{`s_read {}`}, {`s_read {}`}}, 2, time.Minute},
		{"not opted in", 0, [][]string{{`s_read {}`}, {`s_read {}`}}, 2, 0},
		{"not read-only", time.Minute, [][]string{{`s_plain {}`}, {`s_plain {}`}}, 2, 0},
		{"errors", time.Minute, [][]string{{`s_fails {}`}, {`s_fails {}`}}, 2, 0},
		{"something may have changed", time.Minute, [][]string{{`s_read {}`}, {`s_plain {}`}, {`s_read {}`}}, 3, 0},
		{"something may have changed meanwhile", time.Minute, [][]string{{`s_slow {}`, `s_change {}`}, {`s_slow {}`}}, 3, 0},
		{"something else was called", time.Minute, [][]string{{`s_read {}`}, {`t_plain {}`}, {`s_read {}`}}, 2, 0},
		{"another server of the same identity", time.Minute, [][]string{{`s_read {}`}, {`t_read {}`}}, 2, 0},
		{"too large", time.Minute, [][]string{{`s_large {}`}, {`s_large {}`}}, 2, 0},
		{"too many", time.Minute, append(many, []string{`s_some {"x":19}`}, []string{`s_some {"x":0}`}), 21, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int64
				a, b := inMemory("s", counting(&runs)), inMemory("t", counting(&runs))
				a.Identity, b.Identity = "same", "same"
				a.Cache, b.Cache = tt.ttl, tt.ttl
				m := calls(tt.turns...)
				h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, a, b)
				defer h.Close()
				c, d := h.NewConversation(), &diary{}
				c.OnEvent = func(e host.Event) {
					d.note(e)
					if e.Kind == host.Asking && e.Step > 1 {
						time.Sleep(tt.pause)
					}
				}
				if _, err := c.Send(t.Context(), "go"); err != nil {
					t.Fatal(err)
				}
				hits, made := int64(0), int64(0)
				for _, e := range d.of(host.Resulted) {
					made++
					if e.Call.Cached {
						hits++
					}
				}
				if runs.Load() != tt.runs || hits != made-runs.Load() {
					t.Errorf("%d calls: tools ran %d times, %d results were kept ones; want %d runs", made, runs.Load(), hits, tt.runs)
				}
			})
		})
	}
}

// A new connection may have other credentials, and its server may have lost its state: cached
// results of the old connection are not used.
func TestCacheOfConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := inMemory("s", counting(&runs))
		s.Cache = time.Hour
		s, lose := closing(s)
		h := newHost(t, &host.Host{Allow: []string{"*"}}, s)
		defer h.Close()
		for range 2 {
			h.Model = calls([]string{`s_read {}`}, []string{`s_read {}`})
			talk(t, h)
			lose()
			time.Sleep(10 * time.Second)
		}
		if runs.Load() != 2 {
			t.Errorf("the tool ran %d times, want once for each connection", runs.Load())
		}
	})
}

// A change of the server's lists may change its results.
func TestCacheOfChangedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		srv := counting(&runs)
		s := inMemory("s", srv)
		s.Cache = time.Hour
		h := newHost(t, &host.Host{Allow: []string{"*"}}, s)
		defer h.Close()
		for i := range 3 {
			h.Model = calls([]string{`s_read {}`}, []string{`s_read {}`})
			talk(t, h)
			if i == 1 {
				mcp.AddTool(srv, mcp.Tool{Name: "another"}, func(context.Context, struct{}) (string, error) { return "", nil })
			}
			time.Sleep(10 * time.Second)
		}
		if runs.Load() != 2 {
			t.Errorf("the tool ran %d times, want once before the change and once after it", runs.Load())
		}
	})
}
