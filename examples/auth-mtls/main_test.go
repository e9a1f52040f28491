package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Callers without a valid credential are refused.
func TestExample(t *testing.T) {
	h := handler()
	for credential, want := range map[string]int{"": http.StatusUnauthorized, "Bearer no.such.token": http.StatusUnauthorized, "Negotiate abc": http.StatusUnauthorized} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if credential != "" {
			r.Header.Set("Authorization", credential)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("with %q: %d, %s, want %d", credential, w.Code, w.Body, want)
		}
	}
}
