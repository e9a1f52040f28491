package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/mcp"
)

const secret = "0123456789abcdef0123456789abcdef"

// newIssuer starts an authorization server whose user always agrees.
func newIssuer(t *testing.T) *httptest.Server {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	issuer := httptest.NewServer(mux)
	t.Cleanup(issuer.Close)
	answer := func(w http.ResponseWriter, status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": issuer.URL, "authorization_endpoint": issuer.URL + "/authorize", "token_endpoint": issuer.URL + "/token",
			"registration_endpoint": issuer.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusCreated, map[string]any{"client_id": "lister"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		code := url.Values{"code": {q.Get("resource")}, "state": {q.Get("state")}} // the code is what the token is for
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+code.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"ada","exp":9999999999}`, issuer.URL, r.PostFormValue("code")))
		if err != nil {
			t.Error(err)
			return
		}
		token, _ := signed.CompactSerialize()
		answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
	})
	return issuer
}

// The first run sends the user to a page, and the second finds the tokens in the vault.
func TestLogin(t *testing.T) {
	var protected http.Handler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { protected.ServeHTTP(w, r) }))
	defer web.Close()
	srv := &mcp.Server{Name: "guarded", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) { return auth.From(ctx).Subject, nil })
	issuer := newIssuer(t).URL
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: issuer, Secret: secret}},
		Resource:  &auth.ResourceMetadata{Resource: web.URL + "/mcp", AuthorizationServers: []string{issuer}},
	}
	if err := guard.Check(); err != nil {
		t.Fatal(err)
	}
	protected = guard.Protect(srv)

	v, err := vault.Open(t.TempDir(), &vault.Options{Passphrase: "correct horse battery staple"})
	if err != nil {
		t.Fatal(err)
	}
	visits := 0
	browser := func(ctx context.Context, page string) error {
		visits++
		go func() { // it must not wait for the user
			if res, err := http.Get(page); err == nil {
				res.Body.Close()
			}
		}()
		return nil
	}
	for run := range 2 {
		names, err := tools(t.Context(), web.URL+"/mcp", v, browser)
		if err != nil || !slices.Equal(names, []string{"whoami"}) || visits != 1 {
			t.Errorf("run %d: the tools are %q, %v, after %d visits", run+1, names, err, visits)
		}
	}
}
