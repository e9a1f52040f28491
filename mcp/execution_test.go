package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// In 2025-11-25 a tool declares whether it becomes a task, and is called accordingly (TOOL-25-004):
// a call without a task member of a tool that requires one is refused (TASK-25-008), and so is a
// call with one of a tool that forbids it (TASK-25-006).
func TestTaskSupportOfTools(t *testing.T) {
	p := rawClient(t, taskServer())
	p.initialize(mcp.V2025_11_25, `{"elicitation":{"form":{}}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	m := p.answer(1)
	var list struct {
		Tools []struct {
			Name      string
			Execution struct{ TaskSupport string }
		}
	}
	if err := json.Unmarshal(m.Result, &list); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"optional": "optional", "required": "required", "never": ""}
	for _, tool := range list.Tools {
		support, ok := want[tool.Name]
		delete(want, tool.Name)
		if got := tool.Execution.TaskSupport; ok && got != support && !(support == "" && got == "forbidden") {
			t.Errorf("tool %s has task support %q, want %q", tool.Name, got, support)
		}
	}
	if len(want) > 0 {
		t.Errorf("no tools %v in %s", want, show(&m))
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"required"}}`)
	wantError(t, p.answer(2), jsonrpc.CodeMethodNotFound)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"never","task":{}}}`)
	wantError(t, p.answer(3), jsonrpc.CodeMethodNotFound)
}
