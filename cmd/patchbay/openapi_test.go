package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// petsAPI is an HTTP API that keeps the lines of its requests, with the key that came.
type petsAPI struct {
	url      string
	mu       sync.Mutex
	requests []string // guarded by mu
}

func newPetsAPI(t *testing.T) *petsAPI {
	api := &petsAPI{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		api.mu.Lock()
		api.requests = append(api.requests, r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Key")+" "+string(body))
		api.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"done":true,"echo":%q}`, r.Header.Get("X-Key"))
	}))
	t.Cleanup(web.Close)
	api.url = web.URL
	return api
}

// take returns the requests since the last call.
func (a *petsAPI) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := strings.Join(a.requests, "\n")
	a.requests = nil
	return out
}

// thousandOperations writes a document with a thousand operations, of which few have names of their own.
func thousandOperations(t *testing.T) (file string) {
	paths := map[string]any{
		"/payments/{id}/refunds": map[string]any{"post": map[string]any{"operationId": "createRefund", "summary": "Pay a payment back",
			"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object", "properties": map[string]any{"amount": map[string]any{"type": "integer", "minimum": 1}}}}}}}},
		"/payments/{id}":             map[string]any{"delete": map[string]any{"operationId": "deletePayment", "summary": "Forget a payment"}},
		"/ware-houses/{house}/stock": map[string]any{"get": map[string]any{}}, // without a name or a text
	}
	for i := range 997 {
		paths[fmt.Sprintf("/things%d/{id}", i)] = map[string]any{"get": map[string]any{"operationId": fmt.Sprintf("getThing%d", i), "summary": fmt.Sprintf("Get the thing %d", i), "description": "Things are of all kinds."}}
	}
	raw, err := json.Marshal(map[string]any{
		"openapi": "3.0.3", "info": map[string]any{"title": "Shop", "version": "1"}, "paths": paths, "security": []any{map[string]any{"key": []any{}}},
		"components": map[string]any{"securitySchemes": map[string]any{"key": map[string]any{"type": "apiKey", "in": "header", "name": "X-Key"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "shop.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A thousand operations of an HTTP API are behind a gateway as three tools of a view, which find, describe and call them: with the
// policy, the audit log, and the credential of the server, which is read from its file for each call and seen nowhere.
func TestUpSearchesOpenAPI(t *testing.T) {
	api, dir := newPetsAPI(t), t.TempDir()
	key, rules := filepath.Join(dir, "key"), filepath.Join(dir, "rules.yaml")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(key, "first-secret-key\n")
	write(rules, "default: allow\nrules:\n  - {name: no deleting, when: name == \"deletePayment\", effect: deny}\n")
	r, log, header := audited(t, "auth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\npolicy: "+rules+"\nviews: {search: {mode: search}}\n",
		map[string]any{"shop": map[string]any{"openapi": thousandOperations(t), "args": []string{"--base", api.url}, "credentials": map[string]any{"key": map[string]any{"file": key}}}})
	s, err := (&mcp.Client{Name: "desk", Header: header}).Dial(t.Context(), r.url+"/v/search")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	listed := 0
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed += len(tool.InputSchema) + len(tool.Description)
	}
	if listed > 8<<10 {
		t.Errorf("the tools of the view have %d bytes", listed)
	}
	do := func(tool string, args map[string]any) string {
		res, err := s.CallTool(t.Context(), tool, args)
		if err != nil {
			return err.Error()
		}
		return res.Text()
	}
	for query, want := range map[string]string{
		"refund a payment": "shop_createRefund", "give the money back": "shop_createRefund", "get thing 512": "shop_getThing512", "stock of a warehouse": "shop_get_ware-houses_house_stock",
	} {
		if found := do("find_tools", map[string]any{"query": query}); !strings.Contains(found, want) {
			t.Errorf("%q finds %s, want %s", query, found, want)
		}
	}
	if text := do("describe_tool", map[string]any{"name": "shop_createRefund"}); !strings.Contains(text, `"minimum":1`) && !strings.Contains(text, `"minimum": 1`) {
		t.Errorf("the description is %s", text)
	}
	refund := map[string]any{"name": "shop_createRefund", "arguments": map[string]any{"id": "p/7", "body": map[string]any{"amount": 5}}}
	if got, want := do("call_tool", refund), `{"done":true,"echo":"[credential]"}`; got != want {
		t.Errorf("the call answers %s, want %s", got, want)
	}
	if got, want := api.take(), `POST /payments/p%2F7/refunds first-secret-key {"amount":5}`; got != want {
		t.Errorf("the API gets %s, want %s", got, want)
	}
	write(key, "second-secret-key")
	if got := do("call_tool", refund); !strings.Contains(got, "[credential]") {
		t.Errorf("with another key the call answers %s", got)
	}
	if got := api.take(); !strings.Contains(got, " second-secret-key ") {
		t.Errorf("with another key the API gets %s", got)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if got := do("call_tool", refund); !strings.Contains(got, `cannot use its credential for "key"`) || strings.Contains(got, dir) {
		t.Errorf("without the file the call answers %s", got)
	}
	if got := do("call_tool", map[string]any{"name": "shop_createRefund", "arguments": map[string]any{"id": "1", "body": map[string]any{"amount": 0}}}); !strings.Contains(got, "must be at least 1") {
		t.Errorf("an amount that is too small: %s", got)
	}
	do("call_tool", map[string]any{"name": "shop_deletePayment", "arguments": map[string]any{"id": "1"}})
	if got := api.take(); got != "" {
		t.Errorf("refused calls arrive as %s", got)
	}
	r.stop(t)
	var ends []string
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		if tool := strings.TrimPrefix(e.Tool, "shop_"); (tool == "createRefund" || tool == "deletePayment") && (e.Kind == audit.CallEnd || e.Kind == audit.Denied) {
			ends = append(ends, fmt.Sprintf("%s %s", tool, e.Outcome))
		}
	}
	if want := []string{"createRefund ok", "createRefund ok", "createRefund tool error", "createRefund tool error", "deletePayment denied"}; !slices.Equal(ends, want) {
		t.Errorf("the audit log has %q, want %q", ends, want)
	}
	raw, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(raw)+r.stderr.String(), "secret-key") {
		t.Errorf("%v, or the log has a credential", err)
	}
}

// A document that changes under a running gateway counts after a restart of its server. One that is faulty then makes the server
// fail, with the place.
func TestUpReadsDocumentAgain(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets, by which restart finds up")
	runtimeFolder(t)
	api, file := newPetsAPI(t), filepath.Join(t.TempDir(), "pets.yaml")
	write := func(paths string) {
		if err := os.WriteFile(file, []byte("openapi: 3.0.0\ninfo: {title: Pets, version: '1'}\npaths: "+paths), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{/old: {get: {operationId: get}}}")
	r := startUp(t, map[string]any{"pets": map[string]any{"openapi": file, "args": []string{"--base", api.url}}})
	s, err := (&mcp.Client{Name: "desk"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func() string {
		res, err := s.CallTool(t.Context(), "pets_get", nil)
		if err != nil {
			return err.Error()
		}
		return api.take() + res.Text()
	}
	write("{/new: {get: {operationId: get}}, /more: {get: {operationId: more}}}")
	if got := get(); !strings.HasPrefix(got, "GET /old ") {
		t.Errorf("before the restart: %s", got)
	}
	typedRun(t, "", exitOK, "restart", "pets")
	if got := get(); !strings.HasPrefix(got, "GET /new ") {
		t.Errorf("after the restart: %s", got)
	}
	if got := typedRun(t, "", exitOK, "tools", "-s", r.url); !strings.Contains(got, "pets_more(") {
		t.Errorf("after the restart the tools are %s", got)
	}
	write("{/new: ")
	typedRun(t, "", exitUnreachable, "restart", "pets")
	if got := get(); !strings.Contains(got, "pets.yaml:") {
		t.Errorf("with a faulty document: %s", got)
	}
}
