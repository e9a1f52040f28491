package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/schema"
)

// TestNestedFields looks below the first level of a schema: members, elements, maps,
// alternatives, through $ref and allOf.
func TestNestedFields(t *testing.T) {
	form, err := schema.FormOf(json.RawMessage(`{"type":"object","properties":{
		"edits":{"type":"array","items":{"$ref":"#/$defs/Edit"}},
		"labels":{"type":"object","additionalProperties":{"type":"integer"}},
		"who":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/Edit"},{"type":"null"}]},
		"one":{"allOf":[{"$ref":"#/$defs/Edit"}],"description":"the first"}},
		"$defs":{"Edit":{"type":"object","required":["old"],"properties":{"old":{"type":"string"},"count":{"type":"integer","maximum":3}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	edit := form.Field("edits").Elements()
	if edit == nil {
		t.Fatal("edits has no elements")
	}
	members := edit.Members()
	if len(members) != 2 || members[0].Name != "old" || !members[0].Required || members[1].Kind != schema.Integer || members[1].Required {
		t.Fatalf("members of an edit = %+v", members)
	}
	if got, err := members[1].Parse("2"); err != nil || string(got) != "2" {
		t.Errorf(`Parse("2") of edits[].count = %s, %v`, got, err)
	}
	if got, err := members[1].Parse("9"); err == nil || !strings.Contains(err.Error(), "count") {
		t.Errorf(`Parse("9") of edits[].count = %s, %v, want an error: the most is 3`, got, err)
	}
	if o := form.Field("labels").Others(); o == nil || o.Kind != schema.Integer {
		t.Errorf("others of labels = %+v, want integers", o)
	}
	if alts := form.Field("who").Alternatives(); len(alts) != 2 || alts[0].Kind != schema.String || len(alts[1].Members()) != 2 {
		t.Errorf("alternatives of who = %+v, want a string and an edit", alts)
	}
	if one := form.Field("one"); one.Description != "the first" || len(one.Members()) != 2 {
		t.Errorf("one = %+v, want an edit with a description of its own", one)
	}
}

// TestReferencesAreBounded: many references to one large schema, and schemas that contain
// themselves, cost little.
func TestReferencesAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `,"p%d":{"$ref":"#/$defs/big","title":"x"}`, i)
	}
	big := `{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("x", 200_000) + `"]}}}`
	for name, text := range map[string]string{
		"many to one": `{"type":"object","properties":{"first":true` + many.String() + `},"$defs":{"big":` + big + `}}`,
		"itself":      `{"type":"object","properties":{"me":{"$ref":"#"},"all":{"type":"array","items":{"$ref":"#"}}}}`,
		"in a circle": `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
	} {
		start := time.Now()
		f := schema.Outline(json.RawMessage(text))
		for range 4 {
			members := f.Members()
			if len(members) == 0 {
				break
			}
			f = members[0]
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
