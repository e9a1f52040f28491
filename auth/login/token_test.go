package login

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Secrets do not print. XAUTH-26-019.
func TestSecretsDoNotPrint(t *testing.T) {
	for _, v := range []any{Credentials{ID: "id", Secret: "hidden"}, &Credentials{ID: "id", Secret: "hidden"}, &token{access: "hidden", refresh: "hidden"}, identity{Credentials: Credentials{ID: "id", Secret: "hidden"}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hidden") {
				t.Errorf("%s of %T is %s", verb, v, got)
			}
		}
	}
}

// A key that is missing is an error, and does not panic.
func TestKeyIsMissing(t *testing.T) {
	err := authenticate(&place{}, &identity{Credentials: Credentials{ID: "me"}, method: methodKey}, url.Values{}, http.Header{})
	if err == nil || !strings.Contains(err.Error(), "Registered") {
		t.Errorf("error %v", err)
	}
}
