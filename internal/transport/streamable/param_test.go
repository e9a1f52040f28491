package streamable

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestParamHeaders(t *testing.T) { // HTTP-26-038 to -045
	tests := []struct {
		name, schema string
		want         int // headers; -1: refused
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, 0},
		{"one", `{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, 1},
		{"nested", `{"properties":{"o":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"}}}}}`, 1},
		{"property of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, 0},
		{"in a default", `{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"}}}}`, 0},
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, -1},
		{"space", `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, -1},      // HTTP-26-036
		{"control", `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, -1}, // HTTP-26-037
		{"not ASCII", `{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}`, -1},
		{"not a string", `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, -1},
		{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, -1},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, -1},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, -1},
		{"in items", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, -1},
		{"in anyOf", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, -1},
		{"at the root", `{"type":"object","x-mcp-header":"A","properties":{}}`, -1},
		{"in $defs", `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParamHeaders(json.RawMessage(tt.schema))
			if (err != nil) != (tt.want < 0) || (err == nil && len(got) != tt.want) {
				t.Errorf("ParamHeaders(%s) = %v, %v, want %d", tt.schema, got, err, tt.want)
			}
		})
	}
}

func TestParamsMirrored(t *testing.T) { // HTTP-26-034, -047 to -056, -057
	ps, err := ParamHeaders(json.RawMessage(`{"properties":{"s":{"type":"string","x-mcp-header":"S"},"o":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"b":{"type":"boolean","x-mcp-header":"B"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, args string
		s, n, b    string // headers, "" for none
	}{
		{"all", `{"s":"us-west1","o":{"n":42},"b":true}`, "us-west1", "42", "true"},
		{"absent", `{}`, "", "", ""},                // HTTP-26-059, -060
		{"null", `{"s":null,"b":null}`, "", "", ""}, // HTTP-26-059, -060
		{"not ASCII", `{"s":"Hello, 世界"}`, "=?base64?SGVsbG8sIOS4lueVjA==?=", "", ""},
		{"padded", `{"s":" padded "}`, "=?base64?IHBhZGRlZCA=?=", "", ""},
		{"like a sentinel", `{"s":"=?base64?literal?="}`, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "", ""},
		{"integer with a fraction", `{"o":{"n":4.20e1},"b":false}`, "", "42", "false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			SetParams(h, ps, json.RawMessage(tt.args))
			if h.Get("Mcp-Param-S") != tt.s || h.Get("Mcp-Param-N") != tt.n || h.Get("Mcp-Param-B") != tt.b {
				t.Errorf("SetParams(%s) = %v, want %q %q %q", tt.args, h, tt.s, tt.n, tt.b)
			}
			if err := CheckParams(h, ps, json.RawMessage(tt.args)); err != nil {
				t.Errorf("CheckParams of what SetParams set = %v", err)
			}
		})
	}
	refused := []struct{ name, args, header, value string }{
		{"missing", `{"s":"x"}`, "", ""},
		{"differs", `{"s":"x"}`, "Mcp-Param-S", "y"},
		{"not expected", `{}`, "Mcp-Param-S", "y"},
		{"bad padding", `{"s":"Hello"}`, "Mcp-Param-S", "=?base64?SGVsbG8?="},
		{"bad alphabet", `{"s":"Hello"}`, "Mcp-Param-S", "=?base64?SGVs!!!bG8=?="},
		{"other number", `{"o":{"n":42}}`, "Mcp-Param-N", "43"},
		{"no number", `{"o":{"n":42}}`, "Mcp-Param-N", "forty"},
		{"huge exponent", `{"o":{"n":1}}`, "Mcp-Param-N", "1e999999999"},
		{"case of a boolean", `{"b":true}`, "Mcp-Param-B", "True"},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.header != "" {
				h.Set(tt.header, tt.value)
			}
			if err := CheckParams(h, ps, json.RawMessage(tt.args)); err == nil || err.Code != -32020 {
				t.Errorf("CheckParams(%v, %s) = %v, want -32020", h, tt.args, err)
			}
		})
	}
	// HTTP-26-065
	if err := CheckParams(http.Header{"Mcp-Param-N": {"42.0"}}, ps, json.RawMessage(`{"o":{"n":42}}`)); err != nil {
		t.Errorf("42.0 for 42: %v", err)
	}
}
