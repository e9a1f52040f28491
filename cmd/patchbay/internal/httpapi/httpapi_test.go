package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/openapi"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// serve serves a server and its API on loopback, and returns the URL of the API.
func serve(t *testing.T, srv *mcp.Server, o listen.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Log = slog.New(slog.DiscardHandler)
	e := listen.New(srv, l, o)
	(&API{Version: "1", Only: "shop"}).On(e)
	e.Serve()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		e.End(ctx, 10*time.Second)
	})
	return strings.TrimSuffix(e.URL, listen.Path) + listen.APIPath
}

// got is an answer.
type got struct {
	status int
	header http.Header
	body   string
}

func (g *got) String() string {
	return fmt.Sprintf("%d %s %s", g.status, g.header.Get("Content-Type"), g.body)
}

// problem returns the detail of an answer that is a problem.
func (g *got) problem(t *testing.T) string {
	t.Helper()
	var p struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal([]byte(g.body), &p); err != nil || p.Status != g.status || p.Title == "" || g.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v is not a problem: %v", g, err)
	}
	return p.Detail
}

// send sends a request; header has pairs of names and values.
func send(t *testing.T, method, url, body string, header ...string) *got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &got{res.StatusCode, res.Header, string(data)}
}

func post(t *testing.T, url, body string, header ...string) *got {
	t.Helper()
	return send(t, "POST", url, body, append([]string{"Content-Type", "application/json"}, header...)...)
}

type said struct {
	Text string `json:"text,omitempty"`
}

type sum struct {
	Sum int `json:"sum"`
}

// shop has a tool for each kind of answer.
func shop() *mcp.Server {
	srv := &mcp.Server{Name: "shop", Title: "The shop", Version: "2", Instructions: "Look first."}
	add := func(name string, h func(ctx context.Context, in said) (*mcp.ToolResult, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: name}, h)
	}
	mcp.AddTool(srv, mcp.Tool{Name: "sum", Description: "Adds."}, func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (sum, error) {
		return sum{in.A + in.B}, nil
	})
	add("echo", func(_ context.Context, in said) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(in.Text)}}, nil
	})
	add("two", func(context.Context, said) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("a"), mcp.Text("b")}}, nil
	})
	add("picture", func(context.Context, said) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}}, nil
	})
	add("nothing", func(context.Context, said) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil })
	add("fails", func(context.Context, said) (*mcp.ToolResult, error) { return nil, errors.New("no money") })
	add("fails-with-picture", func(context.Context, said) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text("look"), mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}}, nil
	})
	add("breaks", func(context.Context, said) (*mcp.ToolResult, error) { return nil, mcp.Errorf(-32603, "broken") })
	add("wrong", func(context.Context, said) (*mcp.ToolResult, error) { return nil, mcp.Errorf(-32602, "wrong") })
	add("busy", func(context.Context, said) (*mcp.ToolResult, error) {
		return nil, &mcp.Error{Code: -32603, Message: "busy", Data: []byte(`{"retryAfter":7}`)}
	})
	add("asks", func(ctx context.Context, _ said) (*mcp.ToolResult, error) {
		_, err := mcp.Confirm(ctx, "sure?")
		return nil, err
	})
	add("scoped", func(ctx context.Context, _ said) (*mcp.ToolResult, error) { return nil, auth.RequireScopes(ctx, "pay") })
	add("a/b.c", func(context.Context, said) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("slash")}}, nil
	})
	add("caller", func(ctx context.Context, _ said) (*mcp.ToolResult, error) {
		c := mcp.CallFrom(ctx)
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(fmt.Sprint(c.Principal, " ", c.Revision, " ", c.Client.Name, " ", len(c.Capabilities), " ", c.Session() == nil, " ", c.Header.Get("X-Own"), " ", string(c.Meta["dev.patchbay/idempotencyKey"])))}}, nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "routed", InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)}, func(_ context.Context, in map[string]any) (string, error) {
		return fmt.Sprint(in["region"]), nil
	})
	return srv
}

