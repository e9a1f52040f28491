package schema_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/schema"
)

const formSchema = `{"type":"object","title":"Sign up","properties":{
	"name":{"type":"string","title":"Name","minLength":2,"maxLength":20},
	"mail":{"type":"string","format":"email","description":"where to write"},
	"age":{"type":"integer","minimum":18,"maximum":120,"default":30},
	"rate":{"type":"number","exclusiveMinimum":0},
	"news":{"type":"boolean","default":false},
	"color":{"type":"string","enum":["Red","Green","red"]},
	"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}],"default":"s"},
	"old":{"type":"string","enum":["a","b"],"enumNames":["Ay","Bee"]},
	"tags":{"type":"array","items":{"type":"string","enum":["x","y","z"]},"minItems":1,"maxItems":2,"default":["x"]},
	"toppings":{"type":"array","items":{"anyOf":[{"const":"c","title":"Cheese"},{"const":"o","title":"Olives"}]}},
	"level":{"$ref":"#/$defs/level","description":"how hard"},
	"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},
	"either":{"type":["integer","string"]},
	"where":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}
},"required":["name","age"],"$defs":{"level":{"type":"integer","enum":[1,2,3]}}}`

func raws(list ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, s := range list {
		out[i] = json.RawMessage(s)
	}
	return out
}

func options(pairs ...string) []schema.Option {
	var list []schema.Option
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, schema.Option{Value: json.RawMessage(pairs[i]), Title: pairs[i+1]})
	}
	return list
}

func TestFormOf(t *testing.T) {
	form, err := schema.FormOf([]byte(formSchema))
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Field{
		{Name: "name", Title: "Name", Kind: schema.String, Required: true, Min: "2", Max: "20"},
		{Name: "mail", Description: "where to write", Kind: schema.String, Format: "email"},
		{Name: "age", Kind: schema.Integer, Required: true, Min: "18", Max: "120", Default: raws("30")[0]},
		{Name: "rate", Kind: schema.Number},
		{Name: "news", Kind: schema.Boolean, Default: raws("false")[0]},
		{Name: "color", Kind: schema.Enum, Options: options(`"Red"`, "Red", `"Green"`, "Green", `"red"`, "red")},
		{Name: "size", Kind: schema.Enum, Options: options(`"s"`, "Small", `"l"`, "Large"), Default: raws(`"s"`)[0]},
		{Name: "old", Kind: schema.Enum, Options: options(`"a"`, "Ay", `"b"`, "Bee")},
		{Name: "tags", Kind: schema.MultiEnum, Min: "1", Max: "2", Options: options(`"x"`, "x", `"y"`, "y", `"z"`, "z"), Default: raws(`["x"]`)[0]},
		{Name: "toppings", Kind: schema.MultiEnum, Options: options(`"c"`, "Cheese", `"o"`, "Olives")},
		{Name: "level", Description: "how hard", Kind: schema.Enum, Options: options(`1`, "1", `2`, "2", `3`, "3")},
		{Name: "maybe", Kind: schema.Integer, Default: raws("null")[0]},
		{Name: "either", Kind: schema.Other},
		{Name: "where", Kind: schema.Other},
	}
	if diff := cmp.Diff(form.Fields, want, cmpopts.IgnoreUnexported(schema.Field{}), cmpopts.IgnoreFields(schema.Field{}, "Schema")); diff != "" {
		t.Errorf("Fields (-got +want):\n%s", diff)
	}
	if form.Title != "Sign up" {
		t.Errorf("Title = %q", form.Title)
	}
	// ELIC-26-014: the values that a client fills in beforehand.
	defaults := form.Defaults()
	if len(defaults) != 5 || string(defaults["age"]) != "30" || string(defaults["tags"]) != `["x"]` {
		t.Errorf("Defaults() = %s", defaults)
	}
	if got := string(form.Field("level").Schema); got != `{"type":"integer","enum":[1,2,3],"description":"how hard"}` {
		t.Errorf("Schema of level = %s", got)
	}
	if form.Field("none") != nil {
		t.Error("Field of an unknown name is not nil")
	}
}

