package jsonx

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestWithout(t *testing.T) {
	for _, tt := range []struct {
		in    string
		names []string
		want  string
	}{
		{`{"a":1,"b":2,"c":3}`, []string{"b"}, `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"a"}, `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"c"}, `{"a":1,"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []string{"a", "b", "c"}, `{}`},
		{`{"a":1,"b":2,"c":3}`, nil, `{"a":1,"b":2,"c":3}`},
		{` { "a" : 1 , "\u0062":[ 2 ] } `, []string{"b"}, ` { "a" : 1 } `},
		{` { "a" : 1 , "b":[ 2 ] } `, []string{"a"}, ` { "b":[ 2 ] } `},
		{`{}`, []string{"a"}, `{}`},
		{` { } `, []string{"a"}, ` { } `},
		{`[1]`, []string{"a"}, `[1]`},
		{``, []string{"a"}, ``},
	} {
		if got := string(Without([]byte("x"), []byte(tt.in), tt.names...)); got != "x"+tt.want {
			t.Errorf("Without(%q, %q) = %q, want %q", tt.in, tt.names, got, "x"+tt.want)
		}
	}
}

func TestWith(t *testing.T) {
	for _, tt := range []struct{ in, name, value, want string }{
		{`{"a":1,"b":2}`, "a", `[9]`, `{"a":[9],"b":2}`},
		{`{"a":1,"b": 2 }`, "b", `9`, `{"a":1,"b": 9 }`},
		{`{"a":1,"\u0062":2}`, "b", `9`, `{"a":1,"\u0062":9}`},
		{`{"a":1 }`, "b\n", `9`, `{"a":1,"b\n":9 }`},
		{`{}`, "a", `1`, `{"a":1}`},
		{` { } `, "a", `1`, ` {"a":1 } `},
		{``, "a", `1`, `{"a":1}`},
		{`null`, "a", `1`, `{"a":1}`},
	} {
		if got := string(With([]byte("x"), []byte(tt.in), tt.name, []byte(tt.value))); got != "x"+tt.want {
			t.Errorf("With(%q, %q, %q) = %q, want %q", tt.in, tt.name, tt.value, got, "x"+tt.want)
		}
	}
}

func TestWithIn(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"b": {"c":[2] } ,"d":3}`: `{"a":1,"b": {"c":[2],"n":9 } ,"d":3}`,
		`{"b":{"n":{"n":1},"c":2}}`:      `{"b":{"n":9,"c":2}}`,
		`{"\u0062":{},"n":1}`:            `{"\u0062":{"n":9},"n":1}`,
		`{"b":null}`:                     `{"b":{"n":9}}`,
		` { "a":{"b":{}} } `:             ` { "a":{"b":{}},"b":{"n":9} } `,
		``:                               `{"b":{"n":9}}`,
	} {
		if got := string(WithIn([]byte("x"), []byte(in), "b", "n", []byte("9"))); got != "x"+want {
			t.Errorf("WithIn(%q) = %q, want %q", in, got, "x"+want)
		}
	}
}

// The members that are kept form an object in their order, also when the result overwrites its
// input.
func TestFilter(t *testing.T) {
	const obj = ` { "a":1 , "b" : "x\"}" ,"c":[1,{"a":2}],"d":{"b":[]} , "e":null,"f":"\\" } `
	all := []string{"a", "b", "c", "d", "e", "f"}
	for set := range 1 << len(all) {
		var want, got, seen []string
		keep := func(name []byte, value json.RawMessage) bool {
			i := slices.Index(all, string(name))
			seen = append(seen, string(name)+string(value))
			return set&(1<<i) != 0
		}
		for name, value := range Members([]byte(obj)) {
			if keep(name, value) {
				want = append(want, string(name)+string(value))
			}
		}
		members := seen
		seen = nil
		out := Filter([]byte("x"), []byte(obj), keep)
		if !slices.Equal(seen, members) {
			t.Fatalf("keep was asked of %q", seen)
		}
		if !json.Valid(out[1:]) {
			t.Fatalf("of the set %06b is left %q", set, out)
		}
		for name, value := range Members(out[1:]) {
			got = append(got, string(name)+string(value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of the set %06b is left %q", set, out)
		}
		own := []byte(obj)
		if in := Filter(own[:0], own, keep); string(in) != string(out[1:]) {
			t.Errorf("in place of the set %06b is left %q, else %q", set, in, out[1:])
		}
	}
}
