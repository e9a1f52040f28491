package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

type tree struct {
	Name string  `json:"name"`
	Kids []*tree `json:"kids,omitempty"`
}

type ping struct {
	Pong *pong `json:"pong"`
}

type pong struct {
	Ping *ping `json:"ping" nullable:"true" doc:"and back"`
}

type page[T any] struct {
	Items []T      `json:"items"`
	Next  *page[T] `json:"next"`
}

type color string

func (color) Enum() []string { return []string{"red", "green"} }

type base struct {
	ID   string `json:"id"`
	Note string `json:"note,omitempty"`
}

type derived struct {
	base
	Note int `json:"note"` // hides base.Note
	_    int // unexported fields do not count
}

type money struct{ cents int64 }

func (money) JSONSchema() json.RawMessage {
	return json.RawMessage(`{ "type": "string", "pattern": "^[0-9]+\\.[0-9]{2}$" }`)
}

func (m *money) UnmarshalJSON(b []byte) error {
	var units, cents int64
	if _, err := fmt.Sscanf(string(b), `"%d.%d"`, &units, &cents); err != nil {
		return err
	}
	m.cents = units*100 + cents
	return nil
}

// The inferred schemas in full, as every client of a tool sees them. JSON-26-004, TOOL-26-009,
// TOOL-26-010.
func TestJSON(t *testing.T) {
	type empty struct{}
	type fields struct {
		Text   string   `json:"text" title:"Text" doc:"some \"text\" <b>" min:"1" max:"9" pattern:"^a" examples:"ab,ac"`
		Mail   string   `json:"mail,omitempty" format:"email" default:"a@b.no"`
		Count  int      `json:"count,omitempty" min:"0" exclusiveMax:"10" multipleOf:"2" default:"4"`
		Ratio  float64  `json:"ratio,omitzero" exclusiveMin:"0" max:"1.5"`
		Pick   string   `json:"pick,omitempty" enum:"a,b\\,c" enumTitles:"A,B and C"`
		Picks  []string `json:"picks,omitempty" enum:"x,y" min:"1" max:"2" unique:"true"`
		Grade  int      `json:"grade,omitempty" enum:"1,2,3"`
		Hidden string   `json:"-"`
		Plain  bool
	}
	type legacy struct {
		A int    `json:"a" jsonschema:"how many, roughly"`
		B string `json:"b,omitempty" jsonschema:"required,description=a word,enum=x,enum=y"`
		C int    `json:"c,omitempty" jsonschema:"title=C,minimum=1,maximum=5,example=2"`
		D string `json:"d,omitempty" jsonschema_description:"four"`
	}
	type full struct {
		A int      `json:"a" description:"how many" minimum:"1" exclusiveMaximum:"5"`
		B string   `json:"b" minLength:"2" maxLength:"3"`
		C []string `json:"c" minItems:"1" maxItems:"2"`
		D float64  `json:"d" maximum:"1.5"`
	}
	type optional struct {
		Value   string   `json:"value"`
		Omit    string   `json:"omit,omitempty"`
		Pointer *string  `json:"pointer"`
		Null    *string  `json:"null" nullable:"true"`
		NullReq string   `json:"nullReq" nullable:"true" enum:"a"`
		Default []string `json:"default" default:"[\"a\"]"`
	}
	type headers struct {
		Region string `json:"region" header:"Region"`
		Shard  int    `json:"shard" header:"Shard" min:"0"`
		Inner  struct {
			Dry bool `json:"dry" header:"Dry-Run"`
		} `json:"inner"`
	}
	type hooks struct {
		Plain  money  `json:"plain"`
		Doc    money  `json:"doc" doc:"the price"`
		Nulled *money `json:"nulled" nullable:"true"`
	}
	tests := []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[full](), `{"type":"object","properties":{"a":{"type":"integer","description":"how many","minimum":1,"exclusiveMaximum":5},"b":{"type":"string","minLength":2,"maxLength":3},"c":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},"d":{"type":"number","maximum":1.5}},"required":["a","b","c","d"],"additionalProperties":false}`},
		{reflect.TypeFor[empty](), `{"type":"object","properties":{},"additionalProperties":false}`},
		{reflect.TypeFor[fields](), `{"type":"object","properties":{` +
			`"text":{"type":"string","title":"Text","description":"some \"text\" <b>","examples":["ab","ac"],"minLength":1,"maxLength":9,"pattern":"^a"},` +
			`"mail":{"type":"string","default":"a@b.no","format":"email"},` +
			`"count":{"type":"integer","default":4,"minimum":0,"exclusiveMaximum":10,"multipleOf":2},` +
			`"ratio":{"type":"number","maximum":1.5,"exclusiveMinimum":0},` +
			`"pick":{"type":"string","enum":["a","b,c"]},` +
			`"picks":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"maxItems":2,"uniqueItems":true},` +
			`"grade":{"type":"integer","enum":[1,2,3]},` +
			`"Plain":{"type":"boolean"}},"required":["text","Plain"],"additionalProperties":false}`},
		{reflect.TypeFor[legacy](), `{"type":"object","properties":{` +
			`"a":{"type":"integer","description":"how many, roughly"},` +
			`"b":{"type":"string","description":"a word","enum":["x","y"]},` +
			`"c":{"type":"integer","title":"C","examples":[2],"minimum":1,"maximum":5},` +
			`"d":{"type":"string","description":"four"}},"required":["a","b"],"additionalProperties":false}`},
		{reflect.TypeFor[optional](), `{"type":"object","properties":{` +
			`"value":{"type":"string"},"omit":{"type":"string"},"pointer":{"type":"string"},` +
			`"null":{"type":["string","null"]},"nullReq":{"type":["string","null"],"enum":["a",null]},` +
			`"default":{"type":"array","default":["a"],"items":{"type":"string"}}},"required":["value","nullReq"],"additionalProperties":false}`},
		{reflect.TypeFor[headers](), `{"type":"object","properties":{` +
			`"region":{"type":"string","x-mcp-header":"Region"},` +
			`"shard":{"type":"integer","x-mcp-header":"Shard","minimum":0,"maximum":9007199254740991},` +
			`"inner":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}},"required":["dry"],"additionalProperties":false}},` +
			`"required":["region","shard","inner"],"additionalProperties":false}`},
		{reflect.TypeFor[hooks](), `{"type":"object","properties":{` +
			`"plain":{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$"},` +
			`"doc":{"description":"the price","allOf":[{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$"}]},` +
			`"nulled":{"anyOf":[{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$"},{"type":"null"}]}},"required":["plain","doc"],"additionalProperties":false}`},
		{reflect.TypeFor[derived](), `{"type":"object","properties":{"id":{"type":"string"},"note":{"type":"integer"}},"required":["id","note"],"additionalProperties":false}`},
		{reflect.TypeFor[tree](), `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["name"],"additionalProperties":false,` +
			`"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["name"],"additionalProperties":false}}}`},
		{reflect.TypeFor[ping](), `{"type":"object","properties":{"pong":{"type":"object","properties":{"ping":{"anyOf":[{"$ref":"#/$defs/ping"},{"type":"null"}],"description":"and back"}},"additionalProperties":false}},"additionalProperties":false,` +
			`"$defs":{"ping":{"type":"object","properties":{"pong":{"type":"object","properties":{"ping":{"anyOf":[{"$ref":"#/$defs/ping"},{"type":"null"}],"description":"and back"}},"additionalProperties":false}},"additionalProperties":false}}}`},
		{reflect.TypeFor[page[color]](), `{"type":"object","properties":{"items":{"type":"array","items":{"type":"string","enum":["red","green"]}},"next":{"$ref":"#/$defs/page_color"}},"required":["items"],"additionalProperties":false,` +
			`"$defs":{"page_color":{"type":"object","properties":{"items":{"type":"array","items":{"type":"string","enum":["red","green"]}},"next":{"$ref":"#/$defs/page_color"}},"required":["items"],"additionalProperties":false}}}`},
		{reflect.TypeFor[[]time.Time](), `{"type":"array","items":{"type":"string","format":"date-time"}}`},
		{reflect.TypeFor[time.Duration](), `{"type":"string","pattern":"^-?([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"}`},
		{reflect.TypeFor[map[string][]byte](), `{"type":"object","additionalProperties":{"type":"string","contentEncoding":"base64"}}`},
		{reflect.TypeFor[[32]byte](), `{"type":"string","contentEncoding":"base64","pattern":"^[A-Za-z0-9+/]{43}=$"}`},
		{reflect.TypeFor[[2]uint8](), `{"type":"string","contentEncoding":"base64","pattern":"^[A-Za-z0-9+/]{3}=$"}`},
		{reflect.TypeFor[[2]int8](), `{"type":"array","items":{"type":"integer","minimum":-128,"maximum":127},"minItems":2,"maxItems":2}`},
		{reflect.TypeFor[any](), `{}`},
		{reflect.TypeFor[json.RawMessage](), `{}`},
		{reflect.TypeFor[json.Number](), `{"type":"number"}`},
	}
	for _, tt := range tests {
		t.Run(tt.typ.String(), func(t *testing.T) {
			typ, err := schema.ForType(tt.typ)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(typ.JSON()), tt.want); diff != "" {
				t.Errorf("JSON() (-got +want):\n%s", diff)
			}
			// JSON-26-007: an emitted schema is valid in its dialect.
			if _, err := schema.Compile(typ.JSON()); err != nil {
				t.Errorf("the schema does not compile: %v", err)
			}
		})
	}
}

