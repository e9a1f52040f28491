package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/schema"
)

// maxOutputs bounds, in bytes, the output schemas that a session keeps. Results of further tools
// are not checked.
const maxOutputs = 16 << 20

// outputs are the output schemas of a server's tools that were listed. A schema is compiled when
// the first result arrives. The zero value is empty.
type outputs struct {
	mu    sync.Mutex
	bytes int                    // guarded by mu
	tools map[string]*toolOutput // guarded by mu
}

type toolOutput struct {
	raw     json.RawMessage
	compile func() *schema.Validator // once; nil if the schema cannot be enforced
}

// learnOutput keeps the output schema of a listed tool.
func (s *Session) learnOutput(t *Tool) {
	o := &s.outputs
	o.mu.Lock()
	defer o.mu.Unlock()
	if old := o.tools[t.Name]; old != nil {
		if string(old.raw) == string(t.OutputSchema) {
			return // keeps a compiled schema
		}
		o.bytes -= len(t.Name) + len(old.raw)
		delete(o.tools, t.Name)
	}
	if len(t.OutputSchema) == 0 || s.remote.Rev.Lacks&revision.Structured != 0 {
		return
	}
	raw := append(json.RawMessage(nil), t.OutputSchema...)
	if o.bytes+len(t.Name)+len(raw) > maxOutputs {
		s.log.Warn("output schema not kept, there are too many", "tool", text.Short(t.Name))
		return
	}
	if o.tools == nil {
		o.tools = map[string]*toolOutput{}
	}
	o.bytes += len(t.Name) + len(raw)
	name := t.Name
	o.tools[name] = &toolOutput{raw, sync.OnceValue(func() *schema.Validator {
		v, err := schema.Compile(raw)
		if err != nil {
			s.log.Warn("output schema not enforced", "tool", text.Short(name), "err", err)
			return nil
		}
		return v
	})}
}

// forget drops everything, after the server announced a change of its tools.
func (o *outputs) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes, o.tools = 0, nil
}

// check compares the structured result of a tool with its output schema, if one is known
// (2026-07-28, server/tools, Output Schema).
func (o *outputs) check(name string, res *ToolResult) error {
	o.mu.Lock()
	t := o.tools[name]
	o.mu.Unlock()
	if t == nil || res.IsError {
		return nil
	}
	v := t.compile()
	switch {
	case v == nil:
		return nil
	case res.Structured == nil:
		return errors.New("the result has no structured content, though the tool has an output schema")
	}
	if err := v.Validate(res.Structured); err != nil {
		return fmt.Errorf("the structured result does not fit the tool's output schema: %w", err)
	}
	return nil
}
