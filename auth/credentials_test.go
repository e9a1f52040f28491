package auth_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/patchbay-dev/patchbay/auth"
)

// mustBig returns an odd number of the given number of bits.
func mustBig(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return n.Add(n, big.NewInt(1))
}

func introspection(f *fakeIssuer) *auth.Introspection {
	return &auth.Introspection{Issuer: issuerURL, ClientID: "patchbay", ClientSecret: "s3cret", Audience: []string{resourceURL}, Base: f}
}

func TestIntrospection(t *testing.T) {
	f := newIssuer(t)
	exp := time.Now().Add(time.Hour).Unix()
	f.states = map[string]claimsMap{
		"good":    {"active": true, "sub": "alice", "aud": resourceURL, "scope": "read", "client_id": "app", "username": "al", "exp": exp, "iss": issuerURL, "token_type": "Bearer"},
		"noaud":   {"active": true, "sub": "alice"},
		"clients": {"active": true, "sub": "alice", "aud": resourceURL, "client_id": "app", "azp": "another"},
		"aud":     {"active": true, "sub": "alice", "aud": "https://other.example.com"},
		"iss":     {"active": true, "sub": "alice", "aud": resourceURL, "iss": "https://other.example.com"},
		"expired": {"active": true, "sub": "alice", "aud": resourceURL, "exp": time.Now().Add(-time.Second).Unix()},
		"dpop":    {"active": true, "sub": "alice", "aud": resourceURL, "token_type": "DPoP"},
		"text":    {"active": "true", "sub": "alice", "aud": resourceURL},
		"nobody":  {"active": true, "aud": resourceURL},
	}
	v := introspection(f)
	p, err := v.Verify(bearerRequest("good"))
	if err != nil || p.ID != issuerURL+"#alice" || p.Name != "al" || !p.HasScope("read") || p.Scheme != "introspection" || p.Expires.Unix() != exp {
		t.Errorf("good: %+v, %v", p, err)
	}
	for name := range f.states {
		if name == "good" {
			continue
		}
		if p, err := v.Verify(bearerRequest(name)); err == nil || errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := v.Verify(bearerRequest("inactive")); !errors.Is(err, auth.ErrNoCredential) {
		t.Errorf("inactive: %v, want that the next verifier is asked", err)
	}
	for client, want := range map[string]bool{"app": true, "another": false} {
		v := introspection(f)
		v.Clients = []string{client}
		if p, err := v.Verify(bearerRequest("good")); (err == nil) != want {
			t.Errorf("of the client app, where %s may: %+v, %v", client, p, err)
		}
	}
	bad := introspection(f)
	bad.ClientSecret = "wrong"
	if _, err := bad.Verify(bearerRequest("good")); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("with another secret of ours: %v, want unavailable", err)
	}
	if err := (&auth.Guard{Verifiers: []auth.Verifier{&auth.Introspection{URL: "http://as.example.com/introspect", Audience: []string{"x"}}}}).Check(); err == nil {
		t.Error("plain http was let pass")
	}
	if err := (&auth.Guard{Verifiers: []auth.Verifier{&auth.Introspection{Issuer: issuerURL}}}).Check(); err == nil {
		t.Error("no audience was let pass")
	}
}

func TestIntrospectionIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIssuer(t)
		f.states = map[string]claimsMap{
			"long":  {"active": true, "sub": "alice", "aud": resourceURL},
			"short": {"active": true, "sub": "alice", "aud": resourceURL, "exp": time.Now().Add(10 * time.Second).Unix()},
		}
		v := introspection(f)
		verify := func(token string, good bool, asked int) {
			t.Helper()
			if _, err := v.Verify(bearerRequest(token)); (err == nil) != good {
				t.Errorf("%s: %v, want good %v", token, err, good)
			}
			if n := f.asked("/introspect"); n != asked {
				t.Errorf("%s: the issuer was asked %d times, want %d", token, n, asked)
			}
		}
		verify("long", true, 1)
		verify("long", true, 1)
		verify("short", true, 2)
		verify("bad", false, 3)
		verify("bad", false, 3)
		f.set(func() { delete(f.states, "long") }) // taken back
		time.Sleep(9 * time.Second)
		verify("long", true, 3)
		verify("bad", false, 3)
		time.Sleep(time.Second)
		verify("bad", false, 4)
		verify("short", false, 5) // it has expired, and is asked about again
		time.Sleep(20 * time.Second)
		verify("long", false, 6)
	})
}

