package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
)

// An argument of a path does not leave its segment: it is refused, or arrives as one segment that is the same text.
func TestPathAttacks(t *testing.T) {
	doc := document(t, "3.0.0", `
paths:
  /u/{id}/x: {get: {operationId: one, parameters: [{name: id, in: path, required: true, schema: {}}]}}
  /u/{a}{b}: {get: {operationId: two, parameters: [{name: a, in: path, required: true, schema: {}}, {name: b, in: path, required: true, schema: {}}]}}
  /m{id}: {get: {operationId: matrix, parameters: [{name: id, in: path, required: true, style: matrix, schema: {}}]}}
`)
	e := newEcho(t)
	s := open(t, doc, openapi.Options{Base: e.url + "/base"})
	refused := 0
	for _, value := range []string{
		"..", ".", "../..", "../../admin", "a/../../b", `..\admin`, `a\..\..\b`, "%2e%2e", "%2e%2e%2fadmin", "%252e%252e%252f", "%25252e%25252e", ".%2e/", "..;/admin",
		"..;a=b/admin", "a/..;/b", "%c0%ae%c0%ae/", "%c0%ae%c0%ae%c0%afadmin", "%e0%80%ae.", "%zz/%2e%2e/", "./a", "a/.", " .. /a", "..\u0000", "a\nb", "a\r\nHost: evil", "a\u0000", "\t", "a\u007f", "a\u0085", "",
		"..?", "..?x", "..#x", "../?", "%2e%2e%3f", "..%00", "..%00.json", "%252e%252e%2500", "%u002e%u002e%u2215admin", "%U002E.", "．．", "．．／admin", "\u2025", "․․", "..\u2215admin", "..＼admin", "%ef%bc%8e%ef%bc%8e",
	} {
		res := call(t, s, "one", `{"id":`+quoted(value)+`}`)
		if got := e.take(); !res.IsError || got != nil {
			t.Errorf("%q passes: %v", value, got)
		}
		refused++
	}
	for _, args := range []string{`{"a":".","b":"."}`, `{"a":"","b":".."}`, `{"a":"%2e","b":"%2e"}`, `{"a":".%2","b":"e"}`} {
		if res, got := call(t, s, "two", args), e.take(); !res.IsError || got != nil {
			t.Errorf("%s passes: %v", args, got)
		}
		refused++
	}
	for _, args := range []string{`{"id":{"..":"/../x"}}`, `{"id":[".."]}`, `{"id":["a/../b"]}`} {
		if res, got := call(t, s, "one", args), e.take(); !res.IsError || got != nil {
			t.Errorf("%s passes: %v", args, got)
		}
		refused++
	}
	for _, value := range []string{"a/b", "a?b=c", "a#b", "a;b", "a&b", "http://evil.example/", "//evil.example", "@evil.example", "é/..x", "%", "%2F", "...", "a..b", "..a", "…", "1．5", "a／b", "%u12", "%uzzzz", "what?", "#1"} {
		res, got := call(t, s, "one", `{"id":`+quoted(value)+`}`), e.take()
		segments := strings.Split(strings.TrimPrefix(got.line, "GET "), "/")
		if text, err := url.PathUnescape(segments[3]); res.IsError || len(segments) != 5 || err != nil || text != value {
			t.Errorf("%q arrives as %s", value, got.line)
		}
	}
	t.Logf("%d refused", refused)
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// No argument sets a header or a cookie but its own, and none changes the host.
func TestHeaderAttacks(t *testing.T) {
	doc := document(t, "3.0.0", `
paths:
  /x: {get: {operationId: get, parameters: [{name: X-A, in: header, schema: {}}, {name: c, in: cookie, schema: {}}, {name: q, in: query, schema: {}}]}}
`)
	e := newEcho(t)
	s := open(t, doc, openapi.Options{Base: e.url})
	for _, value := range []string{"a\r\nX-B: 1", "a\nb", "a\rb", "a\u0000b", "\u007f"} {
		if res, got := call(t, s, "get", `{"X-A":`+quoted(value)+`}`), e.take(); !res.IsError || got != nil {
			t.Errorf("%q passes: %v", value, got)
		}
	}
	call(t, s, "get", `{"c":"a; admin=1\r\nX-B: 1","q":"a&admin=1#x"}`)
	if got := e.take(); got.header.Get("Cookie") != "c=a%3B%20admin%3D1%0D%0AX-B%3A%201" || got.header["X-B"] != nil || got.line != "GET /x?q=a%26admin%3D1%23x" {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{`{"Host":"evil"}`, `{"server":"http://evil"}`, `{"X-A":"1","extra":1}`} {
		if res, err := s.CallTool(t.Context(), "get", json.RawMessage(args)); err == nil && !res.IsError || e.take() != nil {
			t.Errorf("%s passes", args)
		}
	}
	for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "Cookie", "Connection", "Proxy-Authorization", "X-Forwarded-For", "X-HTTP-Method-Override", "Sec-Fetch-Site", "X-Original-URL", "a b", "a:b"} {
		doc := document(t, "3.0.0", "paths: {/x: {get: {parameters: [{name: '"+name+"', in: header, required: true, schema: {}}]}}}")
		if len(doc.Operations) != 0 || len(doc.Unmapped) != 1 {
			t.Errorf("an argument sets the header %s", name)
		}
	}
}

// A document cannot make requests inside: not by its servers, by redirects, or by where it was found.
func TestAddresses(t *testing.T) {
	e := newEcho(t)
	paths := "paths: {/x: {get: {operationId: get}}, /y: {get: {operationId: other, servers: [{url: '" + e.url + "'}]}}}"
	for _, server := range []string{e.url, "http://169.254.169.254", "http://[::1]", "http://0.0.0.0", "http://[::ffff:127.0.0.1]", "http://2130706433", "http://127.1"} {
		doc := document(t, "3.0.0", "servers: [{url: '"+server+"'}]\n"+paths)
		res := call(t, open(t, doc, openapi.Options{}), "get", `{}`)
		if !res.IsError || e.take() != nil {
			t.Errorf("%s: %s", server, res.Text())
		}
	}
	doc := document(t, "3.0.0", "servers: [{url: 'https://api.example.com'}]\n"+paths)
	if res := call(t, open(t, doc, openapi.Options{}), "other", `{}`); !res.IsError || !strings.Contains(res.Text(), "an address of this machine; this server sends requests there only if") || e.take() != nil {
		t.Errorf("a server of one operation: %s", res.Text())
	}
	// A server without a scheme, of a document in a file, is one of https.
	if res := call(t, open(t, document(t, "3.0.0", "servers: [{url: '//"+strings.TrimPrefix(e.url, "http://")+"'}]\n"+paths), openapi.Options{Private: true}), "get", `{}`); !strings.Contains(res.Text(), "HTTP response to HTTPS client") {
		t.Errorf("without a scheme: %s", res.Text())
	}
	// The address of the base is one port of a host, and the others stay closed.
	for _, base := range []string{"http://127.0.0.1", "http://127.0.0.1:", "http://127.0.0.1:80", "http://127.0.0.1:1"} {
		if res := call(t, open(t, doc, openapi.Options{Base: base}), "other", `{}`); !res.IsError || !strings.Contains(res.Text(), "an address of this machine") || e.take() != nil {
			t.Errorf("another port than that of %s: %s", base, res.Text())
		}
		if res := call(t, open(t, doc, openapi.Options{Base: base}), "get", `{}`); strings.Contains(res.Text(), "an address of this machine") {
			t.Errorf("the base %s itself: %s", base, res.Text())
		}
	}
	if res := call(t, open(t, document(t, "3.0.0", "servers: [{url: '"+e.url+"'}]\n"+paths), openapi.Options{Private: true}), "get", `{}`); res.IsError {
		t.Errorf("with Private: %s", res.Text())
	}
	for _, server := range []string{"ftp://a.example", "file:///etc/passwd", "https://{host}.example", "https://u:p@a.example", "/v1", "", "https://a.example?x=1"} {
		if srv, err := openapi.New(document(t, "3.0.0", "servers: [{url: '"+server+"'}]\n"+paths), openapi.Options{}); err == nil {
			t.Errorf("the server %q passes: %v", server, srv)
		}
	}
}

// Redirects are followed for a GET to the same host alone; credentials go nowhere else.
func TestRedirects(t *testing.T) {
	other := newEcho(t)
	e := newEcho(t)
	to := ""
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			io.WriteString(w, `"there"`)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get}, post: {operationId: post}}}\ncomponents: {securitySchemes: {k: {type: apiKey, in: header, name: X-Key}}}\nsecurity: [{k: []}]")
	s := open(t, doc, openapi.Options{Base: e.url, Credentials: map[string]string{"k": "a-secret-key"}})
	for _, tt := range []struct {
		tool, to string
		follows  bool
	}{{"get", "/there", true}, {"post", "/there", false}, {"get", other.url + "/there", false}, {"get", "http://169.254.169.254/", false}, {"get", "file:///etc/passwd", false}, {"get", "/x", false}} {
		to = tt.to
		res := call(t, s, tt.tool, `{}`)
		if res.IsError == tt.follows || other.take() != nil || !tt.follows && !strings.Contains(res.Text(), "the API redirects to") {
			t.Errorf("%s to %s: %s", tt.tool, tt.to, res.Text())
		}
	}
}

