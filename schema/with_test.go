package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/schema"
)

type purchase struct {
	Item  string         `json:"item" doc:"name of the item" enum:"pen,ink"`
	Count int            `json:"count" max:"10"`
	Notes []string       `json:"notes,omitempty" enum:"gift,fast" max:"2"`
	Lines []purchaseLine `json:"lines,omitempty"`
	Ship  *purchaseLine  `json:"ship"`
	Also  *purchase      `json:"also"`
	Wait  time.Duration  `json:"wait,omitempty"`
}

type purchaseLine struct {
	Price float64 `json:"price" min:"1"`
	Size  int8    `json:"size,omitempty"`
}

func orderType(t *testing.T) *schema.Type {
	t.Helper()
	typ, err := schema.For[purchase]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// A change of tags changes the schema and the decoder alike, and the rest stays.
func TestWith(t *testing.T) {
	typ := orderType(t)
	before := string(typ.JSON())
	for _, tt := range []struct {
		tags    string
		path    []string
		in      string // of the schema
		ok      string // a value that fits
		bad     string // and one that does not
		problem string
	}{
		{`max:"50"`, []string{"count"}, `"count":{"type":"integer","maximum":50}`, `{"item":"pen","count":40}`, `{"item":"pen","count":60}`, "count: must be at most 50, got 60"},
		{`max:"5" min:"2"`, []string{"count"}, `"count":{"type":"integer","minimum":2,"maximum":5}`, `{"item":"pen","count":3}`, `{"item":"pen","count":1}`, "count: must be at least 2, got 1"},
		{`enum:"a,b" doc:"other"`, []string{"item"}, `"item":{"type":"string","description":"other","enum":["a","b"]}`, `{"item":"a","count":3}`, `{"item":"pen","count":1}`, `item: must be one of "a", "b", got "pen"`},
		{`enum:"new"`, []string{"notes"}, `"notes":{"type":"array","items":{"type":"string","enum":["new"]},"maxItems":2}`, `{"item":"pen","count":1,"notes":["new"]}`, `{"item":"pen","count":1,"notes":["gift"]}`, `notes[0]: must be "new", got "gift"`},
		{`max:"9.5"`, []string{"lines", "price"}, `"lines":{"type":"array","items":{"type":"object","properties":{"price":{"type":"number","minimum":1,"maximum":9.5}`, `{"item":"pen","count":1,"lines":[{"price":2}],"ship":{"price":20}}`, `{"item":"pen","count":1,"lines":[{"price":20}]}`, `lines[0].price: must be at most 9.5, got 20`},
		{`max:"9.5"`, []string{"ship", "price"}, `"ship":{"type":"object","properties":{"price":{"type":"number","minimum":1,"maximum":9.5}`, `{"item":"pen","count":1,"ship":{"price":2},"lines":[{"price":20}]}`, `{"item":"pen","count":1,"ship":{"price":20}}`, `ship.price: must be at most 9.5, got 20`},
		{`max:"3"`, []string{"also", "count"}, `"maximum":3`, `{"item":"pen","count":9,"also":{"item":"pen","count":3,"also":{"item":"pen","count":4}}}`, `{"item":"pen","count":1,"also":{"item":"pen","count":4}}`, `also.count: must be at most 3, got 4`},
	} {
		changed, err := typ.With(tt.tags, tt.path...)
		if err != nil {
			t.Errorf("With(%s, %q): %v", tt.tags, tt.path, err)
			continue
		}
		if !strings.Contains(string(changed.JSON()), tt.in) {
			t.Errorf("With(%s, %q): schema %s\nlacks %s", tt.tags, tt.path, changed.JSON(), tt.in)
		}
		check, err := schema.Compile(changed.JSON())
		if err != nil {
			t.Errorf("With(%s, %q): %v", tt.tags, tt.path, err)
			continue
		}
		var v purchase
		if err := changed.Decode([]byte(tt.ok), &v); err != nil || check.Validate([]byte(tt.ok)) != nil {
			t.Errorf("With(%s, %q): Decode(%s) = %v", tt.tags, tt.path, tt.ok, err)
		}
		if err := changed.Decode([]byte(tt.bad), &v); err == nil || err.Error() != tt.problem || check.Validate([]byte(tt.bad)) == nil {
			t.Errorf("With(%s, %q): Decode(%s) = %v, want %s", tt.tags, tt.path, tt.bad, err, tt.problem)
		}
	}
	if string(typ.JSON()) != before || string(orderType(t).JSON()) != before {
		t.Errorf("With has changed the type itself: %s", typ.JSON())
	}
}

// Changes add up, also within a part that is changed later, and a default makes a field optional.
func TestWithTwice(t *testing.T) {
	typ, err := orderType(t).With(`max:"9.5"`, "ship", "price")
	if err == nil {
		typ, err = typ.With(`doc:"where to"`, "ship")
	}
	if err == nil {
		typ, err = typ.With(`default:"4" min:"2"`, "count")
	}
	if err == nil {
		typ, err = typ.With(`max:"6"`, "count")
	}
	if err == nil {
		typ, err = typ.With(`default:"1m30s"`, "wait")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{`"description":"where to"`, `"maximum":9.5`, `"count":{"type":"integer","default":4,"minimum":2,"maximum":6}`, `"required":["item"]`} {
		if !strings.Contains(string(typ.JSON()), in) {
			t.Errorf("schema %s\nlacks %s", typ.JSON(), in)
		}
	}
	var v purchase
	if err := typ.Decode([]byte(`{"item":"ink","count":null}`), &v); err != nil || v.Count != 4 || v.Wait != 90*time.Second {
		t.Errorf("Decode = %+v, %v, want the new defaults", v, err)
	}
}

// A tag replaces the tags of the field that say the same in other words.
func TestWithSynonyms(t *testing.T) {
	type in struct {
		A int    `json:"a" description:"old" minimum:"1" maximum:"5"`
		B string `json:"b" doc:"old" max:"5"`
		C int    `json:"c" jsonschema:"minimum=1,maximum=5,description=old"`
		D string `json:"d" jsonschema_description:"old"`
	}
	typ, err := schema.For[in]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tags, name, want string }{
		{`doc:"new" max:"9"`, "a", `"a":{"type":"integer","description":"new","minimum":1,"maximum":9}`},
		{`description:"new" maximum:"9"`, "a", `"a":{"type":"integer","description":"new","minimum":1,"maximum":9}`},
		{`description:"new" maxLength:"9"`, "b", `"b":{"type":"string","description":"new","maxLength":9}`},
		{`description:"new" max:"9"`, "c", `"c":{"type":"integer","description":"new","minimum":1,"maximum":9}`},
		{`doc:"new" maximum:"9"`, "c", `"c":{"type":"integer","description":"new","minimum":1,"maximum":9}`},
		{`doc:"new"`, "d", `"d":{"type":"string","description":"new"}`},
	} {
		changed, err := typ.With(tt.tags, tt.name)
		if err != nil || !strings.Contains(string(changed.JSON()), tt.want) {
			t.Errorf("With(%s, %q) = %v, want a schema with %s", tt.tags, tt.name, err, tt.want)
		}
	}
	if _, err := typ.With(`max:"9" maximum:"8"`, "a"); err == nil || !strings.Contains(err.Error(), "tags max and maximum: keep one") {
		t.Errorf("both names at once: %v", err)
	}
}

// A change into nonsense is an error that names the property.
func TestWithNonsense(t *testing.T) {
	typ := orderType(t)
	for _, tt := range []struct {
		tags, path, want string
	}{
		{`max:"9"`, "", "purchase: With: no property is named; give its JSON name"},
		{`max:"9"`, "cuont", `has no property "cuont"; it has "item", "count"`},
		{`max:"9"`, "count/more", `count.more: With: int has no property "more"`},
		{`max:"9"`, "wait/more", `has no property "more"`},
		{`max:"x"`, "count", `"x" is not a number`},
		{`min:"5" max:"4"`, "count", "count: no value of int is at least 5 and at most 4"},
		{`min:"300"`, "ship/size", "ship.size: no value of int8 is at least 300 and at most 127"},
		{`pattern:"a"`, "count", "does not apply to int"},
		{`pattern:"("`, "item", "missing closing )"},
		{`format:"colour"`, "item", `unknown format "colour"`},
		{`enum:"1,x"`, "count", `"x" is not a number`},
		{`default:"11"`, "count", "purchase: count: the default 11 does not fit"},
		{`default:"pencil"`, "item", `must be one of "pen", "ink"`},
		{`unique:"yes"`, "notes", "must be true or false"},
		{`json:"other"`, "item", `the tag "json" cannot be changed`},
		{`maximal:"9"`, "count", `the tag "maximal" cannot be changed; use some of doc`},
		{`max:9`, "count", `is not a struct tag, such as max:"9"`},
		{`max`, "count", `is not a struct tag`},
		{"max:`9`", "count", `is not a struct tag`},
		{` `, "count", "the tags are missing"},
	} {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, "/")
		}
		changed, err := typ.With(tt.tags, path...)
		if err == nil || changed != nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "schema of schema_test.purchase") {
			t.Errorf("With(%s, %q) = %v, %v, want an error with %q", tt.tags, path, changed, err, tt.want)
		}
	}
}

