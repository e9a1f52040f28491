package interop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// TestConformanceClient runs the suites against our client: every scenario that
// needs no login and no extension, in every revision the scenario has. This test
// binary is the client ("conform URL").
func TestConformanceClient(t *testing.T) {
	node(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	legacy := []string{v2025_06_18, v2025_11_25}
	tests := []struct {
		suite     string
		scenario  string
		revisions []string // empty: the suite does not say
	}{
		{suiteReleased, "initialize", []string{""}},
		{suiteReleased, "tools_call", []string{""}},
		{suiteReleased, "elicitation-sep1034-client-defaults", []string{""}},
		{suiteReleased, "sse-retry", []string{""}},
		{suiteNext, "initialize", legacy},
		{suiteNext, "tools_call", append(legacy, v2026_07_28)},
		{suiteNext, "elicitation-sep1034-client-defaults", []string{v2025_11_25}},
		{suiteNext, "sse-retry", []string{v2025_11_25}},
		{suiteNext, "request-metadata", []string{v2026_07_28}},
		{suiteNext, "sep-2322-client-request-state", []string{v2026_07_28}},
		{suiteNext, "http-standard-headers", []string{v2026_07_28}},
		{suiteNext, "http-custom-headers", []string{v2026_07_28}},
		{suiteNext, "http-invalid-tool-headers", []string{v2026_07_28}},
		{suiteNext, "json-schema-ref-no-deref", []string{v2026_07_28}},
		{suiteNext, "json-schema-2020-12-preservation", []string{v2025_11_25, v2026_07_28}},
	}
	for _, tt := range tests {
		for _, revision := range tt.revisions {
			name, args := "0.1.16/"+tt.scenario, []string{node(t), tt.suite, "client", "--scenario", tt.scenario, "--command", self + " conform"}
			if revision != "" {
				name, args = "0.2.0-alpha.12/"+tt.scenario+"/"+revision, append(args, "--spec-version", revision)
			}
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if stdout, stderr, err := run(ctx, args); err != nil {
					t.Errorf("conformance client %s: %v\n%s\n%s", tt.scenario, err, stdout, stderr)
				}
			})
		}
	}
}

// runConformant is the client under test: it does in each scenario what the
// suite wants to see done.
func runConformant(ctx context.Context, url string) error {
	client := &mcp.Client{
		Name: "patchbay", Version: "1",
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil // the form's defaults are filled in by the client
		},
	}
	if v := os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"); v != "" {
		client.Revisions = []mcp.Revision{mcp.Revision(v)}
	}
	s, err := client.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	var tools []*mcp.Tool
	for t, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		tools = append(tools, t)
	}
	call := func(name string, args any) error {
		_, err := s.CallTool(ctx, name, args)
		return err
	}
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "tools_call":
		return call("add_numbers", map[string]int{"a": 2, "b": 3})
	case "elicitation-sep1034-client-defaults":
		return call("test_client_elicitation_defaults", nil)
	case "sse-retry":
		return call("test_reconnection", nil)
	case "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			err = errors.Join(err, call(name, nil))
		}
		return err
	case "http-standard-headers":
		return callAndReadAll(ctx, s, tools)
	case "http-custom-headers":
		var given struct {
			ToolCalls []struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"toolCalls"`
		}
		if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
			return err
		}
		for _, c := range given.ToolCalls {
			err = errors.Join(err, call(c.Name, c.Arguments))
		}
		return err
	case "http-invalid-tool-headers":
		for _, t := range tools {
			err = errors.Join(err, call(t.Name, map[string]string{"region": "here"}))
		}
		return err
	case "json-schema-2020-12-preservation":
		i := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return strings.HasPrefix(t.Name, "json_schema_2020_12") })
		if i < 0 {
			return errors.New("no tool json_schema_2020_12_tool")
		}
		return call("json_schema_echo", map[string]any{"schema": tools[i].InputSchema})
	}
	return nil
}

// callAndReadAll uses everything that has a name or a URI in its headers.
func callAndReadAll(ctx context.Context, s *mcp.Session, tools []*mcp.Tool) error {
	var failed error
	for _, t := range tools {
		_, err := s.CallTool(ctx, t.Name, nil)
		failed = errors.Join(failed, err)
	}
	for r, err := range s.Resources(ctx) {
		if err == nil {
			_, err = s.Read(ctx, r.URI)
		}
		failed = errors.Join(failed, err)
	}
	for p, err := range s.Prompts(ctx) {
		if err == nil {
			_, err = s.Prompt(ctx, p.Name, nil)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
