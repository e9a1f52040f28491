package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Mistakes of models with a clear meaning are repaired. Otherwise the model learns what is wrong
// and what is expected, and nothing is sent.
func TestArguments(t *testing.T) {
	const want = `{"city":"Oslo"}`
	tests := []struct{ name, written, sent, told string }{
		{"as it should be", want, want, ""},
		{"white space", " {\n\t\"city\" : \"Oslo\"} ", want, ""},
		{"escapes and numbers stay", `{"city":"\u004f\/","days":1.0e0}`, `{"city":"\u004f\/","days":1.0e0}`, ""},
		{"in a string", `"{\"city\": \"Oslo\"}"`, want, ""},
		{"nothing", ``, "", `missing "city"`},
		{"null", `null`, "", `missing "city"`},
		{"null for what is left out", `{"days":null,"city":"Oslo"}`, want, ""}, // trap 17
		{"null for what is required", `{"city":null}`, "", `missing "city"`},
		{"an empty string", `""`, "", `missing "city"`},
		{"a list", `["Oslo"]`, "", "must be a JSON object"},
		{"a string", `"Oslo"`, "", "must be a JSON object"},
		{"no JSON", `{"city":"Oslo"`, "", "not JSON"},
		{"a name twice", `{"city":"Oslo","city":"Rome"}`, "", "not JSON"},
		{"two faults", `{"city":7,"days":0}`, "", "days: must be at least 1"},
		{"the schema is shown", `{"town":"Oslo"}`, "", `"required":["city"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sent string
			srv := &mcp.Server{Name: "s", Version: "1"}
			if err := srv.HandleTool(mcp.Tool{Name: "book", InputSchema: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"],"additionalProperties":false}`)},
				func(ctx context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
					sent = string(args)
					return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("ok")}}, nil
				}); err != nil {
				t.Fatal(err)
			}
			var shown string
			m := calls([]string{"s_book " + tt.written})
			d := talk(t, newHost(t, &host.Host{Model: m, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
				shown = string(a.Arguments)
				return host.Verdict{Answer: host.AllowOnce}, nil
			}}}, inMemory("s", srv)))
			if sent != tt.sent || shown != tt.sent {
				t.Errorf("%s: sent %s, shown %s, want %s", tt.written, sent, shown, tt.sent)
			}
			told, outcome := m.result(t, "c1.1"), d.outcome(t, "c1.1")
			if tt.told == "" && (outcome != host.Succeeded || told != "ok") {
				t.Errorf("%s: %s, %q", tt.written, outcome, told)
			}
			if tt.told != "" && (outcome != host.Invalid || !strings.Contains(told, tt.told)) {
				t.Errorf("%s: %s, the model is told %q, want %q in it", tt.written, outcome, told, tt.told)
			}
		})
	}
}

// The error for an unknown tool suggests similar names.
func TestUnknownTool(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	for _, name := range []string{"list_tables", "list_rows", "drop"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "ok", nil })
	}
	m := calls([]string{"list_table {}", "s_list_tabels {}", "s_frobnicate {}"})
	d := talk(t, newHost(t, &host.Host{Model: m, Person: says(host.AllowOnce)}, inMemory("s", srv)))
	for id, want := range map[string]string{"c1.1": `mean "s_list_tables"`, "c1.2": `mean "s_list_tables"`, "c1.3": "those that were listed"} {
		if got := m.result(t, id); !strings.Contains(got, want) || d.outcome(t, id) != host.Invalid {
			t.Errorf("%s: %q, want %q in it", id, got, want)
		}
	}
}

// A tool's name without the server calls it, if one server has it; approval is that of the tool. If
// two have it, the error names both.
func TestPlainToolName(t *testing.T) {
	server := func(tools ...string) *mcp.Server {
		srv := &mcp.Server{Name: "s", Version: "1"}
		for _, name := range tools {
			mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "ok", nil })
		}
		return srv
	}
	m := calls([]string{"only {}", "both {}", "a_both {}"})
	d := talk(t, newHost(t, &host.Host{Model: m, Allow: []string{"a/*"}}, inMemory("a", server("only", "both")), inMemory("b", server("both"))))
	for id, want := range map[string]string{"c1.1": "ok", "c1.2": `The tool "both" may be "a_both" or "b_both": call one of these names. Nothing was called.`, "c1.3": "ok"} {
		if got := m.result(t, id); !strings.Contains(got, want) || (d.outcome(t, id) == host.Succeeded) != (want == "ok") {
			t.Errorf("%s: %s %q, want %q in it", id, d.outcome(t, id), got, want)
		}
	}
}
