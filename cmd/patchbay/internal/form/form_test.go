package form

import (
	"encoding/json"
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

// Value converts, leaves out or refuses typed texts; Shown shows values as their field does.
func TestValue(t *testing.T) {
	raw := `{"type":"object","properties":{
		"name":{"type":"string"},"note":{"type":"string"},"age":{"type":"integer","minimum":18},"on":{"type":"boolean"},
		"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"2","title":"Large"}]},
		"tags":{"type":"array","items":{"type":"string","enum":["a","b","c"]}}},"required":["name","size"]}`
	fields, err := schema.FormOf(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ field, text, value, shown, problem string }{
		{"name", "Ada", `"Ada"`, "Ada", ""},
		{"name", `""`, `""`, "", ""},
		{"name", "", "", "", `an answer is required; "" is the empty text`},
		{"note", "", "", "", ""},
		{"age", "17", "", "", "must be at least 18, got 17"},
		{"age", "18", "18", "18", ""},
		{"on", "yes", "true", "yes", ""},
		{"size", "1", `"s"`, "Small", ""},
		{"size", "2", `"2"`, "Large", ""}, // the value 2, not the second choice
		{"size", "small", `"s"`, "Small", ""},
		{"size", "", "", "", "an answer is required"},
		{"tags", "1, c", `["a","c"]`, "a, c", ""},
	} {
		f := fields.Field(tt.field)
		v, err := Value(f, tt.text)
		shown := ""
		if v != nil {
			shown = Shown(f, v)
		}
		if problem := Problem(err); string(v) != tt.value && err == nil || shown != tt.shown || problem != tt.problem {
			t.Errorf("%s %q is %s, shown as %q, problem %q", tt.field, tt.text, v, shown, problem)
		}
	}
}
