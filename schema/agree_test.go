package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Property: for any Go type and any JSON, Decode accepts exactly the values that a validator
// accepts that knows only the type's schema, once nulls that the schema neither accepts nor
// requires are removed.
//
// The schema cannot express, and the tests leave out: integers over 64 bits, floating-point
// numbers out of range, durations over 292 years, dates that are not in the calendar although
// they have the right format, and values that UnmarshalText and UnmarshalJSON refuse.

type agreeLevel string

func (agreeLevel) Enum() []string { return []string{"low", "mid", "high"} }

type agreeNode struct {
	Value int          `json:"value" min:"-5"`
	Next  *agreeNode   `json:"next" nullable:"true"`
	Kids  []*agreeNode `json:"kids,omitempty" max:"2"`
}

type agreePing struct {
	Pong *agreePong `json:"pong"`
}

type agreePong struct {
	Ping *agreePing `json:"ping,omitempty" doc:"back again"`
}

type agreeBase struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type agreeAll struct {
	agreeBase
	*AgreeExtra
	Name  string             `json:"name" min:"2" max:"3"` // hides the embedded one
	Bool  bool               `json:"bool,omitempty"`
	I8    int8               `json:"i8,omitempty"`
	I64   int64              `json:"i64,omitempty" exclusiveMin:"-3" max:"1000000"`
	U     uint               `json:"u,omitempty"`
	U16   uint16             `json:"u16,omitempty" multipleOf:"3"`
	F     float64            `json:"f,omitempty" min:"0.1" exclusiveMax:"2.5"`
	F32   float32            `json:"f32,omitempty" multipleOf:"0.1"`
	Num   json.Number        `json:"num,omitempty" max:"5"`
	Enum  string             `json:"enum,omitempty" enum:"a,b"`
	Level agreeLevel         `json:"level,omitempty"`
	IEnum int                `json:"ienum,omitempty" enum:"1,2,3"`
	Tags  []string           `json:"tags,omitempty" enum:"a,b,c" unique:"true" max:"2"`
	Any   any                `json:"any,omitempty"`
	Raw   json.RawMessage    `json:"raw,omitempty"`
	Map   map[string]int8    `json:"map,omitempty" min:"1"`
	Arr   [2]bool            `json:"arr,omitempty"`
	Bytes []byte             `json:"bytes,omitempty"`
	Sum   [2]byte            `json:"sum,omitempty"`
	Time  time.Time          `json:"time,omitzero"`
	Dur   time.Duration      `json:"dur,omitempty"`
	Mail  string             `json:"mail,omitempty" format:"email"`
	Pat   string             `json:"pat,omitempty" pattern:"^x+$"`
	Null  *int               `json:"null" nullable:"true" enum:"7,8"`
	NStr  string             `json:"nstr,omitempty" nullable:"true"`
	Opt   *string            `json:"opt"`
	Sub   *agreeNode         `json:"sub"`
	Subs  []struct{ A int }  `json:"subs,omitempty"`
	Uniq  []any              `json:"uniq,omitempty" unique:"true"`
	Nest  map[string][]*uint `json:"nest,omitempty"`
	Defl  int                `json:"defl" default:"4" max:"9"`
}

type AgreeExtra struct {
	Extra string `json:"extra"`
}

func agreeTypes(t testing.TB) []*Type {
	return []*Type{
		mustFor[agreeAll](t), mustFor[agreeNode](t), mustFor[agreePing](t), mustFor[struct{}](t),
		mustFor[benchWide](t), mustFor[[]agreeLevel](t), mustFor[map[string]agreeNode](t), mustFor[*int16](t),
		mustFor[string](t), mustFor[any](t), mustFor[uint64](t), mustFor[[3]float64](t),
	}
}

// oracle compiles the schema of t with formats and contents checked.
func oracle(t testing.TB, typ *Type) *Validator {
	v, err := newValidator(typ.JSON(), true)
	if err != nil {
		t.Fatalf("the schema of %s does not compile: %v\n%s", typ, err, typ.JSON())
	}
	return v
}

// unsaid reports whether v holds something that the schema cannot express.
func unsaid(v any) bool {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 32)
		return err != nil || f > 1e18 || f < -1e18 || !parseDecimal([]byte(v)).bounded()
	case string:
		_, err := time.ParseDuration(v)
		return err != nil && durationRE.MatchString(v)
	case []any:
		for _, e := range v {
			if unsaid(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if unsaid(e) {
				return true
			}
		}
	}
	return false
}

