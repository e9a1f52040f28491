package steer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// newGateway returns a gateway with the servers shop and a/b, and a function that returns what it has reported.
func newGateway(t *testing.T) (g *Gateway, said func() string) {
	t.Helper()
	s := &launch.Servers{Gateway: &gateway.Gateway{Name: "g", Version: "1"}, Env: &launch.Env{Builtin: func(name string, _ []string, _ *slog.Logger) (mcp.Handler, error) {
		return &mcp.Server{Name: name, Version: "1"}, nil
	}}}
	t.Cleanup(s.Close)
	s.Set([]config.Server{{Name: "shop", Builtin: "shop"}, {Name: "a/b", Builtin: "x"}}, nil, "")
	var facts []string
	g = &Gateway{Servers: s, Calls: new(Calls), Sessions: new(Sessions), Tools: s.Gateway.KeptToolsOf,
		Report: func() *health.Report {
			r := &health.Report{State: "ready"}
			for _, name := range s.Names() {
				r.Servers = append(r.Servers, health.Server{Name: name, State: "ready"})
			}
			return r
		},
		Acted:     func(by string, o *Outcome) { facts = append(facts, by+" "+o.Action+" "+o.Server) },
		LoggedOut: func(by string, e *Ended) { facts = append(facts, by+" ended "+e.Text) },
		Refused:   func(by, request string) { facts = append(facts, by+" refused "+request) },
	}
	return g, func() string { return strings.Join(facts, "; ") }
}

// as makes a request, as a principal with roles if there are any.
func as(g *Gateway, method, path, body string, header map[string]string, roles ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if roles != nil {
		r = r.WithContext(auth.With(r.Context(), &auth.Principal{ID: "as#ada", Roles: roles}))
	}
	w := httptest.NewRecorder()
	g.API(roles != nil, "").ServeHTTP(w, r)
	return w
}

