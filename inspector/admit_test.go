package inspector

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
)

// newPage returns a page over a server that says whom it sees.
func newPage() *Page {
	return &Page{
		URL: here + "/", Title: "mcp.json", Report: func() *health.Report { return new(health.Report) },
		Local: &auth.Principal{ID: "local#ada", Scheme: "local", Name: "ada"},
		Server: func(name string) *mcp.Server {
			if name != "who" {
				return nil
			}
			srv := &mcp.Server{Name: "who", Version: "1"}
			mcp.AddTool(srv, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) { return auth.From(ctx).ID, nil })
			return srv
		},
	}
}

// codeOf returns the code of a new link.
func codeOf(p *Page) string {
	_, code, _ := strings.Cut(p.Link(nil), "#in=")
	return code
}

// in returns a request that gives a code, or a credential, to the page.
func in(body any) *http.Request {
	raw, _ := json.Marshal(body)
	return asked(http.MethodPost, "/ui/in", string(raw))
}

// Each attack is refused, and the request without the attack is answered. A refusal sets no cookie.
func TestAttacks(t *testing.T) {
	p := newPage()
	cookie := cookieFor(t, p)
	elsewhere := cookieFor(t, newPage()) // of another process at the same port
	state := func(change func(r *http.Request)) func() *http.Request {
		return func() *http.Request {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(cookie)
			change(r)
			return r
		}
	}
	call := func(change func(r *http.Request)) func() *http.Request {
		return func() *http.Request {
			r := asked(http.MethodPost, "/ui/mcp/who", `{}`)
			r.AddCookie(cookie)
			change(r)
			return r
		}
	}
	document := func(change func(r *http.Request)) func() *http.Request {
		return func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, here+"/", nil)
			r.Header.Set("Sec-Fetch-Site", "none")
			change(r)
			return r
		}
	}
	header := func(name, value string) func(r *http.Request) {
		return func(r *http.Request) {
			if value == "" {
				r.Header.Del(name)
			} else {
				r.Header.Set(name, value)
			}
		}
	}
	host := func(name string) func(r *http.Request) { return func(r *http.Request) { r.Host = name } }
	nothing := func(*http.Request) {}
	used := codeOf(p)
	if w := answerOf(p, in(entry{Code: used})); w.Code != http.StatusOK {
		t.Fatalf("a link does not let in: HTTP %d %s", w.Code, w.Body)
	}
	for _, tt := range []struct {
		name   string
		with   func() *http.Request
		status int
		says   string
	}{
		{"not an attack", state(nothing), 200, "mcp.json"},
		{"rebinding: another host", state(host("evil.example:7420")), 403, "this page is at " + here},
		{"rebinding: a host of loopback with a dot", state(host("127.0.0.1.:7420")), 403, ""},
		{"another name of this machine", state(host("localhost:7420")), 403, "this page is at " + here},
		{"the same host without the port", state(host("127.0.0.1")), 403, ""},
		{"another port", state(host("127.0.0.1:7421")), 403, ""},
		{"no host", state(host("")), 403, ""},
		{"rebinding: the document", document(host("evil.example:7420")), 403, ""},
		{"rebinding: a script", func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, here+"/assets/main.js", nil)
			r.Host = "evil.example:7420"
			return r
		}, 403, ""},
		{"a page of another site", state(header("Sec-Fetch-Site", "cross-site")), 403, "other sites"},
		{"a page at another port, which is the same site", state(header("Sec-Fetch-Site", "same-site")), 403, "other sites"},
		{"an address that somebody typed", state(header("Sec-Fetch-Site", "none")), 403, ""},
		{"a browser that does not say where a request comes from", state(header("Sec-Fetch-Site", "")), 403, "Sec-Fetch-Site"},
		{"two origins of a request", state(func(r *http.Request) { r.Header["Sec-Fetch-Site"] = []string{"same-origin", "cross-site"} }), 403, ""},
		{"the origin of a page at another port", call(header("Origin", "http://127.0.0.1:3000")), 403, "origin"},
		{"the origin of a page of another site", call(header("Origin", "https://evil.example")), 403, "origin"},
		{"the origin of a frame in a sandbox", call(header("Origin", "null")), 403, "origin"},
		{"the origin of a file", call(header("Origin", "file://")), 403, "origin"},
		{"an origin that ends with that of the page", call(header("Origin", "http://evil.example#127.0.0.1:7420")), 403, "origin"},
		{"two origins", call(func(r *http.Request) { r.Header["Origin"] = []string{here, here} }), 403, "origin"},
		{"a POST of a form", call(header("Patchbay-Page", "")), 403, "Patchbay-Page"},
		{"a POST with another value of the header", call(header("Patchbay-Page", "0")), 403, "Patchbay-Page"},
		{"the question of a browser before a POST", func() *http.Request {
			r := httptest.NewRequest(http.MethodOptions, here+"/ui/mcp/who", nil)
			r.Header.Set("Origin", "http://127.0.0.1:3000")
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "patchbay-page")
			return r
		}, 403, ""},
		{"no cookie", func() *http.Request { return asked(http.MethodGet, "/ui/state", "") }, 401, "patchbay page"},
		{"no cookie, a call", func() *http.Request { return asked(http.MethodPost, "/ui/mcp/who", "{}") }, 401, "patchbay page"},
		{"no cookie, the events", func() *http.Request { return asked(http.MethodGet, "/ui/events", "") }, 401, "patchbay page"},
		{"no cookie, a path that does not exist", func() *http.Request { return asked(http.MethodGet, "/ui/nothing", "") }, 401, "patchbay page"},
		{"no cookie, an escaped path", func() *http.Request { return asked(http.MethodGet, "/u%69/state", "") }, 401, "patchbay page"},
		{"an invented cookie", func() *http.Request {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: strings.Repeat("A", 32)})
			return r
		}, 401, "patchbay page"},
		{"the cookie of another process", func() *http.Request {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(elsewhere)
			return r
		}, 401, "patchbay page"},
		{"the cookie under the name of another port", func() *http.Request {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(&http.Cookie{Name: "patchbay-7421", Value: cookie.Value})
			return r
		}, 401, "patchbay page"},
		{"a code as the cookie", func() *http.Request {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: codeOf(p)})
			return r
		}, 401, ""},
		{"an invented code", func() *http.Request { return in(entry{Code: strings.Repeat("A", 32)}) }, 401, "does not work"},
		{"the hash of a code", func() *http.Request {
			return in(entry{Code: fmt.Sprintf("%x", sha256.Sum256([]byte(codeOf(p))))})
		}, 401, "does not work"},
		{"an empty code", func() *http.Request { return in(entry{}) }, 401, "patchbay page"},
		{"a used code", func() *http.Request { return in(entry{Code: used}) }, 401, "second time"},
		{"a code that a page of elsewhere sends", func() *http.Request {
			r := in(entry{Code: codeOf(p)})
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			return r
		}, 403, ""},
		{"a code in the address", func() *http.Request { return asked(http.MethodGet, "/ui/in?code="+codeOf(p), "") }, 405, "POST"},
		{"a credential without a guard", func() *http.Request { return in(entry{Key: "x"}) }, 401, "patchbay page"},
		{"a body without an end", func() *http.Request { return asked(http.MethodPost, "/ui/in", `{"code":"`+strings.Repeat("x", 1<<20)) }, 400, ""},
		{"a member in another case", func() *http.Request { return asked(http.MethodPost, "/ui/in", `{"Code":"`+codeOf(p)+`"}`) }, 400, ""},
		{"two members of a name", func() *http.Request { return asked(http.MethodPost, "/ui/in", `{"code":"x","code":"`+codeOf(p)+`"}`) }, 400, ""},
		{"a second value", func() *http.Request { return asked(http.MethodPost, "/ui/in", `{"code":"`+codeOf(p)+`"} {}`) }, 400, ""},
		{"a body with other members", func() *http.Request { return asked(http.MethodPost, "/ui/in", `{"code":"x","role":"admin"}`) }, 400, ""},
		{"a WebSocket", state(func(r *http.Request) {
			r.URL.Path, r.RequestURI = "/ui/mcp/who", "/ui/mcp/who"
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}), 404, ""},
		{"a link on a page of another site", document(func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}), 200, "<!doctype html>"}, // shows the document, which holds nothing
		{"a frame of another site", document(func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}), 403, ""},
		{"a frame of another port", document(func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}), 403, ""},
		{"a document that a script of elsewhere reads", document(func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "no-cors")
			r.Header.Set("Sec-Fetch-Dest", "empty")
		}), 403, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := answerOf(p, tt.with())
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("HTTP %d %s, want %d %q", w.Code, w.Body, tt.status, tt.says)
			}
			h := w.Result().Header
			if len(h["Set-Cookie"])+len(h["Access-Control-Allow-Origin"])+len(h["Access-Control-Allow-Headers"]) > 0 {
				t.Errorf("the answer has %v", h)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "require-trusted-types-for 'script'") {
				t.Errorf("the content security policy is %q", csp)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
			} {
				if h.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, h.Get(name), want)
				}
			}
		})
	}
}

