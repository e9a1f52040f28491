package issuer

import (
	"net/http"
	"time"
)

const maxCookie = 3900 // bytes of a value; browsers keep 4096 with the name and the attributes

// Names of cookies. With https they begin with __Host-, so that only this host can set them.
const (
	browserCookie = "patchbay-browser" // tells browsers apart, for the form of the consent page
	agreedCookie  = "patchbay-agreed"  // what the browser has agreed to
	loginCookie   = "patchbay-login-"  // with one character more: logins in progress
)

func (s *Server) cookieName(name string) string {
	if s.site.Scheme == "https" {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie for a time; a negative one removes it. Lax lets the redirect of the
// identity provider have it.
func (s *Server) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	age := int(life / time.Second)
	if life < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: "/", MaxAge: age,
		Secure: s.site.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookie returns the value of a cookie; empty: there is none.
func (s *Server) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(s.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// loginName returns the name of the cookie of a login. Only eight can be in progress in a browser, so
// that its cookies fit into a request.
func loginName(state string) string { return loginCookie + string('0'+state[0]%8) }
