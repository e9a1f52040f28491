package schema_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/schema"
)

type trip struct {
	City string   `json:"city" doc:"where to"`
	Days int      `json:"days,omitempty" default:"3" min:"1" max:"14"`
	Tags []string `json:"tags,omitempty" enum:"sea,snow,city"`
}

func ExampleFor() {
	t, err := schema.For[trip]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(t.JSON()))
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"where to"},"days":{"type":"integer","default":3,"minimum":1,"maximum":14},"tags":{"type":"array","items":{"type":"string","enum":["sea","snow","city"]}}},"required":["city"],"additionalProperties":false}
}

func ExampleDecode() {
	t, err := schema.Decode[trip]([]byte(`{"city":"Bergen","tags":["sea"]}`))
	fmt.Println(t, err)
	_, err = schema.Decode[trip]([]byte(`{"citty":"Bergen","days":30,"tags":["sea","sun"]}`))
	fmt.Println(err)
	// Output:
	// {Bergen 3 [sea]} <nil>
	// unknown property "citty", did you mean "city"?; days: must be at most 14, got 30; tags[1]: must be one of "sea", "snow", "city", got "sun"; missing "city"
}

func ExampleCompile() {
	v, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Validate([]byte(`{"n":2}`)))
	fmt.Println(v.Validate([]byte(`{"n":0.5}`)))
	_, err = schema.Compile(json.RawMessage(`{"$ref":"https://example.com/schema.json"}`))
	fmt.Println(err)
	// Output:
	// <nil>
	// n: must be an integer, got 0.5
	// schema: the reference "https://example.com/schema.json" leads out of the schema and is not followed; put what it names into $defs
}

func ExampleFormOf() {
	form, err := schema.FormOf(json.RawMessage(`{"type":"object","properties":{
		"size":{"type":"string","title":"Size","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},
		"count":{"type":"integer","minimum":1}},"required":["count"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range form.Fields {
		fmt.Println(f.Name, f.Kind, f.Required, len(f.Options))
	}
	fmt.Println(form.Field("count").Parse("0"))
	value, err := form.Field("size").Parse("large")
	fmt.Println(string(value), err)
	// Output:
	// size enum false 2
	// count integer true 0
	// [] count: must be at least 1, got 0
	// "l" <nil>
}

func ExampleType_Elicitation() {
	type answer struct {
		Size  string `json:"size" enum:"s,l" enumTitles:"Small,Large"`
		Count int    `json:"count" min:"1"`
	}
	t, err := schema.For[answer]()
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := t.Elicitation()
	fmt.Println(string(raw), err)
	// Output:
	// {"type":"object","properties":{"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},"count":{"type":"integer","minimum":1}},"required":["size","count"]} <nil>
}

func ExampleForOutput() {
	type answer struct {
		Took time.Duration `json:"took,omitempty"`
		Note *string       `json:"note"`
		Size string        `json:"size,omitempty" enum:"s,l"`
	}
	out, err := schema.ForOutput[answer]()
	if err != nil {
		fmt.Println(err)
		return
	}
	var v struct {
		Required []string `json:"required"`
	}
	fmt.Println(json.Unmarshal(out.JSON(), &v), v.Required)
	raw, err := out.Encode(answer{Took: 90 * time.Second})
	fmt.Println(string(raw), err)
	_, err = out.Encode(answer{Size: "xl"})
	fmt.Println(err)
	// Output:
	// <nil> [took note]
	// {"took":"1m30s","note":null} <nil>
	// size: must be one of "s", "l", got "xl"
}

// A limit that only the running program knows changes the schema and the decoder.
func ExampleType_With() {
	type search struct {
		Text  string `json:"text"`
		Limit int    `json:"limit" default:"10" max:"20"`
	}
	typ, err := schema.For[search]()
	if err != nil {
		fmt.Println(err)
		return
	}
	most := 50 // from a configuration
	if typ, err = typ.With(fmt.Sprintf(`max:"%d"`, most), "limit"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(typ.JSON()))
	fmt.Println(typ.Decode([]byte(`{"text":"go","limit":60}`), new(search)))
	// Output:
	// {"type":"object","properties":{"text":{"type":"string"},"limit":{"type":"integer","default":10,"maximum":50}},"required":["text"],"additionalProperties":false}
	// limit: must be at most 50, got 60
}
