package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const toolsCall = `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"Reykjavík","units":"metric","days":3,"hourly":false},"_meta":{"progressToken":"abc123","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`

func decode(t *testing.T, in string) jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Decode([]byte(in), jsonrpc.Limits{})
	if err != nil {
		t.Fatalf("Decode(%s) = %v", in, err)
	}
	return m
}

func TestParam(t *testing.T) {
	var many strings.Builder
	for i := range 12 {
		fmt.Fprintf(&many, `"p%d":%d,`, i, i)
	}
	for _, tt := range []struct{ name, params, param, want string }{
		{"first", `{"name":"x","arguments":{"a":1}}`, "name", `"x"`},
		{"space", ` { "name" : "x" , "arguments" : { "a" : 1 } } `, "arguments", `{ "a" : 1 }`},
		{"absent", `{"name":"x"}`, "nam", ""},
		{"case", `{"name":"x"}`, "Name", ""},
		{"empty object", `{}`, "name", ""},
		{"array", `["name"]`, "name", ""},
		{"escaped name", `{"n\u0061me":"x"}`, "name", `"x"`},
		{"six", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`, "f", "6"},
		{"seven", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}`, "g", "7"},
		{"many", "{" + many.String() + `"last":"y"}`, "last", `"y"`},
		{"many, absent", "{" + many.String() + `"last":"y"}`, "p12", ""},
		{"not of an inner object", `{"a":{"name":1}}`, "name", ""},
		{"more than a name", `{"a":"b","c":1}`, `a":"b`, ""},
		{"name with the colon", `{"a":"b","c":1}`, `a":`, ""},
		{"part of a name", `{"abc":1}`, "ab", ""},
	} {
		decoded := decode(t, `{"jsonrpc":"2.0","params":`+tt.params+`,"method":"m"}`)
		cloned := decoded.Clone()
		built := jsonrpc.Message{Method: "m", Params: json.RawMessage(tt.params)}
		replaced := decode(t, `{"jsonrpc":"2.0","method":"m","params":{"name":"old","last":"old","h":0}}`)
		replaced.Params = json.RawMessage(tt.params)
		for how, m := range map[string]*jsonrpc.Message{"decoded": &decoded, "cloned": &cloned, "built": &built, "replaced": &replaced} {
			got, ok := m.Param(tt.param)
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("%s, %s: Param(%q) = %q, %v, want %q", tt.name, how, tt.param, got, ok, tt.want)
			}
		}
	}
	var none jsonrpc.Message
	if got, ok := none.Param("x"); ok {
		t.Errorf("Param of a message without params = %q", got)
	}
}

func TestParamIn(t *testing.T) {
	m := decode(t, toolsCall)
	for _, tt := range []struct{ object, name, want string }{
		{"_meta", "progressToken", `"abc123"`},
		{"_meta", "io.modelcontextprotocol/clientInfo", `{"name":"x","version":"1"}`},
		{"_meta", "x", ""},
		{"meta", "x", ""},
		{"name", "x", ""}, // a string, not an object
	} {
		if got, ok := m.ParamIn(tt.object, tt.name); string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("ParamIn(%q, %q) = %q, %v, want %q", tt.object, tt.name, got, ok, tt.want)
		}
	}
	long := strings.Repeat("x", 1<<16)
	for _, tt := range []struct{ name, params, want string }{
		{"last of five", `{"_meta":{"a":1,"b":2,"c":3,"d":4,"x":5}}`, "5"},
		{"last of six", `{"_meta":{"a":1,"b":2,"c":3,"d":4,"e":5,"x":6}}`, "6"},
		{"space", `{ "a":0, "_meta" : { "y" : {"x":1} , "x" : 2 } }`, "2"},
		{"behind much", `{"a":"` + long + `","_meta":{"x":1}}`, "1"},
		{"behind much of its own", `{"_meta":{"a":"` + long + `","x":1}}`, "1"},
		{"escaped", `{"_meta":{"\u0078":1}}`, "1"},
		{"escaped itself", `{"_m\u0065ta":{"x":1}}`, "1"},
		{"beside many", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"_meta":{"x":7}}`, "7"},
		{"empty", `{"_meta":{}}`, ""},
		{"array", `{"_meta":["x"]}`, ""},
	} {
		m := decode(t, `{"jsonrpc":"2.0","method":"m","params":`+tt.params+`}`)
		cloned := m.Clone()
		for how, m := range map[string]*jsonrpc.Message{"decoded": &m, "cloned": &cloned} {
			if got, ok := m.ParamIn("_meta", "x"); string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("%s, %s: ParamIn = %.20q, %v, want %q", tt.name, how, got, ok, tt.want)
			}
		}
	}
}

func TestParamNames(t *testing.T) {
	for params, want := range map[string]string{
		`{"name":"a\"b","arguments":{"x":{"y":1}},"_meta":{"z":2}}`: "name arguments _meta",
		`{ "a" :1, "":[] , "b":"c"}`:                                "a  b",
		`{"\u0061":1,"b":2}`:                                        "a b",
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}`:               "a b c d e f g",
		`{}`:       "",
		`["name"]`: "",
	} {
		m := decode(t, `{"jsonrpc":"2.0","method":"m","params":`+params+`}`)
		var names []string
		for name := range m.ParamNames() {
			names = append(names, string(name))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("ParamNames of %s = %q, want %q", params, got, want)
		}
		for range m.ParamNames() {
			break
		}
	}
}

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want jsonrpc.Kind
	}{
		{`{"jsonrpc":"2.0","id":0,"method":"m"}`, jsonrpc.KindRequest},
		{`{"jsonrpc":"2.0","id":"","method":"m"}`, jsonrpc.KindRequest},
		{`{"jsonrpc":"2.0","method":"m"}`, jsonrpc.KindNotification},
		{`{"jsonrpc":"2.0","id":0,"result":{}}`, jsonrpc.KindResponse},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":""}}`, jsonrpc.KindResponse},
	} {
		if m := decode(t, tt.in); m.Kind() != tt.want {
			t.Errorf("Kind of %s = %v, want %v", tt.in, m.Kind(), tt.want)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	for _, in := range []string{
		toolsCall,
		`{"jsonrpc":"2.0","id":"a","result":{"x":1}}`,
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m","data":[1]}}`,
	} {
		b := []byte(in)
		m, err := jsonrpc.Decode(b, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		c := m.Clone()
		for i := range b {
			b[i] = '?'
		}
		if want := decode(t, in); !jsonrpc.Equal(&c, &want) || jsonrpc.Equal(&m, &want) {
			t.Errorf("after its bytes changed, the clone of %s is %s", in, jsonrpc.Append(nil, &c))
		}
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("call: %w", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "missing \"city\"\n"})
	if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) || errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeParse}) {
		t.Error("errors.Is does not compare codes")
	}
	if got, want := err.Error(), `call: "missing \"city\"\n" (code -32602)`; got != want {
		t.Errorf("text %s, want %s", got, want)
	}
	if long := (&jsonrpc.Error{Message: strings.Repeat("x", 1<<20)}).Error(); len(long) > 600 {
		t.Errorf("text of a long message has %d bytes", len(long))
	}
}
