package revision

import (
	"encoding/json"
	"errors"
	"testing"
)

// T-79: a completion of several blocks is one before 2025-11-25.
func TestAnswerConversion(t *testing.T) {
	tests := []struct{ name, method, in, want string }{
		{"one block", MethodSample, `{"content":[{"type":"text","text":"a"}],"model":"m"}`, `{"content":{"type":"text","text":"a"},"model":"m"}`},
		{"an object", MethodSample, `{"content":{"type":"image","data":"AA==","mimeType":"image/png"}}`, `{"content":{"type":"image","data":"AA==","mimeType":"image/png"}}`},
		{"texts", MethodSample, `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"a\""},{"type":"text","text":"b"}]}`, `{"content":{"type":"text","text":"a\"\nb"}}`},
		{"no text", MethodSample, `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"image","data":"AQ==","mimeType":"image/png"}]}`, `{"content":{"type":"image","data":"AA==","mimeType":"image/png"}}`},
		{"nothing", MethodSample, `{"content":[]}`, `{"content":{"type":"text","text":""}}`},
		{"no content", MethodSample, `{"model":"m"}`, `{"model":"m"}`},
		{"a form", MethodElicit, `{"action":"accept","content":{"a":["b"]}}`, `{"action":"accept","content":{"a":["b"]}}`},
	}
	for _, tt := range tests {
		for _, rev := range All {
			want := tt.want
			if rev == V20251125 || rev == V20260728 {
				want = tt.in
			}
			if got := string(rev.Answer(tt.method, json.RawMessage(tt.in))); got != want {
				t.Errorf("%s, %s = %s, want %s", tt.name, rev.Name, got, want)
			}
		}
	}
}

// T-60 to T-69, T-72 to T-79: the form of each revision.
func TestResultConversion(t *testing.T) {
	tests := []struct {
		name, method, in string
		want             map[*Table]string // the other revisions keep it unchanged
	}{
		{"audio", MethodCall, `{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}`, map[*Table]string{
			V20241105: `{"content":[{"type":"resource","resource":{"uri":"data:audio","blob":"AA==","mimeType":"audio/wav"}}]}`}},
		{"a link", MethodCall, `{"content":[{"type":"resource_link","name":"n","uri":"x:y"}]}`, map[*Table]string{
			V20241105: `{"content":[{"type":"text","text":"n: x:y"}]}`,
			V20250326: `{"content":[{"type":"text","text":"n: x:y"}]}`}},
		{"a structured list", MethodCall, `{"content":[],"structuredContent":[1]}`, map[*Table]string{
			V20241105: `{"content":[{"type":"text","text":"[1]"}]}`, V20250326: `{"content":[{"type":"text","text":"[1]"}]}`,
			V20250618: `{"content":[{"type":"text","text":"[1]"}]}`, V20251125: `{"content":[{"type":"text","text":"[1]"}]}`}},
		{"an output schema of any kind", MethodTools, `{"tools":[{"name":"a","inputSchema":{},"outputSchema":{"type":"array"}}]}`, map[*Table]string{
			V20241105: `{"tools":[{"name":"a","inputSchema":{}}]}`, V20250326: `{"tools":[{"name":"a","inputSchema":{}}]}`,
			V20250618: `{"tools":[{"name":"a","inputSchema":{}}]}`, V20251125: `{"tools":[{"name":"a","inputSchema":{}}]}`}},
		{"a tool's title", MethodTools, `{"tools":[{"name":"a","title":"A"}]}`, map[*Table]string{
			V20241105: `{"tools":[{"name":"a"}]}`, V20250326: `{"tools":[{"name":"a","annotations":{"title":"A"}}]}`}},
		{"annotations win over a title", MethodTools, `{"tools":[{"name":"a","title":"A","annotations":{"title":"B"}}]}`, map[*Table]string{
			V20241105: `{"tools":[{"name":"a"}]}`, V20250326: `{"tools":[{"name":"a","annotations":{"title":"B"}}]}`}},
		{"icons", MethodResources, `{"resources":[{"uri":"x:y","icons":[]}]}`, map[*Table]string{
			V20241105: `{"resources":[{"uri":"x:y"}]}`, V20250326: `{"resources":[{"uri":"x:y"}]}`, V20250618: `{"resources":[{"uri":"x:y"}]}`}},
		{"unknown members stay", MethodTools, `{"tools":[{"name":"a","x-own":1}],"more":{"a":[]}}`, nil},
		{"what is no list stays", MethodTools, `{"tools":7}`, nil},
		{"another method", "other/method", `{"tools":[{"title":"A"}]}`, nil},
	}
	for _, tt := range tests {
		for _, rev := range All {
			want, ok := tt.want[rev]
			if !ok {
				want = tt.in
			}
			if got := rev.Result(tt.method, json.RawMessage(tt.in), Unknown); string(got) != want {
				t.Errorf("%s toward %s:\n got %s\nwant %s", tt.name, rev.Name, got, want)
			}
		}
	}
}