func TestIsObject(t *testing.T) {
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[tree]():           true,
		reflect.TypeFor[*tree]():          true,
		reflect.TypeFor[map[string]int](): true,
		reflect.TypeFor[[]tree]():         false,
		reflect.TypeFor[any]():            false,
		reflect.TypeFor[money]():          false,
	} {
		s, err := schema.ForType(typ)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.IsObject(); got != want {
			t.Errorf("IsObject of %v = %v, want %v", typ, got, want)
		}
	}
}

// Bad types and tags are found when the type is first asked for, and the error
// names the field.
func TestForRefuses(t *testing.T) {
	type inner struct {
		C chan int `json:"c"`
	}
	type node struct {
		X string  `json:"x" header:"X"`
		N []*node `json:"n,omitempty"`
	}
	tests := []struct {
		v    any
		want string // part of the error
	}{
		{make(chan int), "chan int has no JSON form"},
		{func() {}, "has no JSON form"},
		{struct{ A []map[string]inner }{}, "A: []: {}: C: chan int has no JSON form"},
		{struct{ E fmt.Stringer }{}, "E: fmt.Stringer: an interface with methods"},
		{map[int]string{}, "keys of a map"},
		{struct {
			A int `min:"x"`
		}{}, `A: tag min: "x" is not a number`},
		{struct {
			A int `min:"5" max:"4"`
		}{}, "A: no value of int is at least 5 and at most 4"},
		{struct {
			A uint8 `min:"300"`
		}{}, "A: no value of uint8 is at least 300 and at most 255"},
		{struct {
			A bool `min:"1"`
		}{}, "A: tag min: does not apply to bool"},
		{struct {
			A string `pattern:"("`
		}{}, "A: tag pattern: error parsing regexp"},
		{struct {
			A string `format:"emial"`
		}{}, `A: tag format: unknown format "emial"; known are date,`},
		{struct {
			A string `min:"3" max:"2"`
		}{}, "A: at least 3 and at most 2 contradict each other"},
		{struct {
			A int `default:"x"`
		}{}, `A: tag default: "x" is not JSON for int`},
		{struct {
			A int `default:"5" max:"4"`
		}{}, "A: the default 5 does not fit: must be at most 4, got 5"},
		{struct {
			A string `enum:"a,b" default:"c"`
		}{}, `must be one of "a", "b", got "c"`},
		{struct {
			A string `enum:"a,b" enumTitles:"one"`
		}{}, "A: tag enumTitles: 1 titles for 2 enum values"},
		{struct {
			A int `enum:"1,x"`
		}{}, `A: tag enum: "x" is not a number`},
		{struct {
			A tree `enum:"1,x"`
		}{}, "A: tag enum: does not apply to schema_test.tree"},
		{struct {
			A string `nullable:"yes"`
		}{}, "A: tag nullable: must be true or false"},
		{struct {
			A string `jsonschema:"required,minimun=1"`
		}{}, `A: tag jsonschema: unknown part "minimun=1"`},
		{struct {
			A int `min:"1" minimum:"2"`
		}{}, "A: tags min and minimum: keep one"},
		{struct {
			A string `max:"1" maxLength:"2"`
		}{}, "A: tags max and maxLength: keep one"},
		{struct {
			A int `minLength:"1"`
		}{}, "A: tag minLength"},
		{struct {
			A int `json:"a,string"`
		}{}, `A: json option "string" is not supported`},
		{sameName("a", "a"), `A and B: both have the JSON name "a"; change one`},
		{struct {
			A int
			B int `json:"A"`
		}{}, `A and B: both have the JSON name "A"`},
		{reflect.Zero(reflect.StructOf([]reflect.StructField{{Name: "In", Type: reflect.TypeOf(sameName("a", "a"))}})).Interface(), `In: A and B: both have the JSON name "a"`},
		// HTTP-26-035 to HTTP-26-042.
		{struct {
			A string `header:""`
		}{}, "A: tag header: the name is empty"},
		{struct {
			A string `header:"Bad Header"`
		}{}, `A: tag header: "Bad Header" is not a header name`},
		{struct {
			A string `header:"a:b"`
		}{}, "is not a header name"},
		{struct {
			A string `header:"a\r\nb"`
		}{}, "is not a header name"},
		{struct {
			A string `header:"é"`
		}{}, "is not a header name"},
		{struct {
			A string `header:"Region"`
			B string `header:"region"`
		}{}, `tag header: A and B both use "region"`},
		{struct {
			A float64 `header:"A"`
		}{}, "A: tag header: float64 cannot be a header"},
		{struct {
			A []string `header:"A"`
		}{}, "A: tag header: []string cannot be a header"},
		{struct {
			A []struct {
				B string `header:"B"`
			}
		}{}, "B is inside a list, a map or a recursive type"},
		{node{}, "X is inside a list, a map or a recursive type"},
	}
	for _, tt := range tests {
		_, err := schema.ForType(reflect.TypeOf(tt.v))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ForType(%T) error = %v, want one with %q", tt.v, err, tt.want)
		}
	}
	if _, err := schema.ForType(nil); err == nil {
		t.Error("ForType(nil) gave no error")
	}
}

