package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that was lost with its connection is repeated, once, if a trusted server declares the tool idempotent and the call
// has an idempotency key. Otherwise its outcome is unknown. The audit log has a line for the repeat.
func TestLostCallWithKey(t *testing.T) {
	for _, tt := range []struct {
		name            string
		trusted, hinted bool
		key             string
		lost, runs      int64 // how many calls are lost; executions
	}{
		{"all", true, true, `"order 7"`, 1, 2},
		{"lost again", true, true, `"order 7"`, 9, 2},
		{"not trusted", false, true, `"order 7"`, 1, 1},
		{"not idempotent", true, false, `"order 7"`, 1, 1},
		{"no key", true, true, "", 1, 1},
		{"bad key", true, true, `""`, 1, 1},
	} {
		for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
			t.Run(fmt.Sprint(tt.name, "/", rev), func(t *testing.T) {
				var runs atomic.Int64
				srv := &mcp.Server{Name: "shop", Version: "1"}
				mcp.AddTool(srv, mcp.Tool{Name: "pay", Annotations: &mcp.ToolAnnotations{Idempotent: &tt.hinted}}, func(ctx context.Context, _ struct{}) (string, error) {
					return fmt.Sprint(runs.Add(1), " ", string(mcp.CallFrom(ctx).Meta["dev.patchbay/idempotencyKey"])), nil
				})
				hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					before := runs.Load()
					rec := httptest.NewRecorder()
					if r.Method != http.MethodPost {
						srv.ServeHTTP(w, r)
						return
					}
					srv.ServeHTTP(rec, r)
					if n := runs.Load(); n > before && n <= tt.lost {
						panic(http.ErrAbortHandler)
					}
					for name, values := range rec.Header() {
						w.Header()[name] = values
					}
					w.WriteHeader(rec.Code)
					_, _ = w.Write(rec.Body.Bytes())
				}))
				t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
				ready := make(chan struct{}, 16)
				file := filepath.Join(t.TempDir(), "audit.jsonl")
				log, err := audit.Open(file, &audit.Options{})
				if err != nil {
					t.Fatal(err)
				}
				trail := &audit.Trail{Log: log, OnFailure: audit.Refuse}
				g := &gateway.Gateway{Name: "gw", Middleware: trail.Around, OnStatus: func(s gateway.Status) {
					if s.State == gateway.Ready {
						ready <- struct{}{}
					}
				}}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				src := gateway.Source{Name: "shop", Share: gateway.Shared, Trusted: tt.trusted, Open: func(ctx context.Context) (gateway.Upstream, error) {
					c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
					gateway.Relay(ctx, c)
					s, err := c.Dial(ctx, hs.URL)
					if err != nil {
						return nil, err
					}
					return s, nil
				}}
				go func() { defer close(done); g.Run(ctx, src) }()
				t.Cleanup(func() { cancel(); <-done })
				<-ready
				s, err := (&mcp.Client{Name: "desk", Version: "1"}).Open(t.Context(), trail.Outer()(g))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for range 2 { // the gateway knows the hints of listed tools
					for _, err := range s.Tools(t.Context(), mcp.WithoutCache()) {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				var opts []mcp.CallOption
				if tt.key != "" {
					opts = append(opts, mcp.WithMeta(mcp.Meta{"dev.patchbay/idempotencyKey": json.RawMessage(tt.key)}))
				}
				res, err := s.CallTool(t.Context(), "shop_pay", nil, opts...)
				switch repeats := tt.runs > tt.lost; {
				case runs.Load() != tt.runs:
					t.Errorf("%d executions, want %d: %v", runs.Load(), tt.runs, err)
				case repeats && (err != nil || res.Text() != "2 "+tt.key):
					t.Errorf("%v, %v; want the answer of the second execution, with the key", res, err)
				case !repeats && (err == nil || !strings.Contains(err.Error(), "the tool may or may not have run")):
					t.Errorf("%v, %v; want an unknown outcome", res, err)
				}
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				retries := int64(0)
				for e, err := range audit.Read(file) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Kind == audit.CallRetry {
						if retries++; e.Attempt != 2 || e.Tool != "pay" || e.Server == nil || e.Server.Name != "shop" || e.Server.Replica != "" {
							t.Errorf("the line of the repeat: %s", e.Line())
						}
					}
				}
				if retries != tt.runs-1 {
					t.Errorf("the audit log has %d repeats after %d executions", retries, tt.runs)
				}
			})
		}
	}
}
