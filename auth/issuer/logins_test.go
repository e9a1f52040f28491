package issuer_test

import (
	"errors"
	"fmt"
	"io"
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

	"github.com/patchbay-dev/patchbay/auth/issuer"
)

// One Server uses a folder at a time. The fault of another one names the folder and the process.
func TestFolderInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "login")
	other := func() *issuer.Server {
		return &issuer.Server{URL: siteURL, Resource: resourceURL, Dir: dir, Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway"}}
	}
	w := newWorld(t, func(s *issuer.Server) { s.Dir = dir })
	want := fmt.Sprintf("issuer: the folder %s is in use by the process %d", dir, os.Getpid())
	if err := other().Check(); !errors.Is(err, issuer.ErrInUse) || err.Error() != want {
		t.Errorf("another Server: %v, want %s", err, want)
	}
	w.server.Close()
	next := other()
	if err := next.Check(); err != nil {
		t.Errorf("after Close: %v", err)
	}
	next.Close()
	if err := next.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a Server with a fault does not keep the folder
		if err := other().Check(); err == nil || errors.Is(err, issuer.ErrInUse) {
			t.Errorf("with a broken file: %v", err)
		}
	}
	closed := other()
	closed.Close()
	if err := closed.Check(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed Server: %v", err)
	}
}

