package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/auth"
)

func TestJWTPrincipal(t *testing.T) {
	f := newIssuer(t)
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f, RolesClaim: "realm_access.roles"}
	exp := time.Now().Add(time.Hour).Truncate(time.Second)
	p, err := v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"exp": exp.Unix()})))
	if err != nil {
		t.Fatal(err)
	}
	if p.Claims["name"] != "Alice" {
		t.Errorf("the claims are %v", p.Claims)
	}
	p.Claims = nil
	want := &auth.Principal{
		ID: issuerURL + "#alice", Scheme: "jwt", Issuer: issuerURL, Subject: "alice", ClientID: "app", Name: "Alice",
		Scopes: []string{"read", "write"}, Roles: []string{"editor"}, Expires: exp.Add(time.Minute),
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("principal (-want +got):\n%s", d)
	}
	// Some spell scopes otherwise, and a client may act on its own behalf.
	p, err = v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"scope": nil, "scp": []string{"a", "b c"}, "sub": nil})))
	if err != nil || p.ID != issuerURL+"?client_id=app" || strings.Join(p.Scopes, ",") != "a,b,c" {
		t.Errorf("a client without a user: %+v, %v", p, err)
	}
}

func TestJWTScopesClaim(t *testing.T) {
	f := newIssuer(t)
	for _, tt := range []struct {
		claim string
		value any
		want  string
	}{
		{"scopes", []string{"read", "write"}, "read,write"},
		{"scopes", "read write", "read,write"},
		{"https://example.com/scopes", "read", "read"},
		{"scopes", []any{"read", 7, "wri\"te"}, "read"},
		{"scopes", 7, ""},
		{"scopes", nil, ""}, // neither of scope nor of scp
	} {
		v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f, ScopesClaim: tt.claim}
		p, err := v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"scope": "admin", "scp": "admin", tt.claim: tt.value})))
		if err != nil || strings.Join(p.Scopes, ",") != tt.want {
			t.Errorf("%s %v: %+v, %v; want the scopes %q", tt.claim, tt.value, p, err, tt.want)
		}
	}
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f, ScopesClaim: "realm_access.scopes"}
	p, err := v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"realm_access": map[string]any{"scopes": []string{"deep"}}})))
	if err != nil || strings.Join(p.Scopes, ",") != "deep" {
		t.Errorf("within a claim: %+v, %v", p, err)
	}
}

func TestJWTKeyKinds(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ec384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	f := newIssuer(t)
	f.keys["rsa"], f.keys["ec384"], f.keys["ed"] = rsaKey, ec384, ed
	fetched := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f}
	fixed := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Keys: []crypto.PublicKey{rsaKey.Public(), ec384.Public(), ed.Public(), f.keys["ec"].Public()}}
	for kid := range f.keys {
		for name, v := range map[string]*auth.JWT{"fetched": fetched, "fixed": fixed} {
			if _, err := v.Verify(bearerRequest(f.token(t, kid, nil))); err != nil {
				t.Errorf("key %s, %s: %v", kid, name, err)
			}
		}
	}
	if _, err := fetched.Verify(bearerRequest(sign(t, rsaKey, "", f.claims()))); err != nil {
		t.Errorf("a token that names no key: %v", err)
	}
}

// twin returns another character for the end of a 64-byte signature that decodes to the same bytes:
// lax decoders ignore its last two bits.
func twin(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)^1])
}