func checkAgreement(t *testing.T, typ *Type, v *Validator, data []byte) {
	t.Helper()
	decoded, checked := typ.Validate(data), v.Validate(data)
	if (decoded == nil) == (checked == nil) {
		return
	}
	if value, err := parseAny(data); err == nil {
		if unsaid(value) {
			return
		}
		if decoded == nil && leaveOutNulls(v, value, value) {
			return
		}
	}
	t.Fatalf("%s: %s\n Decode says %v\n the schema says %v\n schema %s", typ, data, decoded, checked, typ.JSON())
}

// leaveOutNulls removes from part, a part of root, the null members that v refuses, and reports
// whether v then accepts root.
func leaveOutNulls(v *Validator, root, part any) bool {
	count := func() int {
		raw, _ := json.Marshal(root)
		var invalid *ValidationError
		if !errors.As(v.Validate(raw), &invalid) {
			return 0
		}
		return len(invalid.Faults) + invalid.More
	}
	switch part := part.(type) {
	case []any:
		for _, e := range part {
			leaveOutNulls(v, root, e)
		}
	case map[string]any:
		for name, e := range part {
			if e != nil {
				leaveOutNulls(v, root, e)
				continue
			}
			before := count()
			if delete(part, name); count() >= before {
				part[name] = nil
			}
		}
	}
	return count() == 0
}

// TestDecodeAgreesWithSchema tries values that nearly fit on every type.
func TestDecodeAgreesWithSchema(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fit, refused := 0, 0
	for _, typ := range agreeTypes(t) {
		v := oracle(t, typ)
		var schema any
		if err := json.Unmarshal(typ.JSON(), &schema); err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			g := generator{rng: rng, root: schema, wrong: rng.Float64() * rng.Float64() * 0.3}
			data := g.append(nil, schema, 0)
			checkAgreement(t, typ, v, data)
			if typ.Validate(data) == nil {
				fit++
			} else {
				refused++
			}
		}
	}
	if fit < 3000 || refused < 3000 {
		t.Errorf("the generator is lopsided: %d values fit, %d do not", fit, refused)
	}
}

// FuzzDecodeAgreesWithSchema does the same with values of the fuzzer.
func FuzzDecodeAgreesWithSchema(f *testing.F) {
	types := agreeTypes(f)
	oracles := make([]*Validator, len(types))
	rng := rand.New(rand.NewPCG(3, 4))
	for i, typ := range types {
		oracles[i] = oracle(f, typ)
		var schema any
		if err := json.Unmarshal(typ.JSON(), &schema); err != nil {
			f.Fatal(err)
		}
		for range 5 {
			g := generator{rng: rng, root: schema, wrong: 0.02}
			f.Add(i, g.append(nil, schema, 0))
		}
	}
	f.Add(0, []byte(`{"id":"\ud83d\ude00","u":1e2,"any":{"a":1,"a":2}}`))
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		if i < 0 || i >= len(types) {
			t.Skip()
		}
		checkAgreement(t, types[i], oracles[i], data)
	})
}

// generator writes values for a schema, with mistakes here and there.
type generator struct {
	rng   *rand.Rand
	root  any
	wrong float64
}

func (g *generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *generator) append(dst []byte, schema any, depth int) []byte {
	if g.rng.Float64() < g.wrong {
		return append(dst, g.pick("null", "true", `"a"`, "1", "1.5", "-1", "[]", "{}", `[1]`, `{"a":1}`, `""`, "300", "7", "3e0", "-0")...)
	}
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		defs := g.root.(map[string]any)["$defs"].(map[string]any)
		return g.append(dst, defs[strings.TrimPrefix(ref, "#/$defs/")], depth)
	}
	if alts, ok := s["anyOf"].([]any); ok {
		i := g.rng.IntN(len(alts))
		if depth > 6 {
			i = len(alts) - 1 // null
		}
		return g.append(dst, alts[i], depth)
	}
	if enum, ok := s["enum"].([]any); ok {
		raw, _ := json.Marshal(enum[g.rng.IntN(len(enum))])
		return append(dst, raw...)
	}
	typ, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		typ = list[g.rng.IntN(len(list))].(string)
	}
	switch typ {
	case "null":
		return append(dst, "null"...)
	case "boolean":
		return append(dst, g.pick("true", "false")...)
	case "integer":
		return append(dst, g.pick("0", "1", "2", "3", "-2", "-4", "9", "127", "128", "-128", "-129", "65535", "65536", "10", "1e1", "30.0", "1e-1", "100e-2", "0.0", "-0", "32768")...)
	case "number":
		return append(dst, g.pick("0.1", "0.3", "1", "2", "2.5", "0.10000000000000000001", "0.1e0", "5", "5.0000000000000000000001", "-1", "2.4999999999999999999")...)
	case "string":
		switch {
		case s["format"] == "date-time":
			return append(dst, g.pick(`"2026-01-02T03:04:05Z"`, `"2026-01-02"`, `"2026-13-02T03:04:05Z"`, `"2026-01-02T03:04:05.5+01:00"`)...)
		case s["format"] == "email":
			return append(dst, g.pick(`"a@b.no"`, `"a"`, `"a@"`)...)
		case s["contentEncoding"] != nil:
			return append(dst, g.pick(`"aGk="`, `"aGkh"`, `""`, `"x"`)...)
		case s["pattern"] != nil:
			return append(dst, g.pick(`"x"`, `"xx"`, `"y"`, `"1m"`, `"1m30s"`, `"-1.5h"`, `"a-1"`)...)
		}
		return append(dst, g.pick(`"a"`, `"ab"`, `"abc"`, `"abcd"`, `"æøå"`, `"\u00e6\n"`, `"😀😀"`, `"\ud83d\ude00"`)...)
	case "array":
		n := g.rng.IntN(3)
		if m, ok := s["minItems"].(float64); ok {
			n = int(m)
		}
		if depth > 6 {
			n = 0
		}
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = g.append(dst, s["items"], depth+1)
		}
		return append(dst, ']')
	case "object":
		return g.appendObject(dst, s, depth)
	}
	return append(dst, g.pick("null", "1", "1.0", `"x"`, `[1,{"a":null}]`, `{"b":1,"a":2}`, `{"a":2,"b":1.0}`)...)
}

