package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// stub answers requests on a pipe with what reply returns: frames, none for
// silence; nil ends the wire. It closes the pipe when its client does.
func stub(t testing.TB, reply func(m jsonrpc.Message) []string) mcp.Transport {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil {
				t.Errorf("the client sent %s: %v", frame, err)
				return
			}
			frames := reply(m)
			if frames == nil && m.Kind() == jsonrpc.KindRequest {
				return
			}
			for _, f := range frames {
				if far.Write([]byte(f)) != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() { near.Close(); <-done })
	return mcptest.Wire(near)
}

func result(m jsonrpc.Message, json string) []string {
	return []string{string(jsonrpc.AppendResult(nil, m.ID, []byte(json)))}
}

func failure(m jsonrpc.Message, code int, data string) []string {
	e := &jsonrpc.Error{Code: code, Message: "no"}
	if data != "" {
		e.Data = []byte(data)
	}
	return []string{string(jsonrpc.AppendError(nil, m.ID, e))}
}

func initialized(m jsonrpc.Message, version string) []string {
	return result(m, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`)
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"stub","version":"1"}}}`

// VER-26, REVISIONS 2.2: what a server answers to server/discover decides its era, and
// only positive evidence means modern (VER-26-011), an error of the modern era included
// (VER-26-012). After -32022 a version in common is taken, or the lack of one told
// (VER-26-002).
func TestEraOnAPipe(t *testing.T) {
	legacy := func(probe func(m jsonrpc.Message) []string) func(jsonrpc.Message) []string {
		return func(m jsonrpc.Message) []string {
			switch m.Method {
			case "server/discover":
				return probe(m)
			case "initialize":
				return initialized(m, "2025-11-25")
			}
			return []string{}
		}
	}
	code := func(code int, data string) func(jsonrpc.Message) []string {
		return func(m jsonrpc.Message) []string { return failure(m, code, data) }
	}
	tests := []struct {
		name  string
		reply func(jsonrpc.Message) []string
		want  mcp.Revision // empty: the session does not open
		err   string
	}{
		{name: "modern", reply: func(m jsonrpc.Message) []string { return result(m, discovered) }, want: mcp.V2026_07_28},
		{name: "-32601", reply: legacy(code(-32601, "")), want: mcp.V2025_11_25},
		{name: "-32602", reply: legacy(code(-32602, "")), want: mcp.V2025_11_25},
		{name: "-32600", reply: legacy(code(-32600, "")), want: mcp.V2025_11_25},
		{name: "-32000", reply: legacy(code(-32000, "")), want: mcp.V2025_11_25},
		{name: "-32603", reply: legacy(code(-32603, "")), want: mcp.V2025_11_25},
		{name: "a result that is none", reply: legacy(func(m jsonrpc.Message) []string { return result(m, `{"ok":true}`) }), want: mcp.V2025_11_25},
		{name: "garbage", reply: legacy(func(m jsonrpc.Message) []string { return append([]string{"hello", "{"}, failure(m, -32601, "")...) }), want: mcp.V2025_11_25},
		{name: "a broken answer", reply: legacy(func(m jsonrpc.Message) []string {
			return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{},"error":{}}`}
		}), want: mcp.V2025_11_25},
		{name: "an older answer to initialize", reply: func(m jsonrpc.Message) []string {
			if m.Method == "initialize" {
				return initialized(m, "2024-11-05")
			}
			return failure(m, -32601, "")
		}, want: mcp.V2024_11_05},
		{name: "discover names only legacy revisions", reply: legacy(func(m jsonrpc.Message) []string {
			return result(m, `{"resultType":"complete","supportedVersions":["2025-06-18","2025-11-25"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`)
		}), want: mcp.V2025_11_25},
		{name: "-32022 names only legacy revisions", reply: legacy(code(-32022, `{"supported":["2025-11-25","2024-11-05"],"requested":"2026-07-28"}`)), want: mcp.V2025_11_25},
		{name: "-32022 names what nobody speaks", reply: legacy(code(-32022, `{"supported":["2027-01-01"],"requested":"2026-07-28"}`)), err: "no revision in common"},
		{name: "-32022 names nothing", reply: legacy(code(-32022, "")), err: "-32022"},
		{name: "-32022 names what was asked for", reply: legacy(code(-32022, `{"supported":["2026-07-28"],"requested":"2026-07-28"}`)), err: "-32022"},
		{name: "-32021", reply: legacy(code(-32021, `{"requiredCapabilities":{}}`)), err: "-32021"},
		{name: "an unknown answer to initialize", reply: func(m jsonrpc.Message) []string {
			if m.Method == "initialize" {
				return initialized(m, "2026-07-28")
			}
			return failure(m, -32601, "")
		}, err: "2026-07-28"},
		{name: "the end", reply: func(jsonrpc.Message) []string { return nil }, err: "ended on server/discover"},
		{name: "initialize fails", reply: func(m jsonrpc.Message) []string { return failure(m, -32601, "") }, err: "-32601"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.LeakCheck(t)
			s, err := nothing().Connect(t.Context(), stub(t, tt.reply))
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Connect = %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Connect = %v", err)
			}
			defer s.Close()
			if s.Revision() != tt.want || s.Negotiation() == "" || s.Server().Name != "stub" && tt.name != "discover" {
				t.Errorf("revision %s, %q, server %+v", s.Revision(), s.Negotiation(), s.Server())
			}
		})
	}
}

// A server that does not answer the probe is legacy, and its late answer is ignored.
func TestEraOfASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var probe jsonrpc.Message
		s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			switch m.Method {
			case "server/discover":
				probe = m.Clone()
			case "initialize":
				return append(failure(probe, -32601, ""), initialized(m, "2025-06-18")...)
			}
			return []string{}
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if d := time.Since(start); s.Revision() != mcp.V2025_06_18 || d != 5*time.Second {
			t.Errorf("revision %s after %v", s.Revision(), d)
		}
	})
}

// A client of one era says so when the server is of the other.
func TestNoEraInCommon(t *testing.T) {
	modernOnly := &mcp.Server{Name: "s", Version: "1", Revisions: []mcp.Revision{mcp.V2026_07_28}}
	legacyOnly := &mcp.Server{Name: "s", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
	tests := []struct {
		s    *mcp.Server
		revs []mcp.Revision
		want string
	}{
		{modernOnly, []mcp.Revision{mcp.V2025_11_25}, "2026-07-28"}, // VER-26-008
		{legacyOnly, []mcp.Revision{mcp.V2026_07_28}, "2025-11-25"},
	}
	for _, tt := range tests {
		near, far := jsonrpc.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); tt.s.Serve(t.Context(), far) }()
		_, err := (&mcp.Client{Name: "c", Revisions: tt.revs}).Connect(t.Context(), mcptest.Wire(near))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("a client of %v = %v, want an error that names %s", tt.revs, err, tt.want)
		}
		near.Close()
		<-done
		srv := httptest.NewServer(tt.s)
		_, err = (&mcp.Client{Name: "c", Revisions: tt.revs}).Dial(t.Context(), srv.URL)
		if err == nil {
			t.Errorf("a client of %v dials", tt.revs)
		}
		srv.Close()
	}
}

// Every pair of sets of revisions settles on the newest that both speak.
func TestNegotiation(t *testing.T) {
	revs := mcp.Revisions()
	for i, server := range revs {
		for _, client := range revs[:i+1] {
			s := &mcp.Server{Name: "s", Version: "1", Revisions: []mcp.Revision{client, server}}
			if client == server {
				s.Revisions = s.Revisions[:1]
			}
			session := unchecked(t, s, nothing())
			if session.Revision() != server {
				t.Errorf("a server of %v = %s", s.Revisions, session.Revision())
			}
			session.Close()
		}
	}
}

// HTTP: 401, 403, 5xx decide nothing; other refusals mean legacy; the era is
// remembered, and asked for again when that turns out wrong (VER-26-007, -013).
func TestEraOverHTTP(t *testing.T) {
	legacy := &mcp.Server{Name: "s", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25, mcp.V2025_06_18}}
	refuse := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") != "" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprint(w, body)
				return
			}
			legacy.ServeHTTP(w, r)
		}
	}
	tests := []struct {
		status int
		body   string
		legacy bool
	}{
		{400, "", true}, {404, "", true}, {405, "", true}, {406, "", true}, {415, "", true},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}`, true},
		{404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}`, true},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}`, true},
		{401, "", false}, {403, "", false}, {500, "", false}, {502, "", false}, {503, "", false}, {429, "", false},
		{400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"?"}}`, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.body), func(t *testing.T) {
			mcptest.LeakCheck(t)
			srv := httptest.NewServer(refuse(tt.status, tt.body))
			defer srv.Close()
			s, err := nothing().Dial(t.Context(), srv.URL)
			if !tt.legacy {
				var he *mcp.HTTPError
				var rpc *mcp.Error
				if err == nil || tt.body == "" && (!errors.As(err, &he) || he.Status != tt.status) || tt.body != "" && !errors.As(err, &rpc) {
					t.Errorf("Dial = %v", err)
				}
				return
			}
			if err != nil || s.Revision() != mcp.V2025_11_25 {
				t.Fatalf("Dial = %v", err)
			}
			s.Close()
		})
	}
	legacy.Shutdown(t.Context())

	t.Run("remembered", func(t *testing.T) {
		mcptest.LeakCheck(t)
		var probes atomic.Int64
		var current atomic.Pointer[mcp.Server]
		current.Store(&mcp.Server{Name: "s", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "server/discover" {
				probes.Add(1)
			}
			current.Load().ServeHTTP(w, r)
		}))
		defer srv.Close()
		c := nothing()
		for i, want := range []struct {
			rev    mcp.Revision
			probes int64
		}{{mcp.V2025_11_25, 1}, {mcp.V2025_11_25, 1}, {mcp.V2026_07_28, 2}, {mcp.V2026_07_28, 3}} {
			if i == 2 { // the server is renewed
				current.Store(&mcp.Server{Name: "s", Version: "2", Revisions: []mcp.Revision{mcp.V2026_07_28}})
			}
			s, err := c.Dial(t.Context(), srv.URL)
			if err != nil {
				t.Fatalf("dial %d: %v", i, err)
			}
			if s.Revision() != want.rev || probes.Load() != want.probes {
				t.Errorf("dial %d = %s after %d probes, want %+v", i, s.Revision(), probes.Load(), want)
			}
			s.Close()
		}
	})
}

// The context of Connect bounds the opening, whatever the server does.
func TestOpeningIsBounded(t *testing.T) {
	mcptest.LeakCheck(t)
	why := errors.New("enough")
	for _, revs := range [][]mcp.Revision{nil, {mcp.V2025_11_25}, {mcp.V2026_07_28}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := nothing()
		c.Revisions = revs
		_, err := c.Connect(ctx, stub(t, func(m jsonrpc.Message) []string { cancel(why); return []string{} }))
		if !errors.Is(err, why) {
			t.Errorf("%v: Connect = %v, want the cause of its context", revs, err)
		}
	}
}