// Trap 26: a key is valid only for the algorithm that it names, whether it was fetched or given; a
// key that names none is valid for all that suit it. Clients are identified by client_id or azp.
func TestJWTKeyNamesAlgorithm(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(alg string) http.RoundTripper {
		return roundTripFunc(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			answer(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: alg}}})
			return w.Result(), nil
		})
	}
	f := &fakeIssuer{}
	for _, named := range []string{"RS256", ""} {
		for how, v := range map[string]*auth.JWT{
			"fetched": {Issuer: issuerURL, Audience: []string{resourceURL}, KeysURL: "https://as.example.com/keys", Base: serve(named)},
			"given":   {Issuer: issuerURL, Audience: []string{resourceURL}, Keys: []crypto.PublicKey{jose.JSONWebKey{Key: key.Public(), KeyID: "k", Algorithm: named}}},
		} {
			for _, alg := range []string{"RS256", "RS384", "PS256"} {
				_, err := v.Verify(bearerRequest(sign(t, key, "k", f.claims(), "alg", alg)))
				if want := named == "" || named == alg; (err == nil) != want {
					t.Errorf("%s key that names %q, token signed by %s: %v, want taken %t", how, named, alg, err, want)
				}
			}
		}
	}
	given := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Keys: []crypto.PublicKey{jose.JSONWebKey{Key: key.Public(), Use: "enc"}}}
	if _, err := given.Verify(bearerRequest(sign(t, key, "", f.claims(), "alg", "RS256"))); err == nil {
		t.Error("a key for encryption verifies a token")
	}
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Keys: []crypto.PublicKey{key.Public()}, Clients: []string{"app", "tool"}}
	for _, tt := range []struct {
		change claimsMap
		want   bool
	}{
		{claimsMap{"client_id": "app"}, true}, {claimsMap{"azp": "tool"}, true}, {claimsMap{"azp": "app", "client_id": "app"}, true},
		{claimsMap{"client_id": "other"}, false}, {claimsMap{"azp": "other"}, false}, {nil, false}, {claimsMap{"azp": "app", "client_id": "tool"}, false},
	} {
		if _, err := v.Verify(bearerRequest(sign(t, key, "", with(f.claims(), tt.change)))); (err == nil) != tt.want {
			t.Errorf("a token of %v: %v, want taken %t", tt.change, err, tt.want)
		}
	}
}

