package login_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// unattended is a transport that has nothing but a grant.
func unattended(w *world, g login.Grant, c *login.Credentials) *login.Transport {
	return &login.Transport{Server: w.url(), Grant: g, Registered: func(context.Context, string, string) (*login.Credentials, error) { return c, nil }}
}

// jwtOf reads a JWT, with its signature checked against a key; nil: against the one in it.
func jwtOf(t *testing.T, text string, key any) (header jose.Header, claims map[string]any) {
	t.Helper()
	s, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	header = s.Signatures[0].Header
	if key == nil {
		if !header.JSONWebKey.IsPublic() {
			t.Fatal("a private key in the header")
		}
		key = header.JSONWebKey
	}
	payload, err := s.Verify(key)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return header, claims
}

// A program with a secret logs in for itself, without a page or a registration.
// XAUTH-26-001, XAUTH-26-002.
func TestClientCredentialsBySecret(t *testing.T) {
	w := newWorld(t)
	w.meta = map[string]any{"authorization_endpoint": nil, "code_challenge_methods_supported": nil, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}}
	w.challenge = `, scope="a b"`
	w.token = map[string]any{"refresh_token": nil}
	mustSend(t, unattended(w, &login.ClientCredentials{}, &login.Credentials{ID: "me", Secret: "s3 cret"}), w.url())
	sameList(t, "credentials", w.basic, "me:s3+cret")
	f := w.exchanged[0]
	if f.Get("grant_type") != "client_credentials" || f.Get("scope") != "a b" || f.Get("resource") != w.url() || f.Has("client_secret") {
		t.Errorf("token request %v", f)
	}
	if len(w.registered)+len(w.authorized) > 0 {
		t.Errorf("requests %q", w.log)
	}
}

// A program with a key signs, for the issuer, anew each time. XAUTH-26-002.
func TestClientCredentialsByKey(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecPEM, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		alg, kind string
		der       []byte
		public    any
	}{{"ES256", "PRIVATE KEY", ecPEM, &ec.PublicKey}, {"RS256", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rs), &rs.PublicKey}} {
		t.Run(tt.alg, func(t *testing.T) {
			key, err := login.ParseClientKey("k1", pem.EncodeToMemory(&pem.Block{Type: tt.kind, Bytes: tt.der}))
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			w.meta = map[string]any{"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}, "token_endpoint_auth_signing_alg_values_supported": []string{tt.alg}}
			w.token = map[string]any{"refresh_token": nil}
			tr := unattended(w, &login.ClientCredentials{}, &login.Credentials{ID: "me", Key: key})
			mustSend(t, tr, w.url())
			w.revoke()
			mustSend(t, tr, w.url())
			seen := map[any]bool{}
			for _, f := range w.exchanged {
				if f.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || f.Has("client_secret") {
					t.Errorf("token request %v", f)
				}
				h, c := jwtOf(t, f.Get("client_assertion"), tt.public)
				if h.KeyID != "k1" || h.Algorithm != tt.alg {
					t.Errorf("header %+v", h)
				}
				if c["iss"] != "me" || c["sub"] != "me" || c["aud"] != w.as.URL || c["exp"].(float64)-c["iat"].(float64) > 300 || seen[c["jti"]] {
					t.Errorf("claims %v", c)
				}
				seen[c["jti"]] = true
			}
			if len(w.exchanged) != 2 {
				t.Errorf("%d token requests, want 2", len(w.exchanged))
			}
		})
	}
}

// A grant that lacks something fails before it sends a secret, and no secret goes where it can be
// overheard. XAUTH-26-004, XAUTH-26-015.
func TestGrantsLackSomething(t *testing.T) {
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := login.NewClientKey("", small); err == nil {
		t.Error("a key of P-224 is taken")
	}
	for _, text := range []string{"", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := login.ParseClientKey("", []byte(text)); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := login.NewClientKey("", ec)
	if err != nil {
		t.Fatal(err)
	}
	subject := func(context.Context) (string, error) { return "id-token", nil }
	for _, tt := range []struct {
		name, err string
		grant     login.Grant
		is        *login.Credentials
		meta      map[string]any
	}{
		{"no credentials", "Registered", &login.ClientCredentials{}, nil, nil},
		{"no secret", "Secret", &login.ClientCredentials{}, &login.Credentials{ID: "me"}, nil},
		{"other signatures", "RS256", &login.ClientCredentials{}, &login.Credentials{ID: "me", Key: key}, map[string]any{"token_endpoint_auth_signing_alg_values_supported": []string{"RS256"}}},
		{"no JWT", "Token and File", &login.Workload{}, nil, nil},
		{"no file", "workload", &login.Workload{File: filepath.Join(t.TempDir(), "none")}, nil, nil},
		{"for another", "login.example.com", &login.Workload{Issuer: "https://login.example.com", File: "x"}, nil, nil},
		{"no identity provider", "Issuer", &login.Enterprise{Issuer: "http://idp.example.com"}, nil, nil},
		{"nobody there", "ID", &login.Enterprise{Issuer: "https://idp.example.com"}, nil, nil},
		{"no subject", "Subject", &login.Enterprise{Issuer: "https://idp.example.com", Client: login.Credentials{ID: "x"}}, nil, nil},
		{"no client", "Registered", &login.Enterprise{Issuer: "https://idp.example.com", Client: login.Credentials{ID: "x"}, Subject: subject}, nil, nil},
		// XAUTH-26-013
		{"no profile", "authorization_grant_profiles_supported", &login.Enterprise{Issuer: "https://idp.example.com", Client: login.Credentials{ID: "x"}, Subject: subject}, nil, map[string]any{"authorization_grant_profiles_supported": []string{}}},
		{"no way to show", "Show", &login.Device{}, nil, nil},
		{"no device login", "device_authorization_endpoint", &login.Device{Show: func(context.Context, login.DeviceCode) error { return nil }}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.meta = tt.meta
			_, err := send(t.Context(), unattended(w, tt.grant, tt.is), w.url(), "")
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if len(w.asked("POST as")) > 0 {
				t.Errorf("went on: %q", w.log)
			}
		})
	}
}

