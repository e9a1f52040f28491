package inspector

import (
	"encoding/json"
	"errors"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/schema"
	"github.com/patchbay-dev/patchbay/trace"
)

const maxLists = 50 // answers to tools/list in which the tool of a call is sought

// lists returns the answers to tools/list that a server gave before a call of its tools, the newest first; server is the
// row of the call at the hop of the server. The caller holds mu.
func (f *Frames) lists(server *kept) (answers []*trace.Frame) {
	for n, looked := server.n-1, 0; n >= f.first && looked < maxSearch && len(answers) < maxLists; n, looked = n-1, looked+1 {
		at := f.at(n)
		if at == nil || at.r == nil || at.r.method != revision.MethodTools || at.r.conn.server != server.r.conn.server {
			continue
		}
		if answer := f.at(at.r.answer); at.r.answer != 0 && answer != nil {
			answers = append(answers, answer.packed.frame())
		}
	}
	return answers
}

// outputSchema returns the output schema of a tool in the first of lists that has the tool; nil: none.
func outputSchema(lists []*trace.Frame, tool string) json.RawMessage {
	for _, frame := range lists {
		list, _ := jsonx.LookupPath(frame.Msg, "result", "tools")
		var tools []struct {
			Name         string          `json:"name"`
			OutputSchema json.RawMessage `json:"outputSchema"`
		}
		if json.Unmarshal(list, &tools) != nil {
			continue
		}
		for _, t := range tools {
			if t.Name == tool {
				return t.OutputSchema
			}
		}
	}
	return nil
}

// checkOutput checks the structured content of the answer to a call against the output schema of its tool.
func (f *Frames) checkOutput(sides []side, frames []numbered, call *snapshot, of json.RawMessage) {
	answer := call.reply
	if answer == nil || of == nil || len(answer.Msg) > maxShown {
		return
	}
	result, _ := jsonx.LookupPath(f.Redactor.Frame(*answer).Msg, "result")
	failed, _ := jsonx.LookupPath(result, "isError")
	kind, _ := jsonx.LookupPath(result, "resultType")
	if result == nil || string(failed) == "true" || kind != nil && string(kind) != `"complete"` {
		return
	}
	for i := range sides {
		if frames[i].n == call.answer {
			var faults []string
			if value, ok := jsonx.LookupPath(result, "structuredContent"); !ok {
				faults = []string{"is missing, and the tool has an output schema"}
			} else {
				faults = outputFaults(of, value)
			}
			sides[i].Fits = faults == nil
			for _, fault := range faults {
				sides[i].Faults = append(sides[i].Faults, shown("result.structuredContent "+fault))
			}
		}
	}
}

// outputFaults returns what a schema says against a value.
func outputFaults(of, value json.RawMessage) (faults []string) {
	v, err := schema.Compile(of)
	if err != nil {
		return []string{"cannot be checked, as the output schema of the tool cannot be used: " + err.Error()}
	}
	var invalid *schema.ValidationError
	switch err := v.Validate(value); {
	case errors.As(err, &invalid):
		for _, fault := range invalid.Faults {
			faults = append(faults, "does not fit the output schema of the tool: "+fault.Pointer+" "+fault.Problem)
		}
	case err != nil:
		faults = []string{err.Error()}
	}
	return faults
}
