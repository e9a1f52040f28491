package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A client asked for input answers all questions (MRTR-26-016) and calls again with another id
// (MRTR-26-019, TOOL-26-007), with the state byte for byte (MRTR-26-003, -017), and with none if
// there was none (MRTR-26-018). Other calls, meanwhile and after, are not affected (MRTR-26-020).
func TestRetries(t *testing.T) {
	const questions = `"first":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}},"second":{"method":"roots/list"}`
	tests := []struct{ name, input, state string }{
		{"a text", `"inputRequests":{` + questions + `},"requestState":"opaque"`, `"opaque"`},
		{"escapes", `"inputRequests":{` + questions + `},"requestState":"\u0041\/\n\ud83d\ude00\u2028"`, `"\u0041\/\n\ud83d\ude00\u2028"`},
		{"JSON in a text", `"inputRequests":{` + questions + `},"requestState":"{\"step\": 1.0}"`, `"{\"step\": 1.0}"`},
		{"empty", `"inputRequests":{` + questions + `},"requestState":""`, `""`},
		{"none", `"inputRequests":{` + questions + `}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			type call struct {
				id, state, answers string
			}
			calls := map[string][]call{} // by tool; the server is one goroutine
			c := answering("accept", nil)
			c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
			s := foreign(t, c, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
				name, _ := m.Param("name")
				state, _ := m.Param("requestState")
				answers, _ := m.Param("inputResponses")
				tool := string(name)
				calls[tool] = append(calls[tool], call{id, string(state), string(answers)})
				if tool == `"asks"` && len(calls[tool]) == 1 {
					send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required",%s}}`, id, tt.input)
					return
				}
				send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`, id)
			})
			for _, tool := range []string{"asks", "other", "asks"} {
				if _, err := s.CallTool(t.Context(), tool, nil); err != nil {
					t.Fatal(err)
				}
			}
			asked := calls[`"asks"`]
			if len(asked) != 3 {
				t.Fatalf("calls %+v", calls)
			}
			first, retry, later := asked[0], asked[1], asked[2]
			if first.state != "" || first.answers != "" {
				t.Errorf("the first call has %+v", first)
			}
			if retry.id == first.id {
				t.Errorf("the retry has the id %s again", retry.id)
			}
			if retry.state != tt.state {
				t.Errorf("the retry has the state %s, want %s", retry.state, tt.state)
			}
			var answers map[string]map[string]any
			if err := json.Unmarshal([]byte(retry.answers), &answers); err != nil || len(answers) != 2 || answers["first"]["action"] != "accept" || answers["second"]["roots"] == nil {
				t.Errorf("the retry answers %s", retry.answers)
			}
			for _, c := range append(slices.Clone(calls[`"other"`]), later) {
				if c.state != "" || c.answers != "" {
					t.Errorf("a later call has %+v", c)
				}
			}
		})
	}
}

// A server does not wait for a client that may never come back: between two rounds
// nothing of the call runs, and nothing of it is in the way (MRTR-26-015, ELIC-26-027).
func TestQuestionsThatNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			running.Add(1)
			defer running.Add(-1)
			c, err := mcp.Elicit[color](ctx, "Which?")
			return c.Color, err
		})
		s.Limits.Concurrent = 10
		p := rawClient(t, s)
		for i := range int64(100) {
			p.send(modern(i, "tools/call", canElicit, `"name":"ask"`))
			inputRequired(t, p.answer(i))
		}
		synctest.Wait()
		if n := running.Load(); n != 0 {
			t.Errorf("%d handlers still run", n)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}

// Each question of a call has a key of its own, also two of the same words (MRTR-26-004).
func TestKeysOfQuestions(t *testing.T) {
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		var err error
		for range 3 {
			_, err = mcp.Elicit[color](ctx, "Which?")
		}
		return "", err
	}))
	p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
	m := p.answer(1) // duplicate members would not have been read
	if _, questions := inputRequired(t, m); len(questions) != 3 {
		t.Errorf("got %s, want 3 questions", show(&m))
	}
}

// An answer to nothing that was asked is left aside (MRTR-26-023), and what is still
// missing is asked again instead of failing the call (MRTR-26-024).
func TestAnswersThatDoNotMatch(t *testing.T) {
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		a, errA := mcp.Elicit[color](ctx, "First?", mcp.QuestionKey("first"))
		b, errB := mcp.Elicit[color](ctx, "Second?", mcp.QuestionKey("second"))
		return a.Color + " " + b.Color, errors.Join(errA, errB)
	}))
	p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
	state, _ := inputRequired(t, p.answer(1))
	const red = `{"action":"accept","content":{"color":"red"}}`
	p.send(modern(2, "tools/call", canElicit, `"name":"ask","inputResponses":{"other":`+red+`,"":{},"first":`+red+`},"requestState":`+quote(state)))
	state, questions := inputRequired(t, p.answer(2))
	if _, ok := questions["second"]; !ok || len(questions) != 1 {
		t.Errorf("asked again: %v, want the second question", questions)
	}
	p.send(modern(3, "tools/call", canElicit, `"name":"ask","inputResponses":{},"requestState":`+quote(state)))
	state, questions = inputRequired(t, p.answer(3))
	if len(questions) != 1 {
		t.Errorf("asked again: %v, want the second question", questions)
	}
	p.send(modern(4, "tools/call", canElicit, `"name":"ask","inputResponses":{"second":`+red+`},"requestState":`+quote(state)))
	if m := p.answer(4); !strings.Contains(string(m.Result), "red red") {
		t.Errorf("got %s", show(&m))
	}
}

// Each round has the state and the answers of the result before it, and of no earlier one
// (MRTR-26-018, -020).
func TestRoundsStandAlone(t *testing.T) {
	inputs := []string{
		`"inputRequests":{"a":{"method":"roots/list"}},"requestState":"one"`,
		`"inputRequests":{"b":{"method":"roots/list"}}`,
		`"inputRequests":{"a":{"method":"roots/list"}},"requestState":"three"`,
		`"requestState":"four"`,
	}
	const roots = `{"roots":[]}`
	want := []string{" ", `"one" {"a":` + roots + `}`, ` {"b":` + roots + `}`, `"three" {"a":` + roots + `}`, `"four" `}
	c := nothing()
	c.Roots = func(context.Context) ([]mcp.Root, error) { return []mcp.Root{}, nil }
	var got []string
	s := foreign(t, c, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
		state, _ := m.Param("requestState")
		answers, _ := m.Param("inputResponses")
		got = append(got, string(state)+" "+string(answers))
		if n := len(got); n <= len(inputs) {
			send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required",%s}}`, id, inputs[n-1])
			return
		}
		send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`, id)
	})
	if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent state and answers %q, want %q", got, want)
	}
}