func TestQuestionConversion(t *testing.T) {
	form := func(fields string) string {
		return `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{` + fields + `}}}`
	}
	plain := func(fields string) string {
		return `{"message":"m","requestedSchema":{"type":"object","properties":{` + fields + `}}}`
	}
	tests := []struct{ name, method, in, want string }{ // toward 2025-06-18; empty: it cannot be asked
		{"mode", MethodElicit, form(`"a":{"type":"string"}`), plain(`"a":{"type":"string"}`)},
		{"a titled choice", MethodElicit, form(`"a":{"type":"string","oneOf":[{"const":"x","title":"X"},{"const":"y"}]}`),
			plain(`"a":{"type":"string","enum":["x","y"],"enumNames":["X","y"]}`)},
		{"defaults", MethodElicit, form(`"a":{"type":"string","default":"x"},"b":{"type":"boolean","default":true}`),
			plain(`"a":{"type":"string"},"b":{"type":"boolean","default":true}`)},
		{"a pattern", MethodElicit, form(`"a":{"type":"string","pattern":"^x$"}`), plain(`"a":{"type":"string"}`)},
		{"a multiple choice", MethodElicit, form(`"a":{"type":"array","items":{"enum":["x"]}}`), ""},
		{"a URL", MethodElicit, `{"mode":"url","message":"m","url":"https://x/"}`, ""},
		{"one block", MethodSample, `{"messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]}`, `{"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}`},
		{"two blocks", MethodSample, `{"messages":[{"role":"user","content":[{"type":"text","text":"t"},{"type":"text","text":"u"}]}]}`, ""},
		{"no tools", MethodSample, `{"messages":[],"tools":[],"toolChoice":{"mode":"none"}}`, `{"messages":[]}`},
		{"tools", MethodSample, `{"messages":[],"tools":[{"name":"a"}]}`, ""},
	}
	for _, tt := range tests {
		got, err := V20250618.Question(tt.method, json.RawMessage(tt.in))
		var lack *Lack
		switch {
		case tt.want == "" && !errors.As(err, &lack):
			t.Errorf("%s: %s, %v; want a Lack", tt.name, got, err)
		case tt.want != "" && (err != nil || string(got) != tt.want):
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
		if got, err := V20260728.Question(tt.method, json.RawMessage(tt.in)); err != nil || string(got) != tt.in {
			t.Errorf("%s toward the newest: %s, %v", tt.name, got, err)
		}
	}
	for _, rev := range []*Table{V20241105, V20250326} {
		if _, err := rev.Question(MethodElicit, json.RawMessage(form(`"a":{"type":"string"}`))); err == nil {
			t.Errorf("%s can be asked", rev.Name)
		}
	}
}

func TestHas(t *testing.T) {
	for _, rev := range All {
		for method, want := range map[string]bool{
			MethodCall: true, MethodTools: true, MethodPing: rev.Sessions, MethodInitialize: rev.Sessions, MethodSetLevel: rev.Sessions,
			MethodSubscribe: rev.Sessions, MethodDiscover: !rev.Sessions, MethodListen: !rev.Sessions,
			MethodElicit: false, MethodSample: false, MethodRoots: false, "example.com/own": true,
		} {
			if got := rev.Has(method); got != want {
				t.Errorf("%s has %s: %v, want %v", rev.Name, method, got, want)
			}
		}
	}
}

// FuzzResult: a conversion of any object is an object, the newest revision changes nothing, and
// conversion is idempotent.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"audio","data":"AA=="},{"type":"resource_link","icons":[]},{"type":"resource","resource":{"_meta":{}}}],"structuredContent":3}`,
		`{"tools":[{"name":"a","title":"A","annotations":null,"outputSchema":{"type":["object"]}},7]}`,
		`{"messages":[{"content":{"type":"text","annotations":{"lastModified":"x"}}},null]}`,
		`{"contents":[{"_meta":1}]}`, ` { "prompts" : [ {"arguments":[{"title":"x"}]} ] } `,
	} {
		f.Add(seed)
	}
	methods := []string{MethodTools, MethodCall, MethodPrompts, MethodPrompt, MethodResources, MethodTemplates, MethodRead}
	f.Fuzz(func(t *testing.T, in string) {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(in), &object) != nil || object == nil {
			return
		}
		for _, method := range methods {
			for _, rev := range All {
				once := rev.Result(method, json.RawMessage(in), Unknown)
				if !rev.Sessions && string(once) != in {
					t.Fatalf("the newest revision changed %s to %s", in, once)
				}
				if !json.Valid(once) {
					t.Fatalf("%s toward %s: %s became %s", method, rev.Name, in, once)
				}
				if twice := rev.Result(method, once, Unknown); string(twice) != string(once) {
					t.Fatalf("%s toward %s: %s became %s, and then %s", method, rev.Name, in, once, twice)
				}
			}
		}
	})
}
