package main

import (
	"encoding/json"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/schema"
)

// TestExamplesAreHarmless: a shell into which an example is pasted does not run text of the
// server's schema, and the example has no characters that shells or terminals obey.
func TestExamplesAreHarmless(t *testing.T) {
	for _, value := range []string{"$TOKEN", "$TOKEN $(id)", "a\nid", "\x1b[31mred"} {
		quoted, _ := json.Marshal(value)
		input := []byte(`{"type":"object","properties":{"a":{"type":"string","examples":[` + string(quoted) + `]}},"required":["a"]}`)
		form, err := schema.FormOf(input)
		if err != nil {
			t.Fatal(err)
		}
		if got := arguments.Call((&app{secrets: secrets.New(), globals: &globals{}}).other, "t", form, input); got != "" {
			t.Errorf("example with the value %q = %q, want none", value, got)
		}
	}
	if got, want := shell([]string{"$TOKEN $(id)", "Authorization: Bearer $TOKEN"}), `'$TOKEN $(id)' "Authorization: Bearer $TOKEN"`; got != want {
		t.Errorf("shell = %s, want %s", got, want)
	}
}
