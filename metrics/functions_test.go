package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// A function of the program that panics fails neither the call nor the reading of the counts, and the
// log has one line for each.
func TestFunctionPanics(t *testing.T) {
	var log bytes.Buffer
	c := &metrics.Counters{
		Listed:    func(string, string) bool { panic("listed") },
		Owner:     func(string) (string, string) { panic("owner") },
		Team:      func(context.Context) string { panic("team") },
		Upstreams: func() []metrics.Upstream { panic("upstreams") },
		Audit:     func() metrics.AuditLog { panic("audit") },
		Faults:    func() int { panic("faults") },
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	good := c.Front()(c.Server("s")(answer(mcp.RawResult(`{}`), nil)))
	over := c.Front()(answer(nil, &limit.Error{What: "more", RetryAfter: time.Second}))
	for range 3 {
		if res, err := good.Handle(t.Context(), call("t")); err != nil || string(res.JSON()) != "{}" {
			t.Errorf("the call has %v, %v", res, err)
		}
		var limited *limit.Error
		if _, err := over.Handle(t.Context(), call("t")); !errors.As(err, &limited) {
			t.Errorf("the error is %v", err)
		}
		w := httptest.NewRecorder()
		if c.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil)); w.Code != 200 {
			t.Errorf("HTTP %d", w.Code)
		}
	}
	for _, field := range []string{"Listed", "Owner", "Team", "Upstreams", "Audit", "Faults"} {
		if n := strings.Count(log.String(), "in=Counters."+field+" "); n != 1 {
			t.Errorf("the log has %d lines about %s, want 1:\n%s", n, field, log.String())
		}
	}
	if got := c.Read(metrics.Total).Servers[0]; got.Calls != 3 || got.Tools[0].Name != "other" {
		t.Errorf("%+v", got)
	}
}

// With HasTool, a tool that only fails has counts of its own, and an unknown name has none.
func TestHasTool(t *testing.T) {
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "boom"}, func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(-32000, "broken") })
	c := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	srv.Use(c.Server("s"))
	s, err := (&mcp.Client{Name: "c"}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tool := range []string{"boom", "nope", "boom"} {
		s.CallTool(t.Context(), tool, nil)
	}
	wantTools(t, c, "boom 2", "other 1")
}
