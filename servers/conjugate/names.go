package conjugate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// exactNames is a middleware that replaces arguments of the tool and the prompt by the value of the
// table that they name in other letters (see [folded]). It leaves other arguments to the schema,
// whose error names the values.
func exactNames(next mcp.Handler) mcp.Handler {
	values := map[string][]string{"verb": verbName("").Enum(), "tense": tense("").Enum(), "person": person("").Enum()}
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "tools/call" && req.Method != "prompts/get" {
			return next.Handle(ctx, req)
		}
		var params, args map[string]json.RawMessage
		if json.Unmarshal(req.Params, &params) != nil || json.Unmarshal(params["arguments"], &args) != nil {
			return next.Handle(ctx, req) // which refuses it
		}
		changed := false
		for name, list := range values {
			var text string
			if json.Unmarshal(args[name], &text) != nil || slices.Contains(list, text) {
				continue
			}
			if i := slices.IndexFunc(list, func(v string) bool { return folded(v) == folded(text) }); i >= 0 {
				args[name], _ = json.Marshal(list[i]) // a string cannot fail
				changed = true
			}
		}
		if !changed {
			return next.Handle(ctx, req)
		}
		var err error
		if params["arguments"], err = json.Marshal(args); err != nil {
			return nil, err
		}
		all, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		return next.Handle(ctx, &mcp.Request{Method: req.Method, Params: all})
	})
}

// folded returns a name in lower case, with one space for each run of white space and underscores.
func folded(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(name, "_", " "))), " ")
}
