package login_test

import (
	"net/http"
	"strings"
	"testing"
)

// A signed access token cannot be revoked before it expires (RFC 7009, 2.2.1). That is not an
// error of the logout; a refresh token that stays valid is one.
func TestLogoutWhereTokensAreSigned(t *testing.T) {
	for kind, want := range map[string]string{"access": "", "refresh": "unsupported_token_type"} {
		w := newWorld(t)
		w.meta = map[string]any{"revocation_endpoint": w.as.URL + "/revoke"}
		var asked []string
		w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/revoke" {
				return false
			}
			token := r.PostFormValue("token")
			asked = append(asked, token[:strings.Index(token, "-")])
			if strings.HasPrefix(token, kind) {
				answer(rw, http.StatusBadRequest, map[string]any{"error": "unsupported_token_type"})
			}
			return true
		}
		tr := w.transport()
		mustSend(t, tr, w.url())
		_, err := tr.Logout(t.Context())
		if want == "" {
			sameList(t, "revoked", asked, "refresh", "access")
			if err != nil {
				t.Errorf("logout: %v", err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("logout: error %v, want %q", err, want)
		}
		if _, err := tr.Token(t.Context()); err == nil {
			t.Error("there is a token after the logout")
		}
	}
}
