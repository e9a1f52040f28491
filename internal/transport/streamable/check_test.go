package streamable_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// TestModernChecks goes through the checks of a modern POST in their order (REVISIONS 2.3). A
// wrong header is answered with 400 and -32020 (HTTP-26-057, -066, -067), and the codes from
// -32020 to -32022 have no other use (BASE-26-019).
func TestModernChecks(t *testing.T) {
	s := newServer(t, func(_ context.Context, c *engine.Call) (engine.Result, error) {
		if raw, _ := c.Msg.Param("name"); string(raw) == `"needy"` {
			return engine.Result{}, &engine.LacksError{What: "sampling", Required: []byte(`{"sampling":{}}`)}
		}
		return engine.Result{JSON: []byte(`{"content":[]}`)}, nil
	})
	s.CheckHeaders = func(_ *jsonrpc.Message, h http.Header) *jsonrpc.Error {
		if h.Get("Mcp-Param-Bad") != "" {
			return &jsonrpc.Error{Code: revision.CodeHeaderMismatch, Message: "bad"}
		}
		return nil
	}
	with := func(old, new string) string { return strings.Replace(modernCall, old, new, 1) }
	for _, tt := range []struct {
		name    string
		body    string
		headers []string
		status  int
		code    int
	}{
		{"fine", modernCall, modern(), 200, 0},
		{"origin comes first", `{`, modern("Origin", "http://evil.example.com"), 403, -32600}, // HTTP-26-003
		{"content type", modernCall, modern("Content-Type", "text/plain"), 415, -32600},
		{"no content type", modernCall, modern("Content-Type", ""), 415, -32600},
		{"content type with charset", modernCall, modern("Content-Type", "Application/JSON; charset=utf-8"), 200, 0},
		{"accept nothing of ours", modernCall, modern("Accept", "text/html"), 406, -32600},  // HTTP-26-008
		{"accept JSON only", modernCall, modern("Accept", "application/json"), 406, -32600}, // HTTP-26-008
		{"accept with weight 0", modernCall, modern("Accept", "application/json, text/event-stream;q=0.0"), 406, -32600},
		{"accept wildcards", modernCall, modern("Accept", "text/*;q=0.5, application/*"), 200, 0},
		{"accept everything", modernCall, modern("Accept", "*/*"), 200, 0},
		{"no accept", modernCall, modern("Accept", ""), 200, 0},
		{"empty", ``, modern(), 400, -32700},
		{"no JSON", `{`, modern(), 400, -32700},
		{"null", `null`, modern(), 400, -32600},
		{"two names", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"x"}`, modern(), 400, -32700},
		{"batch", `[` + modernCall + `]`, modern(), 400, -32600},                    // HTTP-26-010
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, modern(), 400, -32600}, // HTTP-26-011
		{"too large", with(`"arguments":{}`, `"arguments":{"a":"`+strings.Repeat("x", 1<<20)+`"}`), modern(), 413, -32600},
		{"too deep", with(`"arguments":{}`, `"arguments":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)), modern(), 400, -32700},
		{"no _meta", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`, modern("Mcp-Method", ""), 400, -32602}, // META-26-007, -008, Q-02: before the headers
		{"no capabilities", with(`,"io.modelcontextprotocol/clientCapabilities":{}`, ""), modern("Mcp-Method", ""), 400, -32602},
		{"no client info", with(`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`, ""), modern(), 200, 0},
		{"no version header", modernCall, modern("MCP-Protocol-Version", ""), 400, -32020},                           // HTTP-26-025, -068
		{"version header differs", with("2026-07-28", "v999.0.0"), modern(), 400, -32020},                            // HTTP-26-027; before -32022
		{"version unknown", with("2026-07-28", "v999.0.0"), modern("MCP-Protocol-Version", "v999.0.0"), 400, -32022}, // HTTP-26-028
		{"version legacy", with("2026-07-28", "2025-11-25"), modern("MCP-Protocol-Version", "2025-11-25"), 400, -32022},
		{"no method header", modernCall, modern("Mcp-Method", ""), 400, -32020},                      // HTTP-26-068
		{"method header differs", modernCall, modern("Mcp-Method", "tools/list"), 400, -32020},       // HTTP-26-064
		{"method header in other case", modernCall, modern("Mcp-Method", "Tools/Call"), 400, -32020}, // HTTP-26-063
		{"method header with spaces", modernCall, modern("Mcp-Method", "  tools/call\t"), 200, 0},
		{"header name in lower case", modernCall, modern("mcp-method", "tools/call"), 200, 0},  // HTTP-26-062
		{"no name header", modernCall, modern("Mcp-Name", ""), 400, -32020},                    // HTTP-26-068
		{"name header differs", modernCall, modern("Mcp-Name", "other"), 400, -32020},          // HTTP-26-064
		{"name header encoded", modernCall, modern("Mcp-Name", "=?base64?ZWNobw==?="), 200, 0}, // HTTP-26-050
		{"name header encoded otherwise", modernCall, modern("Mcp-Name", "=?base64?b3RoZXI=?="), 400, -32020},
		{"name header with bad padding", modernCall, modern("Mcp-Name", "=?base64?ZWNobw=?="), 400, -32020},
		{"name header with bad alphabet", modernCall, modern("Mcp-Name", "=?base64?ZWN*bw==?="), 400, -32020},
		{"name header with other markers", modernCall, modern("Mcp-Name", "=?BASE64?ZWNobw==?="), 400, -32020}, // HTTP-26-049
		{"name header with raw bytes", with(`"echo"`, `"é"`), modern("Mcp-Name", "é"), 400, -32020},            // HTTP-26-068
		{"name escaped in JSON", with(`"echo"`, `"\u0065cho"`), modern(), 200, 0},
		{"name header without a name", with(`"name":"echo",`, ""), modern(), 400, -32020},
		{"more headers", modernCall, modern("Mcp-Param-Bad", "1"), 400, -32020},                    // HTTP-26-058
		{"prompt", with("tools/call", "prompts/get"), modern("Mcp-Method", "prompts/get"), 200, 0}, // HTTP-26-031
		{"resource", strings.NewReplacer("tools/call", "resources/read", `"name":"echo"`, `"uri":"echo"`).Replace(modernCall), modern("Mcp-Method", "resources/read"), 200, 0},
		{"resource by name", with("tools/call", "resources/read"), modern("Mcp-Method", "resources/read"), 400, -32020},
		{"unknown method", with("tools/call", "foo/bar"), modern("Mcp-Method", "foo/bar"), 404, -32601},               // HTTP-26-029
		{"initialize", with("tools/call", "initialize"), modern("Mcp-Method", "initialize"), 404, -32601},
		{"ping", with("tools/call", "ping"), modern("Mcp-Method", "ping"), 404, -32601},                               // Q-03, PING-26-001
		{"client capability", with(`"echo"`, `"needy"`), modern("Mcp-Name", "needy"), 400, -32021},                    // META-26-012
		{"session header is ignored", modernCall, modern("Mcp-Session-Id", "nonsense", "Last-Event-ID", "1"), 200, 0}, // HTTP-26-074 to -076
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(s, request(tt.body, tt.headers...))
			if w.Code != tt.status || code(w.Body.Bytes()) != tt.code {
				t.Errorf("POST = %d with code %d: %.300s, want %d with code %d", w.Code, code(w.Body.Bytes()), w.Body, tt.status, tt.code)
			}
			if id := w.Header().Get("Mcp-Session-Id"); id != "" {
				t.Errorf("POST got the session %q", id)
			}
			// A message that is refused after it was read has its id in the answer.
			if parsed := tt.code != 0 && tt.code != -32600 && tt.code != -32700; parsed && !strings.Contains(w.Body.String(), `"id":7`) {
				t.Errorf("error has not the id of the request: %s", w.Body)
			}
		})
	}
}

func TestModernNotification(t *testing.T) {
	s := newServer(t, nil)
	for _, headers := range [][]string{ // HTTP-26-012, Q-05: no header is needed
		{"MCP-Protocol-Version", "2026-07-28"},
		nil,
	} {
		w := serve(s, request(`{"jsonrpc":"2.0","method":"notifications/x","params":{`+meta+`}}`, headers...))
		if w.Code != 202 || w.Body.Len() != 0 {
			t.Errorf("notification = %d %q, want 202 without a body", w.Code, w.Body)
		}
	}
	for _, headers := range [][]string{ // HTTP-26-013
		{"Origin", "http://evil.example.com"},
		{"Content-Type", "text/plain"},
	} {
		if w := serve(s, request(`{"jsonrpc":"2.0","method":"notifications/x","params":{`+meta+`}}`, headers...)); w.Code < 400 || w.Code > 499 {
			t.Errorf("notification with %v = %d %q, want an HTTP error", headers, w.Code, w.Body)
		}
	}
}

// TestEras goes through the table of REVISIONS 2.1 for HTTP.
func TestEras(t *testing.T) {
	s := newServer(t, nil)
	only := newServerOf(t, []*revision.Table{revision.V20260728}, nil)
	live := open(t, s, "2025-11-25")[1]
	old := open(t, s, "2025-03-26")[1]
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	modernList := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	for _, tt := range []struct {
		name, session, version, body string
		status, code                 int
	}{
		{"initialize", "", "", initialize, 200, 0},
		{"initialize with version", "", "2025-06-18", initialize, 200, 0},
		{"initialize with modern version", "", "2026-07-28", initialize, 200, 0},
		{"initialize in a session", live, "", initialize, 200, -32601},
		{"session", live, "2025-11-25", list, 200, 0},
		{"session without version", live, "", list, 200, 0}, // SHTTP-25-043
		{"session of 2025-03-26", old, "", list, 200, 0},
		{"session, other version", live, "2025-03-26", list, 200, 0}, // SHTTP-25-042 is a SHOULD of the client
		{"session, bad version", live, "x", list, 400, -32600},       // SHTTP-25-044
		{"unknown session", "nope", "2025-11-25", list, 404, -32600}, // SHTTP-25-038
		{"unknown session, initialize", "nope", "", initialize, 404, -32600},
		{"session, modern version", live, "2026-07-28", list, 400, -32602},
		{"session, modern _meta", live, "2025-11-25", modernList, 400, -32020},
		{"no session", "", "2025-11-25", list, 400, -32600}, // SHTTP-25-037
		{"no session, no version", "", "", list, 400, -32020},
		{"no session, unknown version", "", "2099-01-01", list, 400, -32022},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(s, request(tt.body, "Mcp-Session-Id", tt.session, "MCP-Protocol-Version", tt.version))
			if w.Code != tt.status || code(w.Body.Bytes()) != tt.code {
				t.Errorf("POST = %d %s, want %d with code %d", w.Code, w.Body, tt.status, tt.code)
			}
			if tt.code == -32022 && !strings.Contains(w.Body.String(), `"supported":["2026-07-28","2025-11-25"`) {
				t.Errorf("error without the supported versions: %s", w.Body)
			}
		})
	}
	t.Run("modern only", func(t *testing.T) {
		w := serve(only, request(initialize))
		if w.Code != 400 || !strings.Contains(w.Body.String(), `"supported":["2026-07-28"]`) { // VER-26-008
			t.Errorf("initialize = %d %s, want 400 and the version", w.Code, w.Body)
		}
		if w := serve(only, request(list, "Mcp-Session-Id", "x")); w.Code != 400 || code(w.Body.Bytes()) != -32020 { // HTTP-26-030
			t.Errorf("no version header = %d %s, want 400 with -32020", w.Code, w.Body)
		}
	})
}

func TestVerbs(t *testing.T) {
	s := newServer(t, nil)
	only := newServerOf(t, []*revision.Table{revision.V20260728}, nil)
	live := open(t, s, "2025-11-25")[1]
	for _, tt := range []struct {
		name, method, session, accept string
		modernOnly                    bool
		status                        int
		allow                         string
	}{
		{"GET without session", "GET", "", "text/event-stream", false, 405, "POST, GET, DELETE"}, // SHTTP-25-023
		{"GET of an unknown session", "GET", "x", "text/event-stream", false, 404, ""},
		{"GET that takes no events", "GET", live, "application/json", false, 406, ""}, // SHTTP-25-022
		{"GET, modern only", "GET", "x", "text/event-stream", true, 405, "POST"},      // HTTP-26-073
		{"DELETE without session", "DELETE", "", "", false, 405, "POST, GET, DELETE"},
		{"DELETE of an unknown session", "DELETE", "x", "", false, 404, ""},
		{"DELETE, modern only", "DELETE", "x", "", true, 405, "POST"}, // HTTP-26-073
		{"PUT", "PUT", "", "", false, 405, "POST, GET, DELETE"},
		{"OPTIONS of no browser", "OPTIONS", "", "", false, 405, "POST, GET, DELETE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/mcp", nil)
			set(r.Header, []string{"Mcp-Session-Id", tt.session, "Accept", tt.accept})
			h := s
			if tt.modernOnly {
				h = only
			}
			w := serve(h, r)
			if w.Code != tt.status || w.Header().Get("Allow") != tt.allow {
				t.Errorf("%s = %d, Allow %q, want %d, %q", tt.method, w.Code, w.Header().Get("Allow"), tt.status, tt.allow)
			}
		})
	}
}

// TestHostAndOrigin: HTTP-26-002, -003, SHTTP-25-002, -003, Q-23.
func TestHostAndOrigin(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	elsewhere := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	for _, tt := range []struct {
		name         string
		local        net.Addr
		host, origin string
		hosts        []string
		origins      []string
		status       int
	}{
		{"loopback name", loopback, "localhost:7420", "", nil, nil, 200},
		{"loopback name in capitals", loopback, "LocalHost", "", nil, nil, 200},
		{"loopback address", loopback, "127.8.9.1:7420", "", nil, nil, 200},
		{"loopback address, IPv6", loopback, "[::1]:7420", "", nil, nil, 200},
		{"loopback address, bare IPv6", loopback, "[::1]", "", nil, nil, 200},
		{"rebound name", loopback, "evil.example.com", "", nil, nil, 403},
		{"rebound name, same origin", loopback, "evil.example.com", "http://evil.example.com", nil, nil, 403},
		{"name that begins well", loopback, "localhost.evil.example.com", "", nil, nil, 403},
		{"address that begins well", loopback, "127.0.0.1.evil.example.com:80", "", nil, nil, 403},
		{"no port, after a good one", loopback, "127.0.0.1:80:evil", "", nil, nil, 403},
		{"no port", loopback, "localhost:", "", nil, nil, 200},
		{"no host", loopback, "", "", nil, nil, 403},
		{"any name elsewhere", elsewhere, "mcp.example.com", "", nil, nil, 200},
		{"listed", loopback, "mcp.example.com:443", "", []string{"mcp.example.com"}, nil, 200},
		{"listed with port", loopback, "mcp.example.com:444", "", []string{"mcp.example.com:443"}, nil, 403},
		{"list counts elsewhere too", elsewhere, "other.example.com", "", []string{"mcp.example.com"}, nil, 403},
		{"unix socket", &net.UnixAddr{Name: "x"}, "anything", "", nil, nil, 200},

		{"same origin", loopback, "localhost:7420", "http://localhost:7420", nil, nil, 200},
		{"same origin, default port", elsewhere, "example.com:443", "https://example.com", nil, nil, 200},
		{"other port", loopback, "localhost:7420", "http://localhost:3000", nil, nil, 403},
		{"other host", loopback, "localhost:7420", "http://evil.example.com", nil, nil, 403},
		{"null", loopback, "localhost:7420", "null", nil, nil, 403},
		{"listed origin", loopback, "localhost:7420", "https://app.example.com", nil, []string{"https://app.example.com"}, 200},
		{"any origin", loopback, "localhost:7420", "null", nil, []string{"*"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, nil)
			s.AllowedHosts, s.AllowedOrigins = tt.hosts, tt.origins
			r := request(modernCall, modern("Origin", tt.origin)...)
			r.Host = tt.host
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
			w := serve(s, r)
			if w.Code != tt.status {
				t.Errorf("POST = %d %s, want %d", w.Code, w.Body, tt.status)
			}
			if tt.status == 403 && !strings.Contains(w.Body.String(), "HTTPConfig.Allowed") {
				t.Errorf("refusal names no option: %s", w.Body)
			}
			want := ""
			if tt.origins != nil {
				want = tt.origin
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("Access-Control-Allow-Origin = %q, want %q", got, want)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	s := newServer(t, nil)
	s.AllowedOrigins = []string{"https://app.example.com"}
	r := httptest.NewRequest("OPTIONS", "/mcp", nil)
	set(r.Header, []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "content-type, Mcp-Param-Region, x-evil, mcp-param-a\x01"})
	w := serve(s, r)
	allowed := w.Header().Get("Access-Control-Allow-Headers")
	if w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight = %d %v", w.Code, w.Header())
	}
	for _, name := range []string{"mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id", "content-type", "authorization", "mcp-param-region"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("Access-Control-Allow-Headers = %q, without %q", allowed, name)
		}
	}
	if strings.Contains(allowed, "evil") || strings.Contains(allowed, "\x01") {
		t.Errorf("Access-Control-Allow-Headers = %q", allowed)
	}
	r.Header.Set("Origin", "https://evil.example.com")
	if w := serve(s, r); w.Code != 403 {
		t.Errorf("preflight of another origin = %d, want 403", w.Code)
	}
}

// endless is a body without end that counts the bytes read.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

// TestHugeBody: neither a declared nor an actual length takes more than the limit.
func TestHugeBody(t *testing.T) {
	s := newServer(t, nil)
	for _, length := range []int64{-1, 100 << 20} {
		e := &endless{}
		r := request("", modern()...)
		r.Body, r.ContentLength = io.NopCloser(e), length
		if w := serve(s, r); w.Code != 413 || e.read > s.MaxBody+1 || length > 0 && e.read > 0 {
			t.Errorf("body of declared length %d = %d after %d bytes, want 413 after at most %d", length, w.Code, e.read, s.MaxBody+1)
		}
	}
}
