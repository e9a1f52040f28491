package auth_test

import (
	"net/http/httptest"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
)

// The requests with one key or password have one principal: what is kept for a credential is found again.
func TestOneCredentialIsOnePrincipal(t *testing.T) {
	key, entry := auth.NewAPIKey("ada")
	hash, err := auth.HashPassword("secret")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by       auth.Verifier
		password string
	}{
		"API key":  {&auth.APIKeys{Keys: []auth.APIKey{entry}}, key},
		"password": {&auth.Basic{Users: map[string]string{"ada": hash}}, "secret"},
	} {
		var all []*auth.Principal
		for range 2 {
			r := httptest.NewRequest("POST", "/", nil)
			r.SetBasicAuth("ada", c.password)
			p, err := c.by.Verify(r)
			if err != nil {
				t.Fatal(name, err)
			}
			all = append(all, p)
		}
		if all[0] != all[1] {
			t.Errorf("%s: each request has a principal of its own", name)
		}
	}
}
