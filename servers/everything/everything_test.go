package everything_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type args = map[string]any

// newClient answers every question: names are Ada, the model says Paris, and there
// is one root.
func newClient() *mcp.Client {
	return &mcp.Client{
		Name: "tester", Version: "1", LogLevel: slog.LevelDebug,
		OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{}
			for name, v := range map[string]any{
				"name": "Ada", "username": "ada", "email": "ada@example.com", "confirm": true, "color": "blue", "context": "patch bays",
			} {
				if strings.Contains(string(r.Schema), `"`+name+`"`) {
					content[name] = v
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Content: []mcp.Content{mcp.Text("Paris")}, Model: "test"}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///tmp"}}, nil },
	}
}

func call(t *testing.T, s *mcp.Session, tool string, in args, opts ...mcp.CallOption) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, in, opts...)
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return ""
	}
	if res.IsError {
		t.Errorf("%s: tool error %q", tool, res.Text())
	}
	return res.Text()
}

// asks reports whether a revision has elicitation.
func asks(s *mcp.Session) bool { return s.Revision() >= mcp.V2025_06_18 }

func TestEveryRevision(t *testing.T) {
	mcptest.Every(t, everything.New, newClient, func(t *testing.T, s *mcp.Session) {
		t.Parallel() // the tools take their time
		t.Run("tools", func(t *testing.T) { testTools(t, s) })
		t.Run("content", func(t *testing.T) { testContent(t, s) })
		t.Run("notifications", func(t *testing.T) { testNotifications(t, s) })
		t.Run("questions", func(t *testing.T) { testQuestions(t, s) })
		t.Run("prompts", func(t *testing.T) { testPrompts(t, s) })
		t.Run("resources", func(t *testing.T) { testResources(t, s) })
		t.Run("changes", func(t *testing.T) { testChanges(t, s) })
	})
}

func testTools(t *testing.T, s *mcp.Session) {
	first := ""
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = tool.Name
		}
		if tool.Description == "" {
			t.Errorf("tool %q has no description", tool.Name)
		}
	}
	// Conformance, http-header-validation: the first tool works without arguments.
	if got := call(t, s, first, nil); !strings.Contains(got, `"client":"tester 1"`) || !strings.Contains(got, string(s.Revision())) {
		t.Errorf("%s says %q", first, got)
	}
	if got := call(t, s, "echo", args{"message": "hi\u2028"}); got != "hi\u2028" {
		t.Errorf("echo = %q", got)
	}
	if got := call(t, s, "add", args{"a": 1.5, "b": 2}); got != `{"sum":3.5}` {
		t.Errorf("add = %q", got)
	}
	if got := call(t, s, "route_by_header", args{"region": "Zürich ", "priority": 3}); got != `region "Zürich ", priority 3, query ""` {
		t.Errorf("route_by_header = %q", got)
	}
	if res, err := s.CallTool(t.Context(), "test_error_handling", nil); err != nil || !res.IsError || res.Text() == "" {
		t.Errorf("test_error_handling = %v, %v; want a tool error", res, err)
	}
	if got := call(t, s, "json_schema_2020_12_tool", args{"contactMethod": "phone", "phone": "1"}); !strings.HasPrefix(got, "valid") {
		t.Errorf("json_schema_2020_12_tool = %q", got)
	}
	if res, err := s.CallTool(t.Context(), "json_schema_2020_12_tool", args{"contactMethod": "phone", "email": "a"}); err != nil || !res.IsError {
		t.Errorf("json_schema_2020_12_tool without phone = %v, %v; want a tool error", res, err)
	}
}

