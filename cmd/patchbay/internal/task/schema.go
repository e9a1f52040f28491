package task

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// Schema reads the value of --output-schema: a JSON Schema, or the name of a file with one. Nil: there is none.
func Schema(value string) (json.RawMessage, error) {
	text := []byte(strings.TrimSpace(value))
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] != '{' {
		var err error
		if text, err = arguments.ReadFile(strings.TrimPrefix(value, "@")); err != nil {
			return nil, advice.Usagef("--output-schema: %w", err)
		}
	}
	text = bytes.TrimSpace(text)
	if err := jsonx.Valid(text, 0); err != nil {
		return nil, advice.Usagef("--output-schema is not JSON: %v", err)
	}
	if _, err := schema.Compile(text); err != nil {
		return nil, advice.Usagef("--output-schema: %w", err)
	}
	return text, nil
}
