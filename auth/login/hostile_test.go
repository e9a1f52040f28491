package login_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Metadata of a hostile server. Each case must end before the user is sent anywhere and before a
// form is posted. AUTH-26-022, AUTH-26-023, AUTH-26-087, AUTH-26-093, AUTH-26-094, AUTH-26-097,
// AUTH-26-099, AUTH-26-100.
func TestHostileMetadata(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached another server", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	meta := func(name string, v any) func(*world) {
		return func(w *world) { w.meta = map[string]any{name: v} }
	}
	prm := func(name string, v any) func(*world) {
		return func(w *world) { w.prm = map[string]any{name: v} }
	}
	// at answers the requests for a path.
	at := func(path string, f http.HandlerFunc) func(*world) {
		return func(w *world) {
			w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == path {
					f(rw, r)
				}
				return r.URL.Path == path
			}
		}
	}
	const resource, issuer = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	tests := []struct {
		name   string
		change func(*world)
		err    string
	}{
		{"another issuer", meta("issuer", "https://login.example.com"), `is for "https://login.example.com"`},
		{"issuer with a slash", func(w *world) { w.meta = map[string]any{"issuer": w.as.URL + "/"} }, "is for"},
		{"no issuer", meta("issuer", nil), "is for"},
		{"no PKCE", meta("code_challenge_methods_supported", nil), "PKCE"},
		{"plain PKCE", meta("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		{"script to visit", meta("authorization_endpoint", "javascript:alert(1)"), "authorization_endpoint"},
		{"file to visit", meta("authorization_endpoint", "file:///etc/passwd"), "authorization_endpoint"},
		{"nothing to visit", meta("authorization_endpoint", nil), "authorization_endpoint"},
		{"plain http", meta("token_endpoint", "http://login.example.com/token"), "not an https"},
		{"user in the URL", meta("token_endpoint", "https://me@login.example.com/token"), "token_endpoint"},
		{"fragment", meta("registration_endpoint", "https://login.example.com/#x"), "registration_endpoint"},
		{"another resource", prm("resource", "https://victim.example.com/mcp"), "it describes"},
		{"a resource below", func(w *world) { w.prm = map[string]any{"resource": w.url() + "/more"} }, "it describes"},
		{"a resource beside", func(w *world) { w.prm = map[string]any{"resource": w.mcp.URL + "/mc"} }, "it describes"},
		{"no resource", prm("resource", nil), "it describes"},
		{"no authorization server", prm("authorization_servers", nil), "names no authorization server"},
		{"plain authorization server", prm("authorization_servers", []string{"http://login.example.com"}), "not an https"},
		{"issuer with a query", func(w *world) { w.prm = map[string]any{"authorization_servers": []string{w.as.URL + "?x"}} }, "query"},
		{"named metadata missing", at(resource, http.NotFound), "which its challenge names"},
		{"metadata out of order", at(resource, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) }), "HTTP 503"},
		{"no metadata", at(issuer, http.NotFound), "no metadata"},
		{"metadata of the issuer out of order", at(issuer, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }), "HTTP 500"},
		{"endless", at(issuer, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			for range 300 {
				if _, err := rw.Write([]byte(strings.Repeat(" ", 1024))); err != nil {
					return
				}
			}
		}), "more than 262144 bytes"},
		{"no JSON", at(issuer, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(`{"issuer": 5}`))
		}), "invalid document"},
		{"redirect elsewhere", at(issuer, http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP), "another origin"},
		{"redirect in a circle", at(issuer, http.RedirectHandler(issuer, http.StatusFound).ServeHTTP), "too many redirects"},
		{"deep", at(issuer, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(strings.Repeat("[", 100_000)))
		}), "invalid document"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			_, err := send(t.Context(), w.transport(), w.url(), "")
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(err.Error()) > 2000 {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if len(w.authorized)+len(w.exchanged) > 0 || len(w.asked("POST as")) > 0 {
				t.Errorf("went on: %q", w.log)
			}
		})
	}
}

// Metadata, registrations and challenges have many URLs in them: pictures, pages, keys and
// documents for others. The client fetches none of them.
func TestNothingElseIsFetched(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was asked for", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	lures := func(names ...string) map[string]any {
		m := map[string]any{}
		for _, name := range names {
			m[name] = elsewhere.URL + "/" + name
		}
		return m
	}
	w := newWorld(t)
	w.challenge = `, realm="` + elsewhere.URL + `", error_uri="` + elsewhere.URL + `/error"`
	w.prm = lures("logo_uri", "jwks_uri", "resource_documentation", "resource_policy_uri", "resource_tos_uri", "signed_metadata")
	w.meta = lures("logo_uri", "jwks_uri", "service_documentation", "op_policy_uri", "op_tos_uri", "userinfo_endpoint", "introspection_endpoint",
		"pushed_authorization_request_endpoint", "end_session_endpoint", "check_session_iframe")
	w.client = lures("logo_uri", "jwks_uri", "client_uri", "policy_uri", "tos_uri", "registration_client_uri", "sector_identifier_uri", "software_statement")
	w.token = lures("uri", "error_uri")
	w.redirect = url.Values{"redirect_uri": {elsewhere.URL}, "error_uri": {elsewhere.URL}}
	tr := w.transport()
	mustSend(t, tr, w.url())
	w.revoke()
	mustSend(t, tr, w.url()) // with a refresh
	if _, err := tr.Logout(t.Context()); err != nil {
		t.Error(err)
	}
}

// A redirect of an endpoint is a refusal: the form is not sent on.
func TestEndpointsDoNotRedirect(t *testing.T) {
	for _, path := range []string{"/token", "/register"} {
		w := newWorld(t)
		w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				http.Redirect(rw, r, "/stolen", http.StatusTemporaryRedirect)
			}
			return r.URL.Path == path
		}
		_, err := send(t.Context(), w.transport(), w.url(), "")
		if err == nil || !strings.Contains(err.Error(), "HTTP 307") || len(w.asked("POST as /stolen")) > 0 {
			t.Errorf("%s: error %v, requests %q", path, err, w.log)
		}
	}
}

// Metadata of a server of 2025-03-26 is of its own origin, and if it tells of PKCE, S256 must
// be there.
func TestHostileLegacyMetadata(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"is for":           {"issuer": "https://login.example.com"},
		"PKCE":             {"code_challenge_methods_supported": []string{"plain"}},
		"token_endpoint":   {"token_endpoint": "http://login.example.com/token"},
		"invalid document": {"issuer": 5},
	} {
		w := newWorld(t)
		w.prmPath, w.advertise, w.meta = "", false, change
		_, err := send(t.Context(), w.transport(), w.url(), "")
		if err == nil || !strings.Contains(err.Error(), name) || len(w.authorized) > 0 {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}
