package auth

import (
	"strings"
	"testing"
)

// The addresses of keys are checked likewise: a public issuer cannot name an address inside.
func TestKeysInside(t *testing.T) {
	for _, at := range []string{"https://127.0.0.1:1/keys", "https://[::ffff:169.254.169.254]:1/keys", "https://[64:ff9b::a00:1]:1/keys"} {
		f, err := issuerFetcher("https://8.8.8.8", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readKeys(t.Context(), f, "https://8.8.8.8", at); err == nil || !strings.Contains(err.Error(), "inside of this network") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