// One question for a token at a time, and a bound on all: strangers must not be able to keep the
// issuer busy.
func TestIntrospectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIssuer(t)
		f.states = map[string]claimsMap{"same": {"active": true, "sub": "alice", "aud": resourceURL}}
		f.hold = make(chan struct{})
		v := introspection(f)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := v.Verify(bearerRequest("same")); err != nil {
					t.Errorf("the same: %v", err)
				}
			})
		}
		for i := range 31 {
			wg.Go(func() { _, _ = v.Verify(bearerRequest("random-" + string(rune('A'+i)))) })
		}
		synctest.Wait()
		if _, err := v.Verify(bearerRequest("one more")); err == nil {
			t.Error("blanks in a token")
		}
		if _, err := v.Verify(bearerRequest("one-more")); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("one more: %v, want unavailable", err)
		}
		close(f.hold)
		wg.Wait()
		if n := f.asked("/introspect"); n != 32 {
			t.Errorf("the issuer was asked %d times, want 32", n)
		}
	})
}

func TestAPIKeys(t *testing.T) {
	key, entry := auth.NewAPIKey("carol")
	entry.Scopes, entry.Roles, entry.Name = []string{"read"}, []string{"ops"}, "Carol's laptop"
	old, expired := auth.NewAPIKey("dave")
	expired.Expires = time.Now().Add(-time.Second)
	if strings.Contains(entry.Hash, key[len(key)-10:]) || !strings.HasPrefix(key, "pb_"+entry.ID+"_") {
		t.Fatalf("key %q has the entry %+v", key, entry)
	}
	v := &auth.APIKeys{Keys: []auth.APIKey{entry, expired}}
	g := &auth.Guard{Verifiers: []auth.Verifier{v}}
	tests := []struct {
		name   string
		header []string
		status int
	}{
		{"bearer", []string{"Authorization", "Bearer " + key}, 200},
		{"header", []string{"X-API-Key", key}, 200},
		{"another secret", []string{"Authorization", "Bearer " + key[:len(key)-1] + "!"}, 401},
		{"no secret", []string{"X-API-Key", "pb_" + entry.ID + "_"}, 401},
		{"id alone", []string{"X-API-Key", "pb_" + entry.ID}, 401},
		{"empty", []string{"X-API-Key", ""}, 401},
		{"hash", []string{"X-API-Key", entry.Hash}, 401},
		{"unknown id", []string{"Authorization", "Bearer pb_nobody_ABCDEFG"}, 401},
		{"unknown id in a header", []string{"X-API-Key", "pb_nobody_ABCDEFG"}, 401},
		{"no key", []string{"Authorization", "Bearer eyJ.a.b"}, 401},
		{"twice", []string{"X-API-Key", key, "X-API-Key", key}, 400},
		{"too long", []string{"X-API-Key", strings.Repeat("x", 20<<10)}, 400},
		{"expired", []string{"X-API-Key", old}, 401},
		{"not in base64", []string{"Authorization", "Basic " + key}, 401},
		{"password of nobody", basic("", key), 200},
		{"password of key", basic("key", key), 200},
		{"password of the id", basic(entry.ID, key), 200},
		{"password of the subject", basic("carol", key), 200},
		{"password of somebody else", basic("dave", key), 401},
		{"password that is wrong", basic("carol", key[:len(key)-1]+"!"), 401},
		{"password without a key", basic("carol", "secret"), 401},
		{"user name", basic(key, ""), 401},
	}
	for _, tt := range tests {
		if res := request(t, g, "POST", "/mcp", tt.header...); res.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, res.StatusCode, tt.status)
		}
	}
	// A caller with a bad key does not count as anonymous.
	g = &auth.Guard{Verifiers: []auth.Verifier{v}, Anonymous: true}
	for value, want := range map[string]int{"pb_nobody_ABCDEFG": 401, "nonsense": 401, key: 200} {
		if res := request(t, g, "POST", "/mcp", "X-API-Key", value); res.StatusCode != want {
			t.Errorf("where nobody is let in too, %q: %d, want %d", value, res.StatusCode, want)
		}
	}
	p, err := v.Verify(bearerRequest(key))
	if err != nil || p.ID != "apikey#carol" || p.ClientID != entry.ID || !p.HasScope("read") || !p.HasRole("ops") || p.Name != "Carol's laptop" {
		t.Errorf("%+v, %v", p, err)
	}
}

