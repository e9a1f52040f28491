package yamlfile_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// A name is text, not an anchor or an alias.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ file, fault string }{
		{"a: 1\nb: 2\n", ""},
		{"a: 1\nc: 2\n", `f:2:1: the file has no member "c"; there are a, b`},
		{"a: 1\na: 2\n", `f:2:1: the file has "a" twice`},
		{"&a a: 1\n", "f:1:1: a name in the file must be text, with no anchor or alias"},
		{"a: &b x\n*b : 1\n", "f:2:1: a name in the file must be text, with no anchor or alias"},
		{"{a: 1}: 2\n", "f:1:1: a name in the file must be text, with no anchor or alias"},
		{"[a]: 2\n", "f:1:1: a name in the file must be text, with no anchor or alias"},
		{"a: 1\n<<: {b: 2}\n", `f:2:1: the file has no member "<<"`},
	} {
		for _, closed := range []bool{true, false} {
			r := &yamlfile.Reader{Path: "f"}
			names := map[string]bool{}
			n := r.Root([]byte(tt.file), "a:")
			if n == nil {
				t.Fatal(r.Faults())
			}
			if closed {
				see := func(name string) func(*yaml.Node) { return func(*yaml.Node) { names[name] = true } }
				r.Mapping(n, "the file", map[string]func(*yaml.Node){"a": see("a"), "b": see("b")})
			} else {
				r.Members(n, "the file", func(key, _ *yaml.Node) { names[key.Value] = true })
			}
			got := r.Faults().Error()
			if !closed && strings.Contains(tt.fault, "no member") {
				continue // any name will do
			}
			if tt.fault == "" && got != "" || !strings.Contains(got, tt.fault) {
				t.Errorf("%q has the faults %q, want %q", tt.file, got, tt.fault)
			}
			if names[""] {
				t.Errorf("%q: a member with no name was read", tt.file)
			}
		}
	}
}
