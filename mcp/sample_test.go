package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// sampling is a client whose model says ok to everything.
func sampling() *mcp.Client {
	return &mcp.Client{Name: "c", Version: "1", OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text("ok")}}, nil
	}}
}

// Conversations that no model could follow are not sent by a server, and refused by a
// client (SAMP-25-002, SAMP-26-022): a message has a role and content (SAMP-26-015); results
// of tools stand alone (SAMP-26-011), each use of a tool has its result before anything
// else comes (SAMP-26-012, -026), and no result is of something else (SAMP-26-028).
func TestConversations(t *testing.T) {
	type wire struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	say := func(role string, content ...mcp.Content) mcp.SampleMessage {
		return mcp.SampleMessage{Role: role, Content: content}
	}
	use := func(id string) mcp.Content {
		return mcp.ToolUseContent{ID: id, Name: "look", Input: json.RawMessage(`{}`)}
	}
	result := func(id string) mcp.Content {
		return mcp.ToolResultContent{ToolUseID: id, Result: mcp.ToolResult{Content: []mcp.Content{mcp.Text("a tree")}}}
	}
	hello := say("user", mcp.Text("hello"))
	tests := []struct {
		name     string
		messages []mcp.SampleMessage
		wire     string // the same, as a client receives it
		want     string // empty: fine
	}{
		{"text", []mcp.SampleMessage{hello, say("assistant", mcp.Text("hi")), hello}, `U T , A T , U T`, ""},
		{"none", nil, ``, ""},
		{"one use", []mcp.SampleMessage{hello, say("assistant", use("1")), say("user", result("1"))}, `U T , A U1 , U R1`, ""},
		{"uses with words", []mcp.SampleMessage{say("assistant", mcp.Text("I look"), use("1"), use("2")), say("user", result("2"), result("1")), say("assistant", mcp.Text("x"))}, `A T U1 U2 , U R2 R1 , A T`, ""},
		{"no role", []mcp.SampleMessage{say("", mcp.Text("x"))}, `- T`, "role"},
		{"another role", []mcp.SampleMessage{say("system", mcp.Text("x"))}, `S T`, "role"},
		{"no content", []mcp.SampleMessage{say("user")}, `U`, "content"},
		{"results with words", []mcp.SampleMessage{say("assistant", use("1")), say("user", result("1"), mcp.Text("there"))}, `A U1 , U R1 T`, "nothing else"},
		{"no result", []mcp.SampleMessage{say("assistant", use("1")), hello}, `A U1 , U T`, "results of the tool uses"},
		{"a result later", []mcp.SampleMessage{say("assistant", use("1")), hello, say("user", result("1"))}, `A U1 , U T , U R1`, "results of the tool uses"},
		{"no result at all", []mcp.SampleMessage{hello, say("assistant", use("1"))}, `U T , A U1`, "have no results"},
		{"one result of two", []mcp.SampleMessage{say("assistant", use("1"), use("2")), say("user", result("1"))}, `A U1 U2 , U R1`, "results of the tool uses"},
		{"a result of nothing", []mcp.SampleMessage{say("user", result("1"))}, `U R1`, "results of the tool uses"},
		{"a result of another", []mcp.SampleMessage{say("assistant", use("1")), say("user", result("2"))}, `A U1 , U R2`, "results of the tool uses"},
		{"a result twice", []mcp.SampleMessage{say("assistant", use("1")), say("user", result("1"), result("1"))}, `A U1 , U R1 R1`, "results of the tool uses"},
		{"a result of the assistant", []mcp.SampleMessage{say("assistant", use("1")), say("assistant", result("1"))}, `A U1 , A R1`, "of the user"},
		{"a use of the user", []mcp.SampleMessage{say("user", use("1")), say("user", result("1"))}, `U U1 , U R1`, "assistant does"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
				_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: tt.messages,
					Tools: []*mcp.Tool{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}}})
				return "", err
			}))
			p.send(modern(1, "tools/call", `{"sampling":{"tools":{}}}`, `"name":"ask"`))
			m := p.answer(1)
			if asked := strings.Contains(string(m.Result), `"input_required"`); asked != (tt.want == "") || !strings.Contains(string(m.Result), tt.want) {
				t.Errorf("Sample: got %s, want %q", show(&m), tt.want)
			}

			var messages []wire
			for _, text := range strings.FieldsFunc(tt.wire, func(r rune) bool { return r == ',' }) {
				words := strings.Fields(text)
				msg := wire{map[string]string{"U": "user", "A": "assistant", "S": "system"}[words[0]], nil}
				blocks := []any{}
				for _, w := range words[1:] {
					switch w[0] {
					case 'T':
						blocks = append(blocks, map[string]any{"type": "text", "text": "x"})
					case 'U':
						blocks = append(blocks, map[string]any{"type": "tool_use", "id": w[1:], "name": "look", "input": map[string]any{}})
					case 'R':
						blocks = append(blocks, map[string]any{"type": "tool_result", "toolUseId": w[1:], "content": []any{}})
					}
				}
				msg.Content = blocks
				messages = append(messages, msg)
			}
			list, err := json.Marshal(messages)
			if err != nil {
				t.Fatal(err)
			}
			q := legacyServer(t, sampling(), mcp.V2025_11_25)
			q.send(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":` + string(list) + `}}`)
			m = q.answer(1)
			if tt.want == "" && m.Error != nil {
				t.Errorf("the client refuses %s: %s", list, show(&m))
			}
			if tt.want != "" {
				wantError(t, m, jsonrpc.CodeInvalidParams)
			}
		})
	}
}

