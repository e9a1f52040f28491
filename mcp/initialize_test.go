package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A server answers initialize with the version that was asked for, if it speaks that
// (INIT-25-009), and with its newest otherwise (INIT-25-010, -011). It answers ping with an
// empty result (PING-25-001).
func TestVersionOfInitialize(t *testing.T) {
	tests := []struct {
		server      []mcp.Revision
		asked, want mcp.Revision
	}{
		{nil, "2024-11-05", "2024-11-05"},
		{nil, "2025-03-26", "2025-03-26"},
		{nil, "2025-06-18", "2025-06-18"},
		{nil, "2025-11-25", "2025-11-25"},
		{nil, "2026-07-28", "2025-11-25"},
		{nil, "1999-01-01", "2025-11-25"},
		{[]mcp.Revision{mcp.V2025_03_26, mcp.V2024_11_05}, "2025-11-25", "2025-03-26"},
		{[]mcp.Revision{mcp.V2025_03_26, mcp.V2024_11_05}, "2024-11-05", "2024-11-05"},
	}
	for _, tt := range tests {
		p := rawClient(t, &mcp.Server{Name: "s", Version: "1", Revisions: tt.server})
		m := p.initialize(tt.asked, `{}`)
		var got struct{ ProtocolVersion mcp.Revision }
		if err := json.Unmarshal(m.Result, &got); err != nil || got.ProtocolVersion != tt.want {
			t.Errorf("a server of %v asked for %s: %s, want %s", tt.server, tt.asked, show(&m), tt.want)
		}
		p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if m := p.answer(1); string(m.Result) != `{}` {
			t.Errorf("ping = %s, want an empty result", show(&m))
		}
	}
}

// A legacy client begins with initialize, of a version that it speaks (INIT-25-002,
// -007), sends nothing else before the answer (INIT-25-005), goes on with
// notifications/initialized (INIT-25-004), and answers ping with an
// empty result (PING-25-001).
func TestOpeningOfAClient(t *testing.T) {
	for _, rev := range mcp.Revisions()[:4] {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			near, far := jsonrpc.Pipe()
			p := &peer{t: t, conn: far}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}}
				s, err := c.Connect(t.Context(), mcptest.Wire(near))
				if err != nil {
					t.Errorf("Connect = %v", err)
					return
				}
				<-s.Done()
				s.Close()
			}()
			m := p.read()
			var params struct {
				ProtocolVersion mcp.Revision
				Capabilities    map[string]any
				ClientInfo      struct{ Name, Version string }
			}
			if err := json.Unmarshal(m.Params, &params); err != nil || m.Method != "initialize" || params.ProtocolVersion != rev || params.Capabilities == nil || params.ClientInfo.Name != "c" || params.ClientInfo.Version != "1" {
				t.Errorf("the first message is %s", show(&m))
			}
			p.send(initialized(m, string(rev))[0])
			if m := p.read(); m.Kind() != jsonrpc.KindNotification || m.Method != "notifications/initialized" {
				t.Errorf("the second message is %s", show(&m))
			}
			p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if m := p.answer(1); string(m.Result) != `{}` {
				t.Errorf("ping = %s, want an empty result", show(&m))
			}
			far.Close()
			<-done
		})
	}
}

// A client that speaks 2026-07-28 sends server/discover first, with that version
// (DISC-26-004, STDIO-26-015), also when it speaks nothing else (STDIO-26-016,
// VER-26-009). To a server that does not know it, it goes on with the newest version of
// the older era (INIT-25-008), if it has any.
func TestProbeComesFirst(t *testing.T) {
	for _, tt := range []struct {
		revs []mcp.Revision
		want string // what is sent
	}{
		{nil, "server/discover 2026-07-28, initialize 2025-11-25"},
		{[]mcp.Revision{mcp.V2026_07_28}, "server/discover 2026-07-28"},
		{[]mcp.Revision{mcp.V2026_07_28, mcp.V2025_03_26}, "server/discover 2026-07-28, initialize 2025-03-26"},
	} {
		c := nothing()
		c.Revisions = tt.revs
		var sent []string
		near, far := jsonrpc.Pipe()
		opened := make(chan error, 1)
		go func() {
			_, err := c.Connect(t.Context(), mcptest.Wire(near))
			opened <- err
		}()
		p := &peer{t: t, conn: far}
		for range strings.Count(tt.want, ",") + 1 {
			m := p.read()
			version, ok := m.ParamIn("_meta", "io.modelcontextprotocol/protocolVersion")
			if !ok {
				version, _ = m.Param("protocolVersion")
			}
			sent = append(sent, m.Method+" "+strings.Trim(string(version), `"`))
			p.send(failure(m, jsonrpc.CodeMethodNotFound, "")[0])
		}
		if frames := p.end(); len(frames) > 0 || strings.Join(sent, ", ") != tt.want {
			t.Errorf("a client of %v sends %q and then %q, want %s", tt.revs, sent, frames, tt.want)
		}
		if err := <-opened; err == nil {
			t.Errorf("a client of %v opens a session", tt.revs)
		}
	}
}