func testContent(t *testing.T, s *mcp.Session) {
	res, err := s.CallTool(t.Context(), "test_multiple_content_types", nil)
	if err != nil || len(res.Content) != 3 {
		t.Fatalf("test_multiple_content_types = %v, %v", res, err)
	}
	img, ok := res.Content[1].(mcp.ImageContent)
	if _, err := png.Decode(bytes.NewReader(img.Data)); !ok || err != nil || img.MIMEType != "image/png" {
		t.Errorf("picture %T: %v", res.Content[1], err)
	}
	if r, ok := res.Content[2].(mcp.EmbeddedResource); !ok || r.Resource.MIMEType != "application/json" {
		t.Errorf("resource = %#v", res.Content[2])
	}
	res, err = s.CallTool(t.Context(), "test_audio_content", nil)
	if err != nil || len(res.Content) != 1 {
		t.Fatalf("test_audio_content = %v, %v", res, err)
	}
	if wav, ok := res.Content[0].(mcp.AudioContent); ok {
		if size := len(wav.Data); !bytes.HasPrefix(wav.Data, []byte("RIFF")) || size != 844 {
			t.Errorf("audio of %d bytes that begins with %q", size, wav.Data[:4])
		}
	} else if s.Revision() >= mcp.V2025_03_26 {
		t.Errorf("audio = %T", res.Content[0])
	}
	for _, tool := range []string{"test_simple_text", "test_image_content", "test_embedded_resource", "test_resource_link", "test_annotated_content"} {
		call(t, s, tool, nil)
	}
}

func testNotifications(t *testing.T, s *mcp.Session) {
	var steps []string
	progress := mcp.OnProgress(func(done, total float64, _ string) { steps = append(steps, fmt.Sprintf("%g/%g", done, total)) })
	call(t, s, "test_tool_with_progress", nil, progress)
	if got := strings.Join(steps, " "); got != "0/100 50/100 100/100" {
		t.Errorf("progress %q", got)
	}
	steps = nil
	call(t, s, "long_operation", args{"steps": 3, "seconds": 0}, progress)
	if got := strings.Join(steps, " "); got != "0/3 1/3 2/3 3/3" {
		t.Errorf("progress of long_operation %q", got)
	}
	logged := 0
	onLog := mcp.OnLog(func(mcp.LogMessage) { logged++ })
	call(t, s, "test_tool_with_logging", nil, onLog)
	call(t, s, "test_logging_tool", nil, onLog)
	if want := 3 + 8; logged != want {
		t.Errorf("%d log messages belonged to the calls, want %d", logged, want)
	}
	call(t, s, "test_reconnection", nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.CallTool(ctx, "long_operation", args{"seconds": 600}, mcp.OnProgress(func(float64, float64, string) { cancel() }))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled long_operation = %v", err)
	}
}

func testQuestions(t *testing.T, s *mcp.Session) {
	if got := call(t, s, "test_sampling", args{"prompt": "Capital of France?"}); got != "LLM response: Paris" {
		t.Errorf("test_sampling = %q", got)
	}
	if got := call(t, s, "list_roots", nil); s.Revision() >= mcp.V2024_11_05 && got != "Roots: file:///tmp" {
		t.Errorf("list_roots = %q", got)
	}
	const prefix = "test_input_required_result_"
	if !asks(s) {
		if got := call(t, s, prefix+"capabilities", nil); got != "Paris" {
			t.Errorf("capabilities without elicitation = %q", got)
		}
		if res, err := s.CallTool(t.Context(), prefix+"elicitation", nil); err != nil || !res.IsError {
			t.Errorf("elicitation before 2025-06-18 = %v, %v; want a tool error", res, err)
		}
		return
	}
	for tool, want := range map[string]string{
		prefix + "elicitation":       "Hello, Ada!",
		prefix + "tampered_state":    "Hello, Ada!",
		prefix + "capabilities":      "Hello, Ada!",
		prefix + "sampling":          "Model response: Paris",
		prefix + "list_roots":        "Roots: file:///tmp",
		prefix + "request_state":     "state-ok: true, confirmed: true",
		prefix + "multiple_inputs":   "Ada: Paris (roots: file:///tmp)",
		prefix + "multi_round":       "Ada likes blue.",
		"test_missing_capability":    "Paris",
		"test_streaming_elicitation": `Elicitation completed: action=accept, content={"email":"ada@example.com","username":"ada"}`,
	} {
		if got := call(t, s, tool, nil); got != want {
			t.Errorf("%s = %q, want %q", tool, got, want)
		}
	}
	if got := call(t, s, "test_elicitation", args{"message": "Who?"}); !strings.Contains(got, "action=accept") {
		t.Errorf("test_elicitation = %q", got)
	}
	if got := call(t, s, "lucky_number", nil); !strings.HasSuffix(got, "is yours.") {
		t.Errorf("lucky_number = %q", got)
	}
	if s.Revision() >= mcp.V2025_11_25 { // defaults, lists and pages are newer than 2025-06-18
		if got := call(t, s, "test_elicitation_sep1034_defaults", nil); got != `Elicitation completed: action=accept, content={"age":30,"name":"Ada","score":95.5,"status":"active","verified":true}` {
			t.Errorf("test_elicitation_sep1034_defaults = %q", got)
		}
		if got := call(t, s, "test_elicitation_sep1330_enums", nil); got != `Elicitation completed: action=accept, content={}` {
			t.Errorf("test_elicitation_sep1330_enums = %q", got)
		}
		if got := call(t, s, "visit_page", nil); !strings.Contains(got, "agreed") {
			t.Errorf("visit_page = %q", got)
		}
	}
}