func (g *generator) appendObject(dst []byte, s map[string]any, depth int) []byte {
	names := map[string]any{}
	if extra, ok := s["additionalProperties"].(map[string]any); ok {
		for range g.rng.IntN(3) {
			names[g.pick("p", "q", "r s")] = extra
		}
	}
	required := fmt.Sprint(s["required"])
	properties, _ := s["properties"].(map[string]any)
	for name, sub := range properties {
		chance := 0.25
		if strings.Contains(required, name) {
			chance = 1 - g.wrong
		}
		if g.rng.Float64() < chance && (depth < 6 || chance > 0.5) {
			names[name] = sub
		}
	}
	if g.rng.Float64() < g.wrong {
		names[g.pick("Name", "valu", "x")] = nil
	}
	dst = append(dst, '{')
	for i, name := range sortedKeys(names) {
		if i > 0 {
			dst = append(dst, g.pick(",", ", ", ",\n")...)
		}
		dst = append(jsonx.AppendString(dst, name), ':')
		dst = g.append(dst, names[name], depth+1)
	}
	return append(dst, '}')
}

// FuzzDecode also feeds types whose own methods are called.
func FuzzDecode(f *testing.F) {
	type all struct {
		Addr  netip.Addr               `json:"addr,omitzero"`
		Big   *json.RawMessage         `json:"big"`
		Hook  hooked                   `json:"hook,omitempty"`
		Text  map[string]netip.Prefix  `json:"text,omitempty"`
		Deep  [][][]map[string]float32 `json:"deep,omitempty"`
		Bytes []byte                   `json:"bytes,omitempty"`
		Durs  []time.Duration          `json:"durs,omitempty"`
		Twice []any                    `json:"twice,omitempty" unique:"true"`
	}
	f.Add([]byte(`{"addr":"::1","big":[1],"hook":3,"text":{"a":"10.0.0.0/8"},"deep":[[[{"a":1}]]],"durs":["1s"]}`))
	f.Add([]byte(`{"hook":3.5,"twice":[1,1.0,"\u0000"],"bytes":"AA=="}`))
	f.Add([]byte(`{"addr":"::1"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		kept := string(data)
		v, err := Decode[all](data)
		if string(data) != kept {
			t.Fatal("Decode changed its input")
		}
		var invalid *ValidationError
		switch {
		case err == nil:
			// A value that is accepted is valid JSON for encoding/json too.
			if !json.Valid(data) {
				t.Fatalf("Decode accepted %q, which is not JSON", data)
			}
			again, err := Decode[all](data)
			if err != nil || fmt.Sprint(again.Addr, again.Hook) != fmt.Sprint(v.Addr, v.Hook) {
				t.Fatalf("the second Decode of %q differs: %v", data, err)
			}
		case !errors.As(err, &invalid) || len(invalid.Faults) == 0 || len(invalid.Faults) > maxFaults:
			t.Fatalf("Decode(%q) = %#v, want a ValidationError with 1 to %d faults", data, err, maxFaults)
		}
	})
}

// hooked states its own schema: an even number.
type hooked int

func (hooked) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"integer","multipleOf":2,"minimum":0,"maximum":100}`)
}
