package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// Servers that deviate from Chat Completions are understood.
func TestOddServers(t *testing.T) {
	chunk := func(delta, finish string) string {
		return fmt.Sprintf(`{"choices":[{"delta":%s,"finish_reason":%s}]}`, delta, finish)
	}
	call := func(name, arguments string) model.Part {
		return model.Part{Call: &model.Call{Name: name, Arguments: []byte(arguments)}}
	}
	for _, tt := range []struct {
		name   string
		chunks []string
		want   []model.Part
		stop   model.Stop
	}{
		{"a call with no id, in one chunk, and the reason stop",
			[]string{chunk(`{"tool_calls":[{"index":0,"function":{"name":"add","arguments":"{\"a\":1}"}}]}`, `"stop"`)},
			[]model.Part{call("add", `{"a":1}`)}, model.StopCalls},
		{"arguments that are an object",
			[]string{chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":{"a":1}}}]}`, `"tool_calls"`)},
			[]model.Part{call("add", `{"a":1}`)}, model.StopCalls},
		{"no index",
			[]string{chunk(`{"tool_calls":[{"id":"1","function":{"name":"add","arguments":"{\"a\""}}]}`, `null`), chunk(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`, `null`), chunk(`{"tool_calls":[{"id":"2","function":{"name":"now","arguments":"{}"}}]}`, `"tool_calls"`)},
			[]model.Part{call("add", `{"a":1}`), call("now", `{}`)}, model.StopCalls},
		{"the same index for every call",
			[]string{chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"{}"}},{"index":0,"id":"2","function":{"name":"now","arguments":"{}"}}]}`, `"tool_calls"`)},
			[]model.Part{call("add", `{}`), call("now", `{}`)}, model.StopCalls},
		{"two calls with no arguments, index nor id",
			[]string{chunk(`{"tool_calls":[{"function":{"name":"now"}},{"function":{"name":"now"}}]}`, `"tool_calls"`)},
			[]model.Part{call("now", `{}`), call("now", `{}`)}, model.StopCalls},
		{"the name in every chunk",
			[]string{chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"{\"a\":"}}]}`, `null`), chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"1}"}}]}`, `"tool_calls"`)},
			[]model.Part{call("add", `{"a":1}`)}, model.StopCalls},
		{"empty choices, and a usage of null", []string{`{"choices":[],"usage":null}`, chunk(`{"content":"hi"}`, `"stop"`)}, []model.Part{{Text: "hi"}}, model.StopEnd},
		{"content in parts", []string{chunk(`{"content":[{"type":"text","text":"hi"}]}`, `"eos"`)}, []model.Part{{Text: "hi"}}, model.StopEnd},
		{"no reason at the end", []string{chunk(`{"content":"hi"}`, `null`)}, []model.Part{{Text: "hi"}}, model.StopEnd},
		{"a call cut off by the bound of tokens",
			[]string{chunk(`{"content":"hi","tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"{\"a\""}}]}`, `"length"`)},
			[]model.Part{{Text: "hi"}}, model.StopLength},
		{"arguments that are no JSON",
			[]string{chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"{a: 1}"}}]}`, `"tool_calls"`)},
			[]model.Part{call("add", `"{a: 1}"`)}, model.StopCalls},
		{"a thought in the text", []string{chunk(`{"content":"<think>Shall I?</th"}`, `null`), chunk(`{"content":"ink>\n\nhi"}`, `"stop"`)},
			[]model.Part{{Opaque: &model.Opaque{Provider: "think", Text: "Shall I?"}}, {Text: "hi"}}, model.StopEnd},
		{"a thought with no end", []string{chunk(`{"content":"<think>Shall I?"}`, `"length"`)},
			[]model.Part{{Opaque: &model.Opaque{Provider: "think", Text: "Shall I?"}}}, model.StopLength},
		{"a refusal", []string{chunk(`{"refusal":"No."}`, `"stop"`)}, []model.Part{{Text: "No."}}, model.StopRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, c := range append(tt.chunks, "[DONE]") {
					fmt.Fprintf(w, "data: %s\n\n", c)
				}
			}))
			defer s.Close()
			check(t, s.URL, tt.want, tt.stop)
		})
	}
}

// An answer that is not streamed, though it should be, is an answer.
func TestNotStreamed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices": [{"message": {"role": "assistant",
			"content": "hi", "tool_calls": [{"id": "1", "function": {"name": "now", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]}`)
	}))
	defer s.Close()
	check(t, s.URL, []model.Part{{Text: "hi"}, {Call: &model.Call{Name: "now", Arguments: []byte("{}")}}}, model.StopCalls)
}

func check(t *testing.T, url string, want []model.Part, stop model.Stop) {
	t.Helper()
	m, err := provider.Open("openai/x", provider.Options{BaseURL: url, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	var shown seen
	resp, err := m.Generate(t.Context(), hello, shown.emit)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for i, c := range resp.Message.Calls() {
		if c.ID == "" || ids[c.ID] || shown.calls[i].ID != c.ID {
			t.Errorf("call %d has the id %q, emitted was %q", i, c.ID, shown.calls[i].ID)
		}
		ids[c.ID] = true
		c.ID = ""
	}
	if diff := cmp.Diff(want, resp.Message.Parts); diff != "" || resp.Stop != stop {
		t.Errorf("parts (-want +got):\n%s; stop %q, want %q", diff, resp.Stop, stop)
	}
}

// Thoughts that came as a member of their own go back with the calls that they led to, in every later
// request. A server that sends the same thought in two members gets the first one.
func TestReasoningContent(t *testing.T) {
	m, sent := answering(t, "openai/x", "text/event-stream", `data: {"choices":[{"delta":{"reasoning":"hmm","reasoning_content":"hmm"}}]}`+"\n\n"+
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	var shown seen
	resp, err := m.Generate(t.Context(), hello, shown.emit)
	if err != nil || shown.thinking.String() != "hmm" || resp.Message.Parts[0].Opaque.Text != "hmm" {
		t.Fatalf("Generate = %+v, %v; thoughts shown: %q", resp, err, &shown.thinking)
	}
	*sent = nil
	result, word := afterwards(t, m, sent)
	const want = `"role":"assistant","reasoning_content":"hmm"}`
	for after, got := range map[string]string{"the result": result, "another word of the user": word} {
		if !strings.Contains(got, want) || strings.Contains(got, `"reasoning":`) {
			t.Errorf("after %s was sent %s\nwant %s and no other thought", after, got, want)
		}
	}
}