// basic returns a header with Basic credentials.
func basic(user, password string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// Whichever of the two comes first, a password is a password and a key is a key.
func TestAPIKeyAsPasswordBesideUsers(t *testing.T) {
	key, entry := auth.NewAPIKey("carol")
	hash, err := auth.HashPassword("pb_not_a_key")
	if err != nil {
		t.Fatal(err)
	}
	keys, users := &auth.APIKeys{Keys: []auth.APIKey{entry}}, &auth.Basic{Users: map[string]string{"carol": hash}}
	for _, verifiers := range [][]auth.Verifier{{keys, users}, {users, keys}} {
		g := &auth.Guard{Verifiers: verifiers}
		for name, tt := range map[string]struct {
			header []string
			status int
		}{
			"key":                       {basic("carol", key), 200},
			"key of nobody":             {basic("", key), 200},
			"password that looks alike": {basic("carol", "pb_not_a_key"), 200},
			"neither":                   {basic("carol", "pb_not_a_kez"), 401},
			"neither, of nobody":        {basic("mallory", "secret"), 401},
			"no name":                   {basic("", "secret"), 400},
		} {
			if res := request(t, g, "POST", "/mcp", tt.header...); res.StatusCode != tt.status {
				t.Errorf("%T first, %s: %d, want %d", verifiers[0], name, res.StatusCode, tt.status)
			}
		}
	}
}

func TestAPIKeyFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key1, entry1 := auth.NewAPIKey("one")
	key2, entry2 := auth.NewAPIKey("two")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := func(k auth.APIKey) string {
		raw, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw) + "\n"
	}
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		v := &auth.APIKeys{File: path, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		good := func(key string) bool {
			time.Sleep(time.Second)
			_, err := v.Verify(bearerRequest(key))
			return err == nil
		}
		if err := (&auth.Guard{Verifiers: []auth.Verifier{v}}).Check(); err == nil {
			t.Error("a file that is not there was let pass")
		}
		fault := func(want string) {
			t.Helper()
			faults := (&auth.Guard{Verifiers: []auth.Verifier{known(nil), v}}).Faults()
			if want == "" && faults == nil || want != "" && len(faults) == 1 && strings.Contains(faults[0].Error(), want) {
				return
			}
			t.Errorf("the faults are %v, want %q", faults, want)
		}
		write("# keys\n\n" + line(entry1))
		if !good(key1) || good(key2) {
			t.Error("the first is good and the second is not")
		}
		fault("")
		write(line(entry1) + line(entry2))
		if !good(key1) || !good(key2) {
			t.Error("after the file was changed both are good")
		}
		write("{\n" + line(entry1))
		if !good(key1) || good(key2) || !strings.Contains(logged.String(), "line 1") {
			t.Errorf("key 1 after a bad line is refused, key 2 is accepted, or the log does not name the line: %q", logged.String())
		}
		fault(path + " has faults; the rest of it is in use\nline 1")
		write(line(entry2))
		if good(key1) || !good(key2) {
			t.Error("a key that was taken out is no good")
		}
		fault("")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if good(key2) {
			t.Error("a file that is gone has no keys")
		}
		fault(path + " is gone; its credentials are refused")
		if good(key2); strings.Count(logged.String(), "is gone") != 1 {
			t.Errorf("the log is\n%s", logged.String())
		}
		write(line(entry2))
		if !good(key2) {
			t.Error("the key of the new file is refused")
		}
		fault("")
	})
}

func TestParseAPIKeys(t *testing.T) {
	_, entry := auth.NewAPIKey("x")
	for _, text := range []string{
		`{"id":"a","hash":"sha256:00","subject":"x"}`,
		`{"id":"a","hash":"` + strings.TrimPrefix(entry.Hash, "sha256:") + `","subject":"x"}`,
		`{"id":"a","hash":"` + entry.Hash + `"}`,
		`{"id":"a_b","hash":"` + entry.Hash + `","subject":"x"}`,
		`{"id":"a","hash":"` + entry.Hash + `","subject":"x","scopes":["a b"]}`,
		`{"id":"a","id":"b","hash":"` + entry.Hash + `","subject":"x"}`,
		`[]`, `x`,
	} {
		if keys, err := auth.ParseAPIKeys([]byte(text)); err == nil {
			t.Errorf("ParseAPIKeys(%s) = %+v", text, keys)
		}
	}
	same := &auth.APIKeys{Keys: []auth.APIKey{entry, entry}}
	if err := (&auth.Guard{Verifiers: []auth.Verifier{same}}).Check(); err == nil {
		t.Error("the same id twice was let pass")
	}
}

