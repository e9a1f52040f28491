package complete

import (
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Result is the result of completion/complete.
type Result struct {
	Completion struct {
		Values  []string `json:"values"`
		Total   int      `json:"total"`
		HasMore bool     `json:"hasMore"`
	} `json:"completion"`
}

// Params returns the params of completion/complete. The argument of names a prompt, or a resource
// template if [IsTemplate]. Others holds the arguments that are filled in already.
func Params(of, argument, prefix string, others map[string]string) json.RawMessage {
	ref := map[string]string{"type": "ref/prompt", "name": of}
	if IsTemplate(of) {
		ref = map[string]string{"type": "ref/resource", "uri": of}
	}
	params := map[string]any{"ref": ref, "argument": map[string]string{"name": argument, "value": prefix}}
	if len(others) > 0 {
		params["context"] = map[string]any{"arguments": others}
	}
	raw, err := jsonx.Marshal(params)
	if err != nil { // a text that is not UTF-8
		return json.RawMessage(`{}`)
	}
	return raw
}

// IsTemplate reports whether a name reads like a URI template.
func IsTemplate(name string) bool {
	return strings.Contains(name, "://") || strings.Contains(name, "{")
}
