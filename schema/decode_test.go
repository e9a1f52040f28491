package schema_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/schema"
)

type order struct {
	City   string            `json:"city"`
	Age    uint              `json:"age" max:"150"`
	Tags   []string          `json:"tags,omitempty" max:"3"`
	Ship   address           `json:"ship"`
	Gift   *address          `json:"gift"`
	Labels map[string]int    `json:"labels,omitempty" max:"1"`
	Level  string            `json:"level,omitempty" enum:"low,high" default:"low"`
	Code   string            `json:"code,omitempty" pattern:"^[a-z]+$"`
	Until  time.Time         `json:"until,omitzero"`
	Wait   time.Duration     `json:"wait,omitempty" default:"1m30s"`
	Rate   float64           `json:"rate,omitempty" min:"0.1" exclusiveMax:"2"`
	Even   int               `json:"even,omitempty" multipleOf:"2"`
	Hash   [2]byte           `json:"hash,omitzero"`
	Pair   [2]int            `json:"pair,omitzero"`
	Extra  json.RawMessage   `json:"extra,omitempty"`
	Addr   netip.Addr        `json:"addr,omitzero"`
	Odd    map[string]string `json:"odd one,omitempty"`
	Ids    []int             `json:"ids,omitempty" unique:"true"`
	Null   *int              `json:"null" nullable:"true"`
}

type address struct {
	Street string `json:"street" min:"1"`
	Number int8   `json:"number,omitempty"`
}

