package model

import (
	"slices"
	"strings"
	"testing"
)

// A value that does not fit changes nothing.
func TestParametersSetFails(t *testing.T) {
	var p Parameters
	for _, set := range [][2]string{{"effort", "high"}, {"temperature", "0.5"}, {"topP", "0.9"}, {"maxTokens", "100"}, {"seed", "7"}} {
		if err := p.Set(set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := p.List()
	for _, set := range [][2]string{{"effort", "bogus"}, {"temperature", "hot"}, {"topP", "2"}, {"maxTokens", "-1"}, {"messages", "[]"}} {
		if err := p.Set(set[0], set[1]); err == nil {
			t.Errorf("%s=%s is accepted", set[0], set[1])
		}
		if got := p.List(); !slices.Equal(got, want) {
			t.Errorf("after %s=%s the parameters are %q, want %q", set[0], set[1], got, want)
		}
	}
}

func TestParametersSet(t *testing.T) {
	for _, tt := range []struct {
		set  string // NAME=VALUE, in order
		want string // the parameters, or the error
	}{
		{"effort=HIGH temperature=0.5 topP=1 maxTokens=7", "effort=high temperature=0.5 topP=1 maxTokens=7"},
		{"top_p=0.2 max_tokens=9", "topP=0.2 maxTokens=9"},
		{"topK=5 num_ctx=8192 stop=END", `num_ctx=8192 stop="END" top_k=5`},
		{"effort=low effort=", ""},
		{"temperature=1 temperature=default num_ctx=1 num_ctx=", ""},
		{"effort=hihg", `unknown effort "hihg" (did you mean "high"?): it is none, minimal, low, medium, high, xhigh or max`},
		{"effort=a_lot", `unknown effort "a_lot": it is none, minimal, low, medium, high, xhigh or max`},
		{"temprature=1", `unknown parameter "temprature": did you mean "temperature"?`},
		{"temperature=warm", `temperature is a number from 0 to 2, not "warm"`},
		{"temperature=NaN", `temperature is a number from 0 to 2, not "NaN"`},
		{"topP=1.5", `topP is a number from 0 to 1, not "1.5"`},
		{"maxTokens=0", "maxTokens is a whole number of tokens, such as 4096"},
		{"messages=[]", `"messages" is part of every request and cannot be set`},
		{"a.b=1", `"a.b" is not the name of a parameter`},
		{"=1", `"" is not the name of a parameter`},
	} {
		var s Parameters
		var err error
		for _, word := range strings.Fields(tt.set) {
			name, value, _ := strings.Cut(word, "=")
			if err = s.Set(name, value); err != nil {
				break
			}
		}
		got := strings.Join(s.List(), " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Set %s: %s, want %s", tt.set, got, tt.want)
		}
	}
}

// A copy of parameters does not share the extra members.
func TestParametersCopy(t *testing.T) {
	var a Parameters
	if err := a.Set("seed", "1"); err != nil {
		t.Fatal(err)
	}
	b := a
	if err := b.Set("seed", "2"); err != nil {
		t.Fatal(err)
	}
	if got := a.List(); !slices.Equal(got, []string{"seed=1"}) {
		t.Errorf("after a change of the copy: %v", got)
	}
}
