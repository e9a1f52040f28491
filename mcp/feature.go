package mcp

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/schema"
)

// Implementation identifies a client or server. It is self-reported: good for
// display and logs, not for decisions (2026-07-28, basic/index, _meta).
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"` // since 2025-11-25
	WebsiteURL  string `json:"websiteUrl,omitempty"`  // since 2025-11-25
	Icons       []Icon `json:"icons,omitempty"`       // since 2025-11-25
}

// Icon is a picture for a feature or implementation (since 2025-11-25).
type Icon struct {
	Src      string   `json:"src"` // an https: or data: URI
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // "48x48" or "any"
	Theme    string   `json:"theme,omitempty"` // "light" or "dark"
}

// Tool describes a function that a model may call.
type Tool struct {
	Name        string `json:"name"` // 1 to 128 of A-Za-z0-9_-. (2026-07-28, server/tools)
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	// InputSchema is the JSON Schema of the arguments, an object schema.
	// Nil: inferred by AddTool, any object with HandleTool.
	InputSchema json.RawMessage `json:"inputSchema"`

	// Input is the type of the arguments of AddTool with tags that were changed at run time
	// ([schema.Type.With]). It makes the input schema, and checks and decodes the arguments. Its Go type
	// must be that of the function, and InputSchema must be nil. Nil: the type with its own tags.
	Input *schema.Type `json:"-"`

	// OutputSchema is the JSON Schema of the structured result.
	// Nil: inferred by AddTool if the result is structured, else none.
	OutputSchema json.RawMessage `json:"outputSchema,omitzero"`

	Annotations *ToolAnnotations `json:"annotations,omitempty"`
	Execution   ToolExecution    `json:"execution,omitzero"`
	Icons       []Icon           `json:"icons,omitempty"`
	Meta        Meta             `json:"_meta,omitempty"`

	// Extra holds members that this package does not know, by name.
	Extra map[string]json.RawMessage `json:"-"`
}

// ToolAnnotations are hints about what a tool does. They are claims of the
// server: do not trust them from a server you do not trust. A nil field means the
// default of the specification (2026-07-28, schema, ToolAnnotations).
type ToolAnnotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`    // default false
	Destructive *bool  `json:"destructiveHint,omitempty"` // default true
	Idempotent  *bool  `json:"idempotentHint,omitempty"`  // default false
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`   // default true
}

// Resource describes data that a client can read.
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Size        int64        `json:"size,omitzero"` // bytes, 0 if not known
	Annotations *Annotations `json:"annotations,omitempty"`
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`

	// Extra holds members that this package does not know, by name.
	Extra map[string]json.RawMessage `json:"-"`
}

// ResourceTemplate describes a family of resources by a URI template (RFC 6570).
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Annotations *Annotations `json:"annotations,omitempty"`
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`

	// Complete suggests values, by variable name.
	Complete map[string]CompleteFunc `json:"-"`

	// Extra holds members that this package does not know, by name.
	Extra map[string]json.RawMessage `json:"-"`
}

// Prompt describes a message template that a person can pick.
type Prompt struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	// Arguments are inferred by AddPrompt if nil.
	Arguments []PromptArgument `json:"arguments,omitempty"`

	Icons []Icon `json:"icons,omitempty"`
	Meta  Meta   `json:"_meta,omitempty"`

	// Complete suggests values, by argument name.
	Complete map[string]CompleteFunc `json:"-"`

	// Extra holds members that this package does not know, by name.
	Extra map[string]json.RawMessage `json:"-"`
}

// PromptArgument describes one argument of a prompt; its value is a string.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitzero"`
}

// CompleteFunc suggests values that start with, or otherwise suit, prefix. The map others holds the
// values of the other arguments, as far as the client sent them (never before 2025-06-18). At most
// 100 values reach the client.
type CompleteFunc func(ctx context.Context, prefix string, others map[string]string) ([]string, error)

// Kind is a kind of feature.
type Kind string

// The kinds of feature that a server lists.
const (
	KindTool             Kind = "tool"
	KindPrompt           Kind = "prompt"
	KindResource         Kind = "resource"
	KindResourceTemplate Kind = "resource template"
)

// Feature names one feature of a server: a tool or prompt by its name, a
// resource by its URI, a resource template by its URI template.
type Feature struct {
	Kind Kind
	Name string
}

// Capabilities are what a server offers, or what a client can answer. A nil map
// or absent key means "not offered"; a key's value is the raw settings object.
//
// The capabilities of a server are tools, prompts, resources, completions,
// logging, extensions, experimental; of a client elicitation, sampling, roots,
// extensions, experimental.
type Capabilities map[string]json.RawMessage

// Has reports whether a capability, or a setting within one ("resources",
// "subscribe"), is declared.
func (c Capabilities) Has(name string, settings ...string) bool {
	raw, ok := c[name]
	if !ok || string(raw) == "null" || string(raw) == "false" {
		return false
	}
	if len(settings) == 0 {
		return true
	}
	var inner Capabilities
	if json.Unmarshal(raw, &inner) != nil {
		return false
	}
	return inner.Has(settings[0], settings[1:]...)
}