// AUTH-26-066, AUTH-26-113: a token is validated. AUTH-26-067, AUTH-26-071, AUTH-26-072,
// AUTH-26-089, AUTH-26-114, SEC-26-007, XAUTH-26-020: only one that was made for this server is taken.
func TestJWTRefused(t *testing.T) {
	f := newIssuer(t)
	other := newIssuer(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	_ = err // the package of the standard library may refuse to make it; then the case is left out
	good := f.token(t, "ec", nil)
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	swap := func(i int, part string) string {
		p := strings.Split(good, ".")
		p[i] = part
		return strings.Join(p, ".")
	}
	now := time.Now()
	jwk, _ := json.Marshal(jose.JSONWebKey{Key: other.keys["ec"].Public(), KeyID: "ec"})
	pub, _ := x509.MarshalPKIXPublicKey(f.keys["ec"].Public())
	tests := map[string]string{
		"expired":                f.token(t, "ec", claimsMap{"exp": now.Add(-61 * time.Second).Unix()}),
		"not yet":                f.token(t, "ec", claimsMap{"nbf": now.Add(2 * time.Minute).Unix()}),
		"issued in the future":   f.token(t, "ec", claimsMap{"iat": now.Add(3 * time.Hour).Unix()}), // trap 26
		"iat is a text":          f.token(t, "ec", claimsMap{"iat": "now"}),
		"two clients":            f.token(t, "ec", claimsMap{"azp": "another"}),
		"azp is a list":          f.token(t, "ec", claimsMap{"azp": []string{"app"}, "client_id": nil}),
		"another signature text": good[:len(good)-1] + twin(good[len(good)-1]),
		"padded":                 good + "=",
		"no exp":                 f.token(t, "ec", claimsMap{"exp": nil}),
		"exp is a text":          f.token(t, "ec", claimsMap{"exp": "2099"}),
		"exp is null":            f.token(t, "ec", claimsMap{"exp": json.RawMessage("null")}),
		"exp is huge":            f.token(t, "ec", claimsMap{"exp": 1e300}),
		"exp is negative":        f.token(t, "ec", claimsMap{"exp": -5}),
		"no aud":                 f.token(t, "ec", claimsMap{"aud": nil}),
		"another aud":            f.token(t, "ec", claimsMap{"aud": "https://other.example.com/mcp"}),
		"aud of the origin":      f.token(t, "ec", claimsMap{"aud": "https://mcp.example.com"}),
		"aud below":              f.token(t, "ec", claimsMap{"aud": resourceURL + "/x"}),
		"aud with a query":       f.token(t, "ec", claimsMap{"aud": resourceURL + "?a"}),
		"aud is a number":        f.token(t, "ec", claimsMap{"aud": 7}),
		"aud is empty":           f.token(t, "ec", claimsMap{"aud": []string{}}),
		"another iss":            f.token(t, "ec", claimsMap{"iss": "https://as.example.com/other"}),
		"iss with a slash":       f.token(t, "ec", claimsMap{"iss": issuerURL + "/"}),
		"no iss":                 f.token(t, "ec", claimsMap{"iss": nil}),
		"neither sub nor client": f.token(t, "ec", claimsMap{"sub": nil, "client_id": nil}),
		"sub is empty":           f.token(t, "ec", claimsMap{"sub": ""}),
		"sub is a number":        f.token(t, "ec", claimsMap{"sub": 5, "client_id": nil}),
		"sub has lines":          f.token(t, "ec", claimsMap{"sub": "alice\nroot"}),
		"sub is long":            f.token(t, "ec", claimsMap{"sub": strings.Repeat("x", 2000)}),
		"ID of a logout":         f.token(t, "ec", nil, "typ", "logout+jwt"),
		"DPoP proof":             f.token(t, "ec", nil, "typ", "dpop+jwt"),
		"critical extension":     f.token(t, "ec", nil, "crit", "x"),
		"bound by DPoP":          f.token(t, "ec", claimsMap{"cnf": claimsMap{"jkt": "abc"}}),
		"bound to nothing":       f.token(t, "ec", claimsMap{"cnf": claimsMap{}}),
		"bound, null":            f.token(t, "ec", claimsMap{"cnf": json.RawMessage("null")}),
		"bound to a certificate": f.token(t, "ec", claimsMap{"cnf": claimsMap{"x5t#S256": "abc"}}),
		"another key":            other.token(t, "ec", nil),
		"unknown key":            sign(t, other.keys["ec"], "nobody", f.claims()),
		"no key named":           sign(t, other.keys["ec"], "", f.claims()),
		"key in the header":      sign(t, other.keys["ec"], "ec", f.claims(), "jwk", string(jwk)),
		"key set in the header":  sign(t, other.keys["ec"], "evil", f.claims(), "jku", "https://evil.example.com/keys"),
		"signature cut":          swap(2, parts[2][:20]),
		"no signature":           swap(2, ""),
		"signature of zeros":     swap(2, b64(make([]byte, 64))),
		"other claims":           swap(1, b64([]byte(`{"iss":"`+issuerURL+`","sub":"root","aud":"`+resourceURL+`","exp":9999999999}`))),
		"alg none":               swap(0, b64([]byte(`{"alg":"none","kid":"ec"}`))),
		"alg None":               swap(0, b64([]byte(`{"alg":"None","kid":"ec"}`))),
		"alg none, unsigned":     b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"no alg":                 swap(0, b64([]byte(`{"kid":"ec"}`))),
		"two algs":               swap(0, b64([]byte(`{"alg":"ES256","alg":"none","kid":"ec"}`))),
		"HMAC with the key":      sign(t, pub, "ec", f.claims(), "alg", "HS256"),
		"HMAC of the key set":    sign(t, []byte("secret-secret-secret-secret-secret"), "sym", f.claims(), "alg", "HS256"),
		"claims twice":           sign(t, f.keys["ec"], "ec", []byte(`{"iss":"`+issuerURL+`","sub":"alice","sub":"root","aud":"`+resourceURL+`","exp":9999999999}`)),
		"claims no object":       sign(t, f.keys["ec"], "ec", []byte(`["`+issuerURL+`"]`)),
		"no JSON":                sign(t, f.keys["ec"], "ec", []byte(`hello`)),
		"no base64":              "a!.b!.c!",
		"dots":                   "..",
		"five parts":             "a.b.c.d.e",
		"opaque":                 "9f8e7d6c",
	}
	if weak != nil && err == nil {
		f.keys["weak"] = weak
		tests["weak key"] = f.token(t, "weak", nil)
	}
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f}
	g := &auth.Guard{Verifiers: []auth.Verifier{v}, Resource: &auth.ResourceMetadata{Resource: resourceURL}}
	if res := request(t, g, "POST", "/mcp", "Authorization", "Bearer "+good); res.StatusCode != 200 {
		t.Fatalf("a good token: %d", res.StatusCode)
	}
	for name, token := range tests {
		p, err := v.Verify(bearerRequest(token))
		if err == nil {
			t.Errorf("%s: the token of %+v is taken", name, p)
			continue
		}
		if p != nil {
			t.Errorf("%s: both %+v and %v", name, p, err)
		}
		if errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if len(token) > 20 && strings.Contains(err.Error(), token[len(token)-20:]) {
			t.Errorf("%s: the error holds the token: %v", name, err)
		}
		res := request(t, g, "POST", "/mcp", "Authorization", "Bearer "+token)
		want := `{"error":"invalid_token"}`
		if strings.Contains(err.Error(), "the token is for") {
			want = `{"error":"invalid_token","error_description":"the token is for another resource than ` + resourceURL + `"}`
		}
		if text := body(t, res); res.StatusCode != 401 || text != want || strings.Contains(res.Header.Get("WWW-Authenticate"), "description") {
			t.Errorf("%s: %d, %q, %q", name, res.StatusCode, text, res.Header)
		}
	}
}

