package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// inMemory answers requests by the handlers of a world, without a network, so that the test has
// its own time.
func inMemory(w *world) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		h := w.as.Config.Handler
		if "http://"+req.URL.Host == w.mcp.URL {
			h = w.mcp.Config.Handler
		}
		h.ServeHTTP(rec, req)
		res := rec.Result()
		res.Request = req
		return res, nil
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// deviceWorld offers logins by a code, whose answers are those of a list, and then a token.
func deviceWorld(t *testing.T, offer map[string]any, answers ...string) (*world, *login.Transport, *[]login.DeviceCode, *[]url.Values) {
	w := newWorld(t)
	w.mcp.Close() // their addresses remain
	w.as.Close()
	w.meta = map[string]any{
		"device_authorization_endpoint": w.as.URL + "/device", "authorization_endpoint": nil, "code_challenge_methods_supported": nil,
		"scopes_supported": []string{"a", "offline_access"},
	}
	w.challenge = `, scope="a"`
	var asked []url.Values
	w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/device" {
			return false
		}
		_ = r.ParseForm()
		asked = append(asked, r.PostForm)
		answer(rw, 200, with(map[string]any{
			"device_code": "hidden", "user_code": "WDJB-MJHT", "verification_uri": w.as.URL + "/go", "verification_uri_complete": w.as.URL + "/go?code=WDJB-MJHT", "expires_in": 600, "interval": 2,
		}, offer))
		return true
	}
	w.refuse = func(url.Values) (int, string) {
		if len(answers) == 0 {
			return 0, ""
		}
		code := answers[0]
		answers = answers[1:]
		return 400, fmt.Sprintf(`{"error":%q}`, code)
	}
	var shown []login.DeviceCode
	tr := &login.Transport{Server: w.url(), Base: inMemory(w), Grant: &login.Device{Show: func(_ context.Context, c login.DeviceCode) error {
		shown = append(shown, c)
		return nil
	}}}
	return w, tr, &shown, &asked
}

// The user types a code elsewhere, and the client polls as often as it is told (RFC 8628, 3).
func TestDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tr, shown, asked := deviceWorld(t, nil, "authorization_pending", "slow_down", "authorization_pending")
		start := time.Now()
		mustSend(t, tr, w.url())
		if got, want := time.Since(start), (2+2+7+7)*time.Second; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		want := login.DeviceCode{Page: w.as.URL + "/go", Code: "WDJB-MJHT", Direct: w.as.URL + "/go?code=WDJB-MJHT", Expires: start.Add(10 * time.Minute)}
		if len(*shown) != 1 || (*shown)[0] != want {
			t.Errorf("shown %v, want %v", *shown, want)
		}
		if f := (*asked)[0]; f.Get("client_id") != "client-1" || f.Get("scope") != "a offline_access" || f.Get("resource") != w.url() {
			t.Errorf("device request %v", f)
		}
		if f := w.exchanged[3]; f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" || f.Get("device_code") != "hidden" || f.Get("client_id") != "client-1" {
			t.Errorf("token request %v", f)
		}
		if g := w.registered[0]["grant_types"].([]any); len(g) != 2 || g[0] != "urn:ietf:params:oauth:grant-type:device_code" {
			t.Errorf("registered for %v", g)
		}
	})
}

// The login ends when the user refuses, or does nothing.
func TestDeviceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tr, _, _ := deviceWorld(t, nil, "access_denied")
		_, err := send(t.Context(), tr, w.url(), "")
		var refused *login.RefusedError
		if !errors.As(err, &refused) || refused.Code != "access_denied" {
			t.Errorf("error %v, want access_denied", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, tr, _, _ := deviceWorld(t, map[string]any{"expires_in": 61, "interval": nil})
		w.refuse = func(url.Values) (int, string) { return 400, `{"error":"authorization_pending"}` }
		start := time.Now()
		_, err := send(t.Context(), tr, w.url(), "")
		if err == nil || !strings.Contains(err.Error(), "in time") || time.Since(start) != 61*time.Second || len(w.exchanged) != 12 {
			t.Errorf("error %v after %v and %d requests", err, time.Since(start), len(w.exchanged))
		}
	})
}

// The user is shown nothing harmful.
func TestHostileDevice(t *testing.T) {
	for _, offer := range []map[string]any{
		{"verification_uri": "javascript:alert(1)"}, {"verification_uri": "http://login.example.com/"}, {"verification_uri": nil},
		{"user_code": "a\x1b[2J"}, {"user_code": "go to evil.example"}, {"user_code": strings.Repeat("x", 100)}, {"user_code": nil}, {"device_code": nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, tr, shown, _ := deviceWorld(t, offer)
			if _, err := send(t.Context(), tr, w.url(), ""); err == nil || len(*shown) > 0 || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v: shown %v, error %v", offer, *shown, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w, tr, shown, _ := deviceWorld(t, map[string]any{"verification_uri_complete": "https://evil.example.com/"})
		mustSend(t, tr, w.url())
		if len(*shown) != 1 || (*shown)[0].Direct != "" {
			t.Errorf("shown %v, want no page elsewhere", *shown)
		}
	})
}
