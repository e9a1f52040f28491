package interop

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/mcp"
)

// guarded starts a Patchbay server that admits callers with a token of an issuer, and returns its
// address. Its tool "refund" needs a scope that the others do not.
func guarded(t *testing.T, issuer string) string {
	t.Helper()
	s := &mcp.Server{Name: "till", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) { return auth.From(ctx).Subject, nil })
	mcp.AddTool(s, mcp.Tool{Name: "refund"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "refunded", auth.RequireScopes(ctx, "orders", "refunds")
	})
	var h atomic.Pointer[http.Handler] // its metadata names the address, which is known only later
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.Load()).ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	g := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: issuer}}, Scopes: []string{"orders"},
		Resource: &auth.ResourceMetadata{Resource: srv.URL + "/mcp"},
	}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", g.Protect(s)) // not at a well-known path: clients have to follow the challenge
	protected := http.Handler(mux)
	h.Store(&protected)
	return srv.URL + "/mcp"
}

// document serves the Client ID Metadata Document of a client over https, and returns its URL
// and the environment in which Node trusts it.
func document(t *testing.T, redirect string, change map[string]any) (at string, env string) {
	t.Helper()
	var srv *httptest.Server
	srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		doc := map[string]any{
			"client_id": srv.URL + "/client.json", "client_name": "Till", "redirect_uris": []string{redirect}, "application_type": "native",
			"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
		}
		for name, v := range change {
			doc[name] = v
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(doc)
	}))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return srv.URL + "/client.json", "NODE_EXTRA_CA_CERTS=" + file
}

// A client identifies itself by a metadata document, without registration; its user consents to
// one scope, and to another when a tool needs it; and it goes on without the user when tokens
// expire. AUTH-26-026, AUTH-26-029 to -032.
func TestClientByDocument(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	pages := make(chan string, 1)
	back, err := login.NewLoopback(func(_ context.Context, page string) error { pages <- page; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	at, env := document(t, "http://127.0.0.1/callback", nil) // with any port: RFC 8252, 7.3
	server := guarded(t, startIDP(t, "jwt", 3600, env))
	tr := &login.Transport{Server: server, RedirectURL: back.RedirectURL(), Visit: back.Visit, DocumentURL: at}
	client := &mcp.Client{Name: "till", HTTPClient: &http.Client{Transport: tr}, Limits: mcp.Limits{CallTimeout: dialogueLimit}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*dialogueLimit)
	defer cancel()

	var s *mcp.Session
	dialled := make(chan error, 1)
	go func() {
		var err error
		s, err = client.Dial(ctx, server)
		dialled <- err
	}()
	p.opens(pages)
	p.signIn()
	p.agree("orders")
	p.Reads("You can close this page")
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.CallTool(ctx, "who", nil); err != nil || r.Text() != "alice" {
		t.Errorf("who: %v, %v; want alice", r, err)
	}
	l, err := tr.Token(ctx)
	if err != nil || l.Client != at || l.Refresh == "" || !slices.Contains(l.Granted, "orders") || slices.Contains(l.Granted, "refunds") {
		t.Errorf("the login is that of %q for %q (error %v); want %q for orders, and a refresh token", l.Client, l.Granted, err, at)
	}

	refunded := make(chan error, 1)
	go func() {
		r, err := s.CallTool(ctx, "refund", nil)
		if err == nil && r.Text() != "refunded" {
			t.Errorf("refund: %v", r)
		}
		refunded <- err
	}()
	p.opens(pages) // the browser is signed in still
	p.agree("refunds")
	p.Reads("You can close this page")
	if err := <-refunded; err != nil {
		t.Error(err)
	}
	if r, err := s.CallTool(ctx, "refund", nil); err != nil || r.Text() != "refunded" {
		t.Errorf("refund again: %v, %v; want no other login", r, err)
	}
}

// A document that is not about its URL, or lacks the redirect URI, is refused: the browser is not
// redirected. AUTH-26-030, AUTH-26-032, AUTH-26-103, AUTH-26-105.
func TestDocumentOfAnother(t *testing.T) {
	t.Parallel()
	const redirect = "http://127.0.0.1:9/callback"
	urls, env := map[string]string{}, ""
	for name, change := range map[string]map[string]any{
		"another client_id": {"client_id": "https://example.com/client.json"},
		"no client_id":      {"client_id": nil},
		"another redirect":  {"redirect_uris": []string{"http://127.0.0.1:9/other"}},
	} {
		urls[name], env = document(t, redirect, change) // all have the certificate of httptest
	}
	server := guarded(t, startIDP(t, "jwt", 3600, env))
	for name, at := range urls {
		tr := &login.Transport{Server: server, RedirectURL: redirect, DocumentURL: at, Visit: visitPlainly}
		err := tr.Login(t.Context())
		if err == nil || !strings.Contains(err.Error(), "HTTP 400") {
			t.Errorf("a document with %s: error %v, want a refusal of the authorization server on its own page", name, err)
		}
	}
}

// visitPlainly opens a page as a browser does, and returns the redirect target.
func visitPlainly(ctx context.Context, page string) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 3 {
		return nil, fmt.Errorf("HTTP %d", res.StatusCode)
	}
	return res.Location()
}
