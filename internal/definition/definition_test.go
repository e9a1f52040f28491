package definition

import (
	"encoding/json"
	"testing"
)

// Spaces, escapes, the order of members, icons and _meta make no difference, and all other members do.
func TestDigest(t *testing.T) {
	same := Digest(json.RawMessage(`{"name":"buy","description":"Buys","new":1}`))
	for text, want := range map[string]bool{
		`{ "new": 1, "description": "\u0042uys", "name": "buy", "icons": [], "_meta": {"a": 1} }`: true,
		`{"name":"buy","description":"Buys!","new":1}`:                                            false,
		`{"name":"buy","description":"Buys"}`:                                                     false,
	} {
		if got := Digest(json.RawMessage(text)) == same; got != want {
			t.Errorf("the digest of %s is the same: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{"", "null", "[]", `{"name":`} {
		if got := Digest(json.RawMessage(bad)); got != "" {
			t.Errorf("Digest(%q) = %q, want none", bad, got)
		}
	}
}

// A digest is computed once, without allocations later, and names without a definition are not kept.
func TestDigests(t *testing.T) {
	var d Digests
	asked := 0
	of := func(name string, raw json.RawMessage) string {
		return d.Of(name, func() json.RawMessage {
			asked++
			return raw
		})
	}
	for range 3 {
		if got := of("buy", json.RawMessage(`{"name":"buy"}`)); got != Digest(json.RawMessage(`{"name":"buy"}`)) {
			t.Errorf("the digest is %q", got)
		}
		of("none", nil)
	}
	if asked != 1+3 || len(d.made) != 1 {
		t.Errorf("%d definitions were asked for and %d are kept, want 4 and 1", asked, len(d.made))
	}
	if n := testing.AllocsPerRun(100, func() { of("buy", nil) }); n != 0 {
		t.Errorf("%v allocations for a known tool", n)
	}
}
