package login_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// Many requests without a token, or with an expired one, are one login or one refresh, and
// rotation is followed. AUTH-26-056, AUTH-26-092.
func TestOneAtATime(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	for round := range 3 {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if status, err := send(t.Context(), tr, w.url(), "x"); status != 200 || err != nil {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		wg.Wait()
		w.mu.Lock()
		if len(w.authorized) != 1 || len(w.exchanged) != round+1 {
			t.Errorf("round %d: %d logins, %d exchanges; want 1 and %d", round, len(w.authorized), len(w.exchanged), round+1)
		}
		if f := w.exchanged[round]; round > 0 && (f.Get("grant_type") != "refresh_token" || f.Get("resource") != w.url()) {
			t.Errorf("refresh: %v", f)
		}
		w.mu.Unlock()
		w.revoke()
	}
}

// A token is refreshed before it ends, and a refresh that is refused quietly leads to a login
// when the server says so.
func TestRefreshInTime(t *testing.T) {
	w := newWorld(t)
	w.token = map[string]any{"expires_in": "0.000000001"} // as text, as some do
	tr := w.transport()
	mustSend(t, tr, w.url())
	before, exchanged := len(w.asked("POST mcp")), len(w.exchanged)
	mustSend(t, tr, w.url())
	if n, m := len(w.asked("POST mcp"))-before, len(w.exchanged)-exchanged; n != 1 || m != 1 || len(w.authorized) != 1 {
		t.Errorf("%d requests, %d exchanges, %d logins; want one of each: no refusal in between", n, m, len(w.authorized))
	}
	w.mu.Lock()
	clear(w.refreshes)
	w.mu.Unlock()
	mustSend(t, tr, w.url()) // the old token is still good
	if len(w.authorized) != 1 {
		t.Errorf("%d logins, want 1", len(w.authorized))
	}
	w.revoke()
	mustSend(t, tr, w.url())
	if len(w.authorized) != 2 {
		t.Errorf("%d logins, want 2", len(w.authorized))
	}
}

// Only a refusal by the authorization server ends a refresh token; network trouble does not.
func TestTroubleKeepsTheToken(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	mustSend(t, tr, w.url())
	for _, status := range []int{500, 503, 429, 408} {
		w.revoke()
		w.refuse = func(url.Values) (int, string) { return status, "busy" }
		_, err := send(t.Context(), tr, w.url(), "")
		var refused *login.RefusedError
		if !errors.As(err, &refused) || refused.Status != status {
			t.Errorf("HTTP %d: error %v", status, err)
		}
		w.refuse = nil
		mustSend(t, tr, w.url())
	}
	if len(w.authorized) != 1 {
		t.Errorf("%d logins, want the first alone", len(w.authorized))
	}
	w.revoke()
	w.mu.Lock()
	clear(w.refreshes)
	w.mu.Unlock()
	mustSend(t, tr, w.url())
	if len(w.authorized) != 2 {
		t.Errorf("%d logins, want a second: the refresh token is no good", len(w.authorized))
	}
}

// Without a refresh token, another login follows. AUTH-26-075.
func TestNoRefreshToken(t *testing.T) {
	w := newWorld(t)
	w.token = map[string]any{"refresh_token": nil, "expires_in": nil}
	tr := w.transport()
	mustSend(t, tr, w.url())
	w.revoke()
	mustSend(t, tr, w.url())
	if len(w.authorized) != 2 || len(w.registered) != 1 {
		t.Errorf("%d logins, %d registrations; want 2 and 1", len(w.authorized), len(w.registered))
	}
}

// An authorization server that forgot a registration gets a new one.
func TestRegistrationForgotten(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	mustSend(t, tr, w.url())
	w.refuse = func(f url.Values) (int, string) {
		if f.Get("client_id") == "client-1" {
			return 401, `{"error":"invalid_client"}`
		}
		return 0, ""
	}
	w.revoke()
	mustSend(t, tr, w.url())
	if len(w.registered) != 2 {
		t.Errorf("%d registrations, want 2", len(w.registered))
	}
}

// Errors have no secrets in them. AUTH-26-073.
func TestErrorsTellNoSecrets(t *testing.T) {
	secrets := []string{"access-", "refresh-", "code-", "s3cret", "hidden"}
	tests := map[string]func(w *world, tr *login.Transport){
		"refused": func(w *world, _ *login.Transport) {
			w.refuse = func(url.Values) (int, string) { return 400, `{"error":"invalid_grant","access_token":"hidden"}` }
		},
		"no JSON": func(w *world, _ *login.Transport) {
			w.refuse = func(url.Values) (int, string) { return 200, `{"access_token":"hidden"` }
		},
		"wrong type":  func(w *world, _ *login.Transport) { w.token = map[string]any{"token_type": "mac"} },
		"no token":    func(w *world, _ *login.Transport) { w.token = map[string]any{"access_token": ""} },
		"bad token":   func(w *world, _ *login.Transport) { w.token = map[string]any{"access_token": "hidden\r\nX: y"} },
		"wrong types": func(w *world, _ *login.Transport) { w.token = map[string]any{"access_token": []string{"hidden"}} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tr := w.transport()
			tr.Registered = func(context.Context, string, string) (*login.Credentials, error) {
				return &login.Credentials{ID: "me", Secret: "s3cret"}, nil
			}
			w.meta = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
			change(w, tr)
			_, err := send(t.Context(), tr, w.url(), "")
			if err == nil {
				t.Fatal("no error")
			}
			for _, s := range secrets {
				if strings.Contains(err.Error(), s) {
					t.Errorf("error %q has %q in it", err, s)
				}
			}
		})
	}
}
