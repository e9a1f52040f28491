package arguments

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/schema"
)

const editSchema = `{"type":"object","properties":{"path":{"type":"string"},
	"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["oldText","newText"]}},
	"dryRun":{"type":"boolean","default":false}},"required":["path","edits"]}`

// TestSignatures (trap 12): a signature that is too long is shortened from the inside.
func TestSignatures(t *testing.T) {
	tree := `{"type":"object","properties":{"node":{"$ref":"#/$defs/n"}},"required":["node"],"$defs":{"n":{"type":"object","properties":{"name":{},"below":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["name"]}}}`
	tests := []struct {
		input string
		width int
		want  string
	}{
		{editSchema, 0, "t(path, edits: {oldText, newText}[], dryRun?)"},
		{editSchema, 36, "t(path, edits: {…}[], dryRun?)"},
		{editSchema, 26, "t(path, edits: {…}[], …)"},
		{editSchema, 20, "t(…)"},
		{`{"type":"object"}`, 0, "t()"},
		{`{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}},"grid":{"type":"array","items":{"type":"array"}},"any":{},"map":{"type":"object"}},"required":["grid"]}`, 0, "t(tags[]?, grid[][], any?, map?: {…})"},
		{tree, 0, "t(node: {name, below?: {name, below?: {…}[]}[]})"},
		{`{"type":"object","properties":{"者":{"type":"string"},"\u001b[31m\n":{}}}`, 0, "t(者?, \\x1b[31m?)"},
		{`not a schema`, 0, "t()"},
	}
	for _, tt := range tests {
		got := Signature("t", []byte(tt.input), tt.width)
		if strings.ContainsAny(got, "\x1b\n") || tt.width > 0 && screen.Columns(got) > tt.width {
			t.Errorf("signature in %d columns = %q", tt.width, got)
		}
		if !strings.Contains(tt.input, "u001b") && got != tt.want {
			t.Errorf("signature in %d columns = %q, want %q", tt.width, got, tt.want)
		}
	}
}

// TestKindWords (trap 12): a type names what lists, maps and alternatives contain.
func TestKindWords(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"type":"array","items":{"type":"integer"}}`, "list of whole numbers"},
		{`{"type":"array","items":{"type":"array","items":{"type":"object"}}}`, "list of lists of objects"},
		{`{"type":"array"}`, "list"},
		{`{"type":["array","null"],"items":{"type":"string"}}`, "list of text"},
		{`{"type":"array","items":{"enum":["a","b"]}}`, "several of a | b"},
		{`{"type":"object","additionalProperties":{"type":"number"}}`, "object, each value number"},
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"null"}]}`, "text, or list of text"},
		{`{"type":["string","integer"]}`, "text, or whole number"},
		{`{"type":"string","minLength":1,"default":"x"}`, "text of 1 or more characters [x]"},
		{`{"type":"string","maxLength":9}`, "text of up to 9 characters"},
		{`{}`, "JSON"},
	}
	for _, tt := range tests {
		f := schema.Outline(json.RawMessage(tt.schema))
		if got := Kind(&f); got != tt.want {
			t.Errorf("Kind(%s) = %q, want %q", tt.schema, got, tt.want)
		}
	}
}

// TestExamplesWork (trap 12): an example, read back as a command line, gives arguments that the
// schema accepts.
func TestExamplesWork(t *testing.T) {
	tests := []struct{ input, want string }{
		{editSchema, `path=PATH 'edits:=[{"oldText":"OLD_TEXT","newText":"NEW_TEXT"}]'`},
		{`{"type":"object","properties":{"n":{"type":"integer","minimum":5},"on":{"type":"boolean"},"day":{"type":"string","format":"date"},"size":{"enum":["small","large"]}},"required":["n","on","day","size"]}`, "n=5 on=true day=2026-01-31 size=small"},
		{`{"type":"object","properties":{"id":{"type":"string","examples":["@me"]},"a=b":{"type":"string"}},"required":["id","a=b"]}`, `'id:="@me"' '{"a=b":"A_B"}'`},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "a=A b=B"},
		{`{"type":"object","properties":{"code":{"type":"string","pattern":"^[0-9]{9}$"}},"required":["code"]}`, ""},
		{`{"type":"object","properties":{"cart":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"product":{"type":"string"}}}}}}`, `'items:=[{"product":"PRODUCT"}]'`},
		{`{"type":"object"}`, ""},
	}
	for _, tt := range tests {
		form, err := schema.FormOf(json.RawMessage(tt.input))
		if err != nil {
			t.Fatal(err)
		}
		words := Example(form, []byte(tt.input))
		if got := screen.Shell(words); got != tt.want && runtime.GOOS != "windows" { // words of a POSIX shell
			t.Errorf("example of %s\n got %s\nwant %s", tt.input, got, tt.want)
		}
		read, err := Read(words, nil, "")
		if err == nil && words != nil {
			var args json.RawMessage
			var values map[string]json.RawMessage
			if args, err = Build(read, form, []byte(tt.input), ""); err == nil {
				if err = json.Unmarshal(args, &values); err == nil {
					err = form.Check(values)
				}
			}
		}
		if err != nil {
			t.Errorf("example %q does not work: %v", words, err)
		}
	}
}

// TestHostileOutlines: huge, deep and cyclic schemas are shown in part, with bounded work.
func TestHostileOutlines(t *testing.T) {
	var wide, refs strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&wide, `,"p%d":{"type":"string"}`, i)
	}
	for i := range 1000 {
		fmt.Fprintf(&refs, `,"p%d":{"type":"array","items":{"$ref":"#"}}`, i)
	}
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 60) + `{}` + strings.Repeat(`}}`, 60)
	for name, input := range map[string]string{
		"wide":   `{"type":"object","properties":{"a":{}` + wide.String() + `}}`,
		"deep":   deep,
		"cyclic": `{"type":"object","properties":{"a":{"$ref":"#"}` + refs.String() + `},"required":["a"]}`,
		"forest": `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}},"required":["a"]}`,
	} {
		began, size := time.Now(), 0
		rows, _ := Outline([]byte(input), true)
		for _, r := range rows {
			size += len(r.Name) + len(r.About)
		}
		Signature("t", []byte(input), 100)
		if form, err := schema.FormOf([]byte(input)); err == nil {
			Example(form, []byte(input))
		}
		if took := time.Since(began); took > time.Minute || size > 100_000 {
			t.Errorf("%s took %v and %d bytes", name, took, size)
		}
		t.Logf("%s: %v, %d bytes", name, time.Since(began), size)
	}
}
