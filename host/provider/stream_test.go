package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// answering opens a model at a server that gives every request the same answer, and returns the bodies
// that were sent.
func answering(t *testing.T, name, contentType, answer string) (model.Model, *[]string) {
	t.Helper()
	sent := new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the request: %v", err)
		}
		*sent = append(*sent, string(body))
		w.Header()["Content-Type"] = []string{contentType}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	m, err := provider.Open(name, provider.Options{BaseURL: s.URL, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	return m, sent
}

// Streams are read by the rules of server-sent events (WHATWG HTML, section 9.2), and by the
// habits of servers.
func TestStreams(t *testing.T) {
	const hi, end = `{"choices":[{"delta":{"content":"hi"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for name, tt := range map[string]struct {
		stream string
		kind   model.Kind // of the error; empty: none
		says   string     // in the error
	}{
		"as OpenAI sends it":       {stream: "data: " + hi + "\n\ndata: " + end + "\n\ndata: [DONE]\n\n"},
		"CRLF, and no spaces":      {stream: "data:" + hi + "\r\n\r\ndata:" + end + "\r\n\r\ndata:[DONE]\r\n\r\n"},
		"comments, ids, retries":   {stream: ": OPENROUTER PROCESSING\n\nid: 1\nretry: 5\ndata: " + hi + "\n\n\n\n: x\ndata: " + end + "\n\n"},
		"data in lines":            {stream: "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"},
		"no empty line at the end": {stream: "data: " + hi + "\n\ndata: [DONE]"},
		"nothing after the reason": {stream: "data: " + hi + "\n\ndata: " + end},
		"an event with a name":     {stream: "event: chunk\ndata: " + hi + "\n\ndata: [DONE]\n\n"},
		"an error of null":         {stream: "data: {\"error\":null," + hi[1:] + "\n\ndata: [DONE]\n\n"},
		"members of other types":   {stream: `data: {"model":7,"usage":"none","choices":[{"index":"0","finish_reason":false,"delta":{"content":"hi","role":1,"refusal":[],"tool_calls":{}}}]}` + "\n\ndata: [DONE]\n\n"},
		"data after the end":       {stream: "data: " + hi + "\n\ndata: [DONE]\n\ndata: {garbage\n\n"},

		"an error":             {stream: "data: " + hi + "\n\ndata: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n", kind: model.Overloaded, says: "busy"},
		"an error by its name": {stream: "data: " + hi + "\n\nevent: error\ndata: {\"message\":\"too busy\",\"type\":\"overloaded_error\"}\n\n", kind: model.Overloaded, says: "too busy"},
		"an error of text":     {stream: "data: " + hi + "\n\ndata: {\"error\":\"out of memory\"}\n\n", kind: model.Unavailable, says: "out of memory"},
		"half of an event":     {stream: "data: " + hi + "\n\ndata: {\"choices\":[{\"del", kind: model.Unavailable, says: "broke off"},
		"no end":               {stream: "data: " + hi + "\n\n", kind: model.Unavailable, says: "broke off"},
		"garbage":              {stream: "data: " + hi + "\n\ndata: {\"choices\":[{\"del\n\n", kind: model.Unavailable, says: "not JSON"},
		"garbage alone":        {stream: "data: {\"choices\":[{\"del\n\n", kind: model.Malformed, says: "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := answering(t, "openai/x", "text/event-stream", tt.stream)
			resp, err := m.Generate(t.Context(), hello, nil)
			text := "hi"
			if !strings.Contains(tt.stream, hi[1:]) && tt.kind == model.Malformed {
				text = ""
			}
			if resp == nil || resp.Message.Text() != text {
				t.Errorf("Generate = %+v, %v; want the text %q", resp, err, text)
			}
			var e *model.Error
			switch {
			case tt.kind == "" && err != nil:
				t.Errorf("Generate = %v, want no error", err)
			case tt.kind != "" && (!errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("Generate = %v, want an error of kind %q with %q", err, tt.kind, tt.says)
			}
		})
	}
}

// A server that never marks the end of its answers is recognised at the second one. An answer without a
// mark has broken off if the server has marked another one, or if a call in it is not complete.
func TestNoEnd(t *testing.T) {
	const hi = `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n\n"
	const end = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	call := func(arguments string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"add","arguments":"` + arguments + `"}}]}}]}` + "\n\n"
	}
	for about, tt := range map[string]struct {
		answers []string
		ok      []bool
	}{
		"never a mark":         {[]string{hi, hi, hi + call("{}"), hi}, []bool{false, true, true, true}},
		"a mark before":        {[]string{hi + end, hi, hi, hi + end, hi}, []bool{true, false, false, true, false}},
		"a mark in between":    {[]string{hi, hi, hi + end, hi}, []bool{false, true, true, false}},
		"nothing in it":        {[]string{"", "", hi, ""}, []bool{false, false, true, false}},
		"half of a call in it": {[]string{hi, hi + call("{"), hi, hi + call(`{\"a\":`)}, []bool{false, false, true, false}},
	} {
		n := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, tt.answers[n])
			n++
		}))
		defer s.Close()
		m, err := provider.Open("openai/x", provider.Options{BaseURL: s.URL, Env: noEnv, Retry: once, Info: withWindow})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range tt.ok {
			resp, err := m.Generate(t.Context(), hello, nil)
			if (err == nil) != want {
				t.Errorf("%s: answer %d: Generate = %+v, %v; want success: %v", about, i+1, resp, err, want)
			}
		}
	}
}

