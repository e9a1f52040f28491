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
	// Careless ones: with a line break, with spaces around them, in more than one line.
	for _, value := range []string{"the-value\n", "the-value\r\n", " the-value ", "-----BEGIN PRIVATE KEY-----\nthe-value\n-----END PRIVATE KEY-----\n"} {
		for _, args := range [][]string{
			{"--request-header", "Authorization=" + value}, {"--credential", "key=" + value}, {"--credential=key=" + value}, {"--token=" + value}, {"--token", value},
			{"--env=API_KEY=" + value}, {"--header", "Authorization: " + value},
		} {
			if shown := strings.Join(secrets.ShownArgs(args), " "); strings.Contains(shown, "the-value") {
				t.Errorf("%q is shown as %q", args, shown)
			}
		}
	}
	known := secrets.Of(config.Server{Builtin: "openapi", Args: args})
	for _, want := range []string{"the-value-of-a-header", "the-value-of-a-key"} {
		if !slices.Contains(known, want) {
			t.Errorf("%q is not among the secrets %q", want, known)
		}
	}
}
