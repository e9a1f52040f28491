package issuer_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/issuer"
)

// OnLogin gets each login that is done, refused or ended early, with the person, the host and the reason. A
// refresh is none of them, and the end of a login is reported once.
func TestOnLogin(t *testing.T) {
	var got []string
	w := newWorld(t, func(s *issuer.Server) {
		s.OnLogin = func(e issuer.Event) {
			if e.State != issuer.EventRefused && (e.Name != "alice@example.com" || e.Ends.Before(e.Since)) {
				t.Errorf("the event %+v has not the whole login", e)
			}
			if e.State == issuer.EventDone && e.Client == "" {
				t.Errorf("the event %+v names no client", e)
			}
			got = append(got, fmt.Sprintf("%s %s at %s from %s: %s", e.State, e.Subject, e.Host, e.Address, e.Reason))
		}
	})
	check := func(step string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
		got = nil
	}
	const done = "done alice at Desk from 192.0.2.1: "
	h := w.register(nil)
	_, refresh := h.tokens(w.browser())
	check("login", done)
	_, answer := h.refresh(refresh)
	next, _ := answer["refresh_token"].(string)
	check("refresh")
	h.refresh(refresh)
	h.refresh(next)
	check("a refresh token used twice", "ended alice at Desk from 192.0.2.1: a refresh token was used twice")
	_, refresh = h.tokens(w.browser())
	for range 2 {
		w.post("/oauth/revoke", url.Values{"token": {refresh}, "client_id": {h.id}})
	}
	check("logout", done, "ended alice at Desk from 192.0.2.1: the host has logged out")
	code := h.code(w.browser())
	h.exchange(code)
	h.exchange(code)
	check("a code used twice", done, "ended alice at Desk from 192.0.2.1: its code was used twice", "refused  at  from 192.0.2.1: the code was used before, so the login has ended; log in again")
	h.tokens(w.browser())
	if n, err := w.server.EndLogins("alice"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	check("EndLogins", done, "ended alice at Desk from : the logins of the person were ended")
	b := w.browser()
	b.press(b.get(h.asks()), "cancel")
	b.get(h.asks("client_id", "nobody"))
	if len(got) != 2 || got[0] != "refused  at  from 192.0.2.1: the person did not agree" {
		t.Errorf("refused: %q", got)
	}
}
