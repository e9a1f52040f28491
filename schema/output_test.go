package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// everything has a field of each kind, in each way to write it.
type everything struct {
	base
	Bool   bool          `json:"bool"`
	I8     int8          `json:"i8,omitempty"`
	I64    int64         `json:"i64,omitzero"`
	U16    uint16        `json:"u16"`
	U64    uint64        `json:"u64,omitempty"`
	F32    float32       `json:"f32"`
	F64    float64       `json:"f64,omitempty"`
	Num    json.Number   `json:"num,omitempty"`
	NumZ   json.Number   `json:"numz,omitzero"`
	Text   string        `json:"text,omitempty"`
	Dur    time.Duration `json:"dur,omitempty"`
	Durs   []time.Duration
	Time   time.Time `json:"time,omitempty"`
	TimeZ  time.Time `json:"timez,omitzero"`
	Bytes  []byte    `json:"bytes,omitempty"`
	Sum    [3]byte   `json:"sum,omitempty"`
	None   [0]int    `json:"none,omitempty"`
	Pair   [2]string `json:"pair,omitempty"`
	List   []int     `json:"list"`
	ListE  []int     `json:"liste,omitempty"`
	ListZ  []int     `json:"listz,omitzero"`
	Map    map[string]uint8
	MapE   map[string]time.Duration `json:"mape,omitempty"`
	Addr   netip.Addr               `json:"addr,omitempty"`
	Struct place                    `json:"struct,omitempty"`
	Empty  struct {
		X string `json:"x,omitempty"`
	} `json:"empty,omitempty"`
	Kids   map[string][]int8 `json:"kids"`
	Defl   int               `json:"defl"`
	Hidden string            `json:"-"`
}

type place struct {
	Street string `json:"street"`
	Number int8   `json:"number,omitempty"`
}

// pointers is the same for fields that may be nil.
type pointers struct {
	*Extra
	P      *int              `json:"p"`
	PE     *int              `json:"pe,omitempty"`
	PZ     *int              `json:"pz,omitzero"`
	PP     **string          `json:"pp"`
	PPE    **string          `json:"ppe,omitempty"`
	PPZ    **string          `json:"ppz,omitzero"`
	Null   *bool             `json:"null" nullable:"true"`
	Sub    *place            `json:"sub" doc:"where"`
	Tree   *tree             `json:"tree"`
	TreeE  *tree             `json:"treee,omitempty"`
	Items  []*int            `json:"items"`
	Ptrs   map[string]*tree  `json:"ptrs"`
	Arr    [2]*time.Duration `json:"arr,omitempty"`
	Money  *money            `json:"money"`
	PDur   *time.Duration    `json:"pdur"`
	PTime  *time.Time        `json:"ptime"`
	PAddr  *netip.Addr       `json:"paddr"`
	PList  *[]string         `json:"plist"`
	PMap   *map[string]*int  `json:"pmap"`
	PBytes *[]byte           `json:"pbytes"`
	PRaw   *json.RawMessage  `json:"praw"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	RawE   json.RawMessage   `json:"rawe,omitempty"`
	Next   *pointers         `json:"next"`
	Plain  string            `json:"plain" nullable:"true"`
	Deflt  *int              `json:"deflt" default:"3"`
}

type Extra struct {
	More *string `json:"more"`
}

func (m money) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d.%02d"`, m.cents/100, m.cents%100), nil
}

// writes has only marshal methods, reads only unmarshal methods.
type writes struct{ _ int }

func (w writes) MarshalText() ([]byte, error) { return []byte("w"), nil }

type writesJSON struct{ _ int }

func (w *writesJSON) MarshalJSON() ([]byte, error) { return []byte(`[1,"two"]`), nil }

type reads struct {
	A int
	B *int
}

func (*reads) UnmarshalText([]byte) error { return errors.New("only to read") }