// A type that repeats its parts many times does not get a huge schema: past 64 KiB the parts move
// to $defs.
func TestSharedPartsMoveToDefs(t *testing.T) {
	type a struct{ One, Two, Three, Four, Five, Six string }
	type b struct{ A1, A2, A3, A4, A5, A6, A7, A8 a }
	type c struct{ B1, B2, B3, B4, B5, B6, B7, B8 b }
	type d struct{ C1, C2, C3, C4, C5, C6, C7, C8 c }
	typ, err := schema.For[d]()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(typ.JSON()); n > 4<<10 {
		t.Errorf("the schema has %d bytes, want it small", n)
	}
	if !strings.HasPrefix(string(typ.JSON()), `{"type":"object","properties":{"C1":{"$ref":"#/$defs/c"}`) {
		t.Errorf("unexpected schema %s", typ.JSON())
	}
	if _, err := schema.Compile(typ.JSON()); err != nil {
		t.Error(err)
	}
}

// The encoder's output for a type fits the type's schema: a tool's result passes its own output
// schema (TOOL-26-023).
func TestEncodedValuesFit(t *testing.T) {
	type small byte
	type value struct {
		Bytes  []byte
		Sum    [3]byte
		Smalls []small
		Time   time.Time
		Nil    []string
		Map    map[string]int
		Any    any
		Raw    json.RawMessage
		Note   *string `json:"note,omitempty"`
		Null   *string `json:"null" nullable:"true"`
		Float  float32
		Tree   tree
		base
	}
	for _, v := range []value{{}, {Bytes: []byte{1}, Smalls: []small{1, 2}, Float: 0.1, Any: map[string]any{"a": 1.5}, Map: map[string]int{"x": 1}}} {
		raw, err := jsonx.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		typ, err := schema.For[value]()
		if err != nil {
			t.Fatal(err)
		}
		if err := typ.Validate(raw); err != nil {
			t.Errorf("%s does not fit: %v\nschema %s", raw, err, typ.JSON())
		}
		check, err := schema.Compile(typ.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Validate(raw); err != nil {
			t.Errorf("%s does not fit the schema: %v", raw, err)
		}
	}
}

// sameName returns a struct whose fields A and B have JSON names, which go vet would not let a source file
// repeat.
func sameName(a, b string) any {
	of := reflect.TypeFor[int]()
	return reflect.Zero(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: of, Tag: reflect.StructTag(`json:"` + a + `"`)}, {Name: "B", Type: of, Tag: reflect.StructTag(`json:"` + b + `"`)},
	})).Interface()
}
