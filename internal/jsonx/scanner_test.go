package jsonx

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestValid(t *testing.T) {
	good := []string{
		`null`, `true`, `false`, `0`, `-0`, `1.5e+10`, `1E2`, `""`, ` {} `, "\t\r\n[]",
		`{"a":1,"A":2}`, `[[],{}]`, `"\u00e9\ud83d\ude00\/"`, `"` + "\u2028\U0010FFFF" + `"`,
		`{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":1}]`, "\"\x7f\"",
	}
	for _, in := range good {
		if err := Valid([]byte(in), 0); err != nil {
			t.Errorf("Valid(%q) = %v, want nil", in, err)
		}
	}
	bad := []struct {
		in     string
		offset int
	}{
		{``, 0}, {` `, 1}, {`nul`, 0}, {`nulll`, 4}, {`True`, 0}, {`1 2`, 2}, {`{} x`, 3},
		{`01`, 1}, {`-`, 1}, {`-a`, 1}, {`+1`, 0}, {`1.`, 2}, {`.5`, 0}, {`1e`, 2}, {`1e+`, 3}, {`0x1`, 1},
		{`NaN`, 0}, {`"`, 1}, {`"abc`, 4}, {"\"\n\"", 1}, {"\"\x00\"", 1}, {`"\`, 2}, {`"\x"`, 1}, {`"\u12g4"`, 1}, {`"\u12`, 1},
		{`"\ud800"`, 1}, {`"\ud800\u0041"`, 1}, {`"\udc00"`, 1}, {`"\ud800\ud800"`, 1},
		{"\"a\xff\"", 2}, {"\"\xc0\x80\"", 1}, {"\"\xed\xa0\x80\"", 1}, {"\"12345678\xf5\"", 9}, {"\"\xe2\x82\"", 1},
		{`[`, 1}, {`[1`, 2}, {`[1,]`, 3}, {`[,1]`, 1}, {`[1 2]`, 3}, {`]`, 0}, {`[}`, 1},
		{`{`, 1}, {`{"a"`, 4}, {`{"a":`, 5}, {`{"a":1`, 6}, {`{"a":1,}`, 7}, {`{,}`, 1}, {`{a:1}`, 1}, {`{"a" 1}`, 5}, {`{"a":1 "b":2}`, 7},
		{`{"a":1]`, 6}, {"\ufeff{}", 0}, {`'a'`, 0}, {`/**/1`, 0}, {"1\x00", 1}, {"\v1", 0},
		{`{"a":1,"a":2}`, 7}, {`{"a":1,"\u0061":2}`, 7}, {`{"\u0061":1,"a":2}`, 12}, {`[{"":1,"":2}]`, 7},
		{`{"\ud83d\ude00":1,"😀":2}`, 18},
	}
	for _, tt := range bad {
		err := Valid([]byte(tt.in), 0)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Valid(%q) = %v, want a SyntaxError", tt.in, err)
		} else if syntax.Offset != tt.offset {
			t.Errorf("Valid(%q) = %v, want it at byte %d", tt.in, err, tt.offset)
		}
	}
}

func TestValidDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(strings.Repeat(`[{"a":`, n/2) + strings.Repeat("[", n%2) + "1" + strings.Repeat("]", n%2) + strings.Repeat("}]", n/2))
	}
	for _, tt := range []struct {
		max, depth int
		ok         bool
	}{
		{0, 128, true}, {0, 129, false}, {-1, 128, true}, {1, 0, true}, {1, 1, true}, {1, 2, false}, {1 << 20, 100_000, true},
	} {
		if err := Valid(nest(tt.depth), tt.max); (err == nil) != tt.ok {
			t.Errorf("Valid of depth %d with bound %d = %v, want ok %v", tt.depth, tt.max, err, tt.ok)
		}
	}
}

// An object with many members uses the hash table; with and without it, and for escaped names,
// the same duplicates are found.
func TestValidManyNames(t *testing.T) {
	for _, n := range []int{1, few - 1, few, few + 1, 2 * few, 100, 3000} {
		var obj strings.Builder
		obj.WriteByte('{')
		for i := range n {
			name := fmt.Sprintf(`n%d`, i)
			if i%3 == 0 {
				name = fmt.Sprintf(`\u006e%d`, i)
			}
			// The member is an object of many members itself, in its own scope.
			inner := `{}`
			if i == few+2 {
				inner = strings.Replace(obj.String(), ":", ":0,\"x\":", 1) + `"last":0}`
			}
			fmt.Fprintf(&obj, `"%s":%s,`, name, inner)
		}
		if err := Valid([]byte(obj.String()+`"other":1}`), 0); err != nil {
			t.Errorf("%d different names: %v", n, err)
		}
		for _, i := range []int{0, n / 2, n - 1} {
			if err := Valid(fmt.Appendf(nil, `%s"n%d":1}`, obj.String(), i), 0); err == nil {
				t.Errorf("%d names and n%d again: accepted", n, i)
			}
		}
	}
}

