package main

import (
	"bufio"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
)

// fortress is a process of "serve everything" with --auth, and its output.
type fortress struct {
	addr   string
	stderr *transcript
}

func startFortress(t *testing.T, specs ...string) fortress {
	t.Helper()
	args := []string{"serve", "everything", "--http", "127.0.0.1:0"}
	for _, s := range specs {
		args = append(args, "--auth", s)
	}
	cmd, stderr := program(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	stderr.await(t, `listening on http://\S+/mcp`)
	return fortress{addressIn(t, stderr.String()), stderr}
}

// with returns a valid request with more headers.
func (g fortress) with(header string) string {
	return sized(strings.Replace(goodHeader, "\r\n\r\n", "\r\n"+header+"\r\n\r\n", 1), goodBody)
}

// Credentials that are invalid, too many, too long or in the wrong place admit nobody, and appear
// in no response and no log line.
func TestHostileCredentials(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "keys.jsonl"), filepath.Join(dir, "secret")
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, append(line, '\n'))
	write(secret, []byte("0123456789abcdef0123456789abcdef"))
	g := startFortress(t, "apikeys:"+file, "hmac:"+secret+",audience=x")
	const mark = "MARKED0SECRET" // in each invalid credential
	good := "Authorization: Bearer " + key
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	unsigned := b64(`{"alg":"none"}`) + "." + b64(`{"sub":"`+mark+`","aud":"x","exp":99999999999}`) + "."
	tests := []struct {
		name, header string
		status       int
	}{
		{"good", good, 200},
		{"good, in its own header", "X-API-Key: " + key, 200},
		{"none", "X-A: b", 401},
		{"another key", "Authorization: Bearer pb_x_" + mark, 401},
		{"the good one, changed", good + "x", 401},
		{"the good one, in capitals", "Authorization: Bearer " + strings.ToUpper(key), 401},
		{"another scheme", "Authorization: Digest " + mark, 401},
		{"as a password", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("alice:"+mark)), 401},
		{"not signed", "Authorization: Bearer " + unsigned, 401},
		{"deep header of a token", "Authorization: Bearer " + b64(strings.Repeat("[", 5000)) + "." + b64(mark) + ".x", 401},
		{"many dots", "Authorization: Bearer " + mark + strings.Repeat(".", 10_000), 401},
		{"for a proxy", "Proxy-Authorization: Bearer " + key, 401},
		{"in a cookie", "Cookie: access_token=" + key, 401},
		{"what proxies say", "X-Forwarded-User: alice\r\nX-Remote-User: alice\r\nX-Forwarded-Email: alice", 401},
		{"line of another", "Authorization : Bearer " + mark, 400},
		{"empty", "Authorization:", 400},
		{"scheme alone", "Authorization: Bearer", 400},
		{"value alone", "Authorization: " + mark, 400},
		{"two good ones", good + "\r\n" + good, 400},
		{"a good and a bad one", good + "\r\nAuthorization: Bearer " + mark, 400},
		{"a bad and a good one", "Authorization: Bearer " + mark + "\r\n" + good, 400},
		{"in two spellings", good + "\r\nauthorization: Bearer " + mark, 400},
		{"two in one line", good + ", Bearer " + mark, 400},
		{"two keys", "X-API-Key: " + key + "\r\nX-API-Key: pb_x_" + mark, 400},
		{"a tab in it", "Authorization: Bearer\t" + mark, 400},
		{"characters of no token", "Authorization: Bearer a\x80" + mark, 400},
		{"a NUL", "Authorization: Bearer a\x00" + mark, 400},
		{"20 KB", "Authorization: Bearer " + mark + strings.Repeat("a", 20<<10), 400},
		{"20 KB, of a key", "X-API-Key: " + mark + strings.Repeat("a", 20<<10), 400},
		{"a thousand", strings.TrimSuffix(strings.Repeat("Authorization: Bearer "+mark+"\r\n", 1000), "\r\n"), 400},
		{"ten thousand", strings.TrimSuffix(strings.Repeat("Authorization: Bearer "+mark+"\r\n", 10_000), "\r\n"), 431},
		{"1 MB", "Authorization: Bearer " + mark + strings.Repeat("a", 1<<20), 431},
	}
	check := func(name string, a outcome, status int) {
		t.Helper()
		if a.status != status {
			t.Errorf("%s = %d %.300s, want %d", name, a.status, a.body, status)
		}
		said := fmt.Sprint(a.header) + a.body
		for _, secret := range []string{mark, key, "0123456789abcdef"} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: the answer holds %q: %.500s", name, secret, said)
			}
		}
		if status == 401 && a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: nobody is told how to log in", name)
		}
	}
	for _, tt := range tests {
		check(tt.name, attack(t, g.addr, g.with(tt.header)), tt.status)
	}
	for name, target := range map[string]string{"token in the query": "/mcp?access_token=" + key, "and other things": "/mcp?a=b&access_token=" + mark} {
		for _, header := range []string{"X-A: b", good} {
			a := attack(t, g.addr, strings.Replace(g.with(header), "POST /mcp", "POST "+target, 1))
			check(name, a, 400)
		}
	}
	form := "access_token=" + key
	header := strings.Replace(goodHeader, "application/json\r\n", "application/x-www-form-urlencoded\r\n", 1)
	check("token in a form", attack(t, g.addr, sized(header, form)), 401)
	check("good again", attack(t, g.addr, g.with(good)), 200)
	for _, secret := range []string{mark, strings.TrimPrefix(key, "pb_"), "0123456789abcdef"} {
		if strings.Contains(g.stderr.String(), secret) {
			t.Errorf("the log holds %q: %.2000s", secret, g.stderr)
		}
	}
}