type methodical struct {
	W  writes      `json:"w"`
	WP *writes     `json:"wp"`
	J  writesJSON  `json:"j"`
	JP *writesJSON `json:"jp,omitempty"`
	R  reads       `json:"r"`
	RP []*reads    `json:"rp"`
}

// checkOutput validates n encoded values of T against the published schema. TOOL-26-023.
func checkOutput[T any](t *testing.T, n int) {
	t.Helper()
	out, err := schema.ForOutput[T]()
	if err != nil {
		t.Fatal(err)
	}
	check, err := schema.Compile(out.JSON())
	if err != nil {
		t.Fatalf("%s: %v\n%s", out, err, out.JSON())
	}
	f := &filler{rng: rand.New(rand.NewPCG(1, 2)), nils: true}
	for i := range n {
		var v T
		if i > 0 {
			f.fill(reflect.ValueOf(&v).Elem(), 0)
		}
		raw, err := out.Encode(v)
		var invalid *schema.ValidationError
		rv := reflect.ValueOf(&v).Elem()
		for rv.Kind() == reflect.Pointer && !rv.IsNil() {
			rv = rv.Elem()
		}
		if rv.Kind() == reflect.Pointer {
			if !errors.As(err, &invalid) {
				t.Fatalf("Encode of a nil %s = %s, %v, want a ValidationError", out, raw, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("Encode(%#v) = %v", v, err)
		}
		if err := check.Validate(raw); err != nil {
			t.Fatalf("%s is written as %s\nwhich does not fit: %v\nschema %s", out, raw, err, out.JSON())
		}
		if plain, err := jsonx.Marshal(v); err != nil || string(plain) != string(raw) {
			t.Fatalf("Encode gave %s, Marshal gives %s, %v", raw, plain, err)
		}
	}
}

func TestOutputFitsItsSchema(t *testing.T) {
	const n = 300
	checkOutput[everything](t, n)
	checkOutput[*everything](t, n)
	checkOutput[pointers](t, n)
	checkOutput[**pointers](t, n)
	checkOutput[methodical](t, n)
	checkOutput[[]*pointers](t, n)
	checkOutput[map[string]*everything](t, n)
	checkOutput[page[*int]](t, n)
	checkOutput[ping](t, n)
	checkOutput[derived](t, n)
	checkOutput[struct{}](t, 2)
	checkOutput[[]*int](t, n)
	checkOutput[time.Duration](t, n)
	checkOutput[json.Number](t, n)
	checkOutput[json.RawMessage](t, n)
	checkOutput[writes](t, 2)
	checkOutput[int8](t, n)
	checkOutput[[]byte](t, n)
}

func TestOutputJSON(t *testing.T) {
	type leaf struct {
		A int `json:"a"`
	}
	type result struct {
		Note   *string       `json:"note" doc:"why"`
		Opt    *string       `json:"opt,omitempty"`
		Count  int           `json:"count,omitempty" default:"5"`
		Zero   int           `json:"zero,omitzero"`
		Name   string        `json:"name,omitempty"`
		Region string        `json:"region" header:"Region"`
		Leaf   leaf          `json:"leaf,omitempty"`
		Leaves []*leaf       `json:"leaves"`
		Color  *color        `json:"color"`
		Wait   time.Duration `json:"wait" nullable:"true"`
	}
	out, err := schema.ForOutput[*result]()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"note":{"type":["string","null"],"description":"why"},` +
		`"opt":{"type":"string"},` +
		`"count":{"type":"integer"},` +
		`"zero":{"type":"integer"},` +
		`"name":{"type":"string"},` +
		`"region":{"type":"string"},` +
		`"leaf":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},` +
		`"leaves":{"type":"array","items":{"type":["object","null"],"properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},` +
		`"color":{"type":["string","null"],"enum":["red","green",null]},` +
		`"wait":{"type":"string","pattern":"^-?([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"}},` +
		`"required":["note","count","region","leaf","leaves","color","wait"],"additionalProperties":false}`
	if diff := cmp.Diff(string(out.JSON()), want); diff != "" {
		t.Errorf("JSON (-got +want):\n%s", diff)
	}
	if out.String() != "*schema_test.result" {
		t.Errorf("String() = %s", out)
	}
}

// A value that breaks its own tags is an error on the server, not at the client.
func TestOutputRefuses(t *testing.T) {
	type result struct {
		Level string   `json:"level" enum:"low,high"`
		Count int      `json:"count,omitempty" max:"3"`
		Tags  []string `json:"tags" min:"1"`
		Color color    `json:"color,omitempty"`
		Price *money   `json:"price,omitempty"`
	}
	out, err := schema.ForOutput[result]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		in   any
		want string
	}{
		{"good", result{Level: "low", Tags: []string{"a"}}, ``},
		{"good, all", result{"high", 3, []string{"a"}, "red", &money{150}}, ``},
		{"zero", result{}, `level: must be one of "low", "high", got ""; tags: must have at least 1 item, got 0`},
		{"over", result{"low", 4, []string{"a"}, "blue", nil}, `count: must be at most 3, got 4; color: must be one of "red", "green", got "blue"`},
		{"of its own schema", result{Level: "low", Tags: []string{"a"}, Price: &money{-1}}, `price: must match the pattern "^[0-9]+\\.[0-9]{2}$", got "0.-1"`},
		{"another type", 3, `schema: cannot encode int, need a schema_test.result`},
		{"nil", nil, `schema: cannot encode <nil>, need a schema_test.result`},
		{"not UTF-8", result{Level: "\xff"}, `at "/level": invalid JSON at byte 9: invalid UTF-8`},
	} {
		raw, err := out.Encode(tt.in)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || (raw == nil) != (err != nil) {
			t.Errorf("%s: Encode = %s, %q, want %q", tt.name, raw, got, tt.want)
		}
	}
	type Level int
	type odd struct{ Level } // needs a name
	if _, err := schema.ForOutput[odd](); err == nil || !strings.Contains(err.Error(), "Level") {
		t.Errorf("ForOutput of a struct that the codec refuses: %v", err)
	}
	if _, err := schema.ForOutput[chan int](); err == nil || !strings.HasPrefix(err.Error(), "schema of chan int: ") {
		t.Errorf("ForOutput[chan int] error %v", err)
	}
}

// The output of Marshal for a value without nil pointers fits the schema of its type, and both
// decoders return the value.
func TestMarshalIsDecoded(t *testing.T) {
	typ, err := schema.For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	same := []cmp.Option{
		cmp.AllowUnexported(everything{}), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmpopts.IgnoreFields(everything{}, "Hidden"),
		cmp.Transformer("zero", func(n json.Number) string { // "" is written as 0
			if n == "" {
				n = "0"
			}
			return string(n)
		}),
	}
	f := &filler{rng: rand.New(rand.NewPCG(3, 4))}
	for i := range 500 {
		var v everything
		if i > 0 {
			f.fill(reflect.ValueOf(&v).Elem(), 0)
		}
		raw, err := jsonx.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := typ.Validate(raw); err != nil {
			t.Fatalf("%s does not fit: %v", raw, err)
		}
		var decoded, read everything
		if err := typ.Decode(raw, &decoded); err != nil {
			t.Fatalf("Decode(%s) = %v", raw, err)
		}
		if err := jsonx.Unmarshal(raw, &read); err != nil {
			t.Fatalf("Unmarshal(%s) = %v", raw, err)
		}
		if diff := cmp.Diff(decoded, v, same...); diff != "" {
			t.Fatalf("Decode(%s) (-got +want):\n%s", raw, diff)
		}
		if diff := cmp.Diff(read, v, same...); diff != "" {
			t.Fatalf("Unmarshal(%s) (-got +want):\n%s", raw, diff)
		}
	}
}
