package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

var traceparentForm = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-(?s:.*))?$`)

// The checks of _meta agree with forms that are written in another way, and what they let
// pass is found again in the params (META-26-018).
func FuzzMeta(f *testing.F) {
	f.Add("traceparent", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
	f.Add("tracestate", "vendor=a:1,t@sys=2")
	f.Add("baggage", "user=al%20ice;ttl=3, k = v")
	f.Add("com.example/x", "{}")
	f.Add("a..b/", "")
	f.Fuzz(func(t *testing.T, name, text string) {
		value := jsonx.AppendString(nil, text)
		params, err := Meta{name: value}.with(json.RawMessage(`{"a":1,"_meta":{"kept":true}}`))
		if name == "traceparent" && strings.ToValidUTF8(text, "") == text {
			m := traceparentForm.FindStringSubmatch(text)
			want := m != nil && m[1] != "ff" && (m[1] != "00" || m[4] == "") &&
				strings.Trim(m[2], "0") != "" && strings.Trim(m[3], "0") != ""
			if (err == nil) != want {
				t.Errorf("traceparent %q: %v, want accepted: %t", text, err, want)
			}
		}
		if err != nil {
			if params != nil {
				t.Errorf("%q: both %s and %v", name, params, err)
			}
			return
		}
		if err := jsonx.Valid(params, 10); err != nil {
			t.Fatalf("params %s: %v", params, err)
		}
		got, ok := jsonx.LookupPath(params, "_meta", name)
		if kept, _ := jsonx.LookupPath(params, "_meta", "kept"); !ok || string(got) != string(value) || string(kept) != "true" && name != "kept" {
			t.Errorf("%q in %s, want %s", name, params, value)
		}
	})
}

// A listed feature that is read is written again with the same content: the known members as they
// were understood, and the others unchanged.
func FuzzExtra(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object"},"x":{"y":[1.50,null]},"_meta":{"k":1}}`))
	f.Add([]byte(`{"name":"a","Name":"b","":0}`))
	f.Add([]byte(`{"x":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if jsonx.Valid(in, 64) != nil {
			return
		}
		var tool, again Tool
		if json.Unmarshal(in, &tool) != nil || jsonx.KindOf(in) != '{' {
			return
		}
		out, err := json.Marshal(tool)
		if err != nil {
			return // a schema that is not valid JSON
		}
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s becomes %s: %v", in, out, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(out) {
			t.Errorf("%s becomes %s and then %s, %v", in, out, twice, err)
		}
		if len(again.Extra) != len(tool.Extra) {
			t.Errorf("%s loses members: %s", in, out)
		}
	})
}
