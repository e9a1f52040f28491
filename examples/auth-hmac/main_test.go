package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Callers without a valid credential are refused, and others admitted.
func TestExample(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	t.Setenv("SECRET", secret)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{"sub":"alice","exp":9999999999}`))
	if err != nil {
		t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	h := handler()
	for credential, want := range map[string]int{"": http.StatusUnauthorized, "Bearer no.such.token": http.StatusUnauthorized, "Bearer " + token: http.StatusOK} {
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