// away is the error of a server that is starting.
type away struct{}

func (away) Error() string   { return "starting" }
func (away) Unreached() bool { return true }

// Each result and each failure of a call has a form of its own in HTTP.
func TestCalls(t *testing.T) {
	srv := shop()
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" {
				var name string
				json.Unmarshal(req.Param("name"), &name)
				if err := map[string]error{"late": &mcp.LimitError{Limit: time.Second}, "gone": mcp.ErrSessionLost, "away": away{}}[name]; err != nil {
					return nil, err
				}
			}
			return next.Handle(ctx, req)
		})
	})
	url := serve(t, srv, listen.Options{}) + "/shop/"
	for _, tt := range []struct {
		tool, body, accept string
		status             int
		kind, want         string // of a problem, the detail
	}{
		{"sum", `{"a":1,"b":2}`, "", 200, "application/json", `{"sum":3}`},
		{"sum", `{"a":1,"b":2}`, "text/plain", 200, "application/json", `{"sum":3}`},
		{"sum", ` {"a":1,"b":2} `, "*/*", 200, "application/json", `{"sum":3}`},
		{"echo", `{"text":"<b>\u0000é"}`, "*/*", 200, "text/plain; charset=utf-8", "<b>\x00é"},
		{"echo", `{"text":"x"}`, "", 200, "text/plain; charset=utf-8", "x"},
		{"echo", `{"text":"x"}`, "text/plain;q=0.5, application/json;q=0.4", 200, "text/plain; charset=utf-8", "x"},
		{"echo", `{"text":"x"}`, "application/json", 200, "application/json", `{"content":[{"type":"text","text":"x"}]}`},
		{"echo", `{"text":"x"}`, "application/json, */*;q=0.5", 200, "application/json", `{"content":[{"type":"text","text":"x"}]}`},
		{"echo", `{"text":"x"}`, "text/*;q=0, */*", 200, "application/json", `{"content":[{"type":"text","text":"x"}]}`},
		{"echo", `{"text":"x"}`, "image/png", 200, "application/json", `{"content":[{"type":"text","text":"x"}]}`},
		{"echo", ``, "", 200, "text/plain; charset=utf-8", ""},
		{"two", `{}`, "", 200, "application/json", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"picture", `{}`, "", 200, "application/json", `{"content":[{"type":"image","data":"eA==","mimeType":"image/png"}]}`},
		{"nothing", `{}`, "", 200, "application/json", `{"content":[]}`},
		{"a%2Fb.c", `{}`, "", 200, "text/plain; charset=utf-8", "slash"},
		{"caller", `{}`, "", 200, "text/plain; charset=utf-8", ` 2026-07-28 patchbay-api 0 true mine "once"`},
		{"routed", `{"region":"west"}`, "", 200, "text/plain; charset=utf-8", "west"},
		{"routed", `{"region":"é"}`, "", 200, "text/plain; charset=utf-8", "é"},
		{"fails", `{}`, "", 422, "", "no money"},
		{"fails-with-picture", `{}`, "", 422, "", "look"},
		{"sum", `{"a":"x"}`, "", 422, "", "a: must be an integer, got string; missing \"b\""},
		{"breaks", `{}`, "", 502, "", "broken"},
		{"wrong", `{}`, "", 400, "", "wrong"},
		{"late", `{}`, "", 504, "", "the server sent nothing for 1s"},
		{"gone", `{}`, "", 502, "", ""},
		{"away", `{}`, "", 503, "", "starting"},
		{"busy", `{}`, "", 503, "", "busy"},
		{"asks", `{}`, "", 422, "", "the tool asks its caller (elicitation), and a caller of this API cannot answer; call it by MCP"},
		{"scoped", `{}`, "", 401, "", "this needs the scope pay"},
		{"none", `{}`, "", 404, "", "the server has no such tool"},
		{"a", `{}`, "", 404, "", "the server has no such tool"},
		{"echo", `[]`, "", 400, "", "the body must be the arguments of the tool, as an object in JSON"},
		{"echo", `null`, "", 400, "", "the body must be"},
		{"echo", `{"text":`, "", 400, "", "the body must be"},
		{"echo", `{"text":"x"},"name":"sum","x":{}`, "", 400, "", "the body must be"},
		{"echo", `{"text":"x","text":"y"}`, "", 400, "", "the body must be"},
		{"echo", strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000), "", 400, "", ""},
		{"echo", `{"text":"` + strings.Repeat("x", 5<<20) + `"}`, "", 413, "", "the arguments have more than 4194304 bytes"},
	} {
		header := []string{"X-Own", "mine", "Mcp-Param-Region", "east", "Mcp-Name", "sum", "Mcp-Method", "x", "Mcp-Session-Id", "1", "Idempotency-Key", "once"}
		if tt.accept != "" {
			header = append(header, "Accept", tt.accept)
		}
		g := post(t, url+tt.tool, tt.body, header...)
		name := fmt.Sprintf("%s %.60s %s", tt.tool, tt.body, tt.accept)
		if g.status != tt.status || tt.kind != "" && (g.body != tt.want || g.header.Get("Content-Type") != tt.kind) {
			t.Errorf("%s: %.300v, want %d %s %s", name, g, tt.status, tt.kind, tt.want)
		}
		if tt.kind == "" && !strings.HasPrefix(g.problem(t), tt.want) {
			t.Errorf("%s: %v, want %s", name, g, tt.want)
		}
		if g.header.Get("X-Content-Type-Options") != "nosniff" || g.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: header %v", name, g.header)
		}
	}
	if g := post(t, url+"busy", "{}"); g.header.Get("Retry-After") != "7" {
		t.Errorf("busy: header %v", g.header)
	}
	if g := post(t, url+"fails-with-picture", "{}"); !strings.Contains(g.body, `"content":[{"type":"text","text":"look"},{"type":"image"`) {
		t.Errorf("a failure with a picture: %v", g)
	}
}

