package yamlfile_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// The usual mistakes have their place and a correction. Values, which may be secrets, are not in it.
func TestSyntax(t *testing.T) {
	for file, want := range map[string]string{
		"listen:\n\thttp: 1\n":                   "f:2:1: a tab indents the line; use spaces",
		"listen:\n  http: 1\n \tcert: a\n":       "f:3:2: a tab indents the line; use spaces",
		"servers:mcp.json\npolicy: a\n":          `f:1:8: no space follows the colon; write a space after "servers:"`,
		"listen:\n  cert: a\n  http:7420\n":      `f:3:7: no space follows the colon; write a space after "http:"`,
		"policy: a\nservers: \"mcp.json\n":       `f:2:10: the quote is not closed; close it with "`,
		"servers: 'mcp.json\npolicy: a\n\n\n":    "f:1:10: the quote is not closed; close it with '",
		"a: \"b\n  c\"\nb: \"ä\nlisten: \"a\"\n": `f:3:4: the quote is not closed; close it with "`,
		"b: 'it's'\n":                                      "f:1:8: text follows the closing quote; put the whole text in quotes, with two single quotes in place of each one in it",
		"limits:\n  - \"ä\" b\n":                           "f:2:9: text follows the closing quote; put the whole text in quotes",
		"listen:\n  http: a\n cert: b\n":                   "f:3:2: the indentation is that of no line above; indent it by 0 or 2 spaces",
		"auth:\n  - a\n - b\n":                             "f:3:2: the indentation is that of no line above; indent it by 0 or 2 spaces",
		"# a\n\nlisten:\n  http: 0.0.0.0:1\n   cert: a\n":  "f:5:4: the line is indented under line 4, which has a value; indent it by 2 spaces",
		"servers: a\n  policy: b\n":                        "f:2:3: the line is indented under line 1, which has a value; do not indent it",
		" servers: a\npolicy: b\n":                         "f:2:1: the indentation is less than that of line 1; indent it by 1 space",
		"rules:\n  - name: a\n    when: |\n\t\tx\n":        "f:4:1: a tab indents the line; use spaces",
		"auth: [a, b\npolicy: x\n":                         "f:1:1: did not find expected ',' or ']'; close the bracket, and write a comma between two values",
		"{\"servers\": \"a\" \"b\": 1}\n":                  "f:1:1: did not find expected ',' or '}'; close the bracket, and write a comma between two values",
		"servers: a: b\n":                                  "f:1:1: mapping values are not allowed in this context; put the text in quotes if it has a colon and a space, or check the indentation",
		"servers: @x\n":                                    "f:1:1: found character that cannot start any token; put the text in quotes",
		"limits: [*]\n":                                    "f:1:1: did not find expected alphabetic or numeric character; put a text that begins with * or & in quotes",
		"servers: \"C:\\mcp.json\"\n":                      `f:1:1: found unknown escape character; write \\ for a backslash, or use single quotes`,
		"servers: a\x01b\n":                                `f:1:1: control characters are not allowed; remove the character, or write it as \u0000 in quotes`,
		"a: b\n- c\n":                                      "f:1:1: did not find expected key; check the quotes, the colons and the indentation around it",
		"a: |\n  x:y \"\n\tb\n \" z\nb: 'c\n":              "f:5:4: the quote is not closed; close it with '",
		"a: |\n  x:y\n   z\nlimits:\n  - tool:x=1\n - b\n": "f:6:2: the indentation is that of no line above; indent it by 0 or 2 spaces",
	} {
		r := &yamlfile.Reader{Path: "f"}
		if n := r.Root([]byte(file), "a:"); n != nil || r.Faults().Error() != want {
			t.Errorf("%q has the faults\n%v, want\n%s", file, r.Faults(), want)
		}
	}
	r := &yamlfile.Reader{Path: "f"}
	n := r.Root([]byte("listen:\n  http:s3cret\n"), "a:")
	r.Members(n.Content[1], "listen", nil)
	if got, want := r.Faults().Error(), `f:2:3: listen must be a mapping, name: value; write a space after "http:"`; got != want {
		t.Errorf("a member with no space has the fault %q, want %q", got, want)
	}
}

// Each fault is of a place in the file.
func FuzzSyntax(f *testing.F) {
	for _, seed := range []string{"a: 'b\n\tc: d", "a: \"\\", "- - 'a' b\n -", " a: b\nc: d", "a:b\nc: d", "a: |\n b\n\tc", "\xff", "{\"a\t\" 1}", "é: 'é' é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if strings.ContainsAny(file, "\r\u0085\u2028\u2029") { // the parser counts them as ends of lines too
			return
		}
		r := &yamlfile.Reader{Path: "f"}
		r.Root([]byte(file), "a:")
		lines := strings.Split(file, "\n")
		for _, p := range r.Faults() {
			if p.Line < 1 || p.Line > len(lines)+1 || p.Column < 1 || p.Line <= len(lines) && p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Errorf("%q has the fault %v", file, p)
			}
		}
	})
}
