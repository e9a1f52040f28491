package jsonx

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

type tagged struct {
	Raw      json.RawMessage `json:"raw"`
	RawEmpty json.RawMessage `json:"rawEmpty,omitempty"`
	RawZero  json.RawMessage `json:"rawZero,omitzero"`
	IntEmpty int             `json:"intEmpty,omitempty"`
	IntZero  int             `json:"intZero,omitzero"`
	Text     string          `json:"text,omitempty"`
	List     []string        `json:"list"`
	Ptr      *bool           `json:"ptr,omitempty"`
}

// The package comment's rules for omitempty and omitzero.
func TestMarshalTags(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   any
		want string
	}{
		{"zero", tagged{}, `{"raw":null,"intEmpty":0,"list":[]}`},
		{"empty object", tagged{Raw: json.RawMessage("{}"), RawEmpty: json.RawMessage("{}"), RawZero: json.RawMessage("{}")},
			`{"raw":{},"rawZero":{},"intEmpty":0,"list":[]}`},
		{"raw text kept", tagged{Raw: json.RawMessage(`{ "b\u0061": 1.0, "n": 12345678901234567890123 }`)},
			`{"raw":{"b\u0061":1.0,"n":12345678901234567890123},"intEmpty":0,"list":[]}`},
		{"false is not empty", tagged{Ptr: new(bool)}, `{"raw":null,"intEmpty":0,"list":[],"ptr":false}`},
		{"map in order", map[string]any{"b": 1, "a": []int(nil), "c": map[string]int(nil)}, `{"a":[],"b":1,"c":{}}`},
		{"no HTML escapes", "<&>\u2028", "\"<&>\u2028\""},
		{"raw in a map", map[string]json.RawMessage{"x": json.RawMessage(` [ 1 ] `)}, `{"x":[1]}`},
		{"raw pointer", struct{ X *json.RawMessage }{new(json.RawMessage(`[2]`))}, `{"X":[2]}`},
	} {
		got, err := Marshal(tt.in)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: Marshal = %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

type scalars struct {
	Wait  time.Duration   `json:"wait,omitempty"`
	Ptr   *time.Duration  `json:"ptr,omitempty"`
	Waits []time.Duration `json:"waits,omitempty"`
	N     json.Number     `json:"n"`
	Empty json.Number     `json:"empty,omitempty"`
	Zero  json.Number     `json:"zero,omitzero"`
	Any   any             `json:"any,omitempty"`
}

// Durations and numbers have the form that package schema describes, wherever they are.
func TestScalars(t *testing.T) {
	wait := 1500 * time.Microsecond
	for _, tt := range []struct {
		in   scalars
		want string
	}{
		{scalars{}, `{"wait":"0s","n":0,"empty":0}`},
		{scalars{90 * time.Second, &wait, []time.Duration{-1, math.MinInt64}, "1.50", "-1e400", "7", nil},
			`{"wait":"1m30s","ptr":"1.5ms","waits":["-1ns","-2562047h47m16.854775808s"],"n":1.50,"empty":-1e400,"zero":7}`},
	} {
		raw, err := Marshal(tt.in)
		if err != nil || string(raw) != tt.want {
			t.Errorf("Marshal = %s, %v, want %s", raw, err, tt.want)
			continue
		}
		var back scalars
		if err := Unmarshal(raw, &back); err != nil {
			t.Errorf("Unmarshal(%s) = %v", raw, err)
		}
		if again, err := Marshal(back); err != nil || string(again) != tt.want {
			t.Errorf("a second time Marshal = %s, %v, want %s", again, err, tt.want)
		}
	}
	if got, err := Marshal(map[string]any{"d": time.Hour, "n": json.Number("2")}); string(got) != `{"d":"1h0m0s","n":2}` {
		t.Errorf("Marshal inside any = %s, %v", got, err)
	}
	for _, n := range []json.Number{"x", "01", "1 2", "{}", "-", " 1", "1e"} {
		if got, err := Marshal(n); err == nil {
			t.Errorf("Marshal(json.Number(%q)) = %s", string(n), got)
		}
	}
}

func TestScalarsRead(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"wait":90}`, `at "/wait": want a string, got a number`},
		{`{"wait":"90"}`, `at "/wait": want a duration such as 1m30s, got "90"`},
		{`{"waits":["1s",{"a":[]}]}`, `at "/waits/1": want a string, got an object`},
		{`{"n":"1"}`, `at "/n": want a number, got a string`},
		{`{"wait":null,"n":null}`, ``},
	} {
		v := scalars{Wait: 1, N: "1"}
		err := Unmarshal([]byte(tt.in), &v)
		if got := fmt.Sprint(err); got != tt.want && !(err == nil && tt.want == "") {
			t.Errorf("Unmarshal(%s) = %v, want %q", tt.in, err, tt.want)
		}
		if err == nil && (v.Wait != 0 || v.N != "") {
			t.Errorf("Unmarshal(%s) kept %v, %q", tt.in, v.Wait, v.N)
		}
	}
}

func TestMarshalErrors(t *testing.T) {
	for _, v := range []any{
		"\xff", math.NaN(), math.Inf(1), func() {}, make(chan int), json.RawMessage(`{`), json.RawMessage(`{"a":1,"a":2}`), json.RawMessage("\"\xff\""),
		map[string]any{"a": []any{1, "\xff"}},
	} {
		if got, err := AppendMarshal([]byte("x"), v); err == nil || string(got) != "x" {
			t.Errorf("AppendMarshal(%T) = %q, %v, want x and an error", v, got, err)
		}
	}
}

func TestUnmarshalRaw(t *testing.T) {
	in := []byte(`{"raw": {"a" : [1, 2.50]} ,"rawZero":null,"RAW":3,"text":"\u00e9"}`)
	var got tagged
	if err := Unmarshal(in, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != `{"a" : [1, 2.50]}` || string(got.RawZero) != "null" || got.RawEmpty != nil || got.Text != "é" {
		t.Errorf("Unmarshal = %q %q %q %q", got.Raw, got.RawZero, got.RawEmpty, got.Text)
	}
	in[9] = 'X'
	if string(got.Raw) != `{"a" : [1, 2.50]}` {
		t.Errorf("the raw value shares bytes with the input: %s", got.Raw)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	type args struct {
		City  string          `json:"city"`
		Days  int8            `json:"days"`
		Score float64         `json:"score"`
		Tags  []bool          `json:"tags"`
		When  time.Time       `json:"when"`
		Small uint64          `json:"small"`
		Wait  map[string]args `json:"wait"`
	}
	for _, tt := range []struct{ in, pointer, msg string }{
		{`{"city":3}`, "/city", `want a string, got a number`},
		{`{"days":"3"}`, "/days", `want an integer, got a string`},
		{`{"days":1.5}`, "/days", `want an integer, got 1.5`},
		{`{"days":1000}`, "/days", `want an integer from -128 to 127, got 1000`},
		{`{"score":true}`, "/score", `want a number, got a boolean`},
		{`{"score":1e999}`, "/score", `want a number in range, got 1e999`},
		{`{"tags":{}}`, "/tags", `want an array, got an object`},
		{`{"tags":[true,0]}`, "/tags/1", `want a boolean, got a number`},
		{`{"wait":{"a/b":{"city":[]}}}`, "/wait/a~1b/city", `want a string, got an array`},
		{`{"when":"noon"}`, "/when", ``},
		{`{"when":5}`, "/when", `want a string, got a number`},
		{`{"small":-1}`, "/small", `want an integer from 0 to 18446744073709551615, got -1`},
		{`[]`, "", `want an object, got an array`},
		{`{"city":"a","city":"b"}`, "/city", `second member with the same name`},
		{`{"x":{"y":1,"y":2}}`, "/x/y", `second member with the same name`},
		{"{\"city\":\"\xff\"}", "/city", ``},
		{`{} {}`, "", ``},
		{`{"city":`, "/city", `invalid JSON at byte 8: unexpected end`},
		{``, "", ``},
	} {
		var v args
		err := Unmarshal([]byte(tt.in), &v)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Unmarshal(%q) = %v, want an *Error", tt.in, err)
			continue
		}
		if e.Pointer != tt.pointer || tt.msg != "" && e.Msg != tt.msg {
			t.Errorf("Unmarshal(%q) = %q %q, want %q %q", tt.in, e.Pointer, e.Msg, tt.pointer, tt.msg)
		}
		for _, word := range []string{"json:", "jsontext", "jsonx", "EOF"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("Unmarshal(%q) = %q, has %q", tt.in, err, word)
			}
		}
	}
	var notPointer int
	if err := Unmarshal([]byte("1"), notPointer); err == nil {
		t.Error("Unmarshal into a value that is no pointer: no error")
	}
}