// A server that answers in one piece, though a stream was asked for, is understood on every API.
func TestWholeAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"openai/x": `{"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "hi",
			"tool_calls": [{"id": "1", "function": {"name": "add", "arguments": "{\"a\":1}"}}]}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}`,
		"openai-responses/x": `{"object": "response", "status": "completed", "error": null, "output": [
			{"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
			{"type": "function_call", "call_id": "1", "name": "add", "arguments": {"a":1}}], "usage": {"input_tokens": 3, "output_tokens": 2}}`,
		"anthropic/x": `{"type": "message", "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "1", "name": "add", "input": {"a":1}}],
			"stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}}`,
	} {
		m, _ := answering(t, name, "application/json", answer)
		var shown seen
		resp, err := m.Generate(t.Context(), hello, shown.emit)
		if err != nil || resp.Message.Text() != "hi" || shown.text.String() != "hi" || resp.Stop != model.StopCalls || resp.Usage != (model.Usage{Input: 3, Output: 2}) {
			t.Errorf("%s: Generate = %+v, %v; shown: %q", name, resp, err, &shown.text)
			continue
		}
		if calls := resp.Message.Calls(); len(calls) != 1 || calls[0].ID != "1" || calls[0].Name != "add" || string(calls[0].Arguments) != `{"a":1}` {
			t.Errorf("%s: the calls are %+v", name, calls)
		}
		for body, want := range map[string]string{`{"hello": "world"}`: "is the base URL right", `{"error": {"message": "no such luck"}}`: "no such luck", `{"choices": `: "not JSON"} {
			m, _ := answering(t, name, "application/json", body)
			if _, err := m.Generate(t.Context(), hello, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the answer %s is the error %v, want %q", name, body, err, want)
			}
		}
	}
}

// afterwards returns what is sent after an answer with a call: with its result, then with another word
// of the user. In between the answer is stored.
func afterwards(t *testing.T, m model.Model, sent *[]string) (result, word string) {
	t.Helper()
	resp, err := m.Generate(t.Context(), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(resp.Message)
	if err != nil {
		t.Fatal(err)
	}
	var said model.Message
	if err := json.Unmarshal(stored, &said); err != nil {
		t.Fatal(err)
	}
	messages := append(hello.Messages[:1:1], said)
	for _, c := range said.Calls() {
		messages = append(messages, model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: c.ID, Name: c.Name}}}})
	}
	for range 2 {
		if _, err := m.Generate(t.Context(), &model.Request{Messages: messages, Tools: tools}, nil); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, model.UserText("And now?"))
	}
	return (*sent)[1], (*sent)[2]
}

