package pattern_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

func TestLazy(t *testing.T) {
	invalid := pattern.Lazy(`(`) // is not compiled here
	digits := pattern.Lazy(`^[0-9]+$`)
	first := digits()
	if !first.MatchString("12") || first.MatchString("x") {
		t.Error("the expression does not match as it should")
	}
	if digits() != first {
		t.Error("the expression is compiled twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression does not panic")
		}
	}()
	invalid()
}