// Every fault is listed with its place and the accepted values. TOOL-26-028; the text is what a
// model reads to correct its call (TOOL-26-026).
func TestDecodeFaults(t *testing.T) {
	const ok = `"city":"x","age":1,"ship":{"street":"s"}`
	tests := []struct{ name, in, want string }{
		{"all missing", `{}`, `missing "city"; missing "age"; missing "ship"`},
		{"several", `{"age":-3,"tags":["a","b",5],"ship":{"street":""}}`,
			`age: must be at least 0, got -3; tags[2]: must be a string, got number; ship.street: must have at least 1 character, got 0; missing "city"`},
		{"unknown, near", `{"citty":"x","age":1,"ship":{"street":"s","strete":1}}`,
			`unknown property "citty", did you mean "city"?; ship: unknown property "strete", did you mean "street"?; missing "city"`},
		{"unknown, joined otherwise", `{"oddOne":{},` + ok + `}`, `unknown property "oddOne", did you mean "odd one"?`},
		{"unknown, far", `{"ship":{"street":"s","x":1},"city":"x","age":1}`, `ship: unknown property "x"; known: street, number`},
		{"wrong case is unknown", `{"City":"x",` + ok + `}`, `unknown property "City", did you mean "city"?`},
		{"null in a list", `{` + ok + `,"tags":[null]}`, `tags[0]: must be a string, got null`},
		{"null twice", `{"gift":null,` + ok + `,"gift":null}`, `invalid JSON at byte 54: second member with the same name`},
		{"null, then a value", `{"gift":null,` + ok + `,"gift":{"street":"s"}}`, `invalid JSON at byte 54: second member with the same name`},
		{"the beginning of null", `{` + ok + `,"gift":nul}`, `invalid JSON at byte 49: want a value`},
		{"null where required", `{"city":null,"age":1,"ship":{"street":"s"}}`, `city: must be a string, got null`},
		{"fraction", `{"city":"x","age":1.5,"ship":{"street":"s"}}`, `age: must be an integer, got 1.5`},
		{"string for integer", `{"city":"x","age":"1","ship":{"street":"s"}}`, `age: must be an integer, got string`},
		{"over int8", `{"city":"x","age":1,"ship":{"street":"s","number":128}}`, `ship.number: must be at most 127, got 128`},
		{"over 64 bits", `{"city":"x","age":1,"ship":{"street":"s"},"even":9223372036854775808}`, `even: must be at most 9223372036854775807, got 9223372036854775808`},
		{"far over 64 bits", `{` + ok + `,"even":-1e999999999}`, `even: must be at least -9223372036854775808, got -1e999999999`},
		{"multiple", `{` + ok + `,"even":3}`, `even: must be a multiple of 2, got 3`},
		{"exact float bound", `{` + ok + `,"rate":0.09999999999999999999999}`, `rate: must be at least 0.1, got 0.09999999999999999999999`},
		{"exclusive bound", `{` + ok + `,"rate":2.0}`, `rate: must be less than 2, got 2.0`},
		{"float out of range", `{` + ok + `,"rate":1e400}`, `rate: is too large a number: 1e400`},
		{"enum", `{` + ok + `,"level":"mid"}`, `level: must be one of "low", "high", got "mid"`},
		{"pattern", `{` + ok + `,"code":"A1"}`, `code: must match the pattern "^[a-z]+$", got "A1"`},
		{"long pattern input", `{` + ok + `,"code":"` + strings.Repeat("a", 70_000) + `"}`, `code: is too long to match against a pattern: 70000 bytes, at most 65536`},
		{"time", `{` + ok + `,"until":"yesterday"}`, `until: must be a time such as 2026-07-28T15:04:05Z, got "yesterday"`},
		{"duration", `{` + ok + `,"wait":"90"}`, `wait: must be a duration such as 1m30s, got "90"`},
		{"base64", `{` + ok + `,"hash":"a"}`, `hash: must be base64, got "a"`},
		{"base64 size", `{` + ok + `,"hash":"aaaa"}`, `hash: must be base64 of exactly 2 bytes, got 3`},
		{"array size", `{` + ok + `,"pair":[1,2,3]}`, `pair: must have exactly 2 items, got 3`},
		{"too many", `{` + ok + `,"tags":["a","b","c","d"]}`, `tags: must have at most 3 items, got 4`},
		{"map", `{` + ok + `,"labels":{"a":1,"b c":"x"}}`, `labels["b c"]: must be an integer, got string; labels: must have at most 1 property, got 2`},
		{"odd name", `{` + ok + `,"odd one":{"k":1}}`, `["odd one"].k: must be a string, got number`},
		{"unique", `{` + ok + `,"ids":[1,2,1.0]}`, `ids: items must differ, but item 2 repeats item 0`},
		{"text type", `{` + ok + `,"addr":"nowhere"}`, `addr: is not valid: ParseAddr("nowhere"): unable to parse IP`},
		{"not an object", `[]`, `must be an object, got array`},
		{"long values are cut", `{` + ok + `,"level":"` + strings.Repeat("x", 100) + `"}`, `level: must be one of "low", "high", got "` + strings.Repeat("x", 60) + `"...`},

		{"empty", ``, `invalid JSON at byte 0: unexpected end, want a value`},
		{"twice", `{"city":"x","city":"y"}`, `invalid JSON at byte 12: second member with the same name`},
		{"twice after unescaping", `{"city":"x","cit\u0079":"y"}`, `invalid JSON at byte 12: second member with the same name`},
		{"twice in raw", `{` + ok + `,"extra":{"a":1,"b":{"c":1,"c":2}}}`, `invalid JSON at byte 68: second member with the same name`},
		{"trailing", `{` + ok + `} x`, `invalid JSON at byte 43: bytes after the value`},
		{"trailing comma", `{` + ok + `,}`, `invalid JSON at byte 42: want a member name`},
		{"not UTF-8", "{\"city\":\"\xff\"}", `invalid JSON at byte 9: invalid UTF-8`},
		{"lone surrogate", `{"city":"\ud800"}`, `invalid JSON at byte 9: escaped surrogate without its partner`},
		{"control", "{\"city\":\"a\nb\"}", `invalid JSON at byte 10: control character inside a string`},
		{"faults before broken text", `{"age":-1,`, `age: must be at least 0, got -1; invalid JSON at byte 10: unexpected end, want a member name`},
		{"deep", `{` + ok + `,"extra":` + strings.Repeat("[", 128), `invalid JSON at byte 177: nested deeper than 128`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Decode[order]([]byte(tt.in))
			var invalid *schema.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("Decode error = %v, want a ValidationError", err)
			}
			if got := invalid.Error(); got != tt.want {
				t.Errorf("Decode(%s)\n got %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	in := ` {"age": 1.5e1, "city":"a\tb\u00e6\ud83d\ude00/\/", "ship":{"street":"s","number":-1.28e2},"gift":{"street":"g"},
		"tags":[],"labels":{"x":3.0},"until":"2026-07-28T15:04:05Z","hash":"AQI=","pair":[1,-0],"extra": [1, {"a" :2.50}] ,"addr":"::1","ids":[9007199254740993],"null":null} `
	seven := 7
	got := order{Gift: &address{"old", 1}, Null: &seven, Code: "old"}
	typ, err := schema.For[order]()
	if err != nil {
		t.Fatal(err)
	}
	if err := typ.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := order{
		City: "a\tbæ😀//", Age: 15, Ship: address{"s", -128}, Gift: &address{"g", 0}, Tags: []string{},
		Labels: map[string]int{"x": 3}, Level: "low", Wait: 90 * time.Second,
		Until: time.Date(2026, 7, 28, 15, 4, 5, 0, time.UTC), Hash: [2]byte{1, 2}, Pair: [2]int{1, 0},
		Extra: json.RawMessage(`[1, {"a" :2.50}]`), Addr: netip.IPv6Loopback(), Ids: []int{9007199254740993},
	}
	if diff := cmp.Diff(got, want, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("Decode (-got +want):\n%s", diff)
	}
}

// picky has a method that reads anything but null.
type picky struct{ Text string }

func (p *picky) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return errors.New("null is no name")
	}
	return json.Unmarshal(b, &p.Text)
}

// Null for an optional property means absence, wherever null is not an accepted value (trap 17).
// The result is the same as without the property.
func TestDecodeNullIsAbsent(t *testing.T) {
	type deep struct {
		Inner string `json:"inner,omitempty"`
	}
	type args struct {
		*AbsentPart
		Text     string            `json:"text,omitempty"`
		Count    int               `json:"count,omitzero"`
		Default  int               `json:"default" default:"4"`
		Pointer  *int              `json:"pointer"`
		Defaulty *string           `json:"defaulty" default:"x"`
		List     []string          `json:"list,omitempty"`
		Map      map[string]string `json:"map,omitempty"`
		Choice   string            `json:"choice,omitempty" enum:"a,b"`
		Level    agreed            `json:"level,omitempty"`
		When     time.Time         `json:"when,omitzero"`
		Wait     time.Duration     `json:"wait,omitempty"`
		Bytes    []byte            `json:"bytes,omitempty"`
		Addr     netip.Addr        `json:"addr,omitzero"`
		Deep     deep              `json:"deep,omitzero"`
		Picky    picky             `json:"picky,omitzero"`
		Even     evenNumber        `json:"even,omitempty"`
	}
	nulls := `"part":null,"text":null,"count":null,"default":null,"pointer":null,"defaulty":null,"list":null,"map":null,"choice":null,` +
		`"level":null,"when":null,"wait":null,"bytes":null,"addr":null,"picky":null,"even":null`
	want, err := schema.Decode[args]([]byte(`{"deep":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := schema.Decode[args]([]byte(`{` + nulls + `,"deep":{"inner":null}}`))
	if err != nil {
		t.Fatalf("Decode of nulls: %v", err)
	}
	if diff := cmp.Diff(got, want, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("Decode of nulls (-got +without):\n%s", diff)
	}

	// Null stays a value where it is accepted, and is a fault where another value is required.
	type valued struct {
		Any  any             `json:"any,omitempty"`
		Raw  json.RawMessage `json:"raw,omitempty"`
		Null *int            `json:"null" nullable:"true" default:"3"`
		Zero int             `json:"zero" nullable:"true" default:"3"`
	}
	v, err := schema.Decode[valued]([]byte(`{"any":null,"raw":null,"null":null,"zero":null}`))
	if err != nil || v.Any != nil || string(v.Raw) != "null" || v.Null != nil || v.Zero != 0 {
		t.Errorf("Decode where null is a value = %+v, %v", v, err)
	}
	if _, err := schema.Decode[address]([]byte(`{"street":null}`)); err == nil || err.Error() != "street: must be a string, got null" {
		t.Errorf("Decode of null for a required property: %v", err)
	}
}

// AbsentPart is reached through an embedded pointer.
type AbsentPart struct {
	Part string `json:"part"`
}

type agreed string

func (agreed) Enum() []string { return []string{"low", "high"} }

type evenNumber int

func (evenNumber) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"integer","multipleOf":2}`)
}

// The schema of a form cannot forbid more members, so an answer may have them (trap 17); the
// members of the form are checked as usual.
func TestDecodeAnswer(t *testing.T) {
	type form struct {
		Name string `json:"name" min:"2"`
		Age  int    `json:"age,omitempty"`
	}
	typ, err := schema.For[form]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in   string
		want form
		err  string
	}{
		{`{"name":"Ada","extra":{"a":[1]},"age":7}`, form{"Ada", 7}, ""},
		{`{"x":1,"x":2,"name":"Ada","age":null}`, form{"Ada", 0}, ""},
		{`{"name":"A","extra":1}`, form{"A", 0}, `name: must have at least 2 characters, got 1`},
		{`{"Name":"Ada"}`, form{}, `missing "name"`},
		{`{"name":"Ada","extra":}`, form{"Ada", 0}, `invalid JSON at byte 22: want a value`},
	} {
		var got form
		err := typ.DecodeAnswer([]byte(tt.in), &got)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("DecodeAnswer(%s) = %+v, %v; want %+v, %q", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// Integers are exact at the ends of 64 bits, however they are written.
func TestDecodeIntegersExactly(t *testing.T) {
	type ints struct {
		I int64
		U uint64
	}
	tests := []struct {
		i, u string
		want ints
		ok   bool
	}{
		{"9223372036854775807", "18446744073709551615", ints{math.MaxInt64, math.MaxUint64}, true},
		{"-9223372036854775808", "0", ints{math.MinInt64, 0}, true},
		{"-9223372036854775808.000", "1844674407370955161.5e1", ints{math.MinInt64, math.MaxUint64}, true},
		{"922337203685477580700e-2", "1E+2", ints{math.MaxInt64, 100}, true},
		{"-0", "-0.0e5", ints{}, true},
		{"0e999999999999", "0.000e-99999999999", ints{}, true},
		{"9223372036854775808", "0", ints{}, false},
		{"-9223372036854775809", "0", ints{}, false},
		{"0", "18446744073709551616", ints{}, false},
		{"0", "-1", ints{}, false},
		{"1e-1", "0", ints{}, false},
		{"1e20", "0", ints{}, false},
	}
	for _, tt := range tests {
		got, err := schema.Decode[ints]([]byte(`{"I":` + tt.i + `,"U":` + tt.u + `}`))
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("I=%s U=%s: got %v, %v; want %v, ok %v", tt.i, tt.u, got, err, tt.want, tt.ok)
		}
	}
}

// Zero is within bounds, however long its exponent.
func TestDecodeZero(t *testing.T) {
	type bounded struct {
		X float64 `min:"-1" max:"1" multipleOf:"0.5"`
	}
	got, err := schema.Decode[bounded]([]byte(`{"X":0e10000000000000000000}`))
	if err != nil || got.X != 0 {
		t.Errorf("got %v, %v, want 0", got.X, err)
	}
}

// Many faults stay few lines.
func TestDecodeBoundsFaults(t *testing.T) {
	_, err := schema.Decode[[]int]([]byte("[" + strings.Repeat(`"x",`, 99_999) + `"x"]`))
	var invalid *schema.ValidationError
	if !errors.As(err, &invalid) || len(invalid.Faults) != 20 || invalid.More != 99_980 {
		t.Fatalf("got %.200v", err)
	}
	if !strings.HasSuffix(err.Error(), "[19]: must be an integer, got string; and 99980 more") {
		t.Errorf("Error() ends %q", err.Error()[len(err.Error())-80:])
	}
	_, err = schema.Decode[order]([]byte("{" + strings.Repeat(`"citty`+strings.Repeat("y", 40)+`":1,"b":`, 1) + "1}"))
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestDecodeNeedsPointerToType(t *testing.T) {
	typ, err := schema.For[order]()
	if err != nil {
		t.Fatal(err)
	}
	var nothing *order
	for _, v := range []any{order{}, nothing, nil, new(int), new(*order)} {
		err := typ.Decode([]byte(`{}`), v)
		var invalid *schema.ValidationError
		if err == nil || errors.As(err, &invalid) {
			t.Errorf("Decode into %T: error %v, want one about the pointer", v, err)
		}
	}
}

// Decoded values share nothing with the input or with each other's defaults.
func TestDecodeKeepsNothing(t *testing.T) {
	type args struct {
		Raw  json.RawMessage `json:"raw"`
		List []string        `json:"list" default:"[\"a\"]"`
	}
	in := []byte(`{"raw":[1]}`)
	one, err := schema.Decode[args](in)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := schema.Decode[args](in)
	clear(in)
	one.List[0] = "changed"
	if string(one.Raw) != "[1]" || two.List[0] != "a" {
		t.Errorf("got raw %q and the other's list %q", one.Raw, two.List)
	}
}

func TestForConcurrently(t *testing.T) {
	type args struct {
		A int `json:"a"`
	}
	var wg sync.WaitGroup
	types := make([]*schema.Type, 8)
	for i := range types {
		wg.Go(func() {
			types[i], _ = schema.For[args]()
			if v, err := schema.Decode[args]([]byte(`{"a":1}`)); err != nil || v.A != 1 {
				t.Errorf("got %v, %v", v, err)
			}
		})
	}
	wg.Wait()
	for _, typ := range types {
		if typ == nil || typ != types[0] {
			t.Fatal("For gave different Types for one Go type")
		}
	}
}

// Structs with many fields look names up in an index.
func TestDecodeWide(t *testing.T) {
	type wide struct {
		F00, F01, F02, F03, F04, F05, F06, F07, F08, F09 int
		F10, F11, F12, F13, F14, F15, F16, F17, F18, F19 int
	}
	v, err := schema.Decode[wide]([]byte(`{"F19":19,"F00":1,"F01":1,"F02":1,"F03":1,"F04":1,"F05":1,"F06":1,"F07":1,"F08":1,"F09":1,
		"F10":1,"F11":1,"F12":1,"F13":1,"F14":1,"F15":1,"F16":1,"F17":1,"F18":1}`))
	if err != nil || v.F19 != 19 {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := schema.Decode[wide]([]byte(`{"F20":1}`)); err == nil || !strings.Contains(err.Error(), `unknown property "F20", did you mean "F`) {
		t.Errorf("got %v", err)
	}
}