// Signatures of thoughts and of calls go back to the server that they came from, as they came: Gemini
// refuses a call without its own, OpenRouter passes them to others.
func TestSignatures(t *testing.T) {
	const details = `{"choices":[{"delta":{"reasoning":"Sh","reasoning_details":[{"type":"reasoning.text","text":"Sh","format":"f","index":0,"signature":null}]}}]}`
	const more = `{"choices":[{"delta":{"reasoning":"all","reasoning_details":[{"type":"reasoning.text","text":"all","index":0,"signature":"s=="},{"type":"reasoning.encrypted","data":"e==","index":1}]}}]}`
	const calls = `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"},"extra_content":{"google":{"thought_signature":"g=="}}},{"index":1,"id":"c:2","function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	m, sent := answering(t, "openai/x", "text/event-stream", "data: "+details+"\n\ndata: "+more+"\n\ndata: "+calls+"\n\n")
	result, word := afterwards(t, m, sent)
	const signed = `"type":"function","extra_content":{"google":{"thought_signature":"g=="}}},{"id"`
	const thoughts = `"reasoning":"Shall","reasoning_details":[{"format":"f","index":0,"signature":"s==","text":"Shall","type":"reasoning.text"},{"data":"e==","index":1,"type":"reasoning.encrypted"}]`
	for after, got := range map[string]string{"the calls": result, "another word of the user": word} {
		if !strings.Contains(got, signed) || !strings.Contains(got, thoughts) {
			t.Errorf("after %s was sent %s\nwant %s\nand %s", after, got, signed, thoughts)
		}
	}
}

// Members of a message and of its calls that the API does not have go back to the server that sent
// them, whatever they are, with the call that they belong to; and to no other server. Plain thoughts
// go back only with calls.
func TestUnknownMembers(t *testing.T) {
	stream := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	for _, tt := range []struct {
		name, answer string
		want         []string
	}{
		{"openai/x", stream(`{"choices":[{"delta":{"role":"assistant","content":null,"state":"a","of_today":{"a":1},"none":null,"annotations":[1]}}]}`,
			`{"choices":[{"delta":{"state":"b","of_today":{"b":[1.50]}}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"},"signature":"s=="},{"index":1,"id":"c2","function":{"name":"fail","arguments":"{}"},"signature":"t=="}]},"finish_reason":"tool_calls"}]}`),
			[]string{`"name":"add"},"type":"function","signature":"s=="},{"id":"c2","function":{"arguments":"{}","name":"fail"},"type":"function","signature":"t=="}],"role":"assistant","of_today":{"b":[1.50]},"state":"ab"}`}},
		{"openai/x", `{"choices":[{"message":{"role":"assistant","content":"hi","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}],"tool_calls":null},"finish_reason":"stop"}]}`,
			[]string{`{"content":"hi","role":"assistant","reasoning_details":[{"text":"hm","type":"reasoning.text"}]}`}},
		{"openai/x", stream(`{"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"Sh","signature":null}],"token_id":7,"provider_specific_fields":{"x":1}}}]}`,
			`{"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"all","signature":""}]}}]}`, `{"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"","signature":"s=="}]}}]}`,
			`{"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":"t=="},{"type":"redacted_thinking","data":"e=="}]}}]}`,
			`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`),
			[]string{`{"content":"hi","role":"assistant","thinking_blocks":[{"signature":"s==","thinking":"Shall","type":"thinking"},{"signature":"t==","thinking":"Hm","type":"thinking"},{"data":"e==","type":"redacted_thinking"}]}`}},
		{"openai-responses/x", `{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"add","arguments":"{}","status":"completed","signature":"s=="}]}`,
			[]string{`"name":"add","type":"function_call","signature":"s=="}`}},
		{"anthropic/x", `{"type":"message","content":[{"type":"tool_use","id":"c1","name":"add","input":{},"signature":"s==","caller":{"type":"direct"}}],"stop_reason":"tool_use"}`,
			[]string{`"name":"add","type":"tool_use","caller":{"type":"direct"},"signature":"s=="}`}},
	} {
		kind := "application/json"
		if strings.HasPrefix(tt.answer, "data") {
			kind = "text/event-stream"
		}
		m, sent := answering(t, tt.name, kind, tt.answer)
		result, word := afterwards(t, m, sent)
		for _, want := range tt.want {
			if !strings.Contains(result, want) || !strings.Contains(word, want) {
				t.Errorf("%s: was sent %s\nthen %s\nwant %s", tt.name, result, word, want)
			}
		}
		resp, err := m.Generate(t.Context(), hello, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, sent := answering(t, tt.name, kind, tt.answer)
		_, _ = other.Generate(t.Context(), &model.Request{Messages: append(hello.Messages[:1:1], resp.Message, model.UserText("Go on."))}, nil)
		for _, not := range []string{"signature", "state", "of_today", "caller", "reasoning", "thinking"} {
			if strings.Contains((*sent)[0], `"`+not) {
				t.Errorf("%s: another server was sent %s", tt.name, (*sent)[0])
			}
		}
	}
}

// OpenAI's own server has nothing to send back, and refuses members that it does not know.
func TestUnknownMembersOfOpenAI(t *testing.T) {
	m, err := provider.Open("openai/gpt-5-mini", provider.Options{Key: "k", Env: noEnv, Retry: once, HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(
			`{"choices":[{"message":{"content":"hi","new":1,"tool_calls":[{"id":"1","new":1,"function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := m.Generate(t.Context(), hello, nil)
	if err != nil || len(resp.Message.Parts) != 2 || resp.Message.Calls()[0].Opaque != nil {
		t.Errorf("Generate = %+v, %v; want a text and a call without more", resp, err)
	}
}

// A thought of Anthropic goes back with every member that it came with.
func TestThoughtMembers(t *testing.T) {
	var stream strings.Builder
	for _, event := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","of_tomorrow":{"a":[1.50]}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Shall"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"e=="}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"add","input":{}}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
		`{"type":"message_stop"}`,
	} {
		fmt.Fprintf(&stream, "data: %s\n\n", event) // some servers send no names of events
	}
	m, sent := answering(t, "anthropic/x", "text/event-stream", stream.String())
	result, word := afterwards(t, m, sent)
	const want = `{"of_tomorrow":{"a":[1.50]},"signature":"s==","thinking":"Shall","type":"thinking"},{"data":"e==","type":"redacted_thinking"},{"id":"c1"`
	if !strings.Contains(result, want) || !strings.Contains(word, want) {
		t.Errorf("was sent %s\nthen %s\nwant %s", result, word, want)
	}
}

// An answer in which the server pauses (pause_turn) is sent back as it is, with the calls of the server's
// own tools and their results, and goes on. It is one answer to the caller.
func TestPauseTurn(t *testing.T) {
	events := func(stop string, blocks ...string) string {
		var b strings.Builder
		add := func(format string, args ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", args...) }
		add(`{"type":"message_start","message":{"usage":{"input_tokens":10}}}`)
		for _, block := range blocks {
			add("%s", block)
		}
		add(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":5}}`, stop)
		add(`{"type":"message_stop"}`)
		return b.String()
	}
	first := events("pause_turn",
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I search."}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"type":"web_search_result","encrypted_content":"e=="}]}}`, `{"type":"content_block_stop","index":2}`)
	second := events("tool_use", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":" Found."}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"add","input":{"a":1}}}`, `{"type":"content_block_stop","index":1}`)
	var sent []string
	endless := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		if len(sent) == 1 || endless {
			fmt.Fprint(w, first)
		} else {
			fmt.Fprint(w, second)
		}
	}))
	defer s.Close()
	m, err := provider.Open("anthropic/x", provider.Options{BaseURL: s.URL, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	var shown seen
	resp, err := m.Generate(t.Context(), hello, shown.emit)
	if err != nil || resp.Message.Text() != "I search. Found." || shown.text.String() != "I search. Found." || resp.Stop != model.StopCalls ||
		resp.Usage != (model.Usage{Input: 20, Output: 10}) || len(resp.Message.Calls()) != 1 || len(shown.calls) != 1 || len(sent) != 2 {
		t.Fatalf("Generate = %+v, %v; shown: %q, %+v; %d requests", resp, err, &shown.text, shown.calls, len(sent))
	}
	const back = `{"content":[{"text":"I search.","type":"text"},{"id":"srv_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},` +
		`{"content":[{"type":"web_search_result","encrypted_content":"e=="}],"tool_use_id":"srv_1","type":"web_search_tool_result"}`
	if !strings.Contains(sent[1], back+`],"role":"assistant"}]`) {
		t.Errorf("after the pause was sent %s\nwant %s", sent[1], back)
	}
	// Later requests have the whole answer.
	messages := append(hello.Messages[:1:1], resp.Message, model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "c1", Name: "add"}}}})
	if _, err := m.Generate(t.Context(), &model.Request{Messages: messages, Tools: tools}, nil); err != nil || !strings.Contains(sent[2], back+`,{"text":" Found.","type":"text"},{"id":"c1"`) {
		t.Errorf("later was sent %s, %v", sent[2], err)
	}
	// An answer that never ends is cut off.
	sent, endless = nil, true
	if resp, err := m.Generate(t.Context(), hello, nil); err != nil || resp.Stop != model.StopLength || len(sent) != 11 {
		t.Errorf("Generate = %+v, %v after %d requests, want an answer that was cut off after 11", resp, err, len(sent))
	}
}

// The query of a base URL goes with each request, as Azure wants it. It is not shown: it may hold a key.
func TestQueryOfTheBaseURL(t *testing.T) {
	for name, path := range map[string]string{"openai/x": "chat/completions", "openai-responses/x": "responses", "anthropic/x": "v1/messages"} {
		for says, answer := range map[string]func() (*http.Response, error){
			"the line is dead": func() (*http.Response, error) { return nil, errors.New("the line is dead") },
			"redirects to": func() (*http.Response, error) {
				return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"http://model.test/?key=of-the-query"}}, Body: http.NoBody}, nil
			},
			"unknown key": func() (*http.Response, error) {
				return &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader("unknown key of-the-query"))}, nil
			},
		} {
			got := ""
			m, err := provider.Open(name, provider.Options{BaseURL: "http://model.test/deployments/a%2Fb?api-version=2024-10-21&key=of-the-query", Env: noEnv, Retry: once, Info: withWindow,
				HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					got = r.URL.String()
					return answer()
				})}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(t.Context(), hello, nil)
			if want := "http://model.test/deployments/a%2Fb/" + path + "?api-version=2024-10-21&key=of-the-query"; got != want {
				t.Errorf("%s: the request went to %s, want %s", name, got, want)
			}
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "of-the-query") {
				t.Errorf("%s: Generate = %v, want %q without the key of the query", name, err, says)
			}
		}
	}
}

