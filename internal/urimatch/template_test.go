package urimatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yosida95/uritemplate/v3"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct{ template, uri, want string }{
		{"app:notes/{day}", "app:notes/monday", "day=[monday]"},
		{"app:notes/{day}", "app:notes/a,b", "day=[a b]"},
		{"app:notes/{day}", "app:others/monday", ""},
		{"app:notes/{day}", "app:notes/monday/noon", ""},
		{"{scheme}://x", "http://x", "scheme=[http]"},
		{"file:///{+path}", "file:///a/b.c,d", "path=[a/b.c,d]"},
		{"x://{?a,b}", "x://?a=1&b=2", "a=[1] b=[2]"},
		{"x://é{a}", "x://%C3%A91", ""}, // as in the library
		{"x://none", "x://none", "-"},
		{"x://none", "x://none/", ""},
	} {
		tpl, err := New(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		v, err := tpl.Match(tt.uri)
		var got []string
		for _, name := range tpl.Names() {
			if value := v.Get(name); value.Valid() {
				got = append(got, fmt.Sprint(name, "=", value.V))
			}
		}
		text := strings.Join(got, " ")
		if v != nil && got == nil {
			text = "-"
		}
		if text != tt.want || err != nil {
			t.Errorf("%q of %q = %q, %v, want %q", tt.uri, tt.template, text, err, tt.want)
		}
	}
}

// For all templates and URIs Match returns in time, and without an error for ordinary ones.
func TestMatchIsBounded(t *testing.T) {
	for _, template := range []string{
		"x://{a}", "x://{a*}", "x://{+a}", "x://{/a*}", "x://{?a*}", "x://{a,b,c,d}", "x://a{b}c{d}e{f}g{h}", "{a}{b}{c}",
		"x://" + strings.Repeat("{a}", maxExpressions), "x://{?" + strings.Repeat("a,", maxExpressions) + "z*}", "x://" + strings.Repeat("{+a*}", maxExpressions),
		"x://" + strings.Repeat("l", maxTemplate-7) + "{a}",
	} {
		tpl, err := New(template)
		if err != nil {
			t.Fatalf("%.50q: %v", template, err)
		}
		for _, piece := range []string{"a", "a,", ",", "/a", "a=b&", "l", "a,c,e,g"} {
			for _, n := range []int{100, 1000, 4000, maxURI, 1 << 20} {
				begin := time.Now()
				_, err := tpl.Match("x://" + strings.Repeat(piece, n/len(piece)))
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("%d bytes of %q with %.50q took %v", n, piece, template, took)
				}
				if err != nil && n == 100 {
					t.Errorf("%d bytes of %q with %.50q: %v", n, piece, template, err)
				}
			}
		}
	}
	for name, template := range map[string]string{
		"long": "x://" + strings.Repeat("a", maxTemplate), "many expressions": "x://" + strings.Repeat("{a}", 100_000),
		"many variables": "x://{" + strings.Repeat("a,", 1000) + "b}", "none": "x://{", "empty": "x://{}",
	} {
		if _, err := New(template); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzMatch: without an error the result is that of the library.
func FuzzMatch(f *testing.F) {
	f.Add("app:notes/{day}", "app:notes/monday")
	f.Add("{scheme}://{+rest}{?q*}", "http://a/b?q=1")
	f.Add("x://a b{c}", "x://a%20bc")
	f.Fuzz(func(t *testing.T, template, uri string) {
		tpl, err := New(template)
		if err != nil {
			return
		}
		got, err := tpl.Match(uri)
		if err != nil || !strings.Contains(template, "{") { // without variables the library compares only the beginning
			return
		}
		lib, err := uritemplate.New(template)
		if err != nil {
			t.Fatalf("%q is a template here alone: %v", template, err)
		}
		if want := lib.Match(uri); (got == nil) != (want == nil) {
			t.Fatalf("%q of %q = %v, want %v", uri, template, got, want)
		}
	})
}