// unsigned is a JWT whose signature is not checked.
func unsigned(audience any) string {
	payload, _ := json.Marshal(map[string]any{"aud": audience})
	return "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

// A workload's JWT goes once to its audience and nowhere else, from a file or a function.
func TestWorkload(t *testing.T) {
	w := newWorld(t)
	jwt, file := unsigned([]string{"x", w.as.URL + "/"}), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(jwt+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustSend(t, unattended(w, &login.Workload{File: file}, nil), w.url())
	w.revoke()
	asked := ""
	mustSend(t, unattended(w, &login.Workload{Issuer: w.as.URL, Token: func(_ context.Context, audience string) (string, error) {
		asked = audience
		return unsigned("api://pool"), nil
	}}, &login.Credentials{ID: "me"}), w.url())
	if f := w.exchanged[0]; f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || f.Get("assertion") != jwt || f.Has("client_id") {
		t.Errorf("token request %v", f)
	}
	if f := w.exchanged[1]; f.Get("assertion") != unsigned("api://pool") || f.Get("client_id") != "me" || asked != w.as.URL {
		t.Errorf("token request %v, audience %q", f, asked)
	}
	for _, bad := range []string{unsigned("https://login.example.com"), unsigned(5), "no.jwt", "a b", ""} {
		n := len(w.exchanged)
		w.revoke()
		_, err := send(t.Context(), unattended(w, &login.Workload{Token: func(context.Context, string) (string, error) { return bad, nil }}, nil), w.url(), "")
		if err == nil || len(w.exchanged) > n || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: error %v, %d token requests", bad, err, len(w.exchanged)-n)
		}
	}
	n := len(w.exchanged)
	w.refuse = func(url.Values) (int, string) { return 400, `{"error":"invalid_grant"}` }
	_, err := send(t.Context(), unattended(w, &login.Workload{File: file}, nil), w.url(), "")
	var refused *login.RefusedError
	if !errors.As(err, &refused) || refused.Code != "invalid_grant" || len(w.exchanged) != n+1 {
		t.Errorf("error %v after %d token requests; want invalid_grant after one", err, len(w.exchanged)-n)
	}
}

// The user's login at the company becomes an assertion, and that a token. XAUTH-26-005,
// XAUTH-26-006, XAUTH-26-010, XAUTH-26-013, XAUTH-26-018, XAUTH-26-023.
func TestEnterprise(t *testing.T) {
	var exchanged url.Values
	answered := map[string]any{"access_token": "the.id.jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "n_a"}
	var idp *httptest.Server
	idp = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer(rw, 200, map[string]any{"issuer": idp.URL, "token_endpoint": idp.URL + "/exchange", "token_endpoint_auth_methods_supported": []string{"client_secret_post"}})
		case "/exchange":
			_ = r.ParseForm()
			exchanged = r.PostForm
			answer(rw, 200, answered)
		default:
			http.NotFound(rw, r)
		}
	}))
	idp.Start()
	defer idp.Close()
	w := newWorld(t)
	w.challenge = `, scope="chat"`
	w.meta = map[string]any{"authorization_grant_profiles_supported": []string{"urn:ietf:params:oauth:grant-profile:id-jag"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}}
	grant := &login.Enterprise{
		Issuer: idp.URL, Client: login.Credentials{ID: "at-idp", Secret: "s1"},
		Subject: func(context.Context) (string, error) { return "id-token", nil },
	}
	tr := unattended(w, grant, &login.Credentials{ID: "at-as", Secret: "s2"})
	mustSend(t, tr, w.url())
	for name, want := range map[string]string{
		"grant_type":           "urn:ietf:params:oauth:grant-type:token-exchange",
		"requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
		"subject_token_type":   "urn:ietf:params:oauth:token-type:id_token",
		"subject_token":        "id-token", "audience": w.as.URL, "resource": w.url(), "scope": "chat", "client_id": "at-idp", "client_secret": "s1",
	} {
		if got := exchanged.Get(name); got != want {
			t.Errorf("token exchange: %s is %q, want %q", name, got, want)
		}
	}
	f := w.exchanged[0]
	if f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || f.Get("assertion") != "the.id.jag" || f.Get("scope") != "chat" {
		t.Errorf("token request %v", f)
	}
	sameList(t, "credentials", w.basic, "at-as:s2")
	for name, v := range map[string]any{"issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "access_token": "the.id.jag with more"} {
		before := answered[name]
		answered[name] = v
		w.revoke()
		_, err := send(t.Context(), unattended(w, grant, &login.Credentials{ID: "at-as"}), w.url(), "")
		if err == nil || len(w.exchanged) > 1 || strings.Contains(err.Error(), "the.id.jag") {
			t.Errorf("%s %q: error %v, %d token requests", name, v, err, len(w.exchanged))
		}
		answered[name] = before
	}
}