func FuzzParseAPIKeys(f *testing.F) {
	_, entry := auth.NewAPIKey("x")
	raw, _ := json.Marshal(entry)
	f.Add(raw)
	f.Add([]byte("# comment\n\n{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		keys, err := auth.ParseAPIKeys(file)
		if err != nil {
			if keys != nil {
				t.Fatalf("both %v and %v", keys, err)
			}
			return
		}
		var again []byte
		for _, k := range keys {
			line, err := json.Marshal(k)
			if err != nil {
				return // a time without a JSON form
			}
			again = append(append(again, line...), '\n')
		}
		if more, err := auth.ParseAPIKeys(again); err != nil || len(more) != len(keys) {
			t.Fatalf("%q was read, and %q is not: %v", file, again, err)
		}
	})
}

func TestBasic(t *testing.T) {
	argon, err := auth.HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	bc, err := bcrypt.GenerateFromPassword([]byte("päss:word"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("# users\nalice:"+argon+":read write\nbob:"+string(bc)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &auth.Guard{Verifiers: []auth.Verifier{&auth.Basic{File: path, Users: map[string]string{"carol": argon}}}, Realm: `my "tools"`}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		user, password string
		status         int
	}{
		{"alice", "correct horse", 200},
		{"alice", "correct horse", 200}, // remembered
		{"alice", "correct horsf", 401},
		{"alice", "", 401},
		{"bob", "päss:word", 200},
		{"bob", strings.Repeat("x", 100), 401},
		{"carol", "correct horse", 200},
		{"mallory", "correct horse", 401},
		{"alice", strings.Repeat("x", 2000), 400},
		{"", "x", 400},
		{"a\x00b", "x", 400},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("POST", "/", nil)
		r.SetBasicAuth(tt.user, tt.password)
		res := request(t, g, "POST", "/", "Authorization", r.Header.Get("Authorization"))
		if res.StatusCode != tt.status {
			t.Errorf("%q with %.20q: %d, want %d", tt.user, tt.password, res.StatusCode, tt.status)
		}
		if res.StatusCode == 401 && res.Header.Get("WWW-Authenticate") != `Basic realm="my tools", charset="UTF-8"` {
			t.Errorf("the challenge is %q", res.Header.Get("WWW-Authenticate"))
		}
	}
	for _, value := range []string{"Basic !!!", "Basic YWxpY2U", "Basic /w=="} {
		if res := request(t, g, "POST", "/", "Authorization", value); res.StatusCode != 400 {
			t.Errorf("%q: %d, want 400", value, res.StatusCode)
		}
	}
}

func TestPasswordHashes(t *testing.T) {
	good, _ := auth.HashPassword("x")
	for _, hash := range []string{
		"", "secret", "$1$abc$def", "{SHA}abcd",
		strings.Replace(good, "m=19456", "m=99999999", 1),
		strings.Replace(good, "t=2", "t=99", 1),
		strings.Replace(good, "p=1", "p=0", 1),
		strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "argon2id", "argon2i", 1),
		good[:len(good)-30],
		"$2a$31$" + strings.Repeat("a", 53),
	} {
		g := &auth.Guard{Verifiers: []auth.Verifier{&auth.Basic{Users: map[string]string{"u": hash}}}}
		if g.Check() == nil {
			t.Errorf("the hash %q was let pass", hash)
		}
	}
	if _, err := auth.HashPassword(""); err == nil {
		t.Error("an empty password was hashed")
	}
	if again, _ := auth.HashPassword("x"); again == good {
		t.Error("two hashes of one password are the same: no salt")
	}
}

func TestMTLS(t *testing.T) {
	spiffe, _ := url.Parse("spiffe://example.org/agent")
	cert := &x509.Certificate{URIs: []*url.URL{spiffe}, Subject: pkix.Name{CommonName: "agent"}, NotAfter: time.Now().Add(time.Hour)}
	v := &auth.MTLS{Grant: func(c *x509.Certificate, p *auth.Principal) error {
		if c.Subject.CommonName == "banned" {
			return errors.New("banned")
		}
		p.Scopes = []string{"read"}
		return nil
	}}
	verify := func(cert *x509.Certificate, verified bool) (*auth.Principal, error) {
		r := httptest.NewRequest("POST", "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		if verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
		}
		return v.Verify(r)
	}
	if p, err := verify(cert, true); err != nil || p.ID != "mtls#spiffe://example.org/agent" || p.Name != "agent" || !p.HasScope("read") {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := verify(cert, false); !errors.Is(err, auth.ErrNoCredential) {
		t.Errorf("a certificate that nobody has verified: %+v, %v", p, err)
	}
	if _, err := v.Verify(httptest.NewRequest("POST", "/", nil)); !errors.Is(err, auth.ErrNoCredential) {
		t.Errorf("without TLS: %v", err)
	}
	for name, c := range map[string]*x509.Certificate{
		"expired": {DNSNames: []string{"a.example.com"}, NotAfter: time.Now()},
		"banned":  {Subject: pkix.Name{CommonName: "banned"}, NotAfter: time.Now().Add(time.Hour)},
		"nobody":  {NotAfter: time.Now().Add(time.Hour)},
	} {
		if p, err := verify(c, true); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for want, c := range map[string]*x509.Certificate{
		"mtls#a.example.com": {DNSNames: []string{"a.example.com"}, EmailAddresses: []string{"x@y"}},
		"mtls#x@y":           {EmailAddresses: []string{"x@y"}},
		"mtls#CN=c,O=o":      {Subject: pkix.Name{CommonName: "c", Organization: []string{"o"}}},
	} {
		c.NotAfter = time.Now().Add(time.Hour)
		if p, err := verify(c, true); err != nil || p.ID != want {
			t.Errorf("%+v, %v, want %s", p, err, want)
		}
	}
}

// Refusals are logged without the credential, each reason at most once a second.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		f := newIssuer(t)
		g := &auth.Guard{
			Verifiers: []auth.Verifier{&auth.JWT{Issuer: issuerURL, Base: f}}, Resource: &auth.ResourceMetadata{Resource: resourceURL},
			Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		}
		expired := f.token(t, "ec", claimsMap{"exp": time.Now().Add(-time.Hour).Unix()})
		for range 100 {
			request(t, g, "POST", "/mcp", "Authorization", "Bearer "+expired)
			request(t, g, "POST", "/mcp") // without a credential, the caller learns only where to get one
		}
		time.Sleep(time.Second)
		request(t, g, "POST", "/mcp", "Authorization", "Bearer "+f.token(t, "ec", claimsMap{"aud": "https://other.example.com"}))
		text := logged.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "expired at") || !strings.Contains(text, "more=99") || !strings.Contains(text, "https://other.example.com") {
			t.Errorf("the log is\n%s", text)
		}
		if strings.Contains(text, expired) || strings.Contains(text, strings.Split(expired, ".")[2]) {
			t.Errorf("the log has the token:\n%s", text)
		}
	})
}

