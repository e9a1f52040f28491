package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Arguments are sent as an object on one line that fits the schema and means what the model wrote,
// without nulls that stand for nothing; otherwise the model gets an error. Arguments that fit are
// not changed again.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{``, `null`, `""`, `{}`, `{"a":1}`, `"{\"a\":1}"`, `"{\"a\":"`, `[1]`, `{"a":1,"a":2}`, `{"a":null,"b":{"a":null},"c":null}`, "{\"a\":\n\"\\u2028\"}", `{"b":{"c":[]}}`, `"\"{}\""`, "\xff", `{"a":1}x`} {
		f.Add(seed)
	}
	tool := &mcp.Tool{Name: "t", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"object"}}}`)}
	check, err := schema.Compile(tool.InputSchema)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, written string) {
		h := &Host{}
		args, wrong := h.arguments(tool, json.RawMessage(written))
		if (args == nil) == (wrong == "") {
			t.Fatalf("%q: sent %q, told %q", written, args, wrong)
		}
		if args == nil {
			return
		}
		if jsonx.Valid(args, jsonx.DefaultDepth) != nil || jsonx.KindOf(args) != '{' || bytes.ContainsAny(args, "\n\r") || check.Validate(args) != nil {
			t.Fatalf("%q: sent %q", written, args)
		}
		again, wrong := h.arguments(tool, args)
		if wrong != "" || !bytes.Equal(again, args) {
			t.Fatalf("%q: sent %q, and that again as %q, %q", written, args, again, wrong)
		}
		if !strings.Contains(written, "null") && jsonx.Valid([]byte(written), jsonx.DefaultDepth) == nil && jsonx.KindOf([]byte(strings.TrimSpace(written))) == '{' && !bytes.Equal(jsonx.Canonical([]byte(written)), jsonx.Canonical(args)) {
			t.Fatalf("%q: sent %q, which means something else", written, args)
		}
	})
}

// If the schema is too long, the model sees only the parts that the faults concern.
func TestExpectedPart(t *testing.T) {
	whole := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("long ", 1000) + `","$defs":{"when":{"type":"object","properties":{"hour":{"type":"integer","maximum":23}}}},
		"properties":{"name":{"type":"string"},"odd name":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}}}},"at":{"$ref":"#/$defs/when"},"loop":{"$ref":"#/properties/loop"},
		"far":{"$ref":"https://example.com/"},"list":{"type":"string","description":"` + strings.Repeat("é", 1000) + `"}}}`)
	check, err := schema.Compile([]byte(strings.ReplaceAll(strings.ReplaceAll(string(whole), `"$ref":"#/properties/loop"`, ``), `"$ref":"https://example.com/"`, ``)))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ args, want string }{
		{`{"name":7}`, `The schema of name: {"type":"string"}`},
		{`{"odd name":[{"x":true},{"x":1}]}`, `The schema of ["odd name"][1].x: {"type":"boolean"}`},
		{`{"at":{"hour":24}}`, `The schema of at.hour: {"type":"integer","maximum":23}`},
		{`{"list":1}`, `é…`},
	}
	for _, tt := range tests {
		var bad *schema.ValidationError
		if err := check.Validate([]byte(tt.args)); !errors.As(err, &bad) {
			t.Fatalf("%s: %v", tt.args, err)
		}
		if got := expected(whole, bad.Faults); !strings.Contains(got, tt.want) || len(got) > maxWhole {
			t.Errorf("%s: the model is shown %q, want %q in it", tt.args, got, tt.want)
		}
	}
	for _, path := range []string{"loop.x", "far.x", "none", "name.x.y", "[", "[1", `["`, `["odd name"`, "a.", ".", "..", "]["} {
		if at, part := schemaAt(whole, path); len(at) > len(path) || part == nil {
			t.Errorf("schemaAt(%q) = %q, %s", path, at, part)
		}
	}
}