// Each path of the document is served, and each route is in the document, with schemas that exist.
func TestDocument(t *testing.T) {
	g, _ := newGateway(t)
	g.People = &crowd{}
	g.Nodes = &pair{}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In, Description string }
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	text := as(g, "GET", Path+"/openapi.json", "", nil).Body.Bytes()
	if err := json.Unmarshal(text, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, text)
	}
	for i, part := range strings.Split(string(text), `"#/components/schemas/`)[1:] {
		if name, _, _ := strings.Cut(part, `"`); doc.Components.Schemas[name] == nil {
			t.Errorf("reference %d is to %s, which does not exist", i, name)
		}
	}
	var documented, served []string
	ids := map[string]bool{}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			method = strings.ToUpper(method)
			documented = append(documented, method+" "+path)
			if ids[op.OperationID] || op.OperationID == "" || op.Responses["200"] == nil || op.Responses["default"] == nil {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			ids[op.OperationID] = true
			for _, p := range op.Parameters {
				if p.Description == "" || p.In == "path" != strings.Contains(path, "{"+p.Name+"}") {
					t.Errorf("%s %s: parameter %+v", method, path, p)
				}
			}
			body := ""
			if method == "POST" {
				body = "{}"
			}
			if strings.HasSuffix(path, "/logins/end") {
				body = `{"person": "alice"}`
			}
			name := "shop"
			if strings.HasSuffix(path, "/disable") { // in whichever order the paths come
				name = "a%2Fb"
			}
			w := as(g, method, strings.Replace(path, "{name}", name, 1), body, nil)
			if want := http.StatusOK; w.Code != want && !(strings.Contains(path, "/audit") && strings.Contains(w.Body.String(), "has no audit log")) {
				t.Errorf("%s %s: HTTP %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	for _, r := range g.routes() {
		served = append(served, r.method+" "+Path+r.path)
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented are\n%q\nserved are\n%q", documented, served)
	}
}

// Requests that are wrong, or that a page elsewhere sends, get an error of RFC 9457 that says why.
func TestRefusals(t *testing.T) {
	g, said := newGateway(t)
	admin := []string{"dev", "admin"}
	for _, tt := range []struct {
		name, method, path, body string
		header                   map[string]string
		roles                    []string
		status                   int
		want                     string
	}{
		{"no role", "GET", "/servers", "", nil, []string{"dev"}, 403, `as#ada does not have the role \"admin\"`},
		{"an origin", "POST", "/servers/shop/restart", "{}", map[string]string{"Origin": "https://evil.example"}, admin, 403, "origin"},
		{"an origin at a socket", "POST", "/servers/shop/restart", "{}", map[string]string{"Origin": "https://evil.example"}, nil, 403, "origin"},
		{"a page of another site", "GET", "/servers", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, admin, 403, "other sites"},
		{"no content type", "POST", "/servers/shop/restart", "{}", map[string]string{"Content-Type": "text/plain"}, admin, 415, "Content-Type: application/json"},
		{"an unknown server", "POST", "/servers/shp/disable", "{}", nil, admin, 404, `no server \"shp\"; servers: a/b, shop; did you mean \"shop\"?","servers":["a/b","shop"]`},
		{"logs of an unknown server", "GET", "/servers/shp/logs", "", nil, admin, 404, "did you mean"},
		{"an unknown server to show", "GET", "/servers/shp", "", nil, admin, 404, "did you mean"},
		{"an unknown path", "GET", "/server", "", nil, admin, 404, "openapi.json"},
		{"another method", "GET", "/servers/shop/restart", "", nil, admin, 405, "takes POST, not GET"},
		{"an unknown parameter", "GET", "/servers/shop/logs?tail=1", "", nil, admin, 400, `no parameter \"tail\"; it has: lines, follow`},
		{"too many lines", "GET", "/servers/shop/logs?lines=1001", "", nil, admin, 400, "from 0 to 1000"},
		{"follow", "GET", "/servers/shop/logs?follow=x", "", nil, admin, 400, "true or false"},
		{"a large body", "POST", "/servers/shop/restart", strings.Repeat(" ", 5000), nil, admin, 413, "4096"},
		{"a command", "POST", "/servers/shop/restart", `{"command":"sh"}`, nil, admin, 400, `unknown member \"command\"`},
		{"a body of a list", "POST", "/servers/shop/restart", `["5s"]`, nil, admin, 400, `or without one: want an object"`},
		{"a number as the drain", "POST", "/servers/shop/restart", `{"drain":5}`, nil, admin, 400, `or without one: at \"/drain\": want a string, got a number"`},
		{"two bodies", "POST", "/servers/shop/restart", `{"drain":"5s"} {"drain":"0s"}`, nil, admin, 400, "not an object"},
		{"a member twice", "POST", "/servers/shop/restart", `{"drain":"5s","drain":"0s"}`, nil, admin, 400, "not an object"},
		{"another case", "POST", "/servers/shop/restart", `{"Drain":"0s"}`, nil, admin, 400, `unknown member \"Drain\"`},
		{"no JSON", "POST", "/servers/shop/restart", `{`, nil, admin, 400, "not an object"},
		{"a long drain", "POST", "/servers/shop/restart", `{"drain":"31s"}`, nil, admin, 400, "from 0s to 30s"},
		{"a drain of disable", "POST", "/servers/shop/disable", `{"drain":"1s"}`, nil, admin, 400, "for a restart"},
		{"no audit log", "GET", "/audit", "", nil, admin, 404, "has no audit log"},
	} {
		w := as(g, tt.method, Path+tt.path, tt.body, tt.header, tt.roles...)
		var p problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != tt.status || p.Status != tt.status || p.Title == "" ||
			w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: HTTP %d %s, want %d and %s (%v)", tt.name, w.Code, w.Body, tt.status, tt.want, err)
		}
	}
	if got := said(); got != "as#ada refused GET /admin/v1/servers" {
		t.Errorf("after the refusals: %s", got)
	}
	if w := as(g, "POST", Path+"/servers/a%2Fb/disable", "", nil, admin...); w.Code != 200 || !strings.Contains(said(), "as#ada disable a/b") {
		t.Errorf("a name with a slash: HTTP %d %s, %s", w.Code, w.Body, said())
	}
	if w := as(g, "POST", Path+"/servers/a%2Fb/restart", "", nil, admin...); w.Code != 409 || !strings.Contains(w.Body.String(), "patchbay enable a/b") {
		t.Errorf("a disabled one: HTTP %d %s", w.Code, w.Body)
	}
}

