package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// All faults of a file are reported at once, each with its place and a fix.
func TestParseTellsAllFaults(t *testing.T) {
	const text = `default: perhaps
rules:
  - name: look
    when: kind == "tools" && annotations.readonlyHint
    effect: alow
  - name: look
    when: |
      kind == "tool" &&
        nmae == "x"
    effect: allow
    scopes: [a]
  - name: three
    when: name == 5
    efect: allow
  - {name: four, effect: deny, when: 'name.startsWith("x"', shov: true}
  - {name: five, effect: deny, when: 'name', show: true}
  - {name: six, effect: deny, when: 'name.matches("[")', scopes: [a b]}
  - {name: seven, effect: deny, when: 'kind in ["prompt", "resorce"]', scopes: []}
  - {effect: deny}
  - nonsense
`
	const want = `p.yaml:1:10: unknown effect "perhaps"; use allow or deny
p.yaml:4:41: rule "look": there is no field "readonlyHint"; did you mean "readOnlyHint"?
p.yaml:5:13: unknown effect "alow"; use allow or deny
p.yaml:6:5: rule "look" is in line 3 already; name it differently
p.yaml:9:9: rule "look": there is no "nmae"; did you mean "name"?
p.yaml:11:13: scopes is for refusals, but rule "look" allows; remove it
p.yaml:12:5: rule "three" has no effect; add effect: allow or effect: deny
p.yaml:13:16: rule "three": "==" does not apply to string, int
p.yaml:14:5: a rule has no member "efect"; did you mean "effect"?
p.yaml:15:58: rule "four": the expression ends too early
p.yaml:15:61: a rule has no member "shov"; did you mean "show"?
p.yaml:16:38: rule "five": the condition is a string and must be true or false; compare it with something, as in kind == "tool"
p.yaml:16:52: show needs scopes, and rule "five" has none; add scopes:
p.yaml:17:51: rule "six": this is not a regular expression; see github.com/google/re2/wiki/Syntax
p.yaml:17:67: "a b" is not a scope (RFC 6749, 3.3)
p.yaml:18:59: rule "seven": kind is never "resorce"; did you mean "resource"?
p.yaml:18:80: the list of scopes is empty; remove it
p.yaml:19:5: a rule has no name; add name:
p.yaml:19:5: rule "" has no condition; add when:; when: true is always
p.yaml:20:5: a rule must be a mapping, name: value`
	set, err := rules.Parse("p.yaml", []byte(text))
	var all rules.Problems
	if !errors.As(err, &all) || set != nil {
		t.Fatalf("Parse = %v, %v, want problems", set, err)
	}
	if err.Error() != want {
		t.Errorf("faults:\n%s\nwant:\n%s", err, want)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "p:1:1: the file is empty; begin with rules:"},
		{"a comment", "# no\n", "p:1:1: the file is empty; begin with rules:"},
		{"no rules", "default: allow\n", "p:1:1: the file has no rules; add rules:"},
		{"a list", "- a\n", "p:1:1: the file must be a mapping, name: value"},
		{"rules that are none", "rules: 5\n", `p:1:8: rules must be a list; begin each rule with "- name:"`},
		{"no YAML", "rules: [\n", "did not find expected node content"},
		{"two documents", "rules: []\n---\nrules: []\n", "p:2:1: the file has several documents; keep one"},
		{"a member twice", "rules: []\nrules: []\n", `p:2:1: the file has "rules" twice; keep one`},
		{"an alias", "default: &a deny\nrules: []\n", "p:1:10: default: anchors and aliases are not supported; write it out"},
		{"no UTF-8", "rules: \xff\n", "p:1:1: the file is not text in UTF-8"},
		{"too much", strings.Repeat("#", 1<<20+1), "p:1:1: the file has more than 1048576 bytes"},
		{"too long a condition", "rules: [{name: a, effect: deny, when: '" + strings.Repeat("true && ", 1001) + "true'}]", `p:1:39: rule "a": expression code point size exceeds limit: size: 8012, limit 8000`},
		{"a regular expression that takes too much", `rules: [{name: a, effect: deny, when: 'name.matches("(((a{99}){99}){99}")'}]`, `rule "a": `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rules.Parse("p", []byte(tt.text))
			var all rules.Problems
			if !errors.As(err, &all) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse(%.60q) = %v, want %q", tt.text, err, tt.want)
			}
		})
	}
}

// The same in JSON, with tabs, and a byte order mark; and from a file.
func TestParseJSON(t *testing.T) {
	text := "\ufeff{\n\t\"default\": \"allow\",\n\t\"rules\": [{\"name\": \"no\", \"when\": \"name == \\\"x\\\"\", \"effect\": \"deny\", \"scopes\": \"one\", \"show\": true}]\n}\n"
	path := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := rules.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Decide(t.Context(), &policy.Access{Kind: mcp.KindTool, Name: "y"}); !d.Allow || d.Rule != "default" || s.Len() != 1 {
		t.Errorf("y: %+v", d)
	}
	if d := s.Decide(t.Context(), &policy.Access{Kind: mcp.KindTool, Name: "x"}); d.Allow || len(d.Scopes) != 1 || !d.Show {
		t.Errorf("x: %+v", d)
	}
	if _, err := rules.Load(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Any file gives either rules or faults, and every fault has a place in the file.
func FuzzParse(f *testing.F) {
	f.Add(shop)
	f.Add("{\"rules\":[{\"name\":\"a\",\"when\":\"true\",\"effect\":\"allow\"}]}")
	f.Add("rules:\n- when: >\n    a ==\n    b\n  name: x\n  effect: deny")
	f.Add("rules: [{name: \"a\\n\", when: |2\n\n  kind\n, effect: *x}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := rules.Parse("p", []byte(text))
		if (s == nil) == (err == nil) {
			t.Fatalf("Parse(%q) = %v, %v", text, s, err)
		}
		var all rules.Problems
		if err != nil && (!errors.As(err, &all) || len(all) == 0) {
			t.Fatalf("Parse(%q): %v is no list of problems", text, err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range all {
			if p.Line < 1 || p.Line > lines+1 || p.Column < 1 || p.Text == "" {
				t.Errorf("Parse(%q): %+v is nowhere", text, p)
			}
		}
		if s != nil {
			s.Decide(t.Context(), &policy.Access{Kind: mcp.KindTool, Name: "a"})
		}
	})
}

// The rules in the documentation are valid.
func TestDocumentedRules(t *testing.T) {
	for _, path := range []string{"../../docs/policy.md", "doc.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		from, to, comment := "```yaml\n", "```", ""
		if path == "doc.go" {
			from, to, comment = "//	# YAML", "//\n// A rule has", "//	"
		}
		_, rest, found := strings.Cut(string(text), from)
		block, _, ended := strings.Cut(rest, to)
		if !found || !ended {
			t.Fatalf("%s shows no rules", path)
		}
		block = strings.ReplaceAll("#"+comment+block, comment, "")
		if set, err := rules.Parse(path, []byte(block)); err != nil || set.Len() < 3 {
			t.Errorf("%v, %v\n%s", set, err, block)
		}
	}
}
