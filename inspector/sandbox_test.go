package inspector

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// there is the host of the sandbox in tests.
const there = "http://localhost:7420"

// The host of the sandbox has the frame of views and its script, and nothing else, and the page is not there. Its policy is
// made of what the view asks for.
func TestSandbox(t *testing.T) {
	p := newPage()
	p.Sandbox = there
	cookie := cookieFor(t, p)
	at := func(method, path, dest string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, there+path, nil)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Sec-Fetch-Dest", dest)
		r.Header.Set("Patchbay-Page", "1")
		r.AddCookie(cookie)
		return answerOf(p, r)
	}
	needs := url.QueryEscape(`{"csp":{"connectDomains":["https://api.example.com"]}}`)
	frame := "/sandbox?page=" + url.QueryEscape(here) + "&needs="
	w := at(http.MethodGet, frame+needs, "iframe")
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "connect-src https://api.example.com;", "frame-src 'none'", "form-action 'none'", "frame-ancestors " + here} {
		if !strings.Contains(policy+";", want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if want := `(response-origin "https://api.example.com/*");redirects=allow;webrtc=block`; w.Header().Get("Connection-Allowlist") != want {
		t.Errorf("Connection-Allowlist is %q, want %q", w.Header().Get("Connection-Allowlist"), want)
	}
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `data-page="`+here+`"`) || len(w.Result().Cookies()) > 0 {
		t.Errorf("the frame: HTTP %d %s", w.Code, w.Body)
	}
	_, script, _ := strings.Cut(w.Body.String(), `src="`)
	script, _, _ = strings.Cut(script, `"`)
	if w := at(http.MethodGet, script, "script"); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("%s: HTTP %d", script, w.Code)
	}
	for _, tt := range []struct{ method, path, dest string }{
		{"GET", "/", "document"}, {"GET", "/", "iframe"}, {"GET", "/wire", "iframe"}, {"GET", "/ui/state", "empty"}, {"POST", "/ui/in", "empty"}, {"POST", "/ui/mcp/who", "empty"},
		{"POST", "/mcp", "empty"}, {"GET", "/sandbox", "document"}, {"POST", "/sandbox", "iframe"}, {"GET", "/sandbox/x", "iframe"}, {"GET", "/sandbox", "iframe"}, {"GET", "/assets/../ui/state", "empty"},
	} {
		if w := at(tt.method, tt.path, tt.dest); w.Code != http.StatusForbidden {
			t.Errorf("%s %s for %s: HTTP %d %s", tt.method, tt.path, tt.dest, w.Code, w.Body)
		}
	}
	for _, bad := range []string{`{"csp":{"connectDomains":["https://x; script-src *"]}}`, `{"csp":1}`, `[]`, `{"csp":{"frameDomains":["https://x\" \"https://y"]}}`, strings.Repeat(" ", maxNeeds) + "{}"} {
		if w := at(http.MethodGet, frame+url.QueryEscape(bad), "iframe"); w.Code != http.StatusBadRequest {
			t.Errorf("the needs %.80s: HTTP %d", bad, w.Code)
		}
	}
	if w := answerOf(p, asked(http.MethodGet, "/sandbox", "")); w.Code != http.StatusNotFound {
		t.Errorf("the page has the frame of views at its own host: HTTP %d", w.Code)
	}
}

// The page says how a view is shown, or in a sentence why none is.
func TestViewOfPage(t *testing.T) {
	p := newPage()
	p.Sandbox = there
	send := visit(t, p)
	w := send(http.MethodPost, "/ui/view", `{"csp":{"resourceDomains":["https://cdn.example.com"]},"prefersBorder":true}`)
	if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `"src":"`+there+`/sandbox?needs=%7B%22csp%22`) || !strings.Contains(got, "img-src 'self' data: https://cdn.example.com;") {
		t.Errorf("HTTP %d %s", w.Code, got)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src "+there+";") {
		t.Errorf("the policy of the page is %q", policy)
	}
	if w := send(http.MethodPost, "/ui/view", `{"csp":{"connectDomains":["*"]}}`); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the origin") {
		t.Errorf("an origin that is not one: HTTP %d %s", w.Code, w.Body)
	}
	for _, tt := range []struct {
		why    string
		change func(p *Page)
	}{
		{"this program has no other address", func(p *Page) { p.Sandbox = "" }},
		{"another program has port 7420", func(p *Page) { p.Sandbox, p.NoSandbox = "", "another program has port 7420" }},
		{"(--allow-host)", func(p *Page) { p.Hosts = []string{"localhost"} }},
		{"(--allow-host)", func(p *Page) { p.Hosts = []string{"localhost:7421"} }},
		{"(--allow-host)", func(p *Page) { p.Sandbox = "https://127.0.0.1:7421" }},
		{"only on the page at https://gateway.example/", func(p *Page) { p.URL, p.Hosts = "https://gateway.example/", []string{"127.0.0.1:7420"} }},
	} {
		p := newPage()
		p.Sandbox = there
		tt.change(p)
		if origin, why := p.views("127.0.0.1:7420"); origin != "" || !strings.Contains(why, tt.why) {
			t.Errorf("views are at %q, because %q, want %q", origin, why, tt.why)
		}
	}
}
