package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// dial makes a client of a server; both end with the test.
func dial(t testing.TB, url string, opts streamable.ClientOptions) *streamable.Client {
	t.Helper()
	opts.URL = url
	c := streamable.NewClient(opts)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return c
}

// handshake opens a legacy session.
func handshake(t testing.TB, c *streamable.Client, table *revision.Table) {
	t.Helper()
	params := json.RawMessage(`{"protocolVersion":"` + table.Name + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`)
	if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "initialize", Params: params}); err != nil {
		t.Fatalf("initialize = %v", err)
	}
	c.Negotiated(table)
	if err := c.Notify(t.Context(), revision.NoteInitialized, nil); err != nil {
		t.Fatalf("initialized = %v", err)
	}
}

func modernParams(members string) json.RawMessage {
	return json.RawMessage(`{` + members + meta + `}`)
}

// TestRoundTrip drives our server with our client in both eras, at one address that accepts POST
// (HTTP-26-001).
func TestRoundTrip(t *testing.T) {
	s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
		if c.Method == revision.MethodListen {
			<-ctx.Done()
			return engine.Result{}, context.Cause(ctx)
		}
		c.Progress(1, 2, "half")
		if c.Method == revision.MethodCall && c.Peer.Revision.Sessions {
			got, err := c.Ask(ctx, engine.Question{Method: revision.MethodElicit, Params: json.RawMessage(`{"message":"name?","requestedSchema":{"type":"object","properties":{}}}`)})
			if err != nil {
				return engine.Result{}, err
			}
			return engine.Result{JSON: got[0]}, nil
		}
		return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
	})
	hs := httptest.NewServer(s)
	defer hs.Close()

	t.Run("modern", func(t *testing.T) {
		c := dial(t, hs.URL, streamable.ClientOptions{})
		c.Negotiated(revision.V20260728)
		var notes int
		raw, err := c.Call(t.Context(), &engine.Outgoing{
			Method: "tools/call",
			Params: json.RawMessage(`{"name":"grüße","_meta":{"progressToken":1,` + meta[len(`"_meta":{`):] + `}`),
			Inbox:  callInbox{note: func(string, json.RawMessage) { notes++ }},
		})
		if err != nil || notes != 1 {
			t.Errorf("Call = %s, %v with %d notes, want 1", raw, err, notes)
		}
		if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list", Params: modernParams("")}); err != nil {
			t.Errorf("tools/list = %v", err)
		}
	})
	for _, table := range []*revision.Table{revision.V20250618, revision.V20251125} {
		t.Run(table.Name, func(t *testing.T) {
			c := dial(t, hs.URL, streamable.ClientOptions{})
			handshake(t, c, table)
			raw, err := c.Call(t.Context(), &engine.Outgoing{
				Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`),
				Inbox: callInbox{question: func() json.RawMessage { return json.RawMessage(`{"action":"accept","content":{}}`) }},
			})
			if err != nil || string(raw) != `{"action":"accept","content":{}}` {
				t.Errorf("Call = %s, %v", raw, err)
			}
		})
	}
}

// Each message of a client is a POST of its own that accepts both kinds of answer (SHTTP-25-006,
// -007, -008).
func TestOnePOSTPerMessage(t *testing.T) {
	s := newServer(t, nil)
	var mu sync.Mutex
	var methods []string
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			msg, bad := jsonrpc.Decode(body, jsonrpc.Limits{})
			asJSON, asEvents := web.Accepts(r.Header)
			if err != nil || bad != nil || !asJSON || !asEvents {
				t.Errorf("POST of %q with %v: %v, %v", body, r.Header, err, bad)
			}
			mu.Lock()
			methods = append(methods, msg.Method)
			mu.Unlock()
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(hs.Close)
	c := dial(t, hs.URL, streamable.ClientOptions{})
	handshake(t, c, revision.V20250326) // which has batches
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(methods) != 22 {
		t.Errorf("%d messages in %q", len(methods), methods)
	}
}
