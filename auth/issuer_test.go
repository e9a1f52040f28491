package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
)

const issuerURL = "https://as.example.com/tenant"

// fakeIssuer is an authorization server without a net: metadata, keys, and introspection.
type fakeIssuer struct {
	keys map[string]crypto.Signer // by id

	mu     sync.Mutex
	down   bool                 // guarded by mu
	served map[string]bool      // the ids of keys that are served; nil: all; guarded by mu
	log    []string             // paths; guarded by mu
	states map[string]claimsMap // answers of introspection by token; guarded by mu
	hold   chan struct{}        // if not nil, introspection waits for it; guarded by mu
	meta   map[string]any       // what differs in the metadata; guarded by mu
}

type claimsMap = map[string]any

var _ http.RoundTripper = (*fakeIssuer)(nil)

func newIssuer(t testing.TB) *fakeIssuer {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeIssuer{keys: map[string]crypto.Signer{"ec": ec}}
}

func (f *fakeIssuer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// asked counts the requests for a path.
func (f *fakeIssuer) asked(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.log {
		if l == path {
			n++
		}
	}
	return n
}

func (f *fakeIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	var hold chan struct{}
	f.set(func() { f.log, hold = append(f.log, r.URL.Path), f.hold })
	if hold != nil && r.Method == "POST" {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := httptest.NewRecorder()
	switch {
	case f.down:
		return nil, errors.New("connection refused")
	case r.URL.Path == "/.well-known/openid-configuration/tenant":
		answer(w, 200, with(map[string]any{
			"issuer": issuerURL, "jwks_uri": "https://as.example.com/keys", "introspection_endpoint": "https://as.example.com/introspect",
		}, f.meta))
	case r.URL.Path == "/keys":
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
		for id, k := range f.keys {
			if f.served == nil || f.served[id] {
				set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: id, Use: "sig"})
			}
		}
		raw, _ := json.Marshal(set)
		// An unknown key type, a secret key and an encryption key are not faults.
		raw = bytes.Replace(raw, []byte(`{"keys":[`), []byte(`{"keys":[{"kty":"XYZ","kid":"x"},{"kty":"oct","kid":"sym","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"}`+
			map[bool]string{true: ",", false: ""}[len(set.Keys) > 0]), 1)
		answer(w, 200, json.RawMessage(raw))
	case r.URL.Path == "/introspect" && r.Method == "POST":
		user, password, _ := r.BasicAuth()
		if user != "patchbay" || password != "s3cret" {
			answer(w, 401, map[string]any{"error": "invalid_client"})
			break
		}
		if state := f.states[r.FormValue("token")]; state != nil {
			answer(w, 200, state)
		} else {
			answer(w, 200, map[string]any{"active": false})
		}
	default:
		w.WriteHeader(404)
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

// token makes one of the issuer, with what differs from a good one; nil removes a claim.
func (f *fakeIssuer) token(t testing.TB, kid string, changes claimsMap, header ...string) string {
	now := time.Now()
	all := with(map[string]any{
		"iss": issuerURL, "sub": "alice", "aud": []string{resourceURL}, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"scope": "read write", "client_id": "app", "name": "Alice", "realm_access": map[string]any{"roles": []string{"editor"}},
	}, changes)
	return sign(t, f.keys[kid], kid, all, header...)
}

func (f *fakeIssuer) claims() claimsMap {
	return claimsMap{"iss": issuerURL, "sub": "alice", "aud": resourceURL, "exp": time.Now().Add(time.Hour).Unix()}
}

// sign makes a JWT; header are further members of its header.
func sign(t testing.TB, key any, kid string, all any, header ...string) string {
	t.Helper()
	alg := jose.HS256
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		alg = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Params().BitSize]
	case *rsa.PrivateKey:
		alg = jose.PS256
	case ed25519.PrivateKey:
		alg = jose.EdDSA
	}
	opts := &jose.SignerOptions{}
	if kid != "" {
		opts.WithHeader("kid", kid)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "alg" {
			alg = jose.SignatureAlgorithm(header[i+1])
			continue
		}
		opts.WithHeader(jose.HeaderKey(header[i]), header[i+1])
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	payload, ok := all.([]byte)
	if !ok {
		payload, _ = json.Marshal(all)
	}
	sig, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := sig.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func bearerRequest(token string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// with adds members to a document; nil removes one.
func with(base, more map[string]any) map[string]any {
	for k, v := range more {
		if base[k] = v; v == nil {
			delete(base, k)
		}
	}
	return base
}

func TestKeysAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIssuer(t)
		second, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		f.keys["new"] = second
		f.served = map[string]bool{"ec": true}
		var logged bytes.Buffer
		v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		verify := func(kid string, n int) error {
			_, err := v.Verify(bearerRequest(f.token(t, kid, claimsMap{"n": n, "exp": time.Now().Add(24 * time.Hour).Unix()})))
			return err
		}

		// The keys are read once, even if many requests arrive first.
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if err := verify("ec", i); err != nil {
					t.Errorf("first: %v", err)
				}
			})
		}
		wg.Wait()
		if n := f.asked("/keys"); n != 1 {
			t.Fatalf("%d requests for the keys, want 1", n)
		}

		// A new key is good at once, although the keys have just been read.
		third, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		f.set(func() { f.keys["next"], f.served["next"] = third, true })
		if err := verify("next", 0); err != nil || f.asked("/keys") != 2 {
			t.Errorf("a new key: %v, after %d requests for the keys; want 2", err, f.asked("/keys"))
		}

		// Unknown keys cause a few reads a minute.
		for i := range 600 { // a minute
			if err := verify("new", i); err == nil || errors.Is(err, auth.ErrUnavailable) {
				t.Fatalf("unknown key: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := f.asked("/keys"); n != 2+5 { // at once, and after 2, 6, 14 and 30 seconds
			t.Errorf("%d requests for the keys after a minute of unknown ones, want 7", n)
		}
		f.set(func() { f.served["new"] = true })
		time.Sleep(time.Minute)
		if err := verify("new", 0); err != nil {
			t.Errorf("a new key: %v", err)
		}

		// The issuer is down: known keys stay valid.
		f.set(func() { f.down = true })
		time.Sleep(time.Hour)
		if err := verify("ec", 1000); err != nil {
			t.Errorf("while the issuer is down: %v", err)
		}
		synctest.Wait()
		if !strings.Contains(logged.String(), "keys of an issuer not read") {
			t.Errorf("nobody was told: %q", logged.String())
		}

		// The tokens of a removed key become invalid.
		f.set(func() { f.down, f.served["ec"] = false, false })
		time.Sleep(time.Minute)
		remembered := f.token(t, "ec", nil)
		// This has the keys looked at, and may already be refused by what is found.
		if _, err := v.Verify(bearerRequest(remembered)); err != nil && !strings.Contains(err.Error(), "has no key") {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := v.Verify(bearerRequest(remembered)); err == nil {
			t.Error("a token is remembered though its key is gone")
		}
	})
}

func TestIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIssuer(t)
		f.down = true
		v := &auth.JWT{Issuer: issuerURL, Base: f}
		g := &auth.Guard{Verifiers: []auth.Verifier{v}, Resource: &auth.ResourceMetadata{Resource: resourceURL}}
		token := f.token(t, "ec", nil)
		for range 10 {
			res := request(t, g, "POST", "/mcp", "Authorization", "Bearer "+token)
			if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
				t.Fatalf("%d, want 503", res.StatusCode)
			}
		}
		if n := f.asked("/.well-known/oauth-authorization-server/tenant"); n != 1 {
			t.Errorf("the issuer was asked %d times, want 1", n)
		}
		f.set(func() { f.down = false })
		time.Sleep(5 * time.Second)
		if res := request(t, g, "POST", "/mcp", "Authorization", "Bearer "+token); res.StatusCode != 200 {
			t.Errorf("when it is there again: %d", res.StatusCode)
		}
	})
}

func TestIssuerMetadataIsHostile(t *testing.T) {
	for name, meta := range map[string]claimsMap{
		"another issuer":  {"issuer": "https://as.example.com"},
		"no keys":         {"jwks_uri": nil},
		"keys over http":  {"jwks_uri": "http://as.example.com/keys"},
		"keys in a file":  {"jwks_uri": "file:///etc/passwd"},
		"keys on a metal": {"jwks_uri": "http://127.0.0.1/keys"},
	} {
		f := newIssuer(t)
		f.meta = meta
		v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f}
		if _, err := v.Verify(bearerRequest(f.token(t, "ec", nil))); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
	}
}