// A page without an address, or before anybody came, answers nobody.
func TestZeroPage(t *testing.T) {
	if w := answerOf(new(Page), asked(http.MethodGet, "/ui/state", "")); w.Code != http.StatusForbidden {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
}

// The names by which a proxy is reached are hosts of the page, and its origin then is one of them.
func TestHosts(t *testing.T) {
	p := newPage()
	p.Hosts = []string{"page.example", "other.example:8443"}
	cookie := cookieFor(t, p)
	for host, want := range map[string]int{"page.example": 200, "PAGE.example:443": 200, "other.example:8443": 200, "other.example": 403, "page.example.evil": 403, "page.example:x": 403, "page.example:": 403, "page.example:-1": 403, "127.0.0.1:7420": 200} {
		r := asked(http.MethodGet, "/ui/state", "")
		r.Host = host
		r.AddCookie(cookie)
		r.Header.Set("Origin", "https://"+host)
		if w := answerOf(p, r); w.Code != want {
			t.Errorf("host %s: HTTP %d %s", host, w.Code, w.Body)
		}
	}
}

// Somebody who comes by a link gets the state with the cookie; it is the one that the cookie shows.
func TestStateWithLink(t *testing.T) {
	p := newPage()
	w := answerOf(p, in(entry{Code: codeOf(p)}))
	var got struct{ State json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("HTTP %d, %v: %s", w.Code, err, w.Body)
	}
	r := asked(http.MethodGet, "/ui/state", "")
	r.AddCookie(w.Result().Cookies()[0])
	if want := strings.TrimSpace(answerOf(p, r).Body.String()); string(got.State) != want || !strings.Contains(want, `"admin":true`) {
		t.Errorf("the state with the link is\n%s\nwant\n%s", got.State, want)
	}
}

// The cookie is for this page alone: scripts do not see it, and other sites do not send it.
func TestCookie(t *testing.T) {
	p := newPage()
	c := cookieFor(t, p)
	if c.Name != "patchbay-7420" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure || len(c.Value) < 32 {
		t.Errorf("the cookie is %v", c)
	}
	r := asked(http.MethodPost, "/ui/out", "{}")
	r.AddCookie(c)
	w := answerOf(p, r)
	if out := w.Result().Cookies(); w.Code != http.StatusOK || len(out) != 1 || out[0].MaxAge >= 0 {
		t.Errorf("leave: HTTP %d, %v", w.Code, out)
	}
	r = asked(http.MethodGet, "/ui/state", "")
	r.AddCookie(c)
	if w := answerOf(p, r); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "you have left") {
		t.Errorf("after leaving: HTTP %d %s", w.Code, w.Body)
	}
}