// INIT-25-021, -022, -012: a client disconnects from a server that answers with a version that it
// does not speak, and does not say that it is initialized.
func TestVersionThatTheClientLacks(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2026-07-28", "1999-01-01", ""} {
		near, far := jsonrpc.Pipe()
		p := &peer{t: t, conn: far}
		opened := make(chan error, 1)
		go func() {
			c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25, mcp.V2025_06_18}}
			_, err := c.Connect(t.Context(), mcptest.Wire(near))
			opened <- err
		}()
		p.send(initialized(p.read(), version)[0])
		if frames := p.end(); len(frames) > 0 {
			t.Errorf("after the answer %q came %q", version, frames)
		}
		if err := <-opened; err == nil {
			t.Errorf("the session opens with version %q", version)
		}
	}
}

// server/discover needs nothing but _meta and has all its members (VER-26-003,
// DISC-26-001 to -003).
func TestDiscover(t *testing.T) {
	p := rawClient(t, newWorkshop().Server)
	p.send(modern(1, "server/discover", `{}`, ""))
	m := p.answer(1)
	var got struct {
		ResultType        string
		SupportedVersions []mcp.Revision
		Capabilities      map[string]any
		TTLMs             *int64
		CacheScope        string
		Meta              map[string]struct{ Name string } `json:"_meta"`
	}
	if err := json.Unmarshal(m.Result, &got); err != nil {
		t.Fatalf("%s: %v", show(&m), err)
	}
	if got.ResultType != "complete" || !slices.Contains(got.SupportedVersions, mcp.V2026_07_28) || got.Capabilities["tools"] == nil ||
		got.TTLMs == nil || *got.TTLMs < 0 || got.CacheScope != "public" && got.CacheScope != "private" ||
		got.Meta["io.modelcontextprotocol/serverInfo"].Name != "workshop" {
		t.Errorf("got %s", show(&m))
	}
}

// A version that a server does not speak, or not in its modern requests, is refused
// with what it speaks (VER-26-001, -010).
func TestUnsupportedVersion(t *testing.T) {
	p := rawClient(t, newWorkshop().Server)
	for i, version := range []string{"2030-01-01", "1", "2025-11-25"} {
		p.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, i, version)
		m := p.answer(int64(i))
		wantError(t, m, mcp.CodeUnsupportedVersion)
		var data struct {
			Supported []mcp.Revision
			Requested string
		}
		if m.Error == nil || json.Unmarshal(m.Error.Data, &data) != nil || !slices.Contains(data.Supported, mcp.V2026_07_28) || data.Requested != version {
			t.Errorf("%s: got %s", version, show(&m))
		}
	}
}

// The client's description in one modern request does not apply to any other (BASE-26-025, -026,
// META-26-013).
func TestRequestsStandAlone(t *testing.T) {
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		if mcp.CallFrom(ctx).Client.Name != "" {
			return "", fmt.Errorf("the client is %q", mcp.CallFrom(ctx).Client.Name)
		}
		_, err := mcp.Elicit[color](ctx, "Which?")
		return "", err
	}))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"first","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`)
	p.answer(1)
	p.send(modern(2, "tools/call", `{}`, `"name":"ask"`))
	wantError(t, p.answer(2), mcp.CodeMissingCapability)
	p.send(modern(3, "tools/call", canElicit, `"name":"ask"`))
	if m := p.answer(3); m.Error != nil {
		t.Errorf("got %s", show(&m))
	}
	p.send(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
	if m := p.answer(4); m.Error == nil {
		t.Errorf("a request without version = %s", show(&m))
	}
}

// Work over several requests is identified by members of each request, and by nothing of the
// connection (BASE-26-029, -027): an answer continues its call on another connection.
func TestStateIsNoPartOfAConnection(t *testing.T) {
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		v, err := mcp.Elicit[color](ctx, "Which?")
		return v.Color, err
	})
	first, second := rawClient(t, s), rawClient(t, s)
	first.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
	state, questions := inputRequired(t, first.answer(1))
	for key := range questions {
		second.send(modern(1, "tools/call", canElicit, `"name":"ask","inputResponses":{`+quote(key)+`:{"action":"accept","content":{"color":"red"}}},"requestState":`+quote(state)))
	}
	if m := second.answer(1); m.Error != nil || !strings.Contains(string(m.Result), `"text":"red"`) {
		t.Errorf("the call continued on another connection = %s", show(&m))
	}
	first.send(modern(2, "tools/call", canElicit, `"name":"ask"`))
	if m := first.answer(2); !strings.Contains(string(m.Result), `"inputRequests"`) {
		t.Errorf("a new call on the first connection = %s", show(&m))
	}
}

// Before notifications/initialized a server tells nothing but answers (INIT-25-006),
// whatever changes.
func TestNothingIsToldBeforeInitialized(t *testing.T) {
	for _, rev := range mcp.Revisions()[:4] {
		synctest.Test(t, func(t *testing.T) {
			s := library()
			addTools(s, 0, 1)
			p := rawClient(t, s)
			p.initializeOnly(rev)
			addTools(s, 1, 2)
			time.Sleep(time.Minute)
			p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			p.answer(1)
			if len(p.notes) > 0 {
				t.Errorf("%s: told %q", rev, p.notes)
			}
			p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			synctest.Wait()
			addTools(s, 2, 3)
			if m := p.read(); m.Method != "notifications/tools/list_changed" {
				t.Errorf("%s: got %s", rev, show(&m))
			}
		})
	}
}
