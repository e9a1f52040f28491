package jsonx

import "testing"

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