// A code that comes twice ends the session that it made, with its streams, and both sides are told.
func TestCodeUsedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		var over []string
		link := p.Link(func() { over = append(over, "over") })
		_, code, _ := strings.Cut(link, "#in=")
		cookie := answerOf(p, in(entry{Code: code})).Result().Cookies()[0]
		if len(over) != 1 {
			t.Error("a used link is not over")
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r := asked(http.MethodGet, "/ui/events?want=state", "")
			r.AddCookie(cookie)
			answerOf(p, r)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("the stream has ended early")
		default:
		}
		if w := answerOf(p, in(entry{Code: code})); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "second time") || len(w.Result().Cookies()) > 0 {
			t.Errorf("the second time: HTTP %d %s", w.Code, w.Body)
		}
		<-ended
		r := asked(http.MethodGet, "/ui/state", "")
		r.AddCookie(cookie)
		if w := answerOf(p, r); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "second time") {
			t.Errorf("the first one: HTTP %d %s", w.Code, w.Body)
		}
		if w := answerOf(p, in(entry{Code: code})); w.Code != http.StatusUnauthorized || len(over) != 1 {
			t.Errorf("the third time: HTTP %d %s, over %d times", w.Code, w.Body, len(over))
		}
	})
}

// A code works for 5 minutes.
func TestCodeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		over := 0
		late, early := p.Link(func() { over++ }), codeOf(p)
		time.Sleep(codeTime - time.Nanosecond)
		if w := answerOf(p, in(entry{Code: early})); w.Code != http.StatusOK {
			t.Errorf("within the time: HTTP %d %s", w.Code, w.Body)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		_, code, _ := strings.Cut(late, "#in=")
		if w := answerOf(p, in(entry{Code: code})); w.Code != http.StatusUnauthorized || over != 1 {
			t.Errorf("after the time: HTTP %d %s, over %d times", w.Code, w.Body, over)
		}
	})
}