// A host gets a token for one of Resources if it names it; that token and those of the MCP server are
// refused at each other's.
func TestFurtherResource(t *testing.T) {
	const admin = "https://mcp.example.com:9443/admin/v1"
	w := newWorld(t, func(s *issuer.Server) { s.Resources = []string{admin} })
	h, b := w.register(nil), w.browser()
	status, got := h.exchange(h.code(b, "resource", admin), "resource", admin)
	forAdmin, _ := got["access_token"].(string)
	if status != http.StatusOK || forAdmin == "" {
		t.Fatalf("exchange: HTTP %d, %v", status, got)
	}
	usual, _ := h.tokens(b)
	for _, tt := range []struct {
		token, resource string
		want            int
	}{{forAdmin, admin, 200}, {forAdmin, resourceURL, 401}, {usual, admin, 401}, {usual, resourceURL, 200}} {
		if _, status := w.knock(tt.token, tt.resource); status != tt.want {
			t.Errorf("at %s: HTTP %d, want %d", tt.resource, status, tt.want)
		}
	}
	for _, resource := range []string{admin + "/servers", siteURL + "/admin/v1", "https://mcp.example.com:9443"} {
		w.refused(resource, b.get(h.asks("resource", resource)), "resource")
	}
	status, got = h.exchange(h.code(b), "resource", admin)
	w.denied("another resource at the token endpoint", status, got, 400, "invalid_target")
	bad := &issuer.Server{URL: siteURL, Resource: resourceURL, Resources: []string{"admin"}, Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway"}}
	if err := bad.Check(); err == nil || !strings.Contains(err.Error(), "one of the Resources") {
		t.Errorf("a wrong one: %v", err)
	}
}

// The logins of a person end at once: access tokens, refresh tokens, codes, also of hosts that do not
// refresh, and over a restart. Others stay.
func TestEndLogins(t *testing.T) {
	dir := t.TempDir()
	folder := func(s *issuer.Server) { s.Dir = dir }
	w := newWorld(t, folder)
	h, plain := w.register(nil), w.register(members{"client_name": "Plain", "grant_types": []string{"authorization_code"}})
	access, refresh := h.tokens(w.browser())
	_, got := plain.exchange(plain.code(w.browser()))
	short, _ := got["access_token"].(string)
	code := h.code(w.browser())
	w.change = members{"sub": "bob", "preferred_username": "Bob@Example.com", "email": "b@example.com"}
	bobs, bobsRefresh := h.tokens(w.browser())

	list, err := w.server.Logins()
	if err != nil || len(list) != 4 || list[0].Subject != "alice" || list[0].Name != "alice@example.com" {
		t.Fatalf("logins %+v, error %v; want three of alice and one of bob", list, err)
	}
	hosts := map[string]int{}
	for _, l := range list {
		hosts[l.Subject+" "+l.Name+" "+l.Host]++
		if until := time.Until(l.Ends); l.Host == "Plain" && until > 10*time.Minute || l.Host == "Desk" && until < 11*time.Hour {
			t.Errorf("%+v ends in %v", l, until)
		}
	}
	if hosts["alice alice@example.com Desk"] != 1 || hosts["alice alice@example.com Plain"] != 1 || hosts["bob Bob@Example.com Desk"] != 1 {
		t.Errorf("logins %v", hosts)
	}
	for person, want := range map[string]int{"carol": 0, "https://evil.example#alice": 0, siteURL + "#alice": 3} {
		if n, err := w.server.EndLogins(person); n != want || err != nil {
			t.Errorf("EndLogins(%q) = %d, %v; want %d", person, n, err, want)
		}
	}
	check := func(when string) {
		t.Helper()
		for name, token := range map[string]string{"access token": access, "access token without refresh": short} {
			if _, status := h.knock(token, resourceURL); status != 401 {
				t.Errorf("%s: %s: HTTP %d, want 401", when, name, status)
			}
		}
		status, got := h.refresh(refresh)
		h.denied(when+": refresh token", status, got, 400, "invalid_grant")
		if _, status := h.knock(bobs, resourceURL); status != 200 {
			t.Errorf("%s: the token of another person: HTTP %d", when, status)
		}
	}
	check("at once")
	status, got := h.exchange(code)
	w.denied("a code from before", status, got, 400, "invalid_grant")
	if _, err := w.server.EndLogins(""); err == nil {
		t.Error("nobody is named, and there is no error")
	}
	w.server.Close()
	after := newWorld(t, folder)
	h.world, plain.world = after, after
	check("after a restart")
	if list, err := after.server.Logins(); err != nil || len(list) != 1 || list[0].Name != "Bob@Example.com" || list[0].Host != "Desk" || list[0].Since.IsZero() {
		t.Errorf("logins after a restart %+v, error %v", list, err)
	}
	if status, got := h.refresh(bobsRefresh); status != 200 {
		t.Errorf("the refresh token of another person: HTTP %d, %v", status, got)
	}
	h.tokens(after.browser()) // alice may log in again
	if n, err := after.server.EndLogins("bob@example.com"); n != 1 || err != nil {
		t.Errorf("by name: %d, %v", n, err)
	}
}

// With another Require, the logins from before end: at the next request, and at the next refresh.
func TestRequireChanges(t *testing.T) {
	dir := t.TempDir()
	start := func(require map[string][]string) *world {
		return newWorld(t, func(s *issuer.Server) { s.Dir, s.Require = dir, require })
	}
	w := start(nil)
	h := w.register(nil)
	access, refresh := h.tokens(w.browser())
	w.server.Close()

	same := start(map[string][]string{})
	same.server.Close()
	stricter := start(map[string][]string{"roles": {"admin"}})
	h.world = stricter
	if _, status := h.knock(access, resourceURL); status != 401 {
		t.Errorf("the access token from before: HTTP %d, want 401", status)
	}
	status, got := h.refresh(refresh)
	h.denied("the refresh token from before", status, got, 400, "invalid_grant")
	if list, err := stricter.server.Logins(); err != nil || len(list) != 0 {
		t.Errorf("logins %v, error %v", list, err)
	}
	stricter.server.Close()

	again := start(nil) // the first rules
	h.world = again
	if status, got := h.refresh(refresh); status != 200 {
		t.Errorf("with the rules of the login: HTTP %d, %v", status, got)
	}
}

// Claims that people see as text have no characters that hide or forge what stands around them.
func TestUnseenCharacters(t *testing.T) {
	for name, change := range map[string]members{
		"a line in the email":    {"email": "alice@example.com\nadmin"},
		"an escape in the name":  {"name": "Alice\x1b[2J"},
		"a bell in the username": {"preferred_username": "alice\x07"},
		"a separator":            {"name": "Alice\u2028admin"},
		"a direction":            {"name": "Alice\u202enimda"},
		"C1":                     {"name": "Alice\u009b"},
	} {
		w := newWorld(t)
		w.change = change
		back := w.register(nil).answer(w.browser())
		if back.Get("code") != "" || back.Get("error") != "access_denied" || !strings.Contains(back.Get("error_description"), "control characters") {
			t.Errorf("%s: the host gets %v", name, back)
		}
	}
	w := newWorld(t)
	w.change = members{"name": "Zoë 👩‍💻 نور", "email": "zoë@example.com"}
	w.register(nil).code(w.browser())
	w.change = members{"sub": strings.Repeat("s", 256)}
	if back := w.register(nil).answer(w.browser()); back.Get("code") != "" {
		t.Error("a subject of 256 bytes is taken")
	}
}

// An email counts if the provider says that it is verified, or says nothing.
func TestEmailVerified(t *testing.T) {
	for name, tt := range map[string]struct {
		verified any
		want     bool
	}{
		"true": {true, true}, "text true": {"true", true}, "false": {false, false}, "text false": {"false", false}, "0": {0, false}, "1": {1, false},
		"text 1": {"1", false}, "yes": {"yes", false}, "True": {"True", false}, "a list": {[]bool{true}, false}, "empty": {"", false},
	} {
		w := newWorld(t)
		w.change = members{"email_verified": tt.verified}
		h := w.register(nil)
		access, _ := h.tokens(w.browser())
		who, _ := w.knock(access, resourceURL)
		if who == nil || (who.Claims["email"] != nil) != tt.want {
			t.Errorf("%s: the token is that of %+v, want an email: %v", name, who, tt.want)
		}
	}
}

// A provider that signs with a new key logs people in at once, also just after a login.
func TestProviderChangesItsKey(t *testing.T) {
	w, next := newWorld(t), newWorld(t)
	h := w.register(nil)
	h.tokens(w.browser())
	w.mu.Lock()
	w.key, w.kid = next.key, "k2"
	w.mu.Unlock()
	h.tokens(w.browser())
	w.mu.Lock()
	w.kid = "k3" // a key that the provider does not publish
	w.answer = func(r *http.Request) (int, any) {
		if r.URL.Path == "/tenant/keys" {
			return 200, members{"keys": []any{}}
		}
		return 0, nil
	}
	w.mu.Unlock()
	if back := h.answer(w.browser()); back.Get("error") != "server_error" {
		t.Errorf("the host gets %v", back)
	}
}

// Documents that do not arrive hold two places for each host, for at most 5 seconds, and leave places
// to other hosts.
func TestSlowDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		reading, most := map[string]int{}, map[string]int{}
		const good = "https://good.example/meta.json"
		w.pages[good] = func(rw http.ResponseWriter, _ *url.URL) {
			writeJSON(rw, 200, members{"client_id": good, "client_name": "Good", "redirect_uris": []string{hostURL}})
		}
		w.base = func(r *http.Request) (*http.Response, error) {
			if !strings.HasPrefix(r.URL.Host, "slow") {
				return nil, nil
			}
			mu.Lock()
			reading[r.URL.Host]++
			most[r.URL.Host] = max(most[r.URL.Host], reading[r.URL.Host])
			mu.Unlock()
			// The headers come at once; the body trickles until the reader gives up.
			body, trickle := io.Pipe()
			go func() {
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					reading[r.URL.Host]--
				}()
				for r.Context().Err() == nil {
					if _, err := trickle.Write([]byte(" ")); err != nil {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
				trickle.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: r}, nil
		}
		start := time.Now()
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				h := &host{w, fmt.Sprintf("https://slow%d.example/%d.json", i%2, i), "", hostURL, strings.Repeat("v", 43)}
				rec := httptest.NewRecorder()
				w.server.ServeHTTP(rec, httptest.NewRequest("GET", h.asks(), nil))
				if after := time.Since(start); after > 11*time.Second || rec.Code/100 == 2 {
					t.Errorf("a slow document: HTTP %d after %v", rec.Code, after)
				}
			})
		}
		synctest.Wait()
		h := &host{w, good, "", hostURL, strings.Repeat("v", 43)}
		if p := w.browser().get(h.asks()); p.status != 200 || time.Since(start) > time.Second {
			t.Errorf("another host: HTTP %d after %v: %s", p.status, time.Since(start), p.text())
		}
		all.Wait()
		if most["slow0.example"] != 2 || most["slow1.example"] != 2 {
			t.Errorf("at once %v, want 2 of each host", most)
		}
	})
}
