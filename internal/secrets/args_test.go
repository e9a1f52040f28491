package secrets_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// Credentials and headers of an HTTP API, which are arguments of a built-in server, are secrets by their names.
func TestArgumentsOfOpenAPI(t *testing.T) {
	args := []string{"pets.yaml", "--request-header", "X-Secret-Token=the-value-of-a-header", "--credential", "key=the-value-of-a-key", "--request-header", "X-Team=blue", "--base", "https://a.example"}
	if shown := strings.Join(secrets.ShownArgs(args), " "); strings.Contains(shown, "the-value") || !strings.Contains(shown, "X-Team=blue") {
		t.Errorf("shown as %s", shown)
	}
	known := secrets.Of(config.Server{Builtin: "openapi", Args: args})
	for _, want := range []string{"the-value-of-a-header", "the-value-of-a-key"} {
		if !slices.Contains(known, want) {
			t.Errorf("%q is not among the secrets %q", want, known)
		}
	}
}
