package vault_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
)

// child names what the test binary is to do, when a test starts it again.
const child = "VAULT_TEST_CHILD"

var recommended int // iterations of the key of a passphrase, of which tests use fewer

func TestMain(m *testing.M) {
	os.Setenv("PATCHBAY_KEYRING", "off") // tests leave the user's own alone
	os.Unsetenv("PATCHBAY_PASSPHRASE")
	recommended = vault.Iterations(1000)
	switch os.Getenv(child) {
	case "":
		os.Exit(m.Run())
	case "request": // waits for a line, sends one request, and prints its result
		v, err := vault.Open(os.Args[1], nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		tr := &login.Transport{Server: os.Args[2], Store: v}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println(request(context.Background(), tr))
	case "hold": // takes a lock and keeps it
		v, err := vault.Open(os.Args[1], nil)
		if err == nil {
			_, err = v.Lock(context.Background(), os.Args[2])
		}
		fmt.Println("ready", err)
		io.Copy(io.Discard, os.Stdin)
	}
}

func request(ctx context.Context, tr *login.Transport) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, tr.Server, strings.NewReader("x"))
	if err != nil {
		return err.Error()
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	return res.Status
}

// party is an MCP server and an authorization server that rotates refresh tokens, and ends
// the login when one is used twice.
type party struct {
	*httptest.Server
	mu        sync.Mutex
	n         int // of the tokens that are good
	refreshes int
	reused    int
	revoked   []string
	over      bool // nobody is logged in any more
	grace     bool // the token before is good once more
	expires   int  // seconds
	// refuse comes before a refresh, lose after it: the answer is not sent.
	refuse func() int
	lose   bool
}