// A reader of the log who does not read delays nothing; one who comes later is told how many lines are left out.
func TestFollow(t *testing.T) {
	g, _ := newGateway(t)
	srv := httptest.NewServer(g.API(false, ""))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func() *http.Response {
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+Path+"/servers/shop/logs?follow=true&lines=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if _, err := g.Servers.Restart(t.Context(), "shop", -1); err != nil { // waits until it is ready, so that no other line comes
		t.Fatal(err)
	}
	j := g.Servers.Journal("shop")
	j.Event("first")
	slow := get()
	defer slow.Body.Close()
	in := bufio.NewReader(slow.Body)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"text":"first"`) {
		t.Fatalf("%q, %v", line, err)
	}
	long := strings.Repeat("x", 1000)
	began := time.Now()
	for i := range 20_000 { // 20 MB, more than the buffers of a connection
		j.Event(fmt.Sprint(i, long))
	}
	j.Event("last")
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("20,000 lines took %v", d)
	}
	found, left := false, 0
	for !found {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var l launch.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(l.Text, "lines are left out here") {
			left++
		}
		found = l.Text == "last"
	}
	if left == 0 {
		t.Error("no line says how many are left out")
	}
	quick := get()
	defer quick.Body.Close()
	if line, err := bufio.NewReader(quick.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"text":"last"`) {
		t.Errorf("a second reader: %q, %v", line, err)
	}
	cancel()
	io.Copy(io.Discard, in)
}

// Calls and sessions are listed while they are open.
func TestCallsAndSessions(t *testing.T) {
	g, _ := newGateway(t)
	g.Calls.Sessions = g.Sessions
	began, end := make(chan struct{}), make(chan struct{})
	h := g.Calls.Around("shop")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		close(began)
		<-end
		return mcp.RawResult(`{}`), nil
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"buy"}`)})
	}()
	<-began
	session, leave := context.WithCancel(t.Context())
	g.Sessions.Add(session)
	calls := as(g, "GET", Path+"/calls", "", nil).Body.String()
	if !strings.Contains(calls, `"server":"shop","method":"tools/call","name":"buy"`) || !strings.Contains(calls, `"total":1`) {
		t.Errorf("the calls are %s", calls)
	}
	if got := as(g, "GET", Path+"/sessions", "", nil).Body.String(); !strings.Contains(got, `"total":1`) {
		t.Errorf("the sessions are %s", got)
	}
	if w := as(g, "POST", Path+"/servers/shop/restart", `{"drain":"5s"}`, nil); !strings.Contains(w.Body.String(), `1 call in progress may finish until `) {
		t.Errorf("restart with a call: %s", w.Body)
	}
	close(end)
	<-done
	leave()
	for deadline := time.Now().Add(time.Minute); ; {
		_, all := g.Sessions.List()
		if n := g.Calls.Of("shop"); n == 0 && all == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d calls and %d sessions stay", n, all)
		}
		time.Sleep(time.Millisecond)
	}
}

// The audit log is verified with the key beside the one that signs it, and an edited line is a fault.
func TestVerify(t *testing.T) {
	g, _ := newGateway(t)
	dir := t.TempDir()
	g.AuditLog = filepath.Join(dir, "audit.jsonl")
	if w := as(g, "GET", Path+"/audit/verify", "", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "cannot be verified") {
		t.Errorf("without a file: HTTP %d %s", w.Code, w.Body)
	}
	key, err := audit.LoadKey(filepath.Join(dir, "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(g.AuditLog, &audit.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	log.Add(audit.Entry{Kind: audit.Denied, Tool: "refund", Outcome: "denied"})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	g.AuditKey = filepath.Join(dir, "audit.key.pub")
	if got := as(g, "GET", Path+"/audit/verify", "", nil).Body.String(); !strings.Contains(got, `"whole":true,"text":["`) || !strings.Contains(got, " is whole: ") || strings.Contains(got, "not checked") {
		t.Errorf("a whole log: %s", got)
	}
	text, err := os.ReadFile(g.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.AuditLog, bytes.Replace(text, []byte("refund"), []byte("search"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := as(g, "GET", Path+"/audit/verify", "", nil).Body.String(); !strings.Contains(got, `"whole":false`) || !strings.Contains(got, "has 1 fault") {
		t.Errorf("an edited log: %s", got)
	}
}

// The API for a person whose requests are checked acts under the name of the person.
func TestFor(t *testing.T) {
	g, said := newGateway(t)
	r := httptest.NewRequest("POST", "http://page.example"+Path+"/servers/a%2Fb/disable", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.For("as#eve").ServeHTTP(w, r)
	if w.Code != 200 || said() != "as#eve disable a/b" {
		t.Errorf("HTTP %d %s: %s", w.Code, w.Body, said())
	}
}