func TestScanner(t *testing.T) {
	s := NewScanner([]byte(` { "\u0061" : [ 1 , {"x":2} ] , "b":"c" } `), 0)
	defer s.Free()
	var got []string
	err := s.Object()
	for err == nil {
		var name []byte
		var more bool
		if name, more, err = s.Member(); err != nil || !more {
			break
		}
		got = append(got, string(name))
		if s.Kind() != '[' {
			v, _ := s.Value()
			got = append(got, string(v))
			continue
		}
		err = s.Array()
		for err == nil {
			if more, err = s.Element(); err != nil || !more {
				break
			}
			v, _ := s.Value()
			got = append(got, string(v))
		}
	}
	if err == nil {
		err = s.End()
	}
	if want := `[a 1 {"x":2} b "c"]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// Objects and arrays around a value count towards the bound.
func TestScanValueDepth(t *testing.T) {
	for _, tt := range []struct {
		in        string
		open, max int
		ok        bool
	}{
		{`[[]]`, 0, 2, true}, {`[[]]`, 1, 2, false}, {`[[]]`, 126, 128, true}, {`[[]]`, 127, 128, false}, {`"x"`, 128, 128, true}, {`[]`, 128, 128, false},
	} {
		if _, err := ScanValue([]byte(tt.in), 0, tt.open, tt.max); (err == nil) != tt.ok {
			t.Errorf("ScanValue(%s) inside %d of %d = %v, want ok %v", tt.in, tt.open, tt.max, err, tt.ok)
		}
	}
}

func TestValidAllocatesNothing(t *testing.T) {
	in := []byte(`{"a":[1,2,{"b":"Reykjavík"}],"c":"` + strings.Repeat("x", 1000) + `"}`)
	least := 100.0
	for range 50 { // the race detector empties pools at random
		least = min(least, testing.AllocsPerRun(1, func() { _ = Valid(in, 0) }))
	}
	if least != 0 {
		t.Errorf("Valid allocates %v times, want none", least)
	}
}

// FuzzScanner: Valid and jsontext accept the same input, and valid input can be walked, compacted
// and edited.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,null,"x\u00e9\ud83d\ude00"],"c":{"a":-1.5e3}}`, `[]`, `"\ud800"`, "\"\xff\"", `{"a":1,"\u0061":2}`,
		` { "a" : [ 1 , 2 ] , "" : {} } `, `{"a":1}x`, `01`, `{"a":{},"b":[],"c":"","d":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const depth = 10_000 // the bound of jsontext
		err := Valid(in, depth)
		if want := jsontext.Value(in).IsValid(); (err == nil) != want {
			t.Fatalf("Valid(%q) = %v, jsontext says %v", in, err, want)
		}
		start := SkipSpace(in, 0)
		next, fault := ScanValue(in, start, 0, depth)
		if ok := fault == nil && SkipSpace(in, next) == len(in); ok != (err == nil) {
			t.Fatalf("ScanValue(%q) = %d, %v, but Valid says %v", in, next, fault, err)
		}
		s := NewScanner(in, depth)
		text, terr := s.Text()
		if quoted, qerr := Unquote(in[start:max(start, s.Taken())]); (terr == nil) != (qerr == nil) || string(text) != quoted {
			t.Fatalf("Text of %q = %q, %v, but Unquote says %q, %v", in, text, terr, quoted, qerr)
		}
		s.Free()
		// Invalid input must do no harm.
		compact := Compact(nil, in)
		with := With(nil, in, "new \"name\"", []byte("1"))
		without := Without(nil, in, "a")
		LookupPath(in, "a", "b")
		var members, elements int
		for range Members(in) {
			members++
		}
		for range Elements(in) {
			elements++
		}
		if text, qerr := Unquote(in); qerr == nil {
			if again, err := Unquote(AppendString(nil, text)); err != nil || again != text {
				t.Fatalf("string %q became %q, %v", text, again, err)
			}
		} else if err == nil && in[0] == '"' && in[len(in)-1] == '"' {
			t.Fatalf("Unquote(%q) = %v", in, qerr)
		}
		if err != nil {
			return
		}
		want := jsontext.Value(append([]byte(nil), in...))
		if err := want.Compact(jsontext.PreserveRawStrings(true)); err != nil || string(compact) != string(want) {
			t.Fatalf("Compact(%q) = %q, want %q", in, compact, want)
		}
		if KindOf(in) != '{' {
			return
		}
		if err := Valid(with, depth); err != nil {
			t.Fatalf("With(%q) = %q: %v", in, with, err)
		}
		if v, ok := Lookup(with, "new \"name\""); !ok || string(v) != "1" {
			t.Fatalf("Lookup(%q) of the new member = %q, %v", with, v, ok)
		}
		if _, had := Lookup(in, "new \"name\""); !had {
			if back := Without(nil, with, "new \"name\""); string(back) != string(in) {
				t.Fatalf("With and Without turn %q into %q", in, back)
			}
		}
		if err := Valid(without, depth); err != nil {
			t.Fatalf("Without(%q) = %q: %v", in, without, err)
		}
		if _, still := Lookup(without, "a"); still {
			t.Fatalf("Without(%q) = %q", in, without)
		}
		kept := 0
		for name, value := range Members(without) {
			kept++
			if v, ok := Lookup(in, string(name)); !ok || string(v) != string(value) {
				t.Fatalf("member %q of %q is %q, was %q", name, without, value, v)
			}
		}
		if _, had := Lookup(in, "a"); had {
			kept++
		}
		if kept != members {
			t.Fatalf("Without(%q) = %q lost a member", in, without)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	var wide strings.Builder
	wide.WriteString(`{"first":0`)
	for i := range 5000 {
		fmt.Fprintf(&wide, `,"member-%d":%d`, i, i)
	}
	wide.WriteString("}")
	for _, bb := range []struct{ name, in string }{
		{"ascii=64KiB", `"` + strings.Repeat("The quick brown fox. ", 3121) + `"`},
		{"greek=64KiB", `"` + strings.Repeat("Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ", 1000) + `"`},
		{"escapes=64KiB", `"` + strings.Repeat(`line of text\n`, 4680) + `"`},
		{"names=5000", wide.String()},
		{"numbers=10000", "[" + strings.Repeat("12.75,", 9999) + "1]"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			in := []byte(bb.in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Valid(in, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
