package schema

import (
	"encoding/json"
	"math/big"
	"reflect"
	"testing"
)

// FuzzDocument: parseDocument and parseAny accept the same input and give the same value. Places
// know their parents, order and paths.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,true,null,"x\u00e6\n"],"":{}," ":[[]]}`, ` [ ] `, `{"a":1,"a":2}`, `[1,]`, `{"\u0061":{"b c":[{}]}}`, `"\ud800"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := parseAny(data)
		doc, err := parseDocument(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("parseDocument(%q) says %v, parseAny %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if got := doc.any(root); !reflect.DeepEqual(got, want) {
			t.Fatalf("parseDocument(%q) = %#v, want %#v", data, got, want)
		}
		for i, v := range doc.values {
			if v.parent >= 0 && doc.values[v.parent].kind == '{' && doc.find(v.parent, v.name) != int32(i) {
				t.Fatalf("%q: %s is found at %d, not %d", data, doc.path(int32(i)), doc.find(v.parent, v.name), i)
			}
		}
	})
}

// any returns the value at a place as parseAny does.
func (d *document) any(at int32) any {
	v := &d.values[at]
	switch v.kind {
	case '{':
		m := map[string]any{}
		for i := at + 1; i < v.next; i = d.values[i].next {
			m[d.values[i].name] = d.any(i)
		}
		return m
	case '[':
		a := []any{}
		for i := at + 1; i < v.next; i = d.values[i].next {
			a = append(a, d.any(i))
		}
		return a
	case '"':
		return v.text
	case '0':
		return json.Number(v.text)
	case 'n':
		return nil
	}
	return v.kind == 't'
}

func TestCanonical(t *testing.T) {
	groups := [][]string{ // equal within a group, and nowhere else
		{`1`, `1.0`, `10e-1`, `0.1e1`}, {`-1`, `-1.00`}, {`0`, `-0`, `0.0`, `0e5`}, {`10`, `1e1`}, {`"1"`, `"\u0031"`}, {`true`}, {`false`}, {`null`},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1e0}`}, {`{"a":[1],"b":2}`}, {`{"a":1,"b":[2,3]}`}, {`[]`, ` [ ] `}, {`{}`}, {`""`}, {`[""]`},
		{`[1,2]`}, {`[12]`}, {`[[1],2]`}, {`[[1,2]]`}, {`["1:a","b"]`}, {`["1:a\"1:b"]`}, {`{"a":{}}`}, {`{"a":"{}"}`},
	}
	seen := map[string]int{}
	for i, group := range groups {
		for _, text := range group {
			doc, err := parseDocument([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			key := string(doc.appendCanonical(nil, root))
			if j, ok := seen[key]; ok && j != i {
				t.Errorf("%s is equal to %s", text, groups[j][0])
			} else if !ok && text != group[0] {
				t.Errorf("%s is not equal to %s", text, group[0])
			}
			seen[key] = i
		}
	}
}

// Numbers are compared as big.Rat compares them.
func TestQuantity(t *testing.T) {
	list := []string{"0", "-0.0", "1", "-1", "1.0", "0.1", "0.10", "-0.1", "9", "10", "1e1", "99e-1", "1e-8", "3e-9", "123456789012345678", "1234567890123456789",
		"1234567890123456789.5", "-1234567890123456789", "1e400", "-1e400", "1e-400", "12", "123", "0.12", "0.123", "2.5", "-7", "7", "0.35"}
	for _, a := range list {
		for _, b := range list {
			p, q := newQuantity(a), newQuantity(b)
			x, y := rat(a), rat(b)
			if got, want := p.cmp(q), x.Cmp(y); got != want {
				t.Errorf("%s compared with %s is %d, want %d", a, b, got, want)
			}
			if y.Sign() > 0 {
				if got, want := p.multipleOf(q), new(big.Rat).Quo(x, y).IsInt(); got != want {
					t.Errorf("%s is a multiple of %s: %v, want %v", a, b, got, want)
				}
			}
		}
	}
}