// A call is a POST of JSON, at the path of a tool and nowhere else.
func TestRequests(t *testing.T) {
	url := serve(t, shop(), listen.Options{})
	for _, tt := range []struct {
		method, path string
		header       []string
		status       int
	}{
		{"GET", "", nil, 200},
		{"GET", "/", nil, 200},
		{"GET", "/shop", nil, 200},
		{"POST", "", nil, 405},
		{"POST", "/shop", nil, 405},
		{"GET", "/shop/echo", nil, 405},
		{"PUT", "/shop/echo", nil, 405},
		{"OPTIONS", "/shop/echo", nil, 405},
		{"GET", "/other", nil, 404},
		{"POST", "/other/echo", []string{"Content-Type", "application/json"}, 404},
		{"POST", "/shop/echo/more", []string{"Content-Type", "application/json"}, 404},
		{"GET", "/shop/", nil, 404},
		{"POST", "/shop%2Fecho", []string{"Content-Type", "application/json"}, 405},
		{"POST", "/other/%2e%2e%2fshop%2fecho", []string{"Content-Type", "application/json"}, 404},
		{"POST", "/shop/%2e%2e", []string{"Content-Type", "application/json"}, 404},
		{"POST", "/%2e%2e/mcp", []string{"Content-Type", "application/json"}, 404},
		{"GET", "/v/none", nil, 404},
		{"POST", "/v/none/echo", []string{"Content-Type", "application/json"}, 404},
		{"POST", "/shop/echo", nil, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "application/json", "Content-Type", "text/plain"}, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, 415},
		{"POST", "/shop/echo", []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		// Web pages (DNS rebinding, other origins, forms, images).
		{"POST", "/shop/echo", []string{"Content-Type", "application/json", "Host", "evil.example"}, 403},
		{"GET", "/shop", []string{"Host", "evil.example"}, 403},
		{"GET", "", []string{"Host", "evil.example"}, 403},
		{"POST", "/shop/echo", []string{"Content-Type", "application/json", "Origin", "https://evil.example"}, 403},
		{"POST", "/shop/echo", []string{"Content-Type", "application/json", "Origin", "null"}, 403},
		{"GET", "/shop", []string{"Origin", "https://evil.example"}, 403},
		{"OPTIONS", "/shop/echo", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, 403},
		{"GET", "/shop", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script"}, 403},
		{"GET", "/shop", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"}, 200},
	} {
		g := send(t, tt.method, url+tt.path, "{}", tt.header...)
		if g.status != tt.status {
			t.Errorf("%s %s %v: %.200v, want %d", tt.method, tt.path, tt.header, g, tt.status)
		}
		if g.status >= 400 && g.problem(t) == "" {
			t.Errorf("%s %s %v: %.200v, which says nothing", tt.method, tt.path, tt.header, g)
		}
		if allow := g.header.Get("Allow"); (g.status == 405) != (allow != "") {
			t.Errorf("%s %s: Allow is %q", tt.method, tt.path, allow)
		}
	}
}

// A page whose origin is allowed can call tools, and read the answers.
func TestAllowedOrigin(t *testing.T) {
	srv := shop()
	srv.HTTP.AllowedOrigins = []string{"https://app.example"}
	srv.HTTP.AllowedHosts = []string{"mcp.example"}
	url := serve(t, srv, listen.Options{}) + "/shop/echo"
	g := send(t, "OPTIONS", url, "", "Host", "mcp.example", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
	if g.status != 204 || g.header.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(g.header.Get("Access-Control-Allow-Headers"), "content-type") {
		t.Errorf("preflight: %v %v", g, g.header)
	}
	if g = post(t, url, `{"text":"x"}`, "Host", "mcp.example", "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"); g.status != 200 || g.header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("call: %v %v", g, g.header)
	}
}

// Names of tools are in one segment of the path, whatever characters they have.
func TestToolNames(t *testing.T) {
	names := []string{"a b", "{id}", "?q=1", "#f", "%2e", "é\u202e", "..", "v", "a;b", "+", "&=", "a\\b", "../x", strings.Repeat("n", 3000)}
	srv := &mcp.Server{Name: "x", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case "tools/list":
			list := &mcp.List[mcp.Tool]{}
			for _, name := range names {
				list.Items = append(list.Items, &mcp.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`)})
			}
			return list, nil
		case "tools/call":
			var name string
			json.Unmarshal(req.Param("name"), &name)
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(name)}}, nil
		}
		return nil, mcp.Errorf(-32601, "no")
	})}
	url := serve(t, srv, listen.Options{})
	for _, name := range names {
		escaped := ""
		for _, c := range []byte(name) {
			escaped += fmt.Sprintf("%%%02X", c)
		}
		if g := post(t, url+"/shop/"+escaped, "{}"); g.status != 200 || g.body != name {
			t.Errorf("%.100q: %.200v", name, g)
		}
	}
	// The document has the paths of those that clients and proxies leave as they are.
	doc, err := openapi.Parse([]byte(send(t, "GET", url+"/shop", "").body))
	if err != nil || len(doc.Operations) != len(names)-3 || len(doc.Unmapped) > 0 {
		t.Fatalf("%d operations, %v", len(doc.Operations), err)
	}
	for _, op := range doc.Operations {
		if g := post(t, strings.TrimSuffix(url, "/api")+op.Path, "{}"); g.status != 200 {
			t.Errorf("%s: %v", op.Path, g)
		}
	}
}

// stranger sends requests of this process as another one does, which forwards nothing.
type stranger struct{}

func (stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del(hop.Header)
	return http.DefaultTransport.RoundTrip(r)
}

// The document that the API gives makes a server again, whose calls reach the tools.
func TestDocument(t *testing.T) {
	url := serve(t, shop(), listen.Options{})
	g := send(t, "GET", url+"/shop", "")
	doc, err := openapi.Parse([]byte(g.body))
	if err != nil || g.header.Get("Content-Type") != "application/json" || doc.Title != "The shop" || doc.Version != "2" || len(doc.Schemes()) > 0 {
		t.Fatalf("%.200v: %v", g, err)
	}
	srv, err := openapi.New(doc, openapi.Options{Base: strings.TrimSuffix(url, "/api"), Transport: stranger{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := (&mcp.Client{}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct {
		tool, args, want string
		failed           bool
	}{
		{"sum", `{"body":{"a":1,"b":2}}`, `{"sum":3}`, false},
		{"echo", `{"body":{"text":"x"}}`, `{"content":[{"type":"text","text":"x"}]}`, false},
		{"fails", `{"body":{}}`, "no money", true},
		{"routed", `{"body":{"region":"west"}}`, "west", false},
	} {
		res, err := s.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args))
		if err != nil || res.IsError != tt.failed || !strings.Contains(res.Text(), tt.want) {
			t.Errorf("%s: %v, %v", tt.tool, res, err)
		}
	}
	if g := send(t, "GET", url, ""); g.body != `{"servers":[{"name":"shop","path":"/api/shop","tools":15}]}` {
		t.Errorf("index: %v", g)
	}
}

// bearer accepts the tokens ada and bob, who are their principals.
type bearer struct{}

func (bearer) Verify(r *http.Request) (*auth.Principal, error) {
	who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return nil, auth.ErrNoCredential
	case who != "ada" && who != "bob":
		return nil, errors.New("unknown")
	}
	return &auth.Principal{ID: who}, nil
}

// Callers are authenticated and limited, see what they may see, and cannot tell a hidden tool from one that does not exist.
func TestCallers(t *testing.T) {
	srv := shop()
	srv.Visible = func(ctx context.Context, f mcp.Feature) bool {
		return f.Name != "sum" || auth.From(ctx) != nil && auth.From(ctx).ID == "ada"
	}
	l := &limit.Limiter{Tools: map[string]limit.Rate{"echo": {Count: 1, Per: time.Hour}}}
	srv.Use(l.Limit)
	url := serve(t, srv, listen.Options{Guard: &auth.Guard{Verifiers: []auth.Verifier{bearer{}, &auth.MTLS{}}}, Limit: l.Protect})
	ada, bob := []string{"Authorization", "Bearer ada"}, []string{"Authorization", "Bearer bob"}
	for _, path := range []string{"", "/shop", "/none", "/shop/sum"} {
		if g := send(t, "GET", url+path, ""); g.status != 401 || g.header.Get("WWW-Authenticate") == "" {
			t.Errorf("GET %s without a credential: %v", path, g)
		}
	}
	for _, wrong := range [][]string{nil, {"Authorization", "Bearer eve"}} {
		if g := post(t, url+"/shop/sum", `{"a":1,"b":2}`, wrong...); g.status != 401 {
			t.Errorf("%q: %v", wrong, g)
		}
	}
	if g := post(t, url+"/shop/caller", "{}", ada...); !strings.HasPrefix(g.body, "ada 2026-07-28 ") {
		t.Errorf("ada: %v", g)
	}
	if g := post(t, url+"/shop/scoped", "{}", ada...); g.status != 403 || !strings.Contains(g.header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("without the scope: %v %v", g, g.header)
	}
	if g := post(t, url+"/shop/sum", `{"a":1,"b":2}`, ada...); g.status != 200 {
		t.Errorf("ada: %v", g)
	}
	hidden, absent := post(t, url+"/shop/sum", "{}", bob...), post(t, url+"/shop/nom", "{}", bob...)
	hidden.header.Del("Date")
	absent.header.Del("Date")
	if hidden.status != 404 || hidden.String() != absent.String() || fmt.Sprint(hidden.header) != fmt.Sprint(absent.header) {
		t.Errorf("hidden %v, absent %v", hidden, absent)
	}
	for who, want := range map[string]bool{"ada": true, "bob": false} {
		g := send(t, "GET", url+"/shop", "", "Authorization", "Bearer "+who)
		if g.status != 200 || strings.Contains(g.body, "/api/shop/sum") != want || !strings.Contains(g.body, `"mutualTLS"`) {
			t.Errorf("the document for %s has the tool: %v, want %v", who, !want, want)
		}
	}
	if g := post(t, url+"/shop/echo", "{}", ada...); g.status != 200 {
		t.Errorf("the first call: %v", g)
	}
	if g := post(t, url+"/shop/echo", "{}", ada...); g.status != 429 || g.header.Get("Retry-After") == "" || !strings.Contains(g.problem(t), "echo") {
		t.Errorf("over the limit: %v %v", g, g.header)
	}
	if g := post(t, url+"/shop/echo", "{}", bob...); g.status != 200 {
		t.Errorf("another caller: %v", g)
	}
}

// A call ends with its caller.
func TestCallerLeaves(t *testing.T) {
	srv := &mcp.Server{Name: "x", Version: "1"}
	begun, ended := make(chan struct{}), make(chan error, 1)
	mcp.AddTool(srv, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", ctx.Err()
	})
	url := serve(t, srv, listen.Options{})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/shop/wait", bytes.NewReader([]byte("{}")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() { <-begun; leave() }()
	if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
		res.Body.Close()
		t.Error("the call was answered")
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the tool goes on after its caller has left")
	}
}

// pipe is a listener with one connection.
type pipe struct{ conns chan net.Conn }

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipe) Close() error   { close(p.conns); return nil }
func (p pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7420} }

// A body that is too slow ends with a problem, after 20 to 21 seconds.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipe{make(chan net.Conn, 1)}
		e := listen.New(shop(), l, listen.Options{Log: slog.New(slog.DiscardHandler)})
		(&API{Version: "1", Only: "shop"}).On(e)
		e.Serve()
		defer e.End(context.Background(), 10*time.Second)
		near, far := net.Pipe()
		defer near.Close()
		l.conns <- far
		begin := time.Now()
		go io.WriteString(near, "POST /api/shop/echo HTTP/1.1\r\nHost: 127.0.0.1:7420\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		res, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		g := &got{res.StatusCode, res.Header, string(body)}
		if words := g.problem(t); g.status != http.StatusRequestTimeout || words != web.TooSlow || took.Round(time.Second) < 20*time.Second || took.Round(time.Second) > 21*time.Second {
			t.Errorf("after %v: %v", took, g)
		}
	})
}

// A call that another program has forwarded says so to the server.
func TestHops(t *testing.T) {
	srv := shop()
	var hops string
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			hops = string(mcp.CallFrom(ctx).Meta[hop.Meta])
			return next.Handle(ctx, req)
		})
	})
	url := serve(t, srv, listen.Options{})
	for header, want := range map[string]string{"": "", "a": `["a"]`, "a, b": `["a","b"]`, `a b, x`: `["x"]`, strings.Repeat("a", 100) + ",b": `["b"]`} {
		if g := post(t, url+"/shop/echo", "{}", hop.Header, header); g.status != 200 || hops != want {
			t.Errorf("%q: %v with %s, want %s", header, g, hops, want)
		}
	}
	for header, want := range map[string]string{hop.Self: hop.ErrLoop.Error(), "a," + hop.Self: hop.ErrLoop.Error(), strings.Repeat("a,", 8) + "a": hop.ErrFar.Error()} {
		if g := post(t, url+"/shop/echo", "{}", hop.Header, header); g.status != http.StatusLoopDetected || !strings.Contains(g.body, want) {
			t.Errorf("%q: %v, want %s", header, g, want)
		}
	}
}

// Without On there is no API.
func TestOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := listen.New(shop(), l, listen.Options{Log: slog.New(slog.DiscardHandler)})
	e.Serve()
	t.Cleanup(func() { e.End(context.Background(), 10*time.Second) })
	if g := post(t, strings.TrimSuffix(e.URL, listen.Path)+"/api/shop/echo", "{}"); g.status != 404 {
		t.Errorf("an API that is off: %v", g)
	}
}
