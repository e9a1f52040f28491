package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

// day is a type with values of its own.
type day string

func (day) Enum() []string { return []string{"monday", "sunday"} }

// twice is a type with a value that is repeated.
type twice string

func (twice) Enum() []string { return []string{"a", "b", "a"} }

// stay has a field of each kind, for other tags.
type stay struct {
	S string   `json:"s"`
	D day      `json:"d"`
	I int      `json:"i"`
	B int8     `json:"b"`
	U uint     `json:"u"`
	F float64  `json:"f"`
	G float32  `json:"g"`
	L []string `json:"l"`
	A [2]int   `json:"a"`
	W []day    `json:"w"`
}

// Tags that no value obeys are errors, on a struct and at run time, for arguments and results. In
// particular an enum made of an empty list does not allow everything.
func TestImpossibleTags(t *testing.T) {
	in, err := schema.For[stay]()
	if err != nil {
		t.Fatal(err)
	}
	out, err := schema.ForOutput[stay]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, tags, want string }{
		{"s", `enum:"` + strings.Join(nil, ",") + `"`, "tag enum: the list of values is empty"},
		{"l", `enum:""`, "tag enum: the list of values is empty"},
		{"i", `enum:""`, "tag enum: the list of values is empty"},
		{"s", `pattern:""`, "tag pattern: the pattern is empty"},
		{"s", `enum:"a,b,a"`, `tag enum: "a" is there twice`},
		{"s", `enum:","`, `tag enum: "" is there twice`},
		{"f", `enum:"1,2,1.0"`, "tag enum: 1 is there twice"},
		{"l", `enum:"a,a"`, `tag enum: "a" is there twice`},
		{"b", `enum:"1,300"`, "tag enum: 300 does not fit: must be at most 127, got 300"},
		{"i", `enum:"9223372036854775808"`, "tag enum: 9223372036854775808 does not fit"},
		{"u", `enum:"-1"`, "tag enum: -1 does not fit"},
		{"g", `enum:"1e39"`, "tag enum: 1e39 does not fit"},
		{"i", `enum:"1,14,99" max:"28"`, "tag enum: 99 does not fit: must be at most 28, got 99"},
		{"i", `enum:"9007199254740993" header:"I"`, "tag enum: 9007199254740993 does not fit"},
		{"s", `enum:"a" min:"3"`, `tag enum: "a" does not fit: must have at least 3 characters`},
		{"s", `enum:"a" pattern:"^b$"`, `tag enum: "a" does not fit: must match the pattern "^b$"`},
		{"l", `enum:"a" pattern:"^b$"`, `tag enum: "a" does not fit: must match the pattern "^b$"`},
		{"s", `enum:"a" format:"date"`, `tag enum: "a" does not fit`},
		{"d", `pattern:"^friday$"`, `does not fit: must match the pattern "^friday$"`},
		{"i", `min:"4" max:"4" multipleOf:"3"`, "no value of int is at least 4, at most 4 and a multiple of 3"},
		{"i", `min:"4" max:"5" multipleOf:"1.5"`, "no value of int is at least 4, at most 5 and a multiple of 1.5"},
		{"b", `min:"1" multipleOf:"200"`, "no value of int8 is at least 1, at most 127 and a multiple of 200"},
		{"u", `exclusiveMax:"0"`, "no value of uint is at least 0 and less than 0"},
		{"f", `min:"2" max:"1"`, "no value of float64 is at least 2 and at most 1"},
		{"f", `exclusiveMin:"1" max:"1"`, "no value of float64 is more than 1 and at most 1"},
		{"f", `min:"0.1" max:"0.4" multipleOf:"0.5"`, "no value of float64 is at least 0.1, at most 0.4 and a multiple of 0.5"},
		{"f", `exclusiveMin:"0.5" exclusiveMax:"1" multipleOf:"0.5"`, "no value of float64"},
		{"g", `min:"1e39"`, "no value of float32 is at least 1e39"},
		{"a", `min:"3"`, "[2]int always has 2 items"},
		{"a", `max:"1"`, "[2]int always has 2 items"},
		{"a", `unique:"true" enum:"7"`, "tag unique: 2 items cannot differ, because the enum has 1 value"},
		{"w", `unique:"true" min:"3"`, "tag unique: 3 items cannot differ, because the enum has 2 values"},
		{"i", `max:"7" max:"8"`, "tag max: there are two of it; keep one"},
		{"i", `max:"7" maximum:"8"`, "tags max and maximum: keep one"},
		{"i", `doc:"a" description:"b"`, "tags doc and description: keep one"},
	} {
		if changed, err := in.With(tt.tags, tt.name); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("With(%s, %s) = %v, %v, want %s", tt.tags, tt.name, changed, err, tt.want)
		}
		if changed, err := out.With(tt.tags, tt.name); !strings.Contains(tt.tags, "header") && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Output.With(%s, %s) = %v, %v, want %s", tt.tags, tt.name, changed, err, tt.want)
		}
		field, _ := reflect.TypeFor[stay]().FieldByName(strings.ToUpper(tt.name))
		field.Tag = reflect.StructTag(tt.tags)
		if typ, err := schema.ForType(reflect.StructOf([]reflect.StructField{field})); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ForType with %s %s = %v, %v, want %s", tt.name, tt.tags, typ, err, tt.want)
		}
	}
	if _, err := schema.For[twice](); err == nil || !strings.Contains(err.Error(), `twice.Enum returns "a" twice`) {
		t.Errorf("For[twice] = %v", err)
	}
	type legacy struct {
		N int `jsonschema:"minimum=1,minimum=2"`
	}
	if _, err := schema.For[legacy](); err == nil || !strings.Contains(err.Error(), "there are two of minimum") {
		t.Errorf("For[legacy] = %v", err)
	}
}

// Tags that leave a value or two are fine.
func TestPossibleTags(t *testing.T) {
	in, err := schema.For[stay]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, tags string }{
		{"s", `enum:"a,"`},
		{"s", `enum:"ab,bb" pattern:"b$" min:"2" max:"2"`},
		{"d", `pattern:"^m"`},
		{"b", `multipleOf:"200"`}, // zero
		{"i", `min:"3" max:"4" multipleOf:"1.5"`},
		{"i", `enum:"-9223372036854775808,9223372036854775807"`},
		{"u", `enum:"18446744073709551615"`},
		{"f", `min:"1" max:"1"`},
		{"f", `exclusiveMin:"0.5" max:"1" multipleOf:"0.5"`},
		{"g", `max:"1e39"`},
		{"a", `min:"2" max:"2"`},
		{"w", `unique:"true" min:"2"`},
	} {
		if _, err := in.With(tt.tags, tt.name); err != nil {
			t.Errorf("With(%s, %s) = %v", tt.tags, tt.name, err)
		}
	}
}
