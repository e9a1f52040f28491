package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Requests for the health of a server get its state alone, from allowed hosts and origins.
func TestHandleState(t *testing.T) {
	for _, tt := range []struct {
		method, path, origin, state string
		status                      int
		body                        string
	}{
		{"GET", "/healthz", "", "ending", 200, "{\"state\":\"alive\"}\n"},
		{"GET", "/readyz", "", "ready", 200, "{\"state\":\"ready\"}\n"},
		{"GET", "/readyz", "", "not ready", 503, "{\"state\":\"not ready\"}\n"},
		{"GET", "/readyz", "", "ending", 503, "{\"state\":\"ending\"}\n"},
		{"HEAD", "/readyz", "", "ready", 200, ""},
		{"POST", "/readyz", "", "ready", 405, "/readyz is read with GET\n"},
		{"GET", "/readyz", "https://evil.example", "ready", 403, "evil.example"},
	} {
		mux, w := http.NewServeMux(), httptest.NewRecorder()
		HandleState(mux, &Guard{}, func(*http.Request) string { return tt.state })
		r := httptest.NewRequest(tt.method, "http://127.0.0.1"+tt.path, nil)
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		mux.ServeHTTP(w, r)
		body := w.Body.String()
		if tt.method == "HEAD" {
			body = "" // net/http leaves it out
		}
		if w.Code != tt.status || !strings.Contains(body, tt.body) || tt.status != 403 && body != tt.body {
			t.Errorf("%s %s from %q, %s = %d %q, want %d %q", tt.method, tt.path, tt.origin, tt.state, w.Code, body, tt.status, tt.body)
		}
	}
}
