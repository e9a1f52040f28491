package screen

import "testing"

func TestPaintedJSON(t *testing.T) {
	const in = "{\n  \"a\\\"b\": [\n    -1.5e3,\n    \"x: \\\\\",\n    true,\n    null\n  ]\n}"
	const want = "{\n  \x1b[34m\"a\\\"b\"\x1b[0m: [\n    \x1b[36m-1.5e3\x1b[0m,\n    \x1b[32m\"x: \\\\\"\x1b[0m,\n    \x1b[35mtrue\x1b[0m,\n    \x1b[35mnull\x1b[0m\n  ]\n}"
	if got := PaintJSON(in); got != want {
		t.Errorf("PaintJSON =\n%q, want\n%q", got, want)
	}
	for _, s := range []string{"", `"`, `"\`, "{]", "-", "\xff"} {
		if got := Unpainted(PaintJSON(s)); got != s {
			t.Errorf("PaintJSON(%q) says %q", s, got)
		}
	}
}

func TestIsJSON(t *testing.T) {
	for text, want := range map[string]bool{`{"a":1}`: true, " [1]\n": true, "12": false, "{a}": false, "": false, "[": false, "[link](x)": false} {
		if got := IsJSON(text); got != want {
			t.Errorf("IsJSON(%q) = %v, want %v", text, got, want)
		}
	}
}
