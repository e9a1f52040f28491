package principal_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/principal"
)

// The innermost identity counts, and an empty one counts too.
func TestFrom(t *testing.T) {
	ctx := t.Context()
	if id := principal.From(ctx); id != "" {
		t.Errorf("an empty context has the principal %q", id)
	}
	ada := principal.With(ctx, "as#ada")
	if id := principal.From(ada); id != "as#ada" {
		t.Errorf("From = %q, want as#ada", id)
	}
	if id := principal.From(principal.With(ada, "")); id != "" {
		t.Errorf("From = %q behind a context in which nobody is calling", id)
	}
}
