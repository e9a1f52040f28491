package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// An argument that travels in a header too: the client learns of it from the list,
// by itself if it has to (HTTP-26-033, -034, -053, -055, -061).
func TestArgumentsInHeaders(t *testing.T) {
	srv := &mcp.Server{Name: "t", Version: "1"}
	type in struct {
		Region string `json:"region" header:"Region"`
	}
	seen := ""
	mcp.AddTool(srv, mcp.Tool{Name: "where"}, func(ctx context.Context, in in) (string, error) {
		seen = mcp.CallFrom(ctx).Header.Get("Mcp-Param-Region")
		return in.Region, nil
	})
	h := httptest.NewServer(srv)
	defer h.Close()
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}}).Dial(t.Context(), h.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res, err := s.CallTool(t.Context(), "where", map[string]string{"region": "Zürich"})
			if err != nil || res.Text() != "Zürich" {
				t.Fatalf("call = %v, %v", res, err)
			}
			want := ""
			if rev == mcp.V2026_07_28 {
				want = "=?base64?WsO8cmljaA==?="
			}
			if seen != want {
				t.Errorf("Mcp-Param-Region = %q, want %q", seen, want)
			}
		})
	}
}

func TestHandleToolRefusesABadHeaderAnnotation(t *testing.T) {
	srv := &mcp.Server{Name: "t", Version: "1"}
	err := srv.HandleTool(mcp.Tool{Name: "x", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}`)},
		func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, errors.New("unused") })
	if err == nil {
		t.Error("HandleTool took a header annotation on an array")
	}
}

// A tool that must not be used over HTTP is left out, with a warning that names it and
// says why (HTTP-26-046).
func TestToolsLeftOutAreLogged(t *testing.T) {
	h := httptest.NewServer(&mcp.Server{Name: "t", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method == "tools/list" {
			return mcp.RawResult(`{"tools":[{"name":"odd one","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}},{"name":"good","inputSchema":{"type":"object"}}]}`), nil
		}
		return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"tools": []byte(`{}`)}}, nil
	})})
	defer h.Close()
	var log lockedBuffer
	c := &mcp.Client{Name: "c", Version: "1", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := c.Dial(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := fmt.Sprint(toolNames(t, s)); got != "[good]" {
		t.Errorf("tools = %s, want [good]", got)
	}
	for _, want := range []string{"level=WARN", "odd one", "x-mcp-header"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log.String())
		}
	}
	toolNames(t, s)
	if n := strings.Count(log.String(), "odd one"); n != 1 {
		t.Errorf("it is logged %d times, want once: %s", n, log.String())
	}
	// Calls of it are refused, whoever makes them (trap 42).
	_, err = s.CallTool(t.Context(), "odd one", nil)
	_, rawErr := s.Raw(t.Context(), "tools/call", map[string]any{"name": "odd one"})
	_, passErr := s.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"odd one"}`)})
	for how, err := range map[string]error{"CallTool": err, "Raw": rawErr, "Handle": passErr} {
		if err == nil || !strings.Contains(err.Error(), "must not be used over HTTP") {
			t.Errorf("%s of the tool that is left out: %v", how, err)
		}
	}
}