// A client refuses tools in sampling where it did not declare sampling.tools (SAMP-26-010):
// by an error up to 2025-11-25, and by no retry since.
func TestToolsInSamplingThatWereNotDeclared(t *testing.T) {
	const message = `"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"x"}}]`
	for _, tools := range []string{`"tools":[{"name":"x","inputSchema":{"type":"object"}}]`, `"toolChoice":{"mode":"none"}`} {
		for rev, c := range map[mcp.Revision]*mcp.Client{mcp.V2025_06_18: sampling(), mcp.V2025_11_25: nothing()} {
			p := legacyServer(t, c, rev)
			p.send(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{` + message + `,` + tools + `}}`)
			if m := p.answer(1); m.Error == nil {
				t.Errorf("%s: %s is answered: %s", rev, tools, show(&m))
			}
		}
		calls := 0
		s := foreign(t, nothing(), func(_ *jsonrpc.Message, id string, send func(string, ...any)) {
			calls++
			send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{%s,%s}}}}}`, id, message, tools)
		})
		if _, err := s.CallTool(t.Context(), "x", nil); err == nil || calls != 1 {
			t.Errorf("a call that wants %s = %v after %d requests", tools, err, calls)
		}
	}
}

// A refusal of the user has a code of its own (SAMP-25-001).
func TestSamplingDeclined(t *testing.T) {
	c := sampling()
	c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return nil, fmt.Errorf("asked: %w", mcp.ErrDeclined)
	}
	p := legacyServer(t, c, mcp.V2025_11_25)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}}`)
	wantError(t, p.answer(1), -1)
}

// The _meta of uses and results of tools goes from one request to the next (SAMP-26-020).
func TestMetaOfToolUse(t *testing.T) {
	meta := mcp.Meta{"example.com/k": json.RawMessage(`{"a":[1]}`)}
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		r := &mcp.SampleRequest{MaxTokens: 1, Tools: []*mcp.Tool{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}},
			Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("x")}}}}
		first, err := mcp.Sample(ctx, r)
		if err != nil {
			return "", err
		}
		use := first.Content[0].(mcp.ToolUseContent)
		r.Messages = append(r.Messages, mcp.SampleMessage{Role: "assistant", Content: first.Content},
			mcp.SampleMessage{Role: "user", Content: []mcp.Content{mcp.ToolResultContent{ToolUseID: use.ID, Result: mcp.ToolResult{Meta: meta}}}})
		second, err := mcp.Sample(ctx, r)
		if err != nil {
			return "", err
		}
		return second.Text(), nil
	})
	c := sampling()
	c.OnSample = func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
		if len(r.Messages) == 1 {
			return &mcp.SampleResult{Model: "m", StopReason: "toolUse", Content: []mcp.Content{mcp.ToolUseContent{ID: "1", Name: "look", Meta: meta}}}, nil
		}
		use, result := r.Messages[1].Content[0].(mcp.ToolUseContent), r.Messages[2].Content[0].(mcp.ToolResultContent)
		return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text(fmt.Sprintf("%s %s", use.Meta, result.Result.Meta))}}, nil
	}
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		got, err := mcp.CallAs[string](t.Context(), mcptest.Connect(t, s, c, rev), "ask", nil)
		if want := fmt.Sprintf("%s %s", meta, meta); err != nil || got != want {
			t.Errorf("the second request has %q, %v; want %q", got, err, want)
		}
	})
}