// Credentials are sent as their schemes say, to the host of the base alone, and nobody sees them.
func TestCredentials(t *testing.T) {
	other := newEcho(t)
	e := newEcho(t)
	doc := document(t, "3.0.0", `
servers: [{url: "https://api.example.com"}]
paths:
  /basic: {get: {operationId: basic, security: [{basic: []}]}}
  /bearer: {get: {operationId: bearer, security: [{oauth: [a]}, {basic: []}]}}
  /both: {get: {operationId: both, security: [{none: []}, {header: [], query: []}], parameters: [{name: x-key, in: header, required: true, schema: {}}]}}
  /cookie: {get: {operationId: cookie, security: [{cookie: []}]}}
  /free: {get: {operationId: free, security: []}}
  /none: {get: {operationId: none, security: [{mutual: []}]}}
  /other: {get: {operationId: other, security: [{basic: []}], servers: [{url: "`+other.url+`"}]}}
security: [{header: []}]
components:
  securitySchemes:
    basic: {type: http, scheme: Basic}
    oauth: {type: oauth2, flows: {}}
    header: {type: apiKey, in: header, name: X-Key}
    query: {type: apiKey, in: query, name: key}
    cookie: {type: apiKey, in: cookie, name: sid}
    mutual: {type: mutualTLS}
`)
	credentials := map[string]string{"basic": "user:password-1", "oauth": "token-of-oauth", "header": "key-in-header", "query": "key in query", "cookie": "key-in-cookie"}
	s := open(t, doc, openapi.Options{Base: e.url, Private: true, Credentials: credentials})
	for tool, want := range map[string]string{
		"basic": "Authorization: Basic dXNlcjpwYXNzd29yZC0x", "bearer": "Authorization: Bearer token-of-oauth", "both": "GET /both?key=key%20in%20query X-Key: key-in-header",
		"cookie": "Cookie: sid=key-in-cookie", "free": "GET /free", "none": "GET /none",
	} {
		if res := call(t, s, tool, `{}`); res.IsError {
			t.Errorf("%s: %s", tool, res.Text())
		}
		got := e.take()
		text := got.line
		for _, name := range []string{"Authorization", "X-Key", "Cookie"} {
			if v := got.header.Get(name); v != "" {
				text += " " + name + ": " + v
			}
		}
		if !strings.HasSuffix(text, want) {
			t.Errorf("%s: %s, want %s", tool, text, want)
		}
	}
	if call(t, s, "other", `{}`); other.take().header.Get("Authorization") != "" {
		t.Error("another host gets the credential")
	}
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, r.Header.Get("Authorization"), " password-1")
	}
	res := call(t, s, "basic", `{}`)
	if text := allText(res); strings.Contains(text, "dXNlcjp") || strings.Contains(text, "password-1") || !strings.Contains(text, "Basic [credential] [credential]") {
		t.Errorf("the answer repeats them: %s", text)
	}
	for _, value := range []string{"Bearer token-of-oauth", "token of oauth", "token-of-oauth ", "token\n", ""} {
		if _, err := openapi.New(doc, openapi.Options{Base: e.url, Credentials: map[string]string{"oauth": value}}); err == nil || strings.Contains(err.Error(), "token-of") {
			t.Errorf("the token %q: %v", value, err)
		}
	}
	res = call(t, open(t, doc, openapi.Options{Base: e.url}), "both", `{}`)
	if text := allText(res); !res.IsError || !strings.Contains(text, "this server was started without none, or header and query.") {
		t.Errorf("without credentials: %s", text)
	}
	for _, bad := range []map[string]string{{"nobody": "x"}, {"mutual": "x"}, {"basic": "no colon"}, {"header": "a\nb"}, {"header": ""}} {
		if _, err := openapi.New(doc, openapi.Options{Credentials: bad}); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

func allText(res *mcp.ToolResult) string {
	var parts []string
	for _, c := range res.Content {
		if t, ok := c.(mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, " | ")
}

// Answers of every kind.
func TestAnswers(t *testing.T) {
	e := newEcho(t)
	doc := document(t, "3.0.0", `
paths:
  /x:
    get:
      operationId: get
      parameters: [{name: page, in: query, schema: {type: integer}}, {name: per, in: query, schema: {type: integer}}]
      responses: {200: {content: {application/json: {}}}}
  /any: {get: {operationId: any}}
`)
	s := open(t, doc, openapi.Options{Base: e.url, MaxBytes: 1000})
	for _, tt := range []struct {
		tool      string
		status    int
		mediaType string
		body      string
		header    map[string]string
		want      string
		isError   bool
	}{
		{"get", 200, "application/json", `{"n": 1.0}`, nil, `{"n": 1.0}`, false},
		{"get", 200, "text/html", "<p>Log in</p>", nil, `The API answered "text/html" where its document has JSON. The beginning of the answer follows. | <p>Log in</p>`, true},
		{"get", 200, "text/plain", `[1]`, nil, `[1]`, false},
		{"any", 200, "text/html", "<p>x</p>", nil, "<p>x</p>", false},
		{"any", 204, "", "", nil, "The API answered 204 No Content, without content.", false},
		{"any", 201, "", "", map[string]string{"Location": "/x/7"}, "The API answered 201 Created, without content. | Location: /x/7", false},
		{"get", 404, "application/problem+json", `{"title":"No such pet"}`, nil, `The API answered 404 Not Found. | {"title":"No such pet"}`, true},
		{"get", 429, "", "slow down", map[string]string{"Retry-After": "7"}, "The API answered 429 Too Many Requests. | It asks to wait: Retry-After: 7. | slow down", true},
		{"any", 200, "text/plain", strings.Repeat("x", 1001), nil, strings.Repeat("x", 1000) + " | The answer is longer; only its first 1000 bytes are here. Ask for less, by a filter or a smaller page, if the API can do that.", false},
		{"any", 200, "application/zip", "PK\xff" + strings.Repeat("x", 1001), nil, `The answer is "application/zip" of more than 1000 bytes, which is too long for a result.`, false},
		{"get", 200, "application/json", `[]`, map[string]string{"Link": `</x?page=1>; rel="prev", </x?page=3&per=5>; rel="next"`}, `[] | There are more; call the tool again with page="3" and per="5".`, false},
		{"get", 200, "application/json", `[]`, map[string]string{"Link": `<http://evil.example/x?page=3>; rel="next"`}, `[]`, false},
	} {
		e.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.mediaType)
			for name, value := range tt.header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		}
		if res := call(t, s, tt.tool, `{}`); allText(res) != tt.want || res.IsError != tt.isError {
			t.Errorf("%d %s %.50s: %s, want %s", tt.status, tt.mediaType, tt.body, allText(res), tt.want)
		}
	}
	for mediaType, want := range map[string]mcp.Content{
		"image/png": mcp.ImageContent{}, "audio/ogg": mcp.AudioContent{}, "application/zip": mcp.EmbeddedResource{},
	} {
		e.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.Write([]byte{0xff, 0, 1})
		}
		res := call(t, s, "any", `{}`)
		if len(res.Content) != 1 || fmt.Sprintf("%T", res.Content[0]) != fmt.Sprintf("%T", want) {
			t.Errorf("%s: %+v", mediaType, res.Content)
		}
	}
}

// A server that hangs, ends early, or is not there gives an error with the reason.
func TestBrokenServers(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "begin")
	}))
	defer broken.Close()
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get}}}")
	if res := call(t, open(t, doc, openapi.Options{Base: broken.URL}), "get", `{}`); !res.IsError || !strings.Contains(res.Text(), "unexpected EOF") {
		t.Errorf("an answer that ends early: %s", res.Text())
	}
	hangs := make(chan struct{})
	e := newEcho(t)
	defer close(hangs)
	e.answer = func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}
	if res := call(t, open(t, doc, openapi.Options{Base: e.url, Timeout: 1}), "get", `{}`); !res.IsError || !strings.Contains(res.Text(), "the API has not answered within 1ns") {
		t.Errorf("a server that hangs: %s", res.Text())
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if res := call(t, open(t, doc, openapi.Options{Base: gone.URL}), "get", `{}`); !res.IsError || !strings.Contains(res.Text(), "refused") {
		t.Errorf("no server: %s", res.Text())
	}
}