// The refusals of one caller do not hide those of another, and many reasons do not fill the log. Refused
// gets each of them.
func TestReasonsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		codes := map[string]int{}
		_, entry := auth.NewAPIKey("alice")
		g := &auth.Guard{
			Verifiers: []auth.Verifier{&auth.APIKeys{Keys: []auth.APIKey{entry}}}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			Refused: func(_ *http.Request, code string, err error) {
				if codes[code]++; err == nil {
					t.Errorf("%s without an error", code)
				}
			},
		}
		bad := func(id string) { request(t, g, "POST", "/mcp", "Authorization", "Bearer pb_"+id+"_secret") }
		for range 5 {
			bad("carl")
		}
		bad("dora")
		if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "carl") || !strings.Contains(text, "dora") || !strings.Contains(text, "more=4") {
			t.Errorf("the log is\n%s", text)
		}
		for i := range 1000 {
			bad(fmt.Sprint("key", i))
		}
		if n := strings.Count(logged.String(), "\n"); n != 8 {
			t.Errorf("the log has %d lines in a second:\n%s", n, logged.String())
		}
		request(t, g, "POST", "/mcp")
		request(t, g, "POST", "/mcp?access_token=x")
		if want := map[string]int{"invalid_token": 1006, "unauthorized": 1, "invalid_request": 1}; !maps.Equal(codes, want) {
			t.Errorf("Refused got %v, want %v", codes, want)
		}
	})
}

// A stream ends with the credential of the request that opened it.
func TestStreamsEndWithTheCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(time.Minute)
		g := &auth.Guard{Verifiers: []auth.Verifier{known(map[string]*auth.Principal{"x": {ID: "x", Expires: end}})}}
		var deadline time.Time
		h := g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { deadline, _ = r.Context().Deadline() }))
		for _, tt := range []struct {
			method, mcp string
			ends        bool
		}{{"GET", "", true}, {"POST", "tools/call", false}, {"POST", "subscriptions/listen", true}, {"POST", "", false}} {
			r := httptest.NewRequest(tt.method, "/mcp", nil)
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Mcp-Method", tt.mcp)
			deadline = time.Time{}
			h.ServeHTTP(httptest.NewRecorder(), r)
			if deadline.Equal(end) != tt.ends {
				t.Errorf("%s %s ends at %v, want %v", tt.method, tt.mcp, deadline, tt.ends)
			}
		}
	})
}