// Links and sessions are bounded: the oldest link, and the session that was quiet for longest, give way. The end of the
// page ends all.
func TestManyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		over := 0
		_, first, _ := strings.Cut(p.Link(func() { over++ }), "#in=")
		for range maxCodes {
			codeOf(p)
		}
		if w := answerOf(p, in(entry{Code: first})); w.Code != http.StatusUnauthorized || over != 1 {
			t.Errorf("the oldest link: HTTP %d, over %d times", w.Code, over)
		}
		var cookies []*http.Cookie
		for range maxSessions {
			cookies = append(cookies, cookieFor(t, p))
			time.Sleep(time.Second)
		}
		ask := func(c *http.Cookie) *httptest.ResponseRecorder {
			r := asked(http.MethodGet, "/ui/state", "")
			r.AddCookie(c)
			return answerOf(p, r)
		}
		if w := ask(cookies[0]); w.Code != http.StatusOK { // it is not the quietest any more
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		}
		cookieFor(t, p)
		if w := ask(cookies[0]); w.Code != http.StatusOK {
			t.Errorf("a session in use: HTTP %d %s", w.Code, w.Body)
		}
		if w := ask(cookies[1]); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "too many") {
			t.Errorf("the session that was quiet for longest: HTTP %d %s", w.Code, w.Body)
		}
		p.Link(func() { over++ })
		p.Close()
		if w := ask(cookies[5]); w.Code != http.StatusUnauthorized || over != 2 {
			t.Errorf("after the end: HTTP %d %s, over %d times", w.Code, w.Body, over)
		}
		p.Link(func() { over++ })
		if w := answerOf(p, in(entry{Code: codeOf(p)})); w.Code != http.StatusUnauthorized || over != 3 {
			t.Errorf("a link after the end: HTTP %d, over %d times", w.Code, over)
		}
	})
}

// Two browsers that use one code at once: one gets in and is put out again, or the other is refused; none stays in.
func TestCodeRace(t *testing.T) {
	p := newPage()
	code := codeOf(p)
	var wg sync.WaitGroup
	cookies := make(chan *http.Cookie, 2)
	for range 2 {
		wg.Go(func() {
			for _, c := range answerOf(p, in(entry{Code: code})).Result().Cookies() {
				cookies <- c
			}
		})
	}
	wg.Wait()
	close(cookies)
	n := 0
	for c := range cookies {
		n++
		r := asked(http.MethodGet, "/ui/state", "")
		r.AddCookie(c)
		if w := answerOf(p, r); w.Code != http.StatusUnauthorized {
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		}
	}
	if n != 1 {
		t.Errorf("%d browsers came in", n)
	}
}

// Frames are made while an administrator has the page open.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		watched := 0
		p.Watch = func() func() { watched++; return func() { watched = -watched } }
		cookie := cookieFor(t, p)
		open := func() (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r := asked(http.MethodGet, "/ui/events?want=state", "").WithContext(ctx)
				r.AddCookie(cookie)
				answerOf(p, r)
			}()
			synctest.Wait()
			return func() { cancel(); <-ended }
		}
		first := open()
		second := open()
		first()
		if watched != 1 {
			t.Errorf("with a page that is open: %d", watched)
		}
		second()
		if watched != -1 {
			t.Errorf("after all have left: %d", watched)
		}
		open()()
		if watched != 0 {
			t.Errorf("after one came again: %d", watched)
		}
	})
}

// switched is a verifier whose keys a test revokes.
type switched struct {
	mu   sync.Mutex
	keys map[string]*auth.Principal // guarded by mu
	busy bool                       // guarded by mu
}

func (s *switched) Verify(r *http.Request) (*auth.Principal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return nil, auth.ErrUnavailable
	}
	if p := s.keys[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; p != nil {
		return p, nil
	}
	return nil, auth.ErrNoCredential
}

func (s *switched) set(key string, p *auth.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = p
}

