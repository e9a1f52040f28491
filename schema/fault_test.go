package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

// A fault has the place as a JSON pointer, whichever side finds it; of a property that is missing or not known, its own.
func TestFaultPointer(t *testing.T) {
	type inner struct {
		X int `json:"x/~y"`
	}
	type outer struct {
		List []inner          `json:"list"`
		Map  map[string]inner `json:"map"`
		Must string           `json:"must"`
	}
	typ, err := schema.For[outer]()
	if err != nil {
		t.Fatal(err)
	}
	v, err := schema.Compile(typ.JSON())
	if err != nil {
		t.Fatal(err)
	}
	value := `{"list":[{"x/~y":1},{"x/~y":"no"},{}],"map":{"a b":{"x/~y":true}},"extra":1}`
	want := "/extra /list/1/x~1~0y /list/2/x~1~0y /map/a b/x~1~0y /must"
	for side, err := range map[string]error{"type": typ.Validate([]byte(value)), "validator": v.Validate([]byte(value))} {
		var invalid *schema.ValidationError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: %v", side, err)
		}
		got := map[string]bool{}
		for _, f := range invalid.Faults {
			got[f.Pointer] = true
		}
		for _, p := range strings.Split(strings.ReplaceAll(want, "a b", "a_b"), " ") {
			if p = strings.ReplaceAll(p, "a_b", "a b"); !got[p] {
				t.Errorf("%s: no fault at %s in %+v", side, p, invalid.Faults)
			}
		}
		if len(got) != 5 {
			t.Errorf("%s: %d places of faults, want 5: %+v", side, len(got), invalid.Faults)
		}
	}
}

// Long names that nest do not make a long pointer.
func TestLongPointer(t *testing.T) {
	v, err := schema.Compile([]byte(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","additionalProperties":{"$ref":"#/$defs/n"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("n", 3000)
	var invalid *schema.ValidationError
	if err := v.Validate([]byte(fmt.Sprintf(`{%q:{%q:1}}`, name, name))); !errors.As(err, &invalid) || invalid.Faults[0].Pointer != "" {
		t.Errorf("Validate = %v, want a fault without a pointer", err)
	}
	if err := v.Validate([]byte(fmt.Sprintf(`{%q:1}`, name))); !errors.As(err, &invalid) || invalid.Faults[0].Pointer != "/"+name {
		t.Errorf("Validate = %v, want a fault with its pointer", err)
	}
}

// A property that the one alternative lacks that was meant has its own pointer.
func TestFaultPointerOfAlternative(t *testing.T) {
	v, err := schema.Compile([]byte(`{"properties":{"pay":{"oneOf":[{"properties":{"kind":{"const":"card"}},"required":["kind","number"]},{"properties":{"kind":{"const":"cash"}},"required":["kind"]}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var invalid *schema.ValidationError
	if err := v.Validate([]byte(`{"pay":{"kind":"card"}}`)); !errors.As(err, &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].Pointer != "/pay/number" {
		t.Errorf("Validate = %+v, want a fault at /pay/number", err)
	}
}
