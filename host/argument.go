package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// arguments turns what a model wrote into arguments that can be sent: a JSON object on one line
// that fits the tool's input schema. A null for a property that cannot be null counts as absent and
// is not sent. If the arguments do not fit, wrong tells the model what is wrong and what is
// expected.
func (h *Host) arguments(t *mcp.Tool, written json.RawMessage) (args json.RawMessage, wrong string) {
	args = repaired(written)
	if err := jsonx.Valid(args, jsonx.DefaultDepth); err != nil {
		return nil, fmt.Sprintf("The arguments are not JSON: %s. Nothing was called; call it again with a JSON object.", clip(err.Error()))
	}
	if jsonx.KindOf(args) != '{' {
		return nil, "The arguments must be a JSON object. Nothing was called." + expected(t.InputSchema, nil)
	}
	args = jsonx.Compact(nil, args)
	if len(t.InputSchema) == 0 {
		return args, ""
	}
	check, err := h.schemas.of(t.InputSchema)
	if err != nil {
		h.log().Warn("input schema not enforced", "tool", clip(t.Name), "err", err)
		return args, ""
	}
	fit, err := check.Fit(args)
	if err == nil {
		return fit, ""
	}
	var bad *schema.ValidationError
	text := "The arguments do not fit the tool. Nothing was called; correct this and call it again:"
	if !errors.As(err, &bad) {
		return nil, text + "\n- " + clip(err.Error())
	}
	for _, f := range bad.Faults {
		text += "\n- " + clip(f.String())
	}
	if bad.More > 0 {
		text += fmt.Sprintf("\n- and %d more", bad.More)
	}
	return nil, text + expected(t.InputSchema, bad.Faults)
}

// repaired undoes common mistakes of models where the meaning is clear: nothing, null and "" mean
// no arguments, and a string that holds an object means that object.
func repaired(written json.RawMessage) json.RawMessage {
	args := json.RawMessage(bytes.TrimSpace(written))
	if text, err := jsonx.Unquote(args); err == nil && jsonx.KindOf(args) == '"' {
		inner := bytes.TrimSpace([]byte(text))
		if len(inner) == 0 || jsonx.KindOf(inner) == '{' && jsonx.Valid(inner, jsonx.DefaultDepth) == nil {
			args = inner
		}
	}
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage(`{}`)
	}
	return args
}

// These constants bound the part of a schema that accompanies a fault.
const (
	maxWhole = 2000 // bytes of a schema that is shown whole
	maxShown = 500  // bytes of each part of a longer schema
	maxParts = 5
)

// expected returns text that shows the model the schema, or the parts of it that the faults
// concern.
func expected(whole json.RawMessage, faults []schema.Fault) string {
	if len(whole) == 0 {
		return ""
	}
	compact := jsonx.Compact(nil, whole)
	if len(compact) <= maxWhole {
		return "\nThe schema of the arguments: " + string(compact)
	}
	var b strings.Builder
	shown := map[string]bool{}
	for _, f := range faults {
		at, part := schemaAt(whole, f.Path)
		if len(shown) == maxParts || shown[at] || at == "" {
			continue
		}
		shown[at] = true
		fmt.Fprintf(&b, "\nThe schema of %s: %s", at, text.Clip(jsonx.Compact(nil, part), maxShown))
	}
	return b.String()
}

// misfit returns an error if a result does not fit the output schema of its tool (2026-07-28,
// server/tools, Output Schema).
func (h *Host) misfit(t *mcp.Tool, res *mcp.ToolResult) error {
	if len(t.OutputSchema) == 0 || res.IsError {
		return nil
	}
	check, err := h.schemas.of(t.OutputSchema)
	switch {
	case err != nil:
		h.log().Warn("output schema not enforced", "tool", clip(t.Name), "err", err)
		return nil
	case res.Structured == nil:
		err = errors.New("the result has no structured content, though the tool has an output schema")
	default:
		if err = check.Validate(res.Structured); err == nil {
			return nil
		}
		err = fmt.Errorf("the structured result does not fit the tool's output schema: %w", err)
	}
	return fmt.Errorf("call %q: %w", t.Name, err)
}

// schemaAt follows the path of a fault into a schema, through properties, items and local
// references. It returns the path as far as it could be followed.
func schemaAt(whole json.RawMessage, path string) (at string, part json.RawMessage) {
	part = whole
	rest := path
	for rest != "" {
		name, index, after, ok := pathStep(rest)
		if !ok {
			break
		}
		here := resolved(whole, part)
		next, found := jsonx.LookupPath(here, "properties", name)
		if index {
			next, found = jsonx.Lookup(here, "items")
		}
		if !found {
			break
		}
		rest, part = after, next
	}
	return strings.TrimSuffix(path[:len(path)-len(rest)], "."), part
}

// pathStep splits off the first step of the path of a fault: a, [2] or ["odd name"].
func pathStep(path string) (name string, index bool, rest string, ok bool) {
	if path[0] != '[' {
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return path, false, "", true
		}
		return path[:end], false, strings.TrimPrefix(path[end:], "."), true
	}
	if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
		name, _ = strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(path[1+len(quoted):], "]")
		return name, false, strings.TrimPrefix(rest, "."), ok // a quoted name that was cut is not found
	}
	_, rest, ok = strings.Cut(path, "]")
	return "", true, strings.TrimPrefix(rest, "."), ok
}

// resolved follows references within the schema, at most 8 of them.
func resolved(whole, part json.RawMessage) json.RawMessage {
	for range 8 {
		raw, _ := jsonx.Lookup(part, "$ref")
		ref, err := jsonx.Unquote(raw)
		pointer, local := strings.CutPrefix(ref, "#/")
		if err != nil || !local {
			return part
		}
		names := strings.Split(pointer, "/")
		for i, n := range names {
			names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(n)
		}
		next, ok := jsonx.LookupPath(whole, names...)
		if !ok {
			return part
		}
		part = next
	}
	return part
}

// schemas caches compiled schemas of tools. The zero value is empty. It may be used by several
// goroutines at once.
type schemas struct {
	mu    sync.Mutex
	bytes int // of the schemas; guarded by mu
	known map[[sha256.Size]byte]func() (*schema.Validator, error)
}

// maxSchemas bounds the source text of the cached schemas, in bytes. A schema that exceeds it
// empties the cache.
const maxSchemas = 16 << 20

func (s *schemas) of(raw json.RawMessage) (*schema.Validator, error) {
	key := sha256.Sum256(raw)
	s.mu.Lock()
	compile := s.known[key]
	if compile == nil {
		if s.bytes += len(raw); s.known == nil || s.bytes > maxSchemas {
			s.bytes, s.known = len(raw), map[[sha256.Size]byte]func() (*schema.Validator, error){}
		}
		compile = sync.OnceValues(func() (*schema.Validator, error) { return schema.Compile(raw) })
		s.known[key] = compile
	}
	s.mu.Unlock()
	return compile()
}