func testPrompts(t *testing.T, s *mcp.Session) {
	for name, tt := range map[string]struct {
		in   map[string]string
		want string
	}{
		"test_simple_prompt":                 {nil, "simple prompt"},
		"test_prompt_with_arguments":         {map[string]string{"arg1": "one", "arg2": "two"}, "arg1='one', arg2='two'"},
		"test_prompt_with_embedded_resource": {map[string]string{"resourceUri": "test://x"}, "embedded resource"},
		"test_prompt_with_image":             {nil, "picture"},
	} {
		p, err := s.GetPrompt(t.Context(), name, tt.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		last, _ := p.Messages[len(p.Messages)-1].Content.(mcp.TextContent)
		if !strings.Contains(last.Text, tt.want) {
			t.Errorf("%s = %q, want %q in it", name, last.Text, tt.want)
		}
	}
	if p, err := s.GetPrompt(t.Context(), "test_input_required_result_prompt", nil); asks(s) && (err != nil || !strings.Contains(p.Messages[0].Content.(mcp.TextContent).Text, "patch bays")) {
		t.Errorf("prompt with a question = %v, %v", p, err)
	}
	c, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "test_prompt_with_arguments"}, "arg1", "pat", nil)
	if err != nil || strings.Join(c.Values, " ") != "patch pattern" {
		t.Errorf("completion = %v, %v", c, err)
	}
	c, err = s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "test://template/{id}/data"}, "id", "", nil)
	if err != nil || len(c.Values) != 100 || c.Total != 999 || !c.HasMore {
		t.Errorf("completion of id = %v, %v", c, err)
	}
}

func testResources(t *testing.T, s *mcp.Session) {
	if r, err := s.ReadResource(t.Context(), "test://static-text"); err != nil || r.Contents[0].MIMEType != "text/plain" || r.Contents[0].Text == "" {
		t.Errorf("static text = %v, %v", r, err)
	}
	if r, err := s.ReadResource(t.Context(), "test://static-binary"); err != nil || r.Contents[0].MIMEType != "image/png" || len(r.Contents[0].Blob) == 0 {
		t.Errorf("static binary = %v, %v", r, err)
	}
	const uri = "test://template/123/data"
	if r, err := s.ReadResource(t.Context(), uri); err != nil || r.Contents[0].URI != uri || r.Contents[0].Text != `{"id":"123","templateTest":true,"data":"Data for ID: 123"}` {
		t.Errorf("template = %v, %v", r, err)
	}
	_, err := s.ReadResource(t.Context(), "test://nosuch")
	var e *mcp.Error
	if !errors.As(err, &e) || e.Code != mcp.CodeResourceNotFound && e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(string(e.Data), "test://nosuch") {
		t.Errorf("unknown resource = %v", err)
	}
	noted := false
	for e, err := range s.Watch(t.Context(), "test://watched-resource") {
		if err != nil {
			t.Fatalf("Watch: %v", err)
		}
		if noted {
			if e.URI != "test://watched-resource" {
				t.Errorf("event %q of %q, want an update", e.Method, e.URI)
			}
			break
		}
		noted = true
		call(t, s, "touch_resource", args{"text": "touched"})
	}
	if r, err := s.ReadResource(t.Context(), "test://watched-resource"); err != nil || r.Contents[0].Text != "touched" {
		t.Errorf("watched resource = %v, %v", r, err)
	}
}

