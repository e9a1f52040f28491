package interop

import (
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// person is a person with a browser who knows the pages of the authorization server.
type person struct {
	*browser.Person
	t *testing.T
}

func newPerson(t *testing.T) *person {
	t.Helper()
	return &person{browser.New(t), t}
}