// A schema that is not JSON is not sent, and the error says so.
func TestRequestThatIsNotJSON(t *testing.T) {
	m, sent := answering(t, "openai/x", "text/event-stream", "data: [DONE]\n\n")
	_, err := m.Generate(t.Context(), &model.Request{Messages: hello.Messages, Schema: json.RawMessage(`{"a`)}, nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Rejected || len(*sent) != 0 {
		t.Errorf("Generate = %v after %d requests, want an error of kind %q and none", err, len(*sent), model.Rejected)
	}
}

// Any answer of a server is read to its end or refused by an error that has a kind, and a
// call has arguments that are JSON.
func FuzzAnswer(f *testing.F) {
	f.Add("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n")
	f.Add("text/event-stream", "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"index\":0,\"type\":\"a\",\"text\":\"x\"},{\"index\":0,\"type\":\"a\",\"text\":null}]},\"finish_reason\":\"stop\"}]}\n\n")
	f.Add("", "event: message_start\r\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\"}}\r\n\r\ndata: {\"type\":\"content_block_stop\"}\r\n\r\ndata: {\"type\":\"message_stop\"}")
	f.Add("", "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\"}}\n\ndata: {\"type\":\"response.failed\"}\n\n")
	f.Add("application/json", `{"type":"message","content":[{"type":"thinking"},{"type":"tool_use","input":7},null]}`)
	f.Add("application/json", `{"object":"response","status":"completed","output":[{"type":"function_call","arguments":{}},1]}`)
	f.Fuzz(func(t *testing.T, contentType, body string) {
		for _, name := range []string{"openai/x", "openai-responses/x", "anthropic/x", "text/x"} {
			m, err := provider.Open(name, provider.Options{BaseURL: "http://model.test", Env: noEnv, Retry: once, Info: withWindow, HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}, nil
			})}})
			if err != nil {
				t.Fatal(err)
			}
			resp, err := m.Generate(t.Context(), hello, func(model.Delta) {})
			var e *model.Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("%s: Generate = %v, want an error of the package model", name, err)
			}
			if err != nil {
				continue
			}
			for _, c := range resp.Message.Calls() {
				if !json.Valid(c.Arguments) {
					t.Errorf("%s: the arguments of %q are %q", name, c.Name, c.Arguments)
				}
			}
			if _, err := m.Generate(t.Context(), &model.Request{Messages: append(hello.Messages[:1:1], resp.Message, model.UserText("again"))}, nil); errors.As(err, &e) && e.Kind == model.Rejected {
				t.Errorf("%s: what was answered cannot be sent back: %v", name, err)
			}
		}
	})
}
