package schema

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzParseAny: parseAny accepts what jsontext accepts, and reads the values
// that encoding/json reads.
func FuzzParseAny(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,true,null,"x\u00e6\ud83d\ude00\n"],"":{}}`, ` [ ] `, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", "\"a\x01\"",
		`01`, `1.`, `-`, `1e`, `nul`, `{"a"}`, `[1,]`, `{,}`, `"12345678\\"`, `"1234567"x`, "\"\u00e6\u00e6\u00e6\u00e6\u00e6\"",
		`{"\u0061":"\u0062","c":{"\u0064":["\u0065"]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseAny(data)
		if depth(data) > 100 {
			return // the bounds differ
		}
		if want := jsontext.Value(data).IsValid(); (err == nil) != want {
			t.Fatalf("parseAny(%q) error %v, jsontext says valid: %v", data, err, want)
		}
		if err != nil {
			return
		}
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("parseAny(%q) = %#v, encoding/json says %#v, %v", data, got, want, err)
		}
	})
}

// depth returns an upper bound of the nesting of data.
func depth(data []byte) int {
	return strings.Count(string(data), "[") + strings.Count(string(data), "{")
}

// FuzzNumber: integers are read as big.Rat reads them.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "1e2", "10.00", "1.5", "18446744073709551615", "18446744073709551616", "123456789e-2", "1e-999999999999", "0.00001e5", "0e10000000000000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, lit string) {
		if !isNumber(lit) {
			return
		}
		neg, abs, m := parseInteger([]byte(lit))
		want := rat(lit)
		if want == nil {
			if m == fits {
				t.Fatalf("parseInteger(%q) = %d, but it is not a bounded number", lit, abs)
			}
			return
		}
		got := new(big.Int).SetUint64(abs)
		if neg {
			got.Neg(got)
		}
		switch {
		case m == fits && (!want.IsInt() || want.Num().Cmp(got) != 0),
			m == fractional && want.IsInt(),
			m == huge && (!want.IsInt() || want.Num().BitLen() <= 64):
			t.Fatalf("parseInteger(%q) = %v %d (%v), want %v", lit, neg, abs, m, want)
		}
	})
}

// parseAny reads data, one JSON value, as scanner.any does.
func parseAny(data []byte) (any, error) {
	s := scanner{data: data}
	if v, ok := s.any(); ok && s.end() {
		return v, nil
	}
	return nil, s.err
}