func newParty(t *testing.T) *party {
	p := &party{expires: 3600}
	p.Server = httptest.NewUnstartedServer(p)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *party) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/mcp":
		if p.over || r.Header.Get("Authorization") != fmt.Sprint("Bearer planted-access-", p.n) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	case "/revoke":
		p.revoked = append(p.revoked, r.PostFormValue("token"))
		p.over = true
	case "/token":
		if p.refuse != nil {
			if status := p.refuse(); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		used := r.PostFormValue("refresh_token")
		again := p.grace && used == fmt.Sprint("planted-refresh-", p.n-1)
		if p.over || used != fmt.Sprint("planted-refresh-", p.n) && !again {
			p.over = true
			p.reused++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		p.refreshes++
		p.grace = false
		p.n++
		if p.lose {
			p.lose, p.grace = false, true
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"planted-access-%d","token_type":"Bearer","refresh_token":"planted-refresh-%d","expires_in":%d}`, p.n, p.n, p.expires)
	}
}

// loggedIn puts a login into a vault.
func (p *party) loggedIn(t *testing.T, dir string, expires time.Time) *vault.Vault {
	t.Helper()
	v := open(t, dir, nil)
	l := sample("client")
	l.Server, l.Resource, l.Issuer, l.TokenURL, l.RevokeURL = p.URL+"/mcp", p.URL+"/mcp", p.URL, p.URL+"/token", p.URL+"/revoke"
	l.Access, l.Refresh, l.ClientSecret = "planted-access-0", "planted-refresh-0", ""
	l.Got, l.Expires, l.Refreshing = time.Now().Add(-time.Hour), expires, time.Time{}
	if err := v.Save(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return v
}

func start(t *testing.T, what string, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), child+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); !strings.HasPrefix(line, "ready") || err != nil {
		t.Fatalf("the process says %q, %v", line, err)
	}
	return cmd, in, out
}

// 50 processes that need a new token at once, as theirs has expired or was refused, refresh once,
// and all go on with the new one: no refresh token is used twice, which would end the login.
func TestFiftyProcesses(t *testing.T) {
	const processes = 50
	for name, expires := range map[string]time.Time{"expired": time.Now().Add(-time.Minute), "refused": time.Now().Add(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			p, dir := newParty(t), t.TempDir()
			p.n = 1 // the access token that is stored is good no more...
			p.loggedIn(t, dir, expires)
			p.n, p.over = 0, false
			inner := p.Config.Handler
			p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer planted-access-0" { // ...while its refresh token is
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				inner.ServeHTTP(w, r)
			})
			type proc struct {
				cmd *exec.Cmd
				in  io.WriteCloser
				out *bufio.Reader
			}
			var all []proc
			for range processes {
				cmd, in, out := start(t, "request", dir, p.URL+"/mcp")
				all = append(all, proc{cmd, in, out})
			}
			for _, c := range all {
				io.WriteString(c.in, "go\n")
			}
			for i, c := range all {
				got, _ := io.ReadAll(c.out)
				if err := c.cmd.Wait(); strings.TrimSpace(string(got)) != "200 OK" || err != nil {
					t.Errorf("process %d: %q, %v", i, got, err)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.refreshes != 1 || p.reused != 0 || p.over {
				t.Errorf("%d refreshes, %d reuses, logged out: %v; want 1, 0, false", p.refreshes, p.reused, p.over)
			}
		})
	}
}

// A process that is killed lets go of its lock.
func TestKilledHolder(t *testing.T) {
	dir := t.TempDir()
	cmd, _, _ := start(t, "hold", dir, "x")
	v := open(t, dir, nil)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := v.Lock(short, "x"); err == nil {
		t.Fatal("the lock of another process was taken")
	}
	cmd.Process.Kill()
	cmd.Wait()
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	unlock, err := v.Lock(long, "x")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Trouble at the authorization server, and an answer that is lost, delete nothing: the refresh
// token is used again. Only invalid_grant ends the login, for all processes.
func TestTroubleDeletesNothing(t *testing.T) {
	p, dir := newParty(t), t.TempDir()
	v := p.loggedIn(t, dir, time.Now().Add(-time.Minute))
	fresh := func() *login.Transport { return &login.Transport{Server: p.URL + "/mcp", Store: open(t, dir, nil)} }
	has := func(when string) login.Record {
		t.Helper()
		list, err := v.Load(t.Context(), p.URL+"/mcp")
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d logins, %v; want 1", when, len(list), err)
		}
		return list[0]
	}
	for _, status := range []int{500, 503, 429, 408, 404} {
		p.refuse = func() int { return status }
		got := request(t.Context(), fresh())
		if l := has(got); l.Refresh != "planted-refresh-0" || l.Access != "planted-access-0" || l.Refreshing.IsZero() {
			t.Errorf("HTTP %d: stored %d, %d bytes, refreshing since %v", status, len(l.Refresh), len(l.Access), l.Refreshing)
		}
		if strings.Contains(got, "planted") {
			t.Errorf("HTTP %d: the error shows a token: %s", status, got)
		}
	}
	p.refuse = nil
	p.lose = true
	if got := request(t.Context(), fresh()); strings.HasPrefix(got, "200") {
		t.Errorf("with a lost answer: %s", got)
	}
	has("after a lost answer")
	if got := request(t.Context(), fresh()); got != "200 OK" || p.refreshes != 2 {
		t.Errorf("after a lost answer: %s, %d refreshes; want 200 and 2: the same refresh token again", got, p.refreshes)
	}
	if l := has("after the refresh"); l.Refresh != "planted-refresh-2" || !l.Refreshing.IsZero() {
		t.Error("the new refresh token is not stored")
	}
	p.over = true
	for range 2 {
		if got := request(t.Context(), fresh()); got != "401 Unauthorized" {
			t.Errorf("after the end of the login: %s, want the server's 401", got)
		}
	}
	if l := has("after invalid_grant"); l.Refresh != "" || p.reused != 1 {
		t.Errorf("a refused refresh token is kept, or was tried %d times", p.reused)
	}
}

// A logout revokes and forgets; processes that still have a token in memory do not bring the
// login back.
func TestLogout(t *testing.T) {
	p, dir := newParty(t), t.TempDir()
	v := p.loggedIn(t, dir, time.Now().Add(time.Hour))
	other := &login.Transport{Server: p.URL + "/mcp", Store: open(t, dir, nil)}
	if got := request(t.Context(), other); got != "200 OK" {
		t.Fatal(got)
	}
	tr := &login.Transport{Server: p.URL + "/mcp", Store: v}
	if l, err := tr.Token(t.Context()); err != nil || l.Access != "planted-access-0" {
		t.Errorf("Token: %v", err)
	}
	was, err := tr.Logout(t.Context())
	if err != nil || len(was) != 1 || len(p.revoked) != 2 || p.revoked[0] != "planted-refresh-0" {
		t.Errorf("%d logins ended, %d tokens revoked, %v", len(was), len(p.revoked), err)
	}
	if got := request(t.Context(), other); got != "401 Unauthorized" || p.refreshes != 0 {
		t.Errorf("the other: %s, %d refreshes", got, p.refreshes)
	}
	if list, err := v.Load(t.Context(), p.URL+"/mcp"); len(list) != 0 || err != nil {
		t.Errorf("%d logins are left, %v", len(list), err)
	}
	if _, err := tr.Token(t.Context()); err != login.ErrNeeded {
		t.Errorf("Token after logout: %v", err)
	}
}
