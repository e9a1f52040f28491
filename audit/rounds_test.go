package audit_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The end of a call with questions has the time of all its rounds, without that of the person.
func TestMillisOfRounds(t *testing.T) {
	for rev, want := range map[mcp.Revision]float64{mcp.V2026_07_28: 6500, mcp.V2025_11_25: 2500, mcp.V2025_06_18: 2500} { // older handlers run once
		t.Run(string(rev), func(t *testing.T) { millisOfRounds(t, rev, want) })
	}
}

func millisOfRounds(t *testing.T, rev mcp.Revision, want float64) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, file, nil)
		trail := &audit.Trail{Log: l}
		srv := &mcp.Server{Name: "s"}
		srv.Use(trail.Outer(), trail.Around("s"))
		mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
			time.Sleep(2 * time.Second)
			for _, question := range []string{"one", "two"} {
				if _, err := mcp.Elicit[order](ctx, question); err != nil {
					return "", err
				}
			}
			time.Sleep(500 * time.Millisecond)
			return "done", nil
		})
		c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			time.Sleep(time.Minute)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 1}}, nil
		}}
		if res, err := mcptest.Connect(t, srv, c, rev).CallTool(t.Context(), "ask", nil); err != nil || res.IsError {
			t.Fatal(res, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		ends := 0
		for _, e := range calls(t, file) {
			if e.Kind == audit.CallEnd {
				if ends++; e.Millis < want || e.Millis > want+100 {
					t.Errorf("the end has %v ms, want %v: rounds of 2 s, and 0.5 s", e.Millis, want)
				}
			}
		}
		if ends != 1 {
			t.Errorf("%d ends, want 1", ends)
		}
	})
}
