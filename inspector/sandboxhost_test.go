package inspector

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// elsewhere is the page of a gateway that other machines reach, by a name of a proxy or of the certificate, with a sandbox
// at another name.
func elsewhere() *Page {
	p := newPage()
	p.URL, p.Hosts, p.Sandbox = "https://192.0.2.7:8443/", []string{"mcp.example.com"}, "https://apps.example.com"
	return p
}

// asks returns a request of a page at an origin.
func asks(method, origin, path, body string, cookie *http.Cookie) *http.Request {
	r := httptest.NewRequest(method, origin+path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", origin)
		r.Header.Set("Patchbay-Page", "1")
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	return r
}

// At a sandbox with a name of its own, the page shows views at each of its hosts: its policy names the sandbox, and the frame lets
// only the page have it that asked.
func TestSandboxElsewhere(t *testing.T) {
	p := elsewhere()
	for _, origin := range []string{"https://192.0.2.7:8443", "https://mcp.example.com", "https://mcp.example.com:8443"} {
		_, code, _ := strings.Cut(p.Link(nil), "#in=")
		w := answerOf(p, asks(http.MethodPost, origin, "/ui/in", `{"code":"`+code+`"}`, nil))
		if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
			t.Fatalf("%s: a link does not let in: HTTP %d %s", origin, w.Code, w.Body)
		}
		cookie := w.Result().Cookies()[0]
		if cookie.Domain != "" || !cookie.Secure { // with a domain, browsers send it to hosts below
			t.Errorf("%s: the cookie is %v", origin, cookie)
		}
		w = answerOf(p, asks(http.MethodGet, origin, "/ui/state", "", cookie))
		if !strings.Contains(w.Body.String(), `"sandbox":"https://apps.example.com"`) {
			t.Errorf("%s: the state is %s", origin, w.Body)
		}
		if h := w.Header(); !strings.Contains(h.Get("Content-Security-Policy"), "frame-src https://apps.example.com;") || h.Get("Origin-Agent-Cluster") != "?1" {
			t.Errorf("%s: the headers of the page are %v", origin, h)
		}
		w = answerOf(p, asks(http.MethodPost, origin, "/ui/view", `{}`, cookie))
		_, src, _ := strings.Cut(w.Body.String(), `"src":"https://apps.example.com`)
		src, _, _ = strings.Cut(src, `"`)
		w = answerOf(p, asks(http.MethodGet, p.Sandbox, strings.ReplaceAll(src, `\u0026`, "&"), "", cookie))
		if h := w.Header(); w.Code != http.StatusOK || !strings.HasSuffix(h.Get("Content-Security-Policy"), "frame-ancestors "+origin) || h.Get("Origin-Agent-Cluster") != "?1" ||
			!strings.Contains(w.Body.String(), `data-page="`+origin+`"`) || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: the frame at %s is HTTP %d %v %s", origin, src, w.Code, h, w.Body)
		}
		for _, path := range []string{"/", "/wire", "/in", "/ui/state", "/ui/view", "/mcp", "/mcp/s/who", "/healthz"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if w := answerOf(p, asks(method, p.Sandbox, path, "{}", cookie)); w.Code != http.StatusForbidden {
					t.Errorf("%s %s at the sandbox is HTTP %d", method, path, w.Code)
				}
			}
		}
	}
	for _, page := range []string{
		"", "null", "https://evil.example", "https://apps.example.com", "javascript://mcp.example.com", "https://mcp.example.com/", "https://mcp.example.com https://evil.example",
		"https://mcp.example.com;script-src", "https://evil@mcp.example.com", "//mcp.example.com", "https://mcp.example.com:x", "https://192.0.2.7:8444",
	} {
		if w := answerOf(p, asks(http.MethodGet, p.Sandbox, "/sandbox?page="+url.QueryEscape(page), "", nil)); w.Code != http.StatusForbidden {
			t.Errorf("the frame of a page at %q is HTTP %d %s", page, w.Code, w.Header().Get("Content-Security-Policy"))
		}
	}
}
