package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/schema"
)

// A map with the tag json:",embed" takes the properties that have no field.
func TestOtherProperties(t *testing.T) {
	type inner struct {
		X    int                        `json:"x"`
		Rest map[string]json.RawMessage `json:",embed"`
	}
	type trip struct {
		City  string         `json:"city"`
		Inner *inner         `json:"inner"`
		More  map[string]int `json:",embed"`
	}
	typ, err := schema.For[trip]()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"city":{"type":"string"},"inner":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":{}}},` +
		`"required":["city"],"additionalProperties":{"type":"integer"}}`
	if string(typ.JSON()) != want {
		t.Errorf("the schema is %s, want %s", typ.JSON(), want)
	}
	got, err := schema.Decode[trip]([]byte(`{"a":1,"city":"Rom","inner":{"y":[1],"x":2},"b":2}`))
	if d := cmp.Diff(trip{"Rom", &inner{2, map[string]json.RawMessage{"y": json.RawMessage(`[1]`)}}, map[string]int{"a": 1, "b": 2}}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if got, err := schema.Decode[trip]([]byte(`{"city":"Rom"}`)); err != nil || got.More != nil {
		t.Errorf("without others: %+v, %v", got, err)
	}
	for text, fault := range map[string]string{
		`{"city":"Rom","a":"x"}`:     `a: must be an integer, got string`,
		`{"city":"Rom","a":1,"a":2}`: `offset`,
		`{"a":1}`:                    `missing "city"`,
	} {
		if _, err := schema.Decode[trip]([]byte(text)); err == nil || fault != "offset" && err.Error() != fault {
			t.Errorf("%s: %v, want %s", text, err, fault)
		}
	}
	out, err := schema.ForOutput[trip]()
	if err != nil {
		t.Fatal(err)
	}
	check, err := schema.Compile(out.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := out.Encode(got); err != nil || check.Validate(raw) != nil || check.Validate([]byte(`{"city":"Rom","inner":null,"a":"x"}`)) == nil {
		t.Errorf("the result %s, %v does not fit %s", raw, err, out.JSON())
	}
	type two struct {
		A, B map[string]int `json:",embed"`
	}
	if _, err := schema.For[two](); err == nil {
		t.Error("two maps for other properties were let pass")
	}
	type numbered struct {
		A map[int]int `json:",embed"`
	}
	if _, err := schema.For[numbered](); err == nil {
		t.Error("a map with numbers as keys was let pass")
	}
}

// DecodeLenient reads numbers and booleans in strings where the type is not a string.
func TestDecodeLenient(t *testing.T) {
	type in struct {
		N    int         `json:"n,omitempty" max:"9"`
		U    *uint8      `json:"u"`
		F    float64     `json:"f,omitempty"`
		B    bool        `json:"b,omitempty"`
		J    json.Number `json:"j,omitempty"`
		S    string      `json:"s,omitempty"`
		List []int       `json:"list,omitempty"`
		Any  any         `json:"any,omitempty"`
	}
	typ, err := schema.For[in]()
	if err != nil {
		t.Fatal(err)
	}
	three := uint8(3)
	var got in
	err = typ.DecodeLenient([]byte(`{"n":"3","u":"3","f":" -1.5e1 ","b":"true","j":"12345678901234567890","s":"3","list":["1",2],"any":"4"}`), &got)
	if d := cmp.Diff(in{3, &three, -15, true, "12345678901234567890", "3", []int{1, 2}, "4"}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	for text, want := range map[string]string{
		`{"n":"10"}`:      `n: must be at most 9, got 10`,
		`{"n":"3.5"}`:     `n: must be an integer, got 3.5`,
		`{"n":"three"}`:   `n: must be an integer, got string`,
		`{"n":""}`:        `n: must be an integer, got string`,
		`{"n":"true"}`:    `n: must be an integer, got string`,
		`{"b":"1"}`:       `b: must be true or false, got string`,
		`{"list":["x"]}`:  `list[0]: must be an integer, got string`,
		`{"n":"\"3\""}`:   `n: must be an integer, got string`,
		`{"n":"3","z":1}`: `unknown property "z"`,
	} {
		if err := typ.DecodeLenient([]byte(text), &got); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := typ.Decode([]byte(`{"n":"3"}`), &got); err == nil {
		t.Error("Decode accepts a number in a string")
	}
}
