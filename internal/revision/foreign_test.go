package revision_test

import (
	"encoding/json"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// T-60 to T-81: the conversion of incomplete input is JSON.
func TestIncompleteInputStaysJSON(t *testing.T) {
	for _, rev := range revision.All {
		for method, inputs := range map[string][]string{
			revision.MethodCall: {
				`{"content":[{"type":"audio"}]}`, `{"content":[{"type":"audio","data":"AA=="}]}`,
				`{"content":[{"type":"resource"}]}`, `{"content":[{"type":"resource_link"}]}`,
				`{"content":[{}, 5, "x", null]}`, `{"content":"x","structuredContent":1}`, `{"structuredContent":[1]}`,
			},
			revision.MethodPrompt: {`{"messages":[{"role":"user"},{"role":"user","content":{"type":"audio"}}]}`, `{"messages":{}}`},
			revision.MethodTools:  {`{"tools":[{"title":1},{"annotations":5,"title":"x"},{"outputSchema":null}]}`, `{}`},
			revision.MethodRead:   {`{"contents":[{}]}`},
		} {
			for _, in := range inputs {
				if out := rev.Result(method, json.RawMessage(in), revision.Unknown); !json.Valid(out) {
					t.Errorf("%s: result of %s %s became %s", rev.Name, method, in, out)
				}
			}
		}
		for method, inputs := range map[string][]string{
			revision.MethodSample: {
				`{"messages":[{"role":"user"}]}`, `{"messages":[{"role":"user","content":[]}]}`,
				`{"messages":[{"role":"user","content":["x"]}]}`, `{"messages":5}`, `{"tools":[]}`,
			},
			revision.MethodElicit: {
				`{"requestedSchema":{"properties":{"a":{"type":"string","oneOf":[{"const":"x"},{"title":"y"},{},5]}}}}`,
				`{"requestedSchema":{"properties":{"a":5}}}`, `{"requestedSchema":5}`, `{}`,
			},
		} {
			for _, in := range inputs {
				if out, err := rev.Question(method, json.RawMessage(in)); err == nil && !json.Valid(out) {
					t.Errorf("%s: params of %s %s became %s", rev.Name, method, in, out)
				}
			}
		}
	}
}