// AUTH-26-059: an audience may have its scheme and host in upper case.
func TestJWTAudience(t *testing.T) {
	f := newIssuer(t)
	for _, tt := range []struct {
		aud      any
		resource string
		ok       bool
	}{
		{resourceURL, resourceURL, true},
		{"HTTPS://MCP.Example.com/mcp", resourceURL, true},
		{"https://mcp.example.com/MCP", resourceURL, false},
		{[]string{"https://other.example.com", resourceURL}, resourceURL, true},
		{"https://mcp.example.com/", "https://mcp.example.com", true},
		{"https://mcp.example.com", "https://mcp.example.com/", true},
		{"https://mcp.example.com:443/mcp", resourceURL, false},
		{"http://mcp.example.com/mcp", resourceURL, false},
		{"https://user@mcp.example.com/mcp", resourceURL, false},
		{"api://tools", "api://tools", true},
		{"API://tools", "urn:tools", false},
	} {
		v := &auth.JWT{Issuer: issuerURL, Audience: []string{tt.resource}, Base: f}
		if _, err := v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"aud": tt.aud}))); (err == nil) != tt.ok {
			t.Errorf("aud %v for %s: %v, want ok %v", tt.aud, tt.resource, err, tt.ok)
		}
	}
}

// An accepted token is accepted until it expires, without another verification; the other parts of
// the request are checked each time.
func TestJWTIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIssuer(t)
		v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f, Leeway: -1}
		token := f.token(t, "ec", claimsMap{"exp": time.Now().Add(10 * time.Minute).Unix()})
		first, err := v.Verify(bearerRequest(token))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := v.Verify(bearerRequest(token)); err != nil || again != first {
			t.Errorf("again: %p and %p, %v", again, first, err)
		}
		time.Sleep(10*time.Minute - time.Second)
		if _, err := v.Verify(bearerRequest(token)); err != nil {
			t.Errorf("shortly before its end: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := v.Verify(bearerRequest(token)); err == nil {
			t.Error("at its end it is still good")
		}
	})
}

// RFC 8705, 3: a token that is bound to a certificate is valid only with that certificate, also
// from the cache.
func TestJWTBoundToCertificate(t *testing.T) {
	f := newIssuer(t)
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f}
	cert := &x509.Certificate{Raw: []byte("certificate")}
	sum := sha256.Sum256(cert.Raw)
	token := f.token(t, "ec", claimsMap{"cnf": claimsMap{"x5t#S256": base64.RawURLEncoding.EncodeToString(sum[:])}})
	try := func(c *x509.Certificate) error {
		r := bearerRequest(token)
		if c != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
		}
		_, err := v.Verify(r)
		return err
	}
	if err := try(cert); err != nil {
		t.Fatalf("with its certificate: %v", err)
	}
	if try(nil) == nil || try(&x509.Certificate{Raw: []byte("another")}) == nil {
		t.Error("good with another certificate or none")
	}
}