// issuer is an authorization server with a signing key.
type issuer struct {
	*httptest.Server
	signer jose.Signer
	looks  atomic.Int64 // requests for the keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := new(issuer)
	if i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: "good"}}, nil); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	mux := http.NewServeMux()
	i.Server = httptest.NewUnstartedServer(mux)
	i.Start()
	t.Cleanup(i.Close)
	t.Cleanup(func() { close(gone) })
	// Each path is an issuer of its own, with its metadata and keys.
	kinds := map[string]http.HandlerFunc{
		"good": func(w http.ResponseWriter, r *http.Request) {
			i.looks.Add(1)
			json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &private.PublicKey, KeyID: "good", Algorithm: "ES256", Use: "sig"}}})
		},
		"hangs": func(w http.ResponseWriter, r *http.Request) { // it does not even notice the end of the request
			w.(http.Flusher).Flush()
			<-gone
		},
		"gigabyte": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"keys":[`)
			piece := strings.Repeat(`{"kty":"EC"},`, 5000)
			for range (1 << 30) / len(piece) {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		},
		"bomb": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zeros := make([]byte, 1<<20)
			for range 1 << 10 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		},
		"broken": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	}
	for kind, serve := range kinds {
		at := i.URL + "/" + kind
		mux.HandleFunc("/.well-known/oauth-authorization-server/"+kind, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"introspection_endpoint":%q}`, at, at+"/keys", at+"/introspect")
		})
		mux.HandleFunc("/"+kind+"/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			serve(w, r)
		})
	}
	return i
}

