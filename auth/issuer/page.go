package issuer

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.35rem;margin:0 0 1rem}
dl{margin:1.2rem 0;padding:1rem;border:1px solid #c9c9c9;border-radius:8px}
dt{color:#555;font-size:.85rem}dd{margin:0 0 .7rem;overflow-wrap:anywhere}dd:last-child{margin:0}
p.careful{border-left:4px solid #b45309;padding-left:.8rem}
button{font:inherit;padding:.5rem 1.2rem;border-radius:6px;border:1px solid #888;background:#fff;color:#1b1b1b;margin-right:.6rem;cursor:pointer}
button.main{background:#1d4ed8;border-color:#1d4ed8;color:#fff}
@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}dl{border-color:#444}dt{color:#aaa}button{background:#222;color:#eee}}`

// pagePolicy allows a page its style and nothing else. It has no form-action: browsers apply it to all
// redirects after a form too, and these lead to the identity provider and to hosts.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'"
}()

// writePage writes a page. The body is HTML.
func writePage(w http.ResponseWriter, status int, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` +
		html.EscapeString(title) + `</title><style>` + style + `</style><h1>` + html.EscapeString(title) + `</h1>` + body + `</html>`))
}

// page serves a page, or a redirect of a browser.
func (s *Server) page(w http.ResponseWriter, r *http.Request, method string, answer func(w http.ResponseWriter, r *http.Request) error) {
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers send forms without their origin.
	h.Set("Referrer-Policy", "same-origin")
	if r.Method != method {
		h.Set("Allow", method)
		writePage(w, http.StatusMethodNotAllowed, "This page is a step of a login", "<p>Begin the login again in your program.</p>")
		return
	}
	err := answer(w, r)
	if err == nil {
		return
	}
	s.failed("login refused", err, "path", r.URL.Path, "client", r.RemoteAddr)
	s.refused(r, "", err)
	f := faultOf(err)
	status := f.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	body := "<p>The reason: " + html.EscapeString(f.text) + ".</p><p>Error code: <code>" + html.EscapeString(f.code) + "</code></p>"
	if back, ok := asBack(err); ok {
		body += `<p><a href="` + html.EscapeString(back.url) + `">Back to ` + html.EscapeString(back.host) + `</a></p>`
	} else {
		body += "<p>Nothing was sent to any program. You can close this page.</p>"
	}
	writePage(w, status, "The login cannot go on", body)
}

// consentPage asks whether a host may have access.
func (s *Server) consentPage(w http.ResponseWriter, req *request, c *client, form string) {
	var b strings.Builder
	row := func(name, value string) {
		b.WriteString("<dt>" + name + "</dt><dd>" + value + "</dd>")
	}
	name := c.Name
	if name == "" {
		name = "A program without a name"
	}
	to, _ := url.Parse(req.Redirect) // it was checked
	b.WriteString("<p>After you agree, you log in at <b>" + html.EscapeString(s.provider.host()) + "</b>. The program then acts for you here until you log out, " +
		"at most " + html.EscapeString(lifeText(s.SessionLife.Hours())) + ".</p><dl>")
	if c.document != nil {
		row("Program", html.EscapeString(name)+", as published at <b>"+html.EscapeString(c.document.Host)+"</b>")
	} else {
		row("Program", html.EscapeString(name)+" <small>(it gave this name itself; nobody has checked it)</small>")
	}
	onMachine := local(to)
	switch {
	case onMachine:
		row("Answer goes to", "a program on this computer, <b>"+html.EscapeString(to.Host)+"</b>")
	case isHTTPS(req.Redirect):
		row("Answer goes to", "the web site <b>"+html.EscapeString(to.Host)+"</b>")
	default:
		row("Answer goes to", "the app on this computer that opens <b>"+html.EscapeString(to.Scheme)+":</b>")
	}
	row("Access to", html.EscapeString(req.Resource))
	if len(req.Scopes) > 0 {
		row("Scopes", html.EscapeString(strings.Join(req.Scopes, ", ")))
	}
	b.WriteString("</dl>")
	if isHTTPS(req.Redirect) {
		b.WriteString("<p class=careful>Agree only if you have just begun to log in at <b>" + html.EscapeString(to.Host) + "</b>. This browser will not ask about it again for 30 days.</p>")
	} else {
		b.WriteString("<p class=careful>Agree only if you have just begun to log in with a program on this computer. Any program here could show this page.</p>")
	}
	b.WriteString(`<form method="post" action="` + html.EscapeString(s.site.Path+consentPath) + `"><input type="hidden" name="request" value="` + html.EscapeString(form) + `">` +
		`<button class="main" name="answer" value="agree">Agree and log in</button><button name="answer" value="cancel">Cancel</button></form>`)
	writePage(w, http.StatusOK, name+" wants to use "+s.Name, b.String())
}

// lifeText writes a number of hours.
func lifeText(hours float64) string {
	switch {
	case hours < 2:
		return strconv.Itoa(max(int(hours*60), 1)) + " minutes"
	case hours < 48:
		return strconv.Itoa(int(hours)) + " hours"
	}
	return strconv.Itoa(int(hours/24)) + " days"
}