func TestHMAC(t *testing.T) {
	secret := auth.Secret("0123456789abcdef0123456789abcdef")
	v := &auth.JWT{Secret: secret}
	good := sign(t, []byte(secret), "", claimsMap{"sub": "bob", "exp": time.Now().Add(time.Hour).Unix(), "iss": issuerURL, "aud": "x"})
	p, err := v.Verify(bearerRequest(good))
	if err != nil || p.ID != "jwt#bob" || p.Issuer != "" {
		t.Errorf("%+v, %v: whoever has the secret is no other issuer", p, err)
	}
	if s := fmt.Sprintf("%v %+v %#v", secret, secret, secret); strings.Contains(s, "012345") {
		t.Errorf("the secret prints itself: %s", s)
	}
	other := sign(t, []byte("another-secret-another-secret-ab"), "", claimsMap{"sub": "bob", "exp": time.Now().Add(time.Hour).Unix()})
	if _, err := v.Verify(bearerRequest(other)); err == nil {
		t.Error("a token of another secret is good")
	}
	// In a Guard with a Resource the audience counts.
	g := &auth.Guard{Verifiers: []auth.Verifier{v}, Resource: &auth.ResourceMetadata{Resource: resourceURL}}
	if res := request(t, g, "POST", "/mcp", "Authorization", "Bearer "+good); res.StatusCode != 401 {
		t.Errorf("a token for another: %d", res.StatusCode)
	}
	// Two issuers, one by keys and one by a secret.
	f := newIssuer(t)
	both := []auth.Verifier{&auth.JWT{Issuer: issuerURL, Base: f, Audience: []string{resourceURL}}, v}
	for _, token := range []string{good, f.token(t, "ec", nil)} {
		if res := request(t, &auth.Guard{Verifiers: both}, "POST", "/mcp", "Authorization", "Bearer "+token); res.StatusCode != 200 {
			t.Errorf("of two: %d", res.StatusCode)
		}
	}
}

func TestJWTFaults(t *testing.T) {
	long := auth.Secret(strings.Repeat("k", 32))
	weak := &rsa.PublicKey{N: mustBig(1024), E: 65537}
	for name, v := range map[string]*auth.JWT{
		"nothing":          {},
		"no audience":      {Issuer: issuerURL},
		"http":             {Issuer: "http://as.example.com", Audience: []string{"x"}},
		"query":            {Issuer: issuerURL + "?a=b", Audience: []string{"x"}},
		"short secret":     {Secret: auth.Secret("short")},
		"secret and keys":  {Issuer: issuerURL, Secret: long, KeysURL: "https://as.example.com/keys", Audience: []string{"x"}},
		"none":             {Issuer: issuerURL, Audience: []string{"x"}, Algorithms: []string{"none"}},
		"HMAC with keys":   {Issuer: issuerURL, Audience: []string{"x"}, Algorithms: []string{"HS256"}},
		"RSA with secret":  {Secret: long, Algorithms: []string{"RS256"}},
		"leeway":           {Secret: long, Leeway: time.Hour},
		"weak key":         {Issuer: issuerURL, Audience: []string{"x"}, Keys: []crypto.PublicKey{weak}},
		"key is a secret":  {Issuer: issuerURL, Audience: []string{"x"}, Keys: []crypto.PublicKey{[]byte(long)}},
		"keys over http":   {Issuer: issuerURL, Audience: []string{"x"}, KeysURL: "http://as.example.com/keys"},
		"issuer is no URL": {Issuer: "as", Audience: []string{"x"}},
	} {
		if err := (&auth.Guard{Verifiers: []auth.Verifier{v}}).Check(); err == nil {
			t.Errorf("%s: no fault was found", name)
		}
	}
}

// Many requests at once, for the race detector.
func TestJWTConcurrently(t *testing.T) {
	f := newIssuer(t)
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: f}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				if _, err := v.Verify(bearerRequest(f.token(t, "ec", claimsMap{"n": (i + n) % 5}))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzJWT(f *testing.F) {
	i := newIssuer(f)
	good := i.token(f, "ec", nil)
	f.Add(good)
	f.Add("..")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(good[:len(good)-3] + "AAA")
	v := &auth.JWT{Issuer: issuerURL, Audience: []string{resourceURL}, Base: i}
	if _, err := v.Verify(bearerRequest(good)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Header["Authorization"] = []string{"Bearer " + token}
		p, err := v.Verify(r)
		switch {
		case err == nil && strings.Trim(token, " ") != good: // a signature cannot be guessed
			t.Fatalf("Verify takes %q for %+v", token, p)
		case err != nil && p != nil:
			t.Fatalf("Verify(%q) returned both %v and %v", token, p, err)
		}
	})
}
