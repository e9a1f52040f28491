package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/skills"
)

// scenarios are the client's actions by the suite's names; given is the scenario's context.
var scenarios = map[string]func(ctx context.Context, s *mcp.Session, given string) error{
	"initialize":                          listTools,
	"request-metadata":                    listTools,
	"json-schema-ref-no-deref":            listTools,
	"tools_call":                          calls(call{"add_numbers", json.RawMessage(`{"a":2,"b":3}`)}),
	"elicitation-sep1034-client-defaults": calls(call{"test_client_elicitation_defaults", nil}),
	"sse-retry":                           calls(call{"test_reconnection", nil}),
	"sep-2322-client-request-state": calls(
		call{"test_mrtr_echo_state", nil}, call{"test_mrtr_no_state", nil},
		call{"test_mrtr_unrelated", nil}, call{"test_mrtr_no_result_type", nil}),
	"http-standard-headers":              useAll,
	"http-custom-headers":                callGiven,
	"http-invalid-tool-headers":          callAll,
	"json-schema-2020-12-preservation":   echoSchema,
	"sep-2640-client-no-prefetch":        listSkills,
	"sep-2640-client-verify-digest":      refuseSkill,
	"sep-2640-client-verify-size":        refuseSkill,
	"sep-2640-client-verify-frontmatter": refuseSkill,

	"auth/metadata-default":                     callTest,
	"auth/metadata-var1":                        callTest,
	"auth/metadata-var2":                        callTest,
	"auth/metadata-var3":                        callTest,
	"auth/basic-cimd":                           callTest,
	"auth/scope-from-www-authenticate":          callTest,
	"auth/scope-from-scopes-supported":          callTest,
	"auth/scope-omitted-when-undefined":         callTest,
	"auth/scope-step-up":                        callTest,
	"auth/scope-retry-limit":                    callTest,
	"auth/token-endpoint-auth-basic":            callTest,
	"auth/token-endpoint-auth-post":             callTest,
	"auth/token-endpoint-auth-none":             callTest,
	"auth/pre-registration":                     callTest,
	"auth/2025-03-26-oauth-metadata-backcompat": callTest,
	"auth/2025-03-26-oauth-endpoint-fallback":   callTest,
	"auth/client-credentials-jwt":               callTest,
	"auth/client-credentials-basic":             callTest,
	"auth/cross-app-access-complete-flow":       callTest,
	"auth/enterprise-managed-authorization":     callTest,
	"auth/wif-jwt-bearer":                       callTest,
	"auth/dpop":                                 callTest,
	"auth/dpop-nonce":                           callTest,
	"auth/resource-mismatch":                    callTest,
	"auth/offline-access-scope":                 callTest,
	"auth/offline-access-not-supported":         callTest,
	"auth/authorization-server-migration":       callTest,
	"auth/iss-supported":                        callTest,
	"auth/iss-not-advertised":                   callTest,
	"auth/iss-supported-missing":                callTest,
	"auth/iss-wrong-issuer":                     callTest,
	"auth/iss-unexpected":                       callTest,
	"auth/iss-normalized":                       callTest,
	"auth/metadata-issuer-mismatch":             callTest,
}

// callTest calls the only tool behind a login.
var callTest = calls(call{"test-tool", nil})

// call is one call of a tool.
type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c call) do(ctx context.Context, s *mcp.Session) error {
	var args any
	if c.Arguments != nil {
		args = c.Arguments
	}
	_, err := s.CallTool(ctx, c.Name, args)
	return err
}

// calls lists the tools, so that the client knows their headers, and calls some.
func calls(list ...call) func(context.Context, *mcp.Session, string) error {
	return func(ctx context.Context, s *mcp.Session, _ string) error {
		err := listTools(ctx, s, "")
		for _, c := range list {
			err = errors.Join(err, c.do(ctx, s))
		}
		return err
	}
}

func listTools(ctx context.Context, s *mcp.Session, _ string) error {
	_, err := tools(ctx, s)
	return err
}

func tools(ctx context.Context, s *mcp.Session) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	for t, err := range s.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// callGiven makes the calls in the scenario's context.
func callGiven(ctx context.Context, s *mcp.Session, given string) error {
	var wanted struct {
		ToolCalls []call `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(given), &wanted); err != nil {
		return fmt.Errorf("the scenario's context: %w", err)
	}
	return calls(wanted.ToolCalls...)(ctx, s, "")
}

// callAll calls every tool that the client accepts.
func callAll(ctx context.Context, s *mcp.Session, _ string) error {
	all, err := tools(ctx, s)
	for _, t := range all {
		err = errors.Join(err, call{t.Name, json.RawMessage(`{"region":"here"}`)}.do(ctx, s))
	}
	return err
}

// useAll uses every feature whose name or URI is in headers.
func useAll(ctx context.Context, s *mcp.Session, _ string) error {
	all, err := tools(ctx, s)
	for _, t := range all {
		err = errors.Join(err, call{t.Name, nil}.do(ctx, s))
	}
	for r, fault := range s.Resources(ctx) {
		if fault == nil {
			_, fault = s.ReadResource(ctx, r.URI)
		}
		err = errors.Join(err, fault)
	}
	for p, fault := range s.Prompts(ctx) {
		if fault == nil {
			_, fault = s.GetPrompt(ctx, p.Name, nil)
		}
		err = errors.Join(err, fault)
	}
	return err
}

// echoSchema returns a tool's schema to the server, unchanged.
func echoSchema(ctx context.Context, s *mcp.Session, _ string) error {
	all, err := tools(ctx, s)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == "json_schema_2020_12_tool" {
			_, err := s.CallTool(ctx, "json_schema_echo", map[string]any{"schema": t.InputSchema})
			return err
		}
	}
	return errors.New("no tool json_schema_2020_12_tool")
}

func listSkills(ctx context.Context, s *mcp.Session, _ string) error {
	for _, err := range skills.List(ctx, s) {
		if err != nil {
			return err
		}
	}
	return nil
}

// refuseSkill loads each skill and, if it could be loaded, reads its other files, as a
// host does. Each must be refused.
func refuseSkill(ctx context.Context, s *mcp.Session, _ string) error {
	for skill, err := range skills.List(ctx, s) {
		if err != nil {
			return err
		}
		active, err := skills.Load(ctx, s, skill)
		if errors.Is(err, skills.ErrUnverified) {
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range skill.Files {
			if _, err := active.Read(ctx, f.URI); err != nil {
				return err
			}
		}
		return fmt.Errorf("the skill %q was loaded, though it is not what its entry describes", skill.URI)
	}
	return nil
}