// token returns a token of an issuer for the audience x; kid is the key id it claims.
func (i *issuer) token(t *testing.T, kind, kid string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": i.URL + "/" + kind, "sub": "ada", "aud": "x", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := i.signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	if kid != "good" {
		_, rest, _ := strings.Cut(token, ".")
		token = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"`+kid+`"}`)) + "." + rest
	}
	return token
}

// Issuers that hang, break, redirect or send without end affect only their own tokens: a request is
// answered in time, with 503.
func TestHostileIssuers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, kind := range []string{"hangs", "gigabyte", "bomb", "elsewhere", "broken"} {
		for _, how := range []string{"jwt", "introspect"} {
			t.Run(how+"/"+kind, func(t *testing.T) {
				t.Parallel()
				g := startFortress(t, how+":"+i.URL+"/"+kind+",audience=x", "jwt:"+i.URL+"/good,audience=x")
				var asking sync.WaitGroup
				for n := range 40 { // more than are checked at once
					token := i.token(t, kind, fmt.Sprint("kid-", n))
					asking.Go(func() {
						a := attack(t, g.addr, g.with("Authorization: Bearer "+token))
						if a.status != 503 || a.header.Get("Retry-After") == "" {
							t.Errorf("%d %.300s, want 503\n%s", a.status, a.body, g.stderr)
						}
					})
				}
				if how == "jwt" { // JWTs name their issuer
					if a := attack(t, g.addr, g.with("Authorization: Bearer "+i.token(t, "good", "good"))); a.status != 200 {
						t.Errorf("a token of another issuer = %d %.300s\n%s", a.status, a.body, g.stderr)
					}
				}
				asking.Wait()
			})
		}
	}
}

// Tokens that name ten thousand unknown keys do not cause as many requests for keys, and do not
// fill the log.
func TestUnknownKeys(t *testing.T) {
	i := newIssuer(t)
	g := startFortress(t, "jwt:"+i.URL+"/good,audience=x")
	good := g.with("Authorization: Bearer " + i.token(t, "good", "good"))
	if a := attack(t, g.addr, good); a.status != 200 {
		t.Fatalf("a good token = %d %s\n%s", a.status, a.body, g.stderr)
	}
	const many = 10_000
	_, rest, _ := strings.Cut(i.token(t, "good", "good"), ".")
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(2 * time.Minute))
			r := bufio.NewReader(conn)
			for n := worker; n < many; n += 4 {
				head := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":"key-%d"}`, n))
				io.WriteString(conn, strings.ReplaceAll(g.with("Authorization: Bearer "+head+"."+rest), "ADDR", g.addr))
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				if res.StatusCode != 401 {
					t.Errorf("key %d = %d, want 401", n, res.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	if n := i.looks.Load(); n > 14 { // at once, and after 2, 6, 14, 30 and 60 seconds; twice that after a minute
		t.Errorf("the keys were looked at %d times", n)
	}
	if lines := strings.Count(g.stderr.String(), "\n"); lines > 1000 { // 8 per second
		t.Errorf("the log has %d lines", lines)
	}
	if a := attack(t, g.addr, good); a.status != 200 {
		t.Errorf("a good token = %d %s", a.status, a.body)
	}
}

// Trap 4: when a key is removed from its file, its streams end, in both eras.
func TestStreamsOfARevokedKeyEnd(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(file, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startFortress(t, "apikeys:"+file)
	open := func(method, body string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.addr+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		header = append(header, "Accept", "application/json, text/event-stream", "Authorization", "Bearer "+key)
		if body != "" {
			header = append(header, "Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if res.StatusCode != 200 {
			t.Fatalf("%s: %s", method, res.Status)
		}
		return res
	}
	id := open("POST", goodBody).Header.Get("Mcp-Session-Id")
	listen := strings.Replace(modernBody, `"name":"echo","arguments":{"message":"hi"}`, `"notifications":{"toolsListChanged":true}`, 1)
	listen = strings.Replace(listen, "tools/call", "subscriptions/listen", 1)
	streams := []*http.Response{
		open("GET", "", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"),
		open("POST", listen, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var late atomic.Bool
	limit := time.AfterFunc(time.Minute, func() {
		late.Store(true)
		for _, res := range streams {
			res.Body.Close()
		}
	})
	defer limit.Stop()
	for _, res := range streams {
		io.Copy(io.Discard, res.Body)
	}
	if late.Load() {
		t.Error("streams go on a minute after their key was taken back")
	}
}
