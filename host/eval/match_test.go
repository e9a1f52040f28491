package eval

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMatcher(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name  string
		m     Matcher
		value string // empty: there is none
		fault string // how it begins; empty: it fits
	}{
		{"numbers", Matcher{Equals: raw("1")}, "1.0", ""},
		{"big numbers", Matcher{Equals: raw("12345678901234567890")}, "12345678901234567891", "is 12345678901234567891, not"},
		{"huge exponents", Matcher{Equals: raw("1e999999999")}, "2e999999999", "is 2e"},
		{"order of members", Matcher{Equals: raw(`{"a":1,"b":[true]}`)}, `{ "b" : [true], "a": 1.0 }`, ""},
		{"a member more", Matcher{Equals: raw(`{"a":1}`)}, `{"a":1,"b":2}`, "is {"},
		{"escapes", Matcher{Equals: raw(`"ä"`)}, `"\u00e4"`, ""},
		{"text and number", Matcher{Equals: raw(`"1"`)}, "1", "is 1, not"},
		{"contains", Matcher{Contains: "lph"}, `"dolphin"`, ""},
		{"contains in a list", Matcher{Contains: "lph"}, `["cat","dolphin"]`, ""},
		{"contains not", Matcher{Contains: "lph"}, `["cat"]`, `is ["cat"], without "lph"`},
		{"regexp of a number", Matcher{Regexp: `^\d+$`}, "17", ""},
		{"regexp not", Matcher{Regexp: `^\d+$`}, `"x17"`, "is \"x17\", which does not match"},
		{"schema", Matcher{Schema: raw(`{"type":"integer","minimum":3}`)}, "2", "is 2: "},
		{"absent", Matcher{Absent: true}, "", ""},
		{"not absent", Matcher{Absent: true}, "null", "is there: null"},
		{"missing", Matcher{Equals: raw("null")}, "", "is missing"},
		{"two at once", Matcher{Contains: "a", Regexp: "b"}, `"a"`, "is \"a\", which"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.m.fault(raw(tt.value), tt.value != "")
			if tt.fault == "" && got != "" || !strings.HasPrefix(got, tt.fault) {
				t.Errorf("fault = %q, want %q", got, tt.fault)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	const doc = `{"a":{"b":[{"c":1},[2,3]]},"d.e":4,"f":[]}`
	for path, want := range map[string]string{
		"a.b[0].c": "1", "a.b[1][1]": "3", "d.e": "4", "a.b[2]": "", "f[0]": "", "a.x": "", "a.b.c": "", "a[": "", "a[x]": "", "a[0]b": "", "": "",
	} {
		v, ok := at(json.RawMessage(doc), path)
		if string(v) != want && ok || ok != (want != "") {
			t.Errorf("at %q = %s, %v; want %q", path, v, ok, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		text     string
		pass, ok bool
		reason   string
	}{
		{`{"pass": true, "reason": "yes"}`, true, true, "yes"},
		{"```json\n{\"pass\": false, \"reason\": \"no {braces}\"}\n```", false, true, "no {braces}"},
		{`Let me see. {"note": 1} {"verdict": "PASS"}`, true, true, ""},
		{`{"reason": "a { b", "pass": true}`, true, true, "a { b"},
		{"**FAIL**: it lacks a name", false, true, "FAIL**: it lacks a name"},
		{"Yes.\nIt does.", true, true, "Yes. It does."},
		{"It may pass, or not.", false, false, ""},
		{"", false, false, ""},
		{`{"pass": "maybe"}`, false, false, ""},
		{"{{{{", false, false, ""},
		{`The answer says {"pass": true}, but: {"pass": false, "reason": "no"}`, false, false, ""},
		{`{"pass": false, "reason": "it only says {\"pass\": true}"}`, false, true, `it only says {"pass": true}`},
		{`{"pass": false, "reason": "it says "{"pass": true}""}`, false, false, ""},
		{`No, it only says {"pass": true}.`, false, false, ""},
		{"Yes.\n{\"pass\": true, \"reason\": \"it does\"}", true, true, "it does"},
		{`{"pass": true, "reason": "a"} {"pass": true, "reason": "b"}`, true, true, "b"},
	} {
		pass, reason, ok := verdict(tt.text)
		if pass != tt.pass || ok != tt.ok || reason != tt.reason {
			t.Errorf("verdict(%q) = %v, %q, %v; want %v, %q, %v", tt.text, pass, reason, ok, tt.pass, tt.reason, tt.ok)
		}
	}
}

// A negative verdict does not pass, whatever text precedes it.
func FuzzVerdict(f *testing.F) {
	f.Add("chatter")
	f.Add("{\"pass\": 1}")
	f.Fuzz(func(t *testing.T, text string) {
		pass, _, ok := verdict(text)
		if pass && !ok {
			t.Fatalf("verdict(%q) passes without a verdict", text)
		}
		for _, no := range []string{`{"pass": false, "reason": ""}`, `{"pass": false, "reason": "` + strings.NewReplacer(`\`, "", `"`, "").Replace(text) + `"}`} {
			if pass, _, ok := verdict(text + no); pass {
				t.Fatalf("verdict(%q and %s) = %v, %v", text, no, pass, ok)
			}
		}
	})
}

// Each call that was made counts for one expected call, in any order.
func TestCallsCountOnce(t *testing.T) {
	any3, four := `{"n":3}`, `{"n":4}`
	add := func(least, most int, n string) Call {
		c := Call{Tool: "c/add", Min: least, Max: most}
		if n != "" {
			c.Arguments = []Argument{{"n", Matcher{Equals: json.RawMessage(n)}}}
		}
		return c
	}
	all := Call{Tool: "c/*"}
	for _, tt := range []struct {
		name string
		want []Call
		made []string // arguments of c/add
		text string   // in the one fault; empty: there is none
	}{
		{"two of one", []Call{add(0, 0, ""), add(0, 0, "")}, []string{any3}, "called once, not once besides"},
		{"two of two", []Call{add(0, 0, ""), add(0, 0, "")}, []string{any3, any3}, ""},
		{"the wide one first", []Call{all, add(0, 0, "4")}, []string{four, any3}, ""},
		{"the narrow one first", []Call{add(0, 0, "4"), all}, []string{four, any3}, ""},
		{"nothing left for the wide one", []Call{add(0, 0, "4"), all}, []string{four}, "c/* was called once, not once besides"},
		{"a chain", []Call{all, add(0, 0, ""), add(0, 0, "4")}, []string{four, any3, any3}, ""},
		{"more than needed", []Call{add(1, 1, "4"), all}, []string{four, four, any3}, ""},
		{"no room", []Call{add(1, 1, "4"), add(1, 2, "")}, []string{four, four, any3, any3}, "c/add was called 3 times, not 2 times"},
		{"just room", []Call{add(1, 1, "4"), add(1, 2, "")}, []string{any3, four, four}, ""},
		{"too few in all", []Call{add(2, 2, ""), add(0, 0, "4")}, []string{any3, four}, "not once besides"},
		{"too often", []Call{add(0, 1, "")}, []string{any3, any3}, "c/add was called 2 times, not once"},
		{"none", []Call{all}, nil, "c/* was not called; no tool was"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var made []Made
			for _, args := range tt.made {
				made = append(made, Made{Server: "c", Tool: "add", Arguments: json.RawMessage(args)})
			}
			got := (&Expect{Calls: tt.want}).callFaults(made)
			if tt.text == "" && len(got) != 0 || tt.text != "" && (len(got) != 1 || !strings.Contains(got[0], tt.text)) {
				t.Errorf("faults are %q, want %q", got, tt.text)
			}
		})
	}
}
