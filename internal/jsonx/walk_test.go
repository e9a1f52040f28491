package jsonx

import (
	"fmt"
	"strings"
	"testing"
)

func TestKindOf(t *testing.T) {
	for in, want := range map[string]byte{
		` {}`: '{', "\n[1]": '[', `"a"`: '"', `-1`: '0', `7`: '0', `true`: 't', `false`: 'f', `null`: 'n', ``: 0, ` `: 0, `x`: 0, `}`: 0,
	} {
		if got := KindOf([]byte(in)); got != want {
			t.Errorf("KindOf(%q) = %q, want %q", in, got, want)
		}
	}
}

const walked = ` { "a" : 1 , "b\"\u0063" : "x,}]\"" , "c":{"d":[1,{"e":null}],"":true}, "f":[ ] } `

func TestMembers(t *testing.T) {
	var got []string
	for name, value := range Members([]byte(walked)) {
		got = append(got, fmt.Sprintf("%s=%s", name, value))
	}
	want := []string{`a=1`, `b"c="x,}]\""`, `c={"d":[1,{"e":null}],"":true}`, `f=[ ]`}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("Members = %q, want %q", got, want)
	}
	for _, in := range []string{``, `[]`, `{}`, ` { } `, `null`, `"{"`, `{`, `{"a`, `{"a":`, `{"a" 1}`} {
		for name := range Members([]byte(in)) {
			t.Errorf("Members(%q) has %q", in, name)
		}
	}
	for range Members([]byte(walked)) {
		break
	}
}

func TestElements(t *testing.T) {
	var got []string
	for value := range Elements([]byte(` [ 1 , [2,3] ,"a]" , {"x":[]},null ] `)) {
		got = append(got, string(value))
	}
	if want := `["1" "[2,3]" "\"a]\"" "{\"x\":[]}" "null"]`; fmt.Sprintf("%q", got) != want {
		t.Errorf("Elements = %q, want %s", got, want)
	}
	for _, in := range []string{``, `[]`, ` [ ] `, `{}`, `1`} {
		for value := range Elements([]byte(in)) {
			t.Errorf("Elements(%q) has %q", in, value)
		}
	}
}

func TestLookupPath(t *testing.T) {
	for _, tt := range []struct {
		path []string
		want string
		ok   bool
	}{
		{[]string{"a"}, `1`, true},
		{[]string{`b"c`}, `"x,}]\""`, true},
		{[]string{"c", "d"}, `[1,{"e":null}]`, true},
		{[]string{"c", ""}, `true`, true},
		{[]string{"A"}, ``, false},
		{[]string{"a", "b"}, ``, false},
		{[]string{"e"}, ``, false},
		{nil, walked, true},
	} {
		got, ok := LookupPath([]byte(walked), tt.path...)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("LookupPath(%q) = %q, %v, want %q, %v", tt.path, got, ok, tt.want, tt.ok)
		}
	}
}

func TestWalkingAllocatesNothing(t *testing.T) {
	obj := []byte(`{"a":1,"b":{"c":[1,2,3]}}`)
	sum := 0
	n := testing.AllocsPerRun(100, func() {
		for name, value := range Members(obj) {
			sum += len(name) + len(value)
		}
		v, _ := LookupPath(obj, "b", "c")
		for e := range Elements(v) {
			sum += len(e)
		}
	})
	if n != 0 || sum == 0 {
		t.Errorf("walking allocates %v times, want none", n)
	}
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		" { \"a b\" :\n[ 1 ,\t2 ] } ": `{"a b":[1,2]}`, `"\" "`: `"\" "`, ``: ``, ` `: ``,
	} {
		if got := string(Compact([]byte("x"), []byte(in))); got != "x"+want {
			t.Errorf("Compact(%q) = %q, want %q", in, got, "x"+want)
		}
	}
}

func TestAppendLine(t *testing.T) {
	for in, want := range map[string]string{
		"{\r\n  \"a\": \"\\n\"\n}": `{  "a": "\n"}`, `{"a": 1}`: `{"a": 1}`, "": "",
	} {
		if got := string(AppendLine(nil, []byte(in))); got != want {
			t.Errorf("AppendLine(%q) = %q, want %q", in, got, want)
		}
	}
}

// SkipString and ScanString find the same end of a string of any length.
func TestSkipString(t *testing.T) {
	for _, unit := range []string{"x", `\n`, `\\`, `\"`, `é`, `\\\"`, `0123456789012345678901234567890123456789012\n`} {
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 55, 56, 57, 62, 63, 64, 65, 66, 71, 72, 73, 200, 1000} {
			for _, head := range []string{"", "a", `\t`, "abcdefg", `\u00e9`} {
				for _, tail := range []string{"", `,"more"`, `\"`} {
					in := []byte(`"` + head + strings.Repeat(unit, n) + `"` + tail)
					want, escaped, err := scanString(in, 0)
					if err != nil {
						t.Fatal(err)
					}
					if next, e := skipString(in, 0); next != want || e != escaped {
						t.Fatalf("%.60q of %d bytes: skipped to %d, escaped %t; want %d, %t", in, len(in), next, e, want, escaped)
					}
					if next := skipText(in, 0); next != want {
						t.Fatalf("%.60q of %d bytes: skipped to %d as text; want %d", in, len(in), next, want)
					}
				}
			}
		}
	}
	for _, broken := range []string{`"`, `"\`, `"` + strings.Repeat("x", 500), `"` + strings.Repeat("x", 500) + `\`, `"` + strings.Repeat(`\`, 501)} {
		if next, _ := skipString([]byte(broken), 0); next != len(broken) {
			t.Errorf("%.20q of %d bytes: skipped to %d", broken, len(broken), next)
		}
		if next := skipText([]byte(broken), 0); next != len(broken) {
			t.Errorf("%.20q of %d bytes: skipped to %d as text", broken, len(broken), next)
		}
	}
}

func TestOnly(t *testing.T) {
	for obj, want := range map[string]string{`{"result":[1]}`: `[1]`, ` { "result" : null } `: `null`, `{"result":1,"a":2}`: "", `{"a":1}`: "", `{}`: "", `[1]`: "", `"result"`: ""} {
		if got := Only([]byte(obj), "result"); string(got) != want {
			t.Errorf("Only(%s) = %q, want %q", obj, got, want)
		}
	}
}
