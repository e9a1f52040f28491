package inspector

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
)

// here is the address of the page in tests.
const here = "http://127.0.0.1:7420"

// asked returns a request as the browser of somebody on the page sends it; without a cookie.
func asked(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, here+path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "cors")
	if method != http.MethodGet {
		r.Header.Set("Origin", here)
		r.Header.Set("Patchbay-Page", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// answerOf returns the answer of a page to a request.
func answerOf(p *Page, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// cookieFor lets somebody in by a link and returns their cookie. It gives a page without an address one.
func cookieFor(t testing.TB, p *Page) *http.Cookie {
	t.Helper()
	if p.URL == "" {
		p.URL = here + "/"
	}
	if p.Local == nil {
		p.Local = &auth.Principal{ID: "local#ada", Scheme: "local", Name: "ada"}
	}
	_, code, ok := strings.Cut(p.Link(nil), "#in=")
	if !ok {
		t.Fatal("a link without a code")
	}
	w := answerOf(p, asked(http.MethodPost, "/ui/in", `{"code":"`+code+`"}`))
	if cookies := w.Result().Cookies(); w.Code == http.StatusOK && len(cookies) == 1 {
		return cookies[0]
	}
	t.Fatalf("a link does not let in: HTTP %d %s", w.Code, w.Body)
	return nil
}

// visit lets somebody in, and returns a function that sends their requests.
func visit(t testing.TB, p *Page) func(method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	cookie := cookieFor(t, p)
	return func(method, path, body string) *httptest.ResponseRecorder {
		r := asked(method, path, body)
		r.AddCookie(cookie)
		return answerOf(p, r)
	}
}
