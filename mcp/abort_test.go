package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/mcp"
)

// halfway is a node that dies while it answers a request that it was sent.
type halfway struct{}

func (halfway) NodeName() string { return "one" }

func (halfway) SendTo(_ string, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: half\n\n") // the client sees what arrives
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// An answer that another node has begun and not finished ends with a connection that breaks, and is not a panic to the user.
func TestAnswerOfANodeThatDies(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1", OnPanic: func(_ context.Context, v any, _ []byte) { t.Errorf("panic: %v", v) }}
	mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) { return "", nil })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(node.With(r.Context(), halfway{})))
	}))
	defer web.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"two;x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tasks/get"}, "Mcp-Name": {"two;x"}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err == nil || string(got) != "data: half\n\n" {
		t.Errorf("the answer is %q and ends with %v, want a connection that breaks", got, err)
	}
}
