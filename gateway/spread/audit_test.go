package spread_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The audit log names the replica that has answered a call, and has a line for each further replica that gets it.
func TestAuditOfReplicas(t *testing.T) {
	a, b := newBox(t, "a"), newBox(t, "b")
	group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: time.Hour},
		Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(file, &audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trail := &audit.Trail{Log: log, OnFailure: audit.Refuse}
	g := &gateway.Gateway{Name: "gw", Logger: quiet(), Middleware: trail.Around}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx, gateway.Source{Name: "work", Open: group.Open}) }()
	t.Cleanup(func() { cancel(); <-done; group.Close() })
	connected(t, group)
	s, err := (&mcp.Client{Name: "caller", Version: "1"}).Open(t.Context(), trail.Outer()(g))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	compared(t, s, a, b)
	eventually(t, "a replica has refused a call", func() bool {
		a.answersWrongly(func(w http.ResponseWriter, _ json.RawMessage) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "no")
		}, "tools/call")
		_, err := call(t, s, "work_which")
		return err == nil && statusOf(group, "a").Breaker.Failures[breaker.Refused] > 0
	})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	ends, retried := map[string]int{}, ""
	for e, err := range audit.Read(file) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == audit.CallRetry:
			if retried = e.Call; e.Attempt != 2 || e.Server == nil || e.Server.Replica != "b" || e.Tool != "which" {
				t.Errorf("the line of the repeat: %s", e.Line())
			}
		case e.Kind == audit.CallEnd:
			ends[e.Server.Replica]++
			if e.Call == retried && e.Server.Replica != "b" {
				t.Errorf("the end of the call that was repeated: %s", e.Line())
			}
		}
	}
	if retried == "" || ends["a"] == 0 || ends["b"] == 0 || len(ends) != 2 {
		t.Errorf("retried: %q, ends %v", retried, ends)
	}
}