// The schema of results changes in the same way.
func TestOutputWith(t *testing.T) {
	out, err := schema.ForOutput[purchaseLine]()
	if err != nil {
		t.Fatal(err)
	}
	changed, err := out.With(`max:"9" doc:"in euros"`, "price")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"price":{"type":"number","description":"in euros","minimum":1,"maximum":9},"size":{"type":"integer","minimum":-128,"maximum":127}},"required":["price","size"],"additionalProperties":false}`
	if string(changed.JSON()) != want {
		t.Errorf("schema %s, want %s", changed.JSON(), want)
	}
	if _, err := changed.Encode(purchaseLine{Price: 10}); err == nil || err.Error() != "price: must be at most 9, got 10" {
		t.Errorf("Encode = %v, want a fault", err)
	}
	if _, err := out.Encode(purchaseLine{Price: 10}); err != nil {
		t.Errorf("Encode of the type itself = %v", err)
	}
	if _, err := out.With(`max:"9"`, "weight"); err == nil || !strings.Contains(err.Error(), `no property "weight"`) {
		t.Errorf("With = %v", err)
	}
}

// FuzzWith changes tags at random: a change fails, or makes a valid schema that accepts what the
// decoder accepts.
func FuzzWith(f *testing.F) {
	f.Add(`max:"50"`, "count", `{"item":"pen","count":40}`)
	f.Add(`enum:"a,b" default:"a"`, "item", `{"count":1}`)
	f.Add(`unique:"true" min:"1"`, "notes", `{"item":"pen","count":1,"notes":["gift"]}`)
	f.Add(`format:"email" pattern:"^a" nullable:"true"`, "item", `{"item":null,"count":1}`)
	f.Add(`header:"X" doc:"\"" examples:"1,2"`, "count", `{"item":"ink","count":2}`)
	f.Add(`multipleOf:"0.5" exclusiveMax:"3"`, "ship/price", `{"item":"ink","count":2,"ship":{"price":2.5}}`)
	typ, err := schema.For[purchase]()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tags, path, value string) {
		changed, err := typ.With(tags, strings.Split(path, "/")...)
		if err != nil {
			if changed != nil {
				t.Fatalf("With(%q, %q) returned both a type and %v", tags, path, err)
			}
			return
		}
		check, err := schema.Compile(changed.JSON())
		if err != nil {
			t.Fatalf("With(%q, %q): %v\n%s", tags, path, err, changed.JSON())
		}
		var v purchase
		if changed.Decode([]byte(value), &v) == nil {
			if _, err := check.Fit([]byte(value)); err != nil { // without nulls for absent properties
				t.Fatalf("With(%q, %q): the decoder accepts %s, and the schema does not: %v\n%s", tags, path, value, err, changed.JSON())
			}
		}
	})
}