// A person with a credential comes in if they have the role admin or the policy lets them, and stays for as long as the
// credential does.
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &switched{keys: map[string]*auth.Principal{
			"root": {ID: "apikey#root", Roles: []string{"admin"}}, "ada": {ID: "apikey#ada"}, "bob": {ID: "apikey#bob"},
		}}
		p := newPage()
		p.Guard = &auth.Guard{Verifiers: []auth.Verifier{keys}}
		p.Admits = func(ctx context.Context) bool { return auth.From(ctx).ID == "apikey#ada" }
		enter := func(key string) (*http.Cookie, *httptest.ResponseRecorder) {
			w := answerOf(p, in(entry{Key: key}))
			if w.Header().Get("WWW-Authenticate") != "" {
				t.Error("the browser would ask for a password by itself")
			}
			for _, c := range w.Result().Cookies() {
				return c, w
			}
			return nil, w
		}
		ask := func(c *http.Cookie, method, path, body string) *httptest.ResponseRecorder {
			r := asked(method, path, body)
			r.Header.Set("Authorization", "Bearer root") // it does not count
			r.AddCookie(c)
			return answerOf(p, r)
		}
		for key, want := range map[string]int{"": 401, "wrong": 401, "wro ng": 401, "bob": 403} {
			if c, w := enter(key); c != nil || w.Code != want {
				t.Errorf("the key %q: HTTP %d %s", key, w.Code, w.Body)
			}
		}
		if w := answerOf(p, asked(http.MethodGet, "/ui/state", "")); !strings.Contains(w.Body.String(), `"ways":["link","key"]`) {
			t.Errorf("without a cookie: %s", w.Body)
		}
		root, _ := enter("root")
		ada, _ := enter("ada")
		var s State
		if err := json.Unmarshal(ask(root, http.MethodGet, "/ui/state", "").Body.Bytes(), &s); err != nil || !s.Admin || s.Person != "apikey#root" {
			t.Errorf("root sees %+v, %v", s, err)
		}
		if err := json.Unmarshal(ask(ada, http.MethodGet, "/ui/state", "").Body.Bytes(), &s); err != nil || s.Admin || s.Person != "apikey#ada" || s.Can["wire"] {
			t.Errorf("ada sees %+v, %v", s, err)
		}
		r := asked(http.MethodPost, "/ui/mcp/who", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"page","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		for name, value := range map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "who"} {
			r.Header.Set(name, value)
		}
		r.AddCookie(ada)
		if w := answerOf(p, r); !strings.Contains(w.Body.String(), `"text":"apikey#ada"`) {
			t.Errorf("a call: HTTP %d %s", w.Code, w.Body)
		}
		stream := make(chan struct{})
		go func() {
			defer close(stream)
			ask(ada, http.MethodGet, "/ui/events?want=state", "")
		}()
		time.Sleep(10 * time.Second)
		select {
		case <-stream:
			t.Fatal("the stream has ended early")
		default:
		}
		keys.mu.Lock()
		keys.busy = true
		keys.mu.Unlock()
		if w := ask(ada, http.MethodGet, "/ui/state", ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("while keys cannot be checked: HTTP %d %s", w.Code, w.Body)
		}
		keys.mu.Lock()
		keys.busy = false
		keys.mu.Unlock()
		if w := ask(ada, http.MethodGet, "/ui/state", ""); w.Code != http.StatusOK {
			t.Errorf("afterwards: HTTP %d %s", w.Code, w.Body)
		}
		keys.set("ada", nil)
		<-stream
		keys.set("ada", &auth.Principal{ID: "apikey#ada"})
		time.Sleep(time.Second)
		if w := ask(ada, http.MethodGet, "/ui/state", ""); w.Code != http.StatusOK { // nobody has asked meanwhile
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		}
		keys.set("ada", &auth.Principal{ID: "apikey#eve", Roles: []string{"admin"}})
		if w := ask(ada, http.MethodGet, "/ui/state", ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "not valid any more") {
			t.Errorf("the key of somebody else: HTTP %d %s", w.Code, w.Body)
		}
		keys.set("root", nil)
		for range 2 {
			if w := ask(root, http.MethodGet, "/ui/state", ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "not valid any more") {
				t.Errorf("a revoked key: HTTP %d %s", w.Code, w.Body)
			}
		}
		keys.set("root", &auth.Principal{ID: "apikey#root", Roles: []string{"admin"}})
		if w := ask(root, http.MethodGet, "/ui/state", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("a session comes back with its key: HTTP %d", w.Code)
		}
		var first *http.Cookie
		for range maxOfOne + 1 {
			c, _ := enter("root")
			if first == nil {
				first = c
			}
			time.Sleep(time.Second)
		}
		if w := ask(first, http.MethodGet, "/ui/state", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("the session of one with too many: HTTP %d", w.Code)
		}
	})
}