func testChanges(t *testing.T, s *mcp.Session) {
	for _, tt := range []struct{ tool, note string }{
		{"test_trigger_tool_change", "notifications/tools/list_changed"},
		{"test_trigger_prompt_change", "notifications/prompts/list_changed"},
		{"test_trigger_resource_change", "notifications/resources/list_changed"},
	} {
		for range 2 { // there and gone again
			noted := false
			for e, err := range s.Watch(t.Context()) {
				if err != nil {
					t.Fatalf("Watch: %v", err)
				}
				if e.Method == tt.note {
					break
				}
				if !noted {
					noted = true
					call(t, s, tt.tool, nil)
				}
			}
		}
	}
	for tool, err := range s.Tools(t.Context()) {
		if err != nil || tool.Name == "transient_tool" {
			t.Errorf("tool %v is still there, %v", tool, err)
		}
	}
}

// modern posts a request of 2026-07-28 and returns the status and the answer.
func modern(t *testing.T, url, method, name, params string) (int, answer) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},` + params + `}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("answer %q: %v", raw, err)
	}
	return res.StatusCode, a
}

type answer struct {
	Result struct {
		ResultType    string                     `json:"resultType"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
		RequestState  string                     `json:"requestState"`
		Content       []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Error *struct {
		Code int             `json:"code"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
}

// TestRounds goes through a multi-round call on the wire (2026-07-28,
// basic/patterns/mrtr; conformance input-required-result-*).
func TestRounds(t *testing.T) {
	s := httptest.NewServer(everything.New())
	defer func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	}()
	const tool = "test_input_required_result_elicitation"
	round := func(more string) answer {
		t.Helper()
		_, a := modern(t, s.URL, "tools/call", tool, `"name":"`+tool+`"`+more)
		return a
	}
	a := round("")
	if a.Result.ResultType != "input_required" || a.Result.InputRequests["user_name"] == nil || a.Result.RequestState == "" {
		t.Fatalf("round 1 = %+v", a)
	}
	state := a.Result.RequestState
	const answers = `,"inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}},"unknown":{}}`
	withState := func(s string) string { return `,"requestState":"` + s + `"` }
	if a := round(answers + withState(state)); a.Result.ResultType != "complete" || a.Result.Content[0].Text != "Hello, Ada!" {
		t.Errorf("round 2 = %+v", a)
	}
	if a := round(`,"inputResponses":{"other":{"action":"accept"}}` + withState(state)); a.Result.ResultType != "input_required" {
		t.Errorf("wrong key = %+v, want the question again", a)
	}
	for i := range state {
		if i%7 != 0 && i < len(state)-2 { // a sample of all places, and the end
			continue
		}
		swap := byte('A')
		if state[i] == 'A' {
			swap = 'B'
		}
		if a := round(answers + withState(state[:i]+string(swap)+state[i+1:])); a.Error == nil || a.Error.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("state changed at %d = %+v, want -32602", i, a)
		}
	}
	if a := round(answers + withState(state+`\n`)); a.Error == nil {
		t.Errorf("state with a line break = %+v, want an error", a)
	}
	if a := round(`,"inputResponses":{"user_name":7}` + withState(state)); a.Result.ResultType == "complete" {
		t.Errorf("answer that is no object = %+v", a)
	}
}

// TestMissingCapability expects the code that names what is missing
// (2026-07-28, MissingRequiredClientCapability; conformance server-stateless).
func TestMissingCapability(t *testing.T) {
	s := httptest.NewServer(everything.New())
	defer func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	}()
	status, a := modern(t, s.URL, "tools/call", "test_missing_capability", `"name":"test_missing_capability"`)
	if status != http.StatusBadRequest || a.Error == nil || a.Error.Code != mcp.CodeMissingCapability || string(a.Error.Data) != `{"requiredCapabilities":{"sampling":{}}}` {
		t.Errorf("status %d, %+v; want 400 with -32021", status, a.Error)
	}
}
