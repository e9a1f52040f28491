package login_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// OnLogin gets each login that is done, refused or ended, and no refresh.
func TestOnLogin(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	var got []login.Event
	tr.OnLogin = func(e login.Event) { got = append(got, e) }
	check := func(step string, want ...login.Event) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", step, got, want)
		}
		got = nil
	}
	done := login.Event{State: login.EventDone, Issuer: w.as.URL, Client: "client-1"}
	mustSend(t, tr, w.url())
	check("login", done)
	w.revoke()
	mustSend(t, tr, w.url())
	check("refresh")
	w.refuse = func(f url.Values) (int, string) {
		if f.Get("grant_type") == "refresh_token" {
			return 400, `{"error":"invalid_grant"}`
		}
		return 0, ""
	}
	w.revoke()
	mustSend(t, tr, w.url())
	check("the refresh token is refused", login.Event{login.EventEnded, w.as.URL, "client-1", "the token cannot be refreshed any more"}, done)
	if _, err := tr.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("logout", login.Event{login.EventEnded, w.as.URL, "client-1", "logged out"})
	w.refuse = func(url.Values) (int, string) { return 400, `{"error":"access_denied"}` }
	if _, err := send(t.Context(), tr, w.url(), "hello"); err == nil {
		t.Error("a refused login has no error")
	}
	if len(got) != 1 || got[0].State != login.EventRefused || got[0].Reason == "" {
		t.Errorf("refused: %+v", got)
	}
}
