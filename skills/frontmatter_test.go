package skills

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

func TestFrontmatter(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"plain", "---\nname: a\ndescription: b c\n---\nBody.\n", `{"name":"a","description":"b c"}`},
		{"no body", "---\nname: a\n---", `{"name":"a"}`},
		{"windows lines and a byte order mark", "\ufeff---\r\nname: a\r\n---\r\n", `{"name":"a"}`},
		{"spaces after the end", "---\nname: a\n--- \n", `{"name":"a"}`},
		{"order is kept", "---\nz: 1\na: 2\n---\n", `{"z":1,"a":2}`},
		{"nested", "---\nmetadata:\n  version: \"1.0\"\n  tags: [a, 'b']\nlist:\n- x\n- y: z\n---\n", `{"metadata":{"version":"1.0","tags":["a","b"]},"list":["x",{"y":"z"}]}`},
		{"blocks", "---\na: |\n  one\n  two\nb: >-\n  one\n  two\n---\n", `{"a":"one\ntwo\n","b":"one two"}`},
		{"null", "---\na:\nb: ~\nc: null\n---\n", `{"a":null,"b":null,"c":null}`},
		{"booleans", "---\na: true\nb: False\nc: yes\nd: 'true'\n---\n", `{"a":true,"b":false,"c":"yes","d":"true"}`},
		{"integers", "---\na: 12\nb: -7\nc: +3\nd: 007\ne: -0\nf: 0x1F\ng: 123456789012345678901\n---\n", `{"a":12,"b":-7,"c":3,"d":7,"e":0,"f":31,"g":123456789012345678901}`},
		{"fractions", "---\na: 1.5\nb: -2e3\nc: .5\nd: 1.0\ne: 1.2.3\n---\n", `{"a":1.5,"b":-2000,"c":0.5,"d":1,"e":"1.2.3"}`},
		{"dates are text", "---\na: 2026-07-28\nb: 2026-07-28T10:00:00Z\n---\n", `{"a":"2026-07-28","b":"2026-07-28T10:00:00Z"}`},
		{"odd text", "---\na: 1_000\nb: --1\nc: '-'\nd: 12h\ne: \"---\"\n---\n", `{"a":"1_000","b":"--1","c":"-","d":"12h","e":"---"}`},
		{"comment", "---\n# c\nname: a # d\n---\n", `{"name":"a"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := frontmatter([]byte(tt.file))
			if string(got) != tt.want || err != nil {
				t.Errorf("frontmatter(%q) = %s, %v, want %s", tt.file, got, err, tt.want)
			}
		})
	}
}

func TestFrontmatterRefuses(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"nothing", "", "no front matter"},
		{"none", "# Title\n", "no front matter"},
		{"late", "\n---\nname: a\n---\n", "no front matter"},
		{"no end", "---\nname: a\n", "no end"},
		{"empty", "---\n---\n", "want fields"},
		{"text", "---\nhello\n---\n", "want fields"},
		{"list", "---\n- a\n---\n", "want fields"},
		{"twice", "---\nname: a\nname: b\n---\n", "line 3"},
		{"twice, spelled otherwise", "---\nname: a\n\"name\": b\n---\n", "twice"},
		{"anchor", "---\na: &x 1\n---\n", "line 2: anchors"},
		{"alias", "---\na: &x [1]\nb: *x\n---\n", "anchors"},
		{"merge", "---\nb:\n  <<: {c: 1}\n---\n", "not a string"},
		{"tag", "---\na: !!binary aGk=\n---\n", "tag"},
		{"number as a key", "---\n1: a\n---\n", "not a string"},
		{"list as a key", "---\n? [a]\n: b\n---\n", "not a string"},
		{"infinite", "---\na: .inf\n---\n", "quotes"},
		{"not a number", "---\na: .NaN\n---\n", "quotes"},
		{"two documents", "---\na: 1\n...\nb: 2\n---\n", "document"},
		{"deep", "---\na: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n", "deeper"},
		{"long", "---\na: " + strings.Repeat("x", maxFrontmatter) + "\n---\n", "longer"},
		{"bytes", "---\na: \xff\n---\n", "UTF-8"},
		{"tabs", "---\na:\n\t- b\n---\n", "front matter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := frontmatter([]byte(tt.file))
			if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("frontmatter(%q) = %s, %v, want an error with %q", tt.file, got, err, tt.want)
			}
		})
	}
}

// The result of frontmatter is a valid object, and gives the same object when read as YAML again,
// since JSON is YAML.
func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{
		"---\nname: a\ndescription: b\n---\n", "---\na: [1, {b: 'c'}]\n---\n", "---\na: |\n  x\n---\n", "---\na: 0x1\nb: -1.5e3\nc: ~\n---\n", "---\n? a\n: b\n---",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := frontmatter(in)
		if err != nil {
			return
		}
		if err := jsonx.Valid(got, maxDepth+1); err != nil || jsonx.KindOf(got) != '{' {
			t.Fatalf("frontmatter(%q) = %s: %v", in, got, err)
		}
		again, err := frontmatter([]byte("---\n" + string(got) + "\n---\n"))
		if err != nil && len(got) > maxFrontmatter/2 {
			return
		}
		if err != nil || !same(got, again) {
			t.Fatalf("frontmatter(%q) = %s, which reads as %s, %v", in, got, again, err)
		}
	})
}

func TestCheck(t *testing.T) {
	digest := digestOf(nil)
	file := func(uri string) string { return `{"uri":"` + uri + `","digest":"` + digest + `","size":0}` }
	entry := func(uri, name, files string) string {
		return `{"uri":"` + uri + `","frontmatter":{"name":"` + name + `","description":"d"},"resources":` + files + `}`
	}
	many := strings.Repeat(file("skill://a/x")+",", MaxFiles) + file("skill://a/SKILL.md")
	tests := []struct{ name, in, want string }{
		{"good", entry("skill://a/SKILL.md", "a", "["+file("skill://a/SKILL.md")+","+file("skill://a/b/c.md")+"]"), ""},
		{"nested path, other scheme", entry("github://o/r/a/SKILL.md", "a", `"dynamic"`), ""},
		{"dynamic", entry("skill://p/a/SKILL.md", "a", `"dynamic"`), ""},
		{"no resources", `{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d"}}`, "resources"},
		{"other resources", entry("skill://a/SKILL.md", "a", `"static"`), "resources"},
		{"no files", entry("skill://a/SKILL.md", "a", `[]`), "do not name SKILL.md"},
		{"URI", entry("skill://a/README.md", "a", `"dynamic"`), "URI"},
		{"no path", entry("SKILL.md", "a", `"dynamic"`), "URI"},
		{"other name", entry("skill://b/SKILL.md", "a", `"dynamic"`), "same"},
		{"capitals", entry("skill://A/SKILL.md", "A", `"dynamic"`), "name"},
		{"hyphens", entry("skill://a--b/SKILL.md", "a--b", `"dynamic"`), "name"},
		{"hyphen last", entry("skill://a-/SKILL.md", "a-", `"dynamic"`), "name"},
		{"long name", entry("skill://"+strings.Repeat("a", 65)+"/SKILL.md", strings.Repeat("a", 65), `"dynamic"`), "name"},
		{"no front matter", `{"uri":"skill://a/SKILL.md","resources":"dynamic"}`, "front matter"},
		{"no description", `{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a"},"resources":"dynamic"}`, "description"},
		{"name is a number", `{"uri":"skill://a/SKILL.md","frontmatter":{"name":1,"description":"d"},"resources":"dynamic"}`, "front matter"},
		{"outside", entry("skill://a/SKILL.md", "a", "["+file("skill://a/SKILL.md")+","+file("skill://b/x")+"]"), "outside"},
		{"climbing", entry("skill://a/SKILL.md", "a", "["+file("skill://a/SKILL.md")+","+file("skill://a/../b")+"]"), "outside"},
		{"climbing, escaped", entry("skill://a/SKILL.md", "a", "["+file("skill://a/SKILL.md")+","+file("skill://a/%2E%2e/b")+"]"), "outside"},
		{"twice", entry("skill://a/SKILL.md", "a", "["+file("skill://a/SKILL.md")+","+file("skill://a/SKILL.md")+"]"), "twice"},
		{"digest", entry("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","digest":"md5:00","size":0}]`), "digest"},
		{"size", entry("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","digest":"`+digest+`","size":-1}]`), "size"},
		{"large", entry("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","digest":"`+digest+`","size":16777217}]`), "want 0 to"},
		{"large in sum", entry("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","digest":"`+digest+`","size":16777216},{"uri":"skill://a/x","digest":"`+digest+`","size":1}]`), "over the limit"},
		{"many", entry("skill://a/SKILL.md", "a", "["+many+"]"), "513 files"},
		{"null", `null`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Skill
			err := s.UnmarshalJSON([]byte(tt.in))
			if tt.name == "null" {
				if err == nil {
					t.Error("null is an entry")
				}
				return
			}
			if tt.want == "" {
				if err != nil {
					t.Fatalf("%s: %v", tt.in, err)
				}
				out, err := json.Marshal(&s)
				if err != nil || !same(out, json.RawMessage(tt.in)) {
					t.Errorf("written as %s (%v), want %s", out, err, tt.in)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.200s: error %v, want %q", tt.in, err, tt.want)
			}
		})
	}
}
