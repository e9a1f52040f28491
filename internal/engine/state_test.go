package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

func sealer(t testing.TB, name string, keys ...string) *Sealer {
	t.Helper()
	var ring [][]byte
	for _, k := range keys {
		ring = append(ring, []byte(strings.Repeat(k, 32)))
	}
	if ring == nil {
		return NewSealer(name, nil, time.Minute, nil)
	}
	return NewSealer(name, func() ([][]byte, error) { return ring, nil }, time.Minute, nil)
}

var kept = state{Round: 2, Answers: map[string]json.RawMessage{"q": json.RawMessage(`{"action":"accept"}`)}, Kept: map[string]json.RawMessage{"once:k": json.RawMessage(`[1]`)}}

// MRTR-26: the first key of a ring seals and all open, so that keys can be changed without losing
// calls; servers with different names do not accept each other's states. The state is encrypted
// in transit (ELIC-26-019).
func TestKeyRing(t *testing.T) {
	bound := []byte("this call")
	token, err := sealer(t, "s", "a").seal(t.Context(), kept, bound)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || bytes.Contains(raw, []byte("accept")) || bytes.Contains(raw, []byte("once")) {
		t.Errorf("the sealed state %q can be read", raw)
	}
	tests := []struct {
		name string
		s    *Sealer
		want bool
	}{
		{"the same key", sealer(t, "s", "a"), true},
		{"a newer key before it", sealer(t, "s", "b", "a"), true},
		{"another key", sealer(t, "s", "b"), false},
		{"another server", sealer(t, "other", "a"), false},
		{"a key made up", sealer(t, "s"), false},
	}
	for _, tt := range tests {
		got, err := tt.s.open(t.Context(), token, bound)
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.want && (got.Round != 2 || string(got.Answers["q"]) != `{"action":"accept"}` || string(got.Kept["once:k"]) != `[1]`) {
			t.Errorf("%s: state %+v", tt.name, got)
		}
	}
	if _, err := sealer(t, "s", "a").open(t.Context(), token, []byte("another call")); err == nil {
		t.Error("a state opens for another call")
	}
	for _, keys := range [][][]byte{{[]byte("short")}, {}} {
		if _, err := NewSealer("s", func() ([][]byte, error) { return keys, nil }, 0, nil).seal(t.Context(), kept, bound); err == nil {
			t.Errorf("the keys %q are taken", keys)
		}
	}
}

// MRTR-26: the keys of a server that runs may change. A state that was sealed before opens as long as its key is there.
func TestKeysChange(t *testing.T) {
	bound, now := []byte("this call"), [][]byte{bytes.Repeat([]byte("a"), 32)}
	s := NewSealer("s", func() ([][]byte, error) { return now, nil }, time.Minute, nil)
	token, err := s.seal(t.Context(), kept, bound)
	if err != nil {
		t.Fatal(err)
	}
	opens := func(s *Sealer, want bool) {
		t.Helper()
		if _, err := s.open(t.Context(), token, bound); (err == nil) != want {
			t.Errorf("open with the keys %q: %v", now, err)
		}
	}
	now = [][]byte{bytes.Repeat([]byte("b"), 32), now[0]}
	opens(s, true)
	if token, err = s.seal(t.Context(), kept, bound); err != nil {
		t.Fatal(err)
	}
	opens(sealer(t, "s", "a"), false)
	opens(sealer(t, "s", "b"), true)
	now[0] = bytes.Repeat([]byte("c"), 32) // in place
	opens(s, false)
}

func TestStateTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sealer(t, "s", "a")
		token, err := s.seal(t.Context(), kept, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := s.open(t.Context(), token, nil); err != nil {
			t.Errorf("after its minute: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.open(t.Context(), token, nil); err == nil {
			t.Error("a state outlives its time")
		}
	})
}

func TestStateIsBounded(t *testing.T) {
	large := state{Kept: map[string]json.RawMessage{"k": json.RawMessage(`"` + strings.Repeat("x", maxState) + `"`)}}
	if _, err := sealer(t, "s", "a").seal(t.Context(), large, nil); err == nil || !strings.Contains(err.Error(), "StateConfig.Store") {
		t.Errorf("a large state: %v; want the way out", err)
	}
}

// The digest differs for different calls, and only for those.
func TestBind(t *testing.T) {
	digest := func(principal, frame string) string {
		m, err := jsonrpc.Decode([]byte(frame), jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return string(bind(&m, principal))
	}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	want := digest("ada", call(`{"name":"a","arguments":{"x":1,"y":[1,2]}}`))
	for _, same := range []string{
		`{"arguments":{"y":[1,2],"x":1},"name":"a"}`,
		`{ "name" : "a", "arguments": {"x":1, "y":[1, 2]} }`,
		`{"name":"a","arguments":{"x":1,"y":[1,2]},"_meta":{"progressToken":7},"requestState":"s","inputResponses":{}}`,
	} {
		if digest("ada", call(same)) != want {
			t.Errorf("%s is another call", same)
		}
	}
	for _, other := range []string{
		`{"name":"b","arguments":{"x":1,"y":[1,2]}}`,
		`{"name":"a","arguments":{"x":2,"y":[1,2]}}`,
		`{"name":"a","arguments":{"x":1,"y":[2,1]}}`,
		`{"name":"a","arguments":{"x":1,"y":[1,2],"z":null}}`,
		`{"name":"a"}`,
	} {
		if digest("ada", call(other)) == want {
			t.Errorf("%s is the same call", other)
		}
	}
	if digest("bob", call(`{"name":"a","arguments":{"x":1,"y":[1,2]}}`)) == want || digest("", call(`{"name":"a","arguments":{"x":1,"y":[1,2]}}`)) == want {
		t.Error("another principal makes the same call")
	}
	// Lengths are part of the digest: no principal can pretend to be part of a method.
	if digest("a 5 b", `{"jsonrpc":"2.0","id":1,"method":"c"}`) == digest("a", `{"jsonrpc":"2.0","id":1,"method":"b 1 c"}`) {
		t.Error("principal and method run into each other")
	}
}

// FuzzOpen: only sealed states open. The key differs from process to process, so a state that
// opens is recognized by its content.
func FuzzOpen(f *testing.F) {
	s := sealer(f, "s", "a", "b")
	token, err := s.seal(f.Context(), kept, []byte("bound"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add("")
	f.Add(strings.Repeat("A", 100))
	f.Fuzz(func(t *testing.T, in string) {
		got, err := s.open(t.Context(), in, []byte("bound"))
		if err != nil {
			if got.Round != 0 || got.Answers != nil || got.Kept != nil {
				t.Fatalf("open(%q) returned both %+v and %v", in, got, err)
			}
			return
		}
		if got.Round != kept.Round || string(got.Answers["q"]) != string(kept.Answers["q"]) || len(got.Kept) != 1 {
			t.Fatalf("%q opens as %+v, which nobody sealed", in, got)
		}
	})
}
