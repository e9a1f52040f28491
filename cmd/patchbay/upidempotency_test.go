package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Calls with one idempotency key, of one principal, tool and arguments, share an execution: it runs once, all have the result
// and the progress, and the audit log has one begin and an end for each. Others run apart, and so do calls that ask
// something, each of which asks its own caller. The server gets the key.
func TestUpIdempotency(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets, by which status finds up")
	runtimeFolder(t)
	var runs atomic.Int64
	var keys sync.Map
	release := make(chan struct{})
	started := make(chan struct{}, 100)
	srv := &mcp.Server{Name: "shop", Version: "1"}
	add := func(name string, f func(ctx context.Context) (string, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(ctx context.Context, _ struct {
			X int `json:"x,omitempty"`
		}) (string, error) {
			return f(ctx)
		})
	}
	pay := func(ctx context.Context) (string, error) {
		n := runs.Add(1)
		keys.Store(string(mcp.CallFrom(ctx).Meta["dev.patchbay/idempotencyKey"]), true)
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		mcp.Progress(ctx, 1, 2, "half")
		return fmt.Sprint(n), nil
	}
	add("pay", pay)
	add("refund", pay)
	add("ask", func(ctx context.Context) (string, error) {
		yes, err := mcp.Confirm(ctx, "sure?")
		if err == nil {
			runs.Add(1)
		}
		return fmt.Sprint(yes), err
	})
	back := httptest.NewServer(srv)
	t.Cleanup(func() { back.CloseClientConnections(); back.Close() })
	dir := t.TempDir()
	var lines []byte
	header := map[string]http.Header{}
	for _, name := range []string{"ada", "bob"} {
		key, entry := auth.NewAPIKey(name)
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
		header[name] = http.Header{"Authorization": {"Bearer " + key}}
	}
	for name, text := range map[string]string{"keys.jsonl": string(lines), "gateway.yaml": "auth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startUp(t, map[string]any{"shop": map[string]any{"url": back.URL}}, "--gateway", filepath.Join(dir, "gateway.yaml"))
	session := func(who string, asked *atomic.Int64, revisions ...mcp.Revision) *mcp.Session {
		t.Helper()
		s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header[who], Revisions: revisions, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	keyed := func(key string) mcp.CallOption {
		return mcp.WithMeta(mcp.Meta{"dev.patchbay/idempotencyKey": json.RawMessage(key)})
	}
	inProgress := func(want int64) { // at the gateway
		t.Helper()
		until(t, fmt.Sprint(want, " calls in progress"), func() bool {
			var reports []health.Report
			if err := json.Unmarshal([]byte(patchbay(t, "status", "--json")), &reports); err != nil {
				t.Fatal(err)
			}
			m := reports[0].Servers[0].Minute
			return m != nil && m.Open == want
		})
	}

	var asked, told atomic.Int64
	ada, bob := session("ada", &asked), session("bob", &asked)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { // leaves while the others wait
		if _, err := ada.CallTool(ctx, "shop_pay", json.RawMessage(`{"x":1}`), keyed(`"order 7"`)); err == nil {
			t.Error("a cancelled call has a result")
		}
	})
	<-started
	for range 50 {
		all.Go(func() {
			res, err := ada.CallTool(t.Context(), "shop_pay", json.RawMessage(`{ "x":1 }`), keyed(`"order 7"`), mcp.OnProgress(func(done, total float64, text string) { told.Add(1) }))
			if err != nil || res.Text() != "1" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	inProgress(51)
	apart := []struct {
		s               *mcp.Session
		tool, args, key string
	}{
		{bob, "shop_pay", `{"x":1}`, `"order 7"`},
		{ada, "shop_pay", `{"x":2}`, `"order 7"`},
		{ada, "shop_refund", `{"x":1}`, `"order 7"`},
		{ada, "shop_pay", `{"x":1}`, `"order 8"`},
	}
	var results sync.Map
	for _, c := range apart {
		all.Go(func() {
			res, err := c.s.CallTool(t.Context(), c.tool, json.RawMessage(c.args), keyed(c.key))
			if err != nil {
				t.Error(err)
				return
			}
			if _, twice := results.LoadOrStore(res.Text(), true); twice || res.Text() == "1" {
				t.Errorf("%s %s %s got %s, which is of another call", c.tool, c.args, c.key, res.Text())
			}
		})
		<-started
	}
	cancel()
	inProgress(54) // the first one has left
	close(release)
	all.Wait()
	if runs.Load() != 5 || told.Load() != 50 {
		t.Errorf("%d executions, want 5; %d callers had progress, want 50", runs.Load(), told.Load())
	}
	if _, ok := keys.Load(`"order 7"`); !ok {
		t.Error("the server did not get the key")
	}

	// Each call that asks something asks its own caller.
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
		var a, b atomic.Int64
		runs.Store(0)
		one, two := session("ada", &a, rev), session("ada", &b, rev)
		for _, s := range []*mcp.Session{one, two} {
			all.Go(func() {
				if res, err := s.CallTool(t.Context(), "shop_ask", nil, keyed(`"k"`)); err != nil || res.Text() != "true" {
					t.Errorf("%s: %v, %v", rev, res, err)
				}
			})
		}
		all.Wait()
		if a.Load() != 1 || b.Load() != 1 || runs.Load() != 2 {
			t.Errorf("%s: the callers were asked %d and %d times, and the tool ran %d times; want 1, 1, 2", rev, a.Load(), b.Load(), runs.Load())
		}
	}

	// Bad keys are refused, before the server.
	runs.Store(0)
	for _, key := range []string{`""`, `7`, `"` + strings.Repeat("a", 129) + `"`} {
		_, err := ada.CallTool(t.Context(), "shop_pay", nil, keyed(key))
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "dev.patchbay/idempotencyKey") {
			t.Errorf("key %.20s: %v", key, err)
		}
	}
	if runs.Load() != 0 {
		t.Error("a call with a bad key reached the server")
	}

	r.stop(t)
	var first string
	begun, shared := 0, 0
	for e, err := range audit.Read(filepath.Join(dir, "audit.jsonl")) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == audit.CallBegin && e.Tool == "pay" || e.Tool == "refund" && e.Kind == audit.CallBegin:
			if begun++; begun == 1 {
				first = e.Call
			}
		case e.Shared != "":
			if shared++; e.Kind != audit.CallEnd || e.Shared != first || e.Outcome != "ok" {
				t.Errorf("a shared call has the line %+v", e)
			}
		}
	}
	if begun != 5 || shared != 50 {
		t.Errorf("%d calls have a begin, want 5; %d share, want 50", begun, shared)
	}
}