// A choice may be typed with underscores and more white space in place of a space, if one choice fits.
func TestFieldParseSpaces(t *testing.T) {
	form, err := schema.FormOf([]byte(`{"type":"object","properties":{"tense":{"type":"string","enum":["past simple","past_perfect","past perfect","_",""]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"past_simple": "past simple", "past  simple": "past simple", "Past _Simple": "past simple",
		"past_perfect": "past_perfect", "past perfect": "past perfect", "_": "_", "": "",
		"past\tperfect": "!", "pastsimple": "!", "__": "!",
	} {
		got, err := form.Field("tense").Parse(text)
		if err != nil && want == "!" && strings.Contains(err.Error(), "must be one of past simple, ") {
			continue
		}
		if want, _ := json.Marshal(want); string(got) != string(want) {
			t.Errorf("Parse(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestFieldParse(t *testing.T) {
	form, err := schema.FormOf([]byte(formSchema))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		field, text string
		want        string // JSON, or after "!" the error
	}{
		{"name", `Ann "A"`, `"Ann \"A\""`},
		{"name", ` x `, `" x "`},
		{"name", `x`, `!name: must have at least 2 characters, got 1`},
		{"mail", `ann`, `!mail: must be an email address, got "ann"`},
		{"mail", `ann@example.org`, `"ann@example.org"`},
		{"age", ` 42 `, `42`},
		{"age", `17`, `!age: must be at least 18, got 17`},
		{"age", `forty`, `!age: must be a whole number such as 3, got "forty"`},
		{"age", `42.5`, `!age: must be an integer, got 42.5`},
		{"rate", `0.5`, `0.5`},
		{"rate", `0`, `!rate: must be more than 0, got 0`},
		{"rate", ``, `!rate: must be a number such as 2.5, got ""`},
		{"news", `Yes`, `true`},
		{"news", `off`, `false`},
		{"news", `perhaps`, `!news: must be true or false (or yes or no), got "perhaps"`},
		{"color", `green`, `"Green"`},
		{"color", `red`, `"red"`},
		{"color", `RED`, `!color: must be one of Red, Green, red, got "RED"`},
		{"size", `Large`, `"l"`},
		{"size", `l`, `"l"`},
		{"size", `medium`, `!size: must be one of s (Small), l (Large), got "medium"`},
		{"old", `bee`, `"b"`},
		{"tags", `x, z`, `["x","z"]`},
		{"tags", `["y"]`, `["y"]`},
		{"tags", ``, `!tags: must have at least 1 item, got 0`},
		{"tags", `x,y,z`, `!tags: must have at most 2 items, got 3`},
		{"tags", `x,q`, `!tags: must be one of x, y, z, got "q"`},
		{"toppings", `Cheese,o`, `["c","o"]`},
		{"level", `2`, `2`},
		{"level", `4`, `!level: must be one of 1, 2, 3, got "4"`},
		{"maybe", `null`, `null`},
		{"maybe", `3`, `3`},
		{"either", `3`, `3`},
		{"either", `three`, `"three"`},
		{"either", `3.5`, `"3.5"`},
		{"where", `{"x": 1}`, `{"x": 1}`},
		{"where", `{"x":"1"}`, `!where: x: must be a number, got string`},
		{"where", `here`, `!where: must be JSON for {"type":"object","properties":{"x":{"type":"number"}},"requi..., got "here"`},
	}
	for _, tt := range tests {
		got, err := form.Field(tt.field).Parse(tt.text)
		text := string(got)
		if err != nil {
			text = "!" + err.Error()
			var invalid *schema.ValidationError
			if !errors.As(err, &invalid) || got != nil {
				t.Errorf("%s: Parse(%q) = %s, %T", tt.field, tt.text, got, err)
			}
		}
		if text != tt.want {
			t.Errorf("%s: Parse(%q) = %s, want %s", tt.field, tt.text, text, tt.want)
		}
	}
}

// ELIC-2506-003, ELIC-26-046: content is checked before it is sent.
func TestFormCheck(t *testing.T) {
	form, err := schema.FormOf([]byte(formSchema))
	if err != nil {
		t.Fatal(err)
	}
	err = form.Check(map[string]json.RawMessage{"name": []byte(`"x"`), "mail": []byte(`"y"`)})
	if got, want := err.Error(), `missing "age"; mail: must be an email address, got "y"; name: must have at least 2 characters, got 1`; got != want {
		t.Errorf("Check error %s, want %s", got, want)
	}
	if err := form.Check(map[string]json.RawMessage{"name": []byte(`"xx"`), "age": []byte(`18`)}); err != nil {
		t.Error(err)
	}
}

func TestFormOfRefuses(t *testing.T) {
	for _, raw := range []string{`{"type":"string"}`, `{"type":"object","properties":7}`, `{`, `{"$ref":"http://x.example/a"}`} {
		if form, err := schema.FormOf([]byte(raw)); err == nil || form != nil {
			t.Errorf("FormOf(%s) = %v, %v; want an error", raw, form, err)
		}
	}
	form, err := schema.FormOf([]byte(`{"type":"object"}`))
	if err != nil || len(form.Fields) != 0 {
		t.Errorf("FormOf without properties = %v, %v", form, err)
	}
}

type signUp struct {
	Name  string        `json:"name" title:"Name" doc:"full name" min:"2" max:"20" pattern:"^[A-Z]"`
	Mail  string        `json:"mail" format:"email"`
	Host  string        `json:"host,omitempty" format:"hostname"`
	Age   int           `json:"age,omitempty" exclusiveMin:"17" max:"120" default:"30"`
	Rate  float64       `json:"rate,omitempty" min:"0.5"`
	News  *bool         `json:"news"`
	Color string        `json:"color" enum:"r,g" enumTitles:"Red,Green" default:"r"`
	Plain string        `json:"plain,omitempty" enum:"a,b"`
	Tags  []string      `json:"tags,omitempty" enum:"x,y" min:"1"`
	Tops  []string      `json:"tops,omitempty" enum:"c,o" enumTitles:"Cheese,Olives" default:"[\"c\"]"`
	When  time.Time     `json:"when,omitzero"`
	Wait  time.Duration `json:"wait,omitempty"`
}

// ELIC-26-013: the schema of a form is flat and valid in the revision's own schema. Titled and
// multiple choices came with 2025-11-25.
func TestElicitation(t *testing.T) {
	typ, err := schema.For[signUp]()
	if err != nil {
		t.Fatal(err)
	}
	got, err := typ.Elicitation()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","title":"Name","description":"full name","minLength":2,"maxLength":20},` +
		`"mail":{"type":"string","format":"email"},` +
		`"host":{"type":"string"},` +
		`"age":{"type":"integer","minimum":18,"maximum":120,"default":30},` +
		`"rate":{"type":"number","minimum":0.5},` +
		`"news":{"type":"boolean"},` +
		`"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"r"},` +
		`"plain":{"type":"string","enum":["a","b"]},` +
		`"tags":{"type":"array","minItems":1,"items":{"type":"string","enum":["x","y"]}},` +
		`"tops":{"type":"array","items":{"anyOf":[{"const":"c","title":"Cheese"},{"const":"o","title":"Olives"}]},"default":["c"]},` +
		`"when":{"type":"string","format":"date-time"},` +
		`"wait":{"type":"string"}},"required":["name","mail"]}`
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("Elicitation (-got +want):\n%s", diff)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		if err := requested(t, revision).Validate(got); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	form, err := schema.FormOf(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range form.Fields {
		if f.Kind == schema.Other {
			t.Errorf("the form cannot show %s", f.Name)
		}
	}
}

// The oldest revision with forms has single choices and primitives.
func TestElicitationOldest(t *testing.T) {
	type args struct {
		Name  string  `json:"name" min:"1"`
		Count int32   `json:"count" max:"5"`
		Rate  float64 `json:"rate"`
		OK    bool    `json:"ok"`
		Pick  string  `json:"pick" enum:"a,b"`
	}
	typ, err := schema.For[args]()
	if err != nil {
		t.Fatal(err)
	}
	got, err := typ.Elicitation()
	if err != nil {
		t.Fatal(err)
	}
	if err := requested(t, "2025-06-18").Validate(got); err != nil {
		t.Error(err)
	}
}

// requested returns a validator for requestedSchema of a revision.
func requested(t *testing.T, revision string) *schema.Validator {
	t.Helper()
	raw, err := os.ReadFile("testdata/requested-" + revision + ".json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if v.Validate([]byte(`{"type":"object","properties":{"a":{"type":"object"}}}`)) == nil {
		t.Fatalf("the schema of %s lets a nested object through", revision)
	}
	return v
}

func TestElicitationRefuses(t *testing.T) {
	check := func(typ *schema.Type, err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := typ.Elicitation(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Elicitation = %s, %v; want an error with %q", typ, raw, err, want)
		}
	}
	typ, err := schema.For[string]()
	check(typ, err, "string cannot be an elicitation form: it must be a struct")
	typ, err = schema.For[struct{ Inner tree }]()
	check(typ, err, "field Inner (schema_test.tree) is an object")
	typ, err = schema.For[struct{ List []string }]()
	check(typ, err, "field List ([]string) is a list, but not of choices")
	typ, err = schema.For[struct{ Any any }]()
	check(typ, err, "field Any (interface {}) has no fixed type")
	typ, err = schema.For[struct{ Blob []byte }]()
	check(typ, err, "field Blob ([]uint8) is binary")
	typ, err = schema.For[struct {
		N *int `nullable:"true"`
	}]()
	check(typ, err, "field N (int) may be null")
	typ, err = schema.For[struct {
		N int `enum:"1,2"`
	}]()
	check(typ, err, "field N (int) is a choice of numbers")
}
