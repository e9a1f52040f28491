package main

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A token opens the tools of its scopes, on every revision, and each call is logged.
func TestScopes(t *testing.T) {
	var logs bytes.Buffer
	log.SetOutput(&logs)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler("https://login.example.com", public))
	defer web.Close()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(scopes string) http.Header {
		claims := `{"iss":"https://login.example.com","aud":"https://shop.example.com/mcp","sub":"ada","exp":9999999999,"scope":%q}`
		signed, err := signer.Sign(fmt.Appendf(nil, claims, scopes))
		if err != nil {
			t.Fatal(err)
		}
		compact, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return http.Header{"Authorization": {"Bearer " + compact}}
	}
	for _, rev := range mcp.Revisions() {
		for scopes, refunds := range map[string]bool{"shop": false, "shop shop:refund": true} {
			client := &mcp.Client{Revisions: []mcp.Revision{rev}, Header: token(scopes)}
			s, err := client.Dial(t.Context(), web.URL+"/mcp")
			if err != nil {
				t.Fatalf("%s: %v", rev, err)
			}
			if got, err := mcp.CallAs[string](t.Context(), s, "search", nil); err != nil || got != "search is done" {
				t.Errorf("%s: search = %q, %v", rev, got, err)
			}
			if _, err := mcp.CallAs[string](t.Context(), s, "refund", nil); (err == nil) != refunds {
				t.Errorf("%s: refund with %q: %v", rev, scopes, err)
			}
			s.Close()
		}
	}
	if _, err := new(mcp.Client).Dial(t.Context(), web.URL+"/mcp"); err == nil {
		t.Error("a caller without a token was admitted")
	}
	for path, want := range map[string]string{"/": "The shop", "/.well-known/oauth-protected-resource/mcp": "login.example.com"} {
		res, err := http.Get(web.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s = %d %s, want %s", path, res.StatusCode, body, want)
		}
	}
	if got := logs.String(); strings.Count(got, ` ada "search"`) != 10 || strings.Count(got, ` ada "refund"`) != 10 {
		t.Errorf("the log:\n%s", got)
	}
}