// Tokens are bound to a key if the server or the program demands it: each request has a proof of
// its own, with the nonce of its receiver (RFC 9449, 4 to 9).
func TestDPoP(t *testing.T) {
	for _, by := range []string{"us", "metadata", "challenge"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			w.token = map[string]any{"token_type": "DPoP"}
			seen, thumbs := map[any]bool{}, map[string]bool{}
			// proof checks the proof of a request, and answers if its nonce is not the one.
			proof := func(rw http.ResponseWriter, r *http.Request, target, nonce string) (refused bool) {
				h, c := jwtOf(t, r.Header.Get("DPoP"), nil)
				thumb, _ := h.JSONWebKey.Thumbprint(5) // crypto.SHA256
				thumbs[string(thumb)] = true
				if h.ExtraHeaders["typ"] != "dpop+jwt" || c["htm"] != r.Method || c["htu"] != target || seen[c["jti"]] || len(r.Header.Values("DPoP")) != 1 {
					t.Errorf("proof %v, %v for %s %s", h, c, r.Method, target)
				}
				seen[c["jti"]] = true
				if access, ok := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP "); ok {
					sum := sha256.Sum256([]byte(access))
					if c["ath"] != base64.RawURLEncoding.EncodeToString(sum[:]) {
						t.Errorf("ath %v is not of the token", c["ath"])
					}
				}
				if c["nonce"] != nonce {
					rw.Header().Set("DPoP-Nonce", nonce)
					return true
				}
				return false
			}
			w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
				scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
				switch {
				case r.URL.Path == "/token":
					if proof(rw, r, w.as.URL+"/token", "as-nonce") {
						answer(rw, 400, map[string]any{"error": "use_dpop_nonce"})
						return true
					}
				case r.URL.Path == "/mcp" && scheme == "DPoP":
					if proof(rw, r, w.url(), fmt.Sprint("mcp-nonce-", len(w.bodies)/2)) { // a new one now and then
						rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
						rw.WriteHeader(401)
						return true
					}
					r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "DPoP", "Bearer", 1)) // for the world
				case r.URL.Path == "/mcp" && scheme == "Bearer":
					t.Error("a bound token was sent as Bearer")
				case r.URL.Path == "/mcp" && by == "challenge":
					rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`DPoP resource_metadata="%s"`, w.mcp.URL+w.prmPath))
					rw.WriteHeader(401)
					return true
				}
				return false
			}
			tr := w.transport()
			tr.DPoP = by == "us"
			if by == "metadata" {
				w.prm = map[string]any{"dpop_bound_access_tokens_required": true}
			}
			for range 4 {
				mustSend(t, tr, w.url()+"?x=y")
			}
			if len(w.authorized) != 1 || len(w.bodies) != 4 || len(thumbs) != 1 {
				t.Errorf("%d logins, %d requests let in, %d keys; want 1, 4, 1", len(w.authorized), len(w.bodies), len(thumbs))
			}
		})
	}
}

// A Transport with DPoP takes no other tokens, and a server that always asks for a new nonce
// causes no endless retries.
func TestDPoPIsNotGivenUp(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	tr.DPoP = true
	if _, err := send(t.Context(), tr, w.url(), ""); err == nil || !strings.Contains(err.Error(), `has type "bearer"`) {
		t.Errorf("a token that is not bound: %v", err)
	}
	w.refuse = func(url.Values) (int, string) { return 400, `{"error":"use_dpop_nonce"}` }
	n := 0
	w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			n++
			rw.Header().Set("DPoP-Nonce", fmt.Sprint(n))
		}
		return false
	}
	if _, err := send(t.Context(), tr, w.url(), ""); err == nil || n != 2 {
		t.Errorf("%d token requests, error %v; want 2 and a refusal", n, err)
	}
	w.meta = map[string]any{"dpop_signing_alg_values_supported": []string{"RS256"}}
	if _, err := send(t.Context(), tr, w.url(), ""); err == nil || !strings.Contains(err.Error(), "ES256") {
		t.Errorf("other proofs: %v", err)
	}
}
