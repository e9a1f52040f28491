package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

// META-26-001: the _meta of a caller reaches the handler, also by way of a Session
// that forwards, and what neither knows of reserved names is passed on as it is.
func TestMetaEverywhere(t *testing.T) {
	meta := mcp.Meta{
		"traceparent":                         json.RawMessage(`"` + traceparent + `"`),
		"tracestate":                          json.RawMessage(`"vendor=a:1,t@sys=2"`),
		"baggage":                             json.RawMessage(`"user=al%20ice;ttl=3, k = v"`),
		"io.modelcontextprotocol/of-tomorrow": json.RawMessage(`{"a":[1]}`),
		"com.example/x":                       json.RawMessage(`null`),
	}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "meta"}, func(ctx context.Context, _ struct{}) (mcp.Meta, error) {
			return mcp.CallFrom(ctx).Meta, nil
		})
		return s
	}
	check := func(t *testing.T, s *mcp.Session) {
		t.Helper()
		got, err := mcp.CallAs[mcp.Meta](t.Context(), s, "meta", nil, mcp.WithMeta(meta))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range meta {
			if string(got[name]) != string(want) {
				t.Errorf("%s = %s, want %s", name, got[name], want)
			}
		}
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		check(t, s)
		check(t, mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: s}, nothing(), s.Revision()))
	})
}

// META-26-002, -003, -005: a name of _meta is an optional prefix of labels and a name.
// META-26-018: what is sent of a trace is of the form of the W3C.
func TestMetaIsChecked(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return "", nil })
	session := mcptest.Connect(t, s, nothing(), mcp.V2026_07_28)
	for _, tt := range []struct {
		name, value string
		ok          bool
	}{
		{"a", `1`, true}, {"a.b-c_d", `{}`, true}, {"", `1`, true}, {"com.example/", `1`, true}, {"a/b", `1`, true}, {"a1.b-2/c.d", `1`, true},
		{"-a", `1`, false}, {"a.", `1`, false}, {"a b", `1`, false}, {"/a", `1`, false}, {"1a/b", `1`, false}, {"a-/b", `1`, false}, {"a..b/c", `1`, false}, {"a/b/c", `1`, false}, {"é", `1`, false},
		{"a", `{`, false}, {"a", ``, false}, {"progressToken", `1`, false},
		{"traceparent", `"` + traceparent + `"`, true}, {"traceparent", `"cc` + traceparent[2:] + `-more"`, true},
		{"traceparent", `"` + strings.ToUpper(traceparent) + `"`, false}, {"traceparent", `"` + traceparent + `-more"`, false}, {"traceparent", `"ff` + traceparent[2:] + `"`, false},
		{"traceparent", `"00-00000000000000000000000000000000-00f067aa0ba902b7-01"`, false}, {"traceparent", `"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"`, false},
		{"traceparent", `1`, false}, {"traceparent", `""`, false}, {"traceparent", `"` + traceparent[:54] + `"`, false},
		{"tracestate", `"a=1"`, true}, {"tracestate", `"a=1,,b=2 "`, true}, {"tracestate", `"A=1"`, false}, {"tracestate", `"a"`, false}, {"tracestate", `"a=b=c"`, false}, {"tracestate", `""`, false},
		{"tracestate", `"` + strings.Repeat("a=1,", 33) + `"`, false},
		{"baggage", `"a=1"`, true}, {"baggage", `"a=1;p;q=2,b=%20"`, true}, {"baggage", `"a"`, false}, {"baggage", `"a=\u0001"`, false}, {"baggage", `"(=1"`, false}, {"baggage", `7`, false},
	} {
		_, err := session.CallTool(t.Context(), "t", nil, mcp.WithMeta(mcp.Meta{tt.name: json.RawMessage(tt.value)}))
		if (err == nil) != tt.ok {
			t.Errorf("%q: %s = %v, want accepted: %t", tt.name, tt.value, err, tt.ok)
		}
	}
}
