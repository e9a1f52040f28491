package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// newIssuer starts an authorization server that knows one program.
func newIssuer(t *testing.T, id, secret string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"issuer": web.URL, "token_endpoint": web.URL + "/token", "jwks_uri": web.URL + "/keys", "response_types_supported": []string{"code"},
			"grant_types_supported": []string{"client_credentials"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if user, password, _ := r.BasicAuth(); user != id || password != secret || r.PostFormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":%q,"exp":9999999999}`, web.URL, r.PostFormValue("resource"), id))
		if err != nil {
			t.Error(err)
			return
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			t.Error(err)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
	})
	return web.URL
}

// The program logs in by itself. A wrong secret, and a server that names another issuer, end the call.
func TestBothSides(t *testing.T) {
	issuer := newIssuer(t, "robot", "secret")
	var protected http.Handler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { protected.ServeHTTP(w, r) }))
	defer web.Close()
	url := web.URL + "/mcp"
	protected, err := protect(newServer(), url, issuer)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := call(t.Context(), newClient(url, issuer, "robot", "secret"), url); err != nil || who != "robot" {
		t.Errorf("whoami = %q, %v", who, err)
	}
	for want, client := range map[string]struct{ issuer, secret string }{
		"invalid_client":          {issuer, "guess"},
		"does not get the secret": {"https://login.example.com", "secret"},
	} {
		if who, err := call(t.Context(), newClient(url, client.issuer, "robot", client.secret), url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("whoami = %q, %v, want an error with %q", who, err, want)
		}
	}
}
