package everything

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/mcp"
)

// caller is the result of describe_call.
type caller struct {
	Revision     mcp.Revision `json:"revision" doc:"the protocol revision that the caller speaks"`
	Client       string       `json:"client,omitempty" doc:"name and version, as the caller states them"`
	Capabilities []string     `json:"capabilities" doc:"requests that the caller can answer"`
	Principal    string       `json:"principal,omitempty" doc:"the authenticated principal of the caller"`
	HTTP         bool         `json:"http" doc:"whether the call came over HTTP"`
}

func addTools(srv *mcp.Server) {
	mcp.AddTool(srv, mcp.Tool{
		Name: "describe_call", Title: "Describe the call",
		Description: "Returns what the server knows about the caller: revision, client, capabilities.",
		Annotations: harmless,
	}, describeCall)

	type message struct {
		Message string `json:"message" doc:"what to return"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "echo", Title: "Echo", Description: "Returns the message.", Annotations: harmless,
	}, func(_ context.Context, in message) (string, error) { return in.Message, nil })

	type addends struct {
		A float64 `json:"a" doc:"first addend"`
		B float64 `json:"b" doc:"second addend"`
	}
	type sum struct {
		Sum float64 `json:"sum"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "add", Title: "Add", Description: "Adds two numbers.", Annotations: harmless,
	}, func(_ context.Context, in addends) (sum, error) { return sum{in.A + in.B}, nil })

	type located struct {
		Region   string `json:"region" header:"Region" doc:"over HTTP also in the header Mcp-Param-Region"`
		Priority int32  `json:"priority,omitempty" header:"Priority" doc:"over HTTP also in the header Mcp-Param-Priority"`
		Query    string `json:"query,omitempty" doc:"only in the body"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "route_by_header", Title: "Route by header",
		Description: "Has arguments that travel in HTTP headers too, for proxies to route by (x-mcp-header, since 2026-07-28).",
		Annotations: harmless,
	}, func(_ context.Context, in located) (string, error) {
		return fmt.Sprintf("region %q, priority %d, query %q", in.Region, in.Priority, in.Query), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_error_handling", Description: "Always fails, with a tool error.", Annotations: harmless,
	}, func(context.Context, none) (string, error) {
		return "", errors.New("this tool intentionally returns an error for testing")
	})

	err := srv.HandleTool(mcp.Tool{
		Name: "json_schema_2020_12_tool", Description: "Has an input schema with keywords of JSON Schema 2020-12.",
		InputSchema: json.RawMessage(contactSchema), Annotations: harmless,
	}, func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("valid: " + string(args))}}, nil
	})
	if err != nil {
		panic(err) // contactSchema is a constant
	}
}

func describeCall(ctx context.Context, _ none) (*caller, error) {
	c := mcp.CallFrom(ctx)
	if c == nil {
		return nil, mcp.ErrNoCall
	}
	out := &caller{Revision: c.Revision, Capabilities: []string{}, Principal: c.Principal, HTTP: c.Header != nil}
	if c.Client.Name != "" {
		out.Client = c.Client.Name + " " + c.Client.Version
	}
	for name := range c.Capabilities {
		out.Capabilities = append(out.Capabilities, name)
	}
	slices.Sort(out.Capabilities)
	return out, nil
}

// contactSchema uses keywords that Go types do not produce: $defs, $anchor, allOf
// and if.
const contactSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`
