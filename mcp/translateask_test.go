package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Questions between the eras that cannot be asked, or that get no answer.

// rudeServer is one of 2026-07-28 that asks whatever was declared, and says what it was told.
func rudeServer(t *testing.T, question string) mcp.Transport {
	return stub(t, func(m jsonrpc.Message) []string {
		switch m.Method {
		case "server/discover":
			return result(m, strings.Replace(discovered, `"capabilities":{}`, `"capabilities":{"tools":{},"prompts":{}}`, 1))
		case "tools/call", "prompts/get":
			if answers, ok := m.Param("inputResponses"); ok {
				text, _ := json.Marshal(string(answers))
				return result(m, `{"resultType":"complete","content":[{"type":"text","text":`+string(text)+`}]}`)
			}
			return result(m, `{"resultType":"input_required","requestState":"s","inputRequests":{"q":`+question+`}}`)
		}
		return []string{}
	})
}

const (
	askForm   = `{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`
	askChoice = `{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}}}`
	askModel  = `{"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}}`
	askRoots  = `{"method":"roots/list"}`
)

// T-23, T-24, T-73, T-171: a modern server asks a question that a legacy caller cannot be asked, or
// that it answers with an error. The user declines, or the call ends in words.
func TestQuestionsOfAModernServerWithoutAnAnswer(t *testing.T) {
	failing := &mcp.Client{Name: "c",
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errors.New("broken") },
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return nil, mcp.ErrDeclined },
		Roots:    func(context.Context) ([]mcp.Root, error) { return nil, errors.New("broken") },
	}
	for _, tt := range []struct {
		question string
		front    mcp.Revision
		client   *mcp.Client
		want     string
		isError  bool
	}{
		{askForm, mcp.V2024_11_05, nothing(), `{"q":{"action":"decline"}}`, false},
		{askForm, mcp.V2025_11_25, nothing(), `{"q":{"action":"decline"}}`, false},
		{askChoice, mcp.V2025_06_18, failing, `{"q":{"action":"decline"}}`, false},
		{askForm, mcp.V2025_11_25, failing, `{"q":{"action":"cancel"}}`, false},
		{askModel, mcp.V2025_06_18, nothing(), "no sampling", true},
		{askRoots, mcp.V2025_06_18, nothing(), "no roots", true},
		{askModel, mcp.V2025_06_18, failing, "declined", true},
		{askRoots, mcp.V2025_11_25, failing, "broken", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			back, err := middle(t).Connect(t.Context(), rudeServer(t, tt.question))
			if err != nil {
				t.Fatal(err)
			}
			s := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: back}, tt.client, tt.front)
			res, err := s.CallTool(t.Context(), "x", nil)
			if err != nil || res.IsError != tt.isError || !strings.Contains(res.Text(), tt.want) {
				t.Errorf("%s in front, asked %.40s: %+v, %v; want %s", tt.front, tt.question, res, err, tt.want)
			}
			if tt.isError {
				var rpc *mcp.Error
				if _, err := s.GetPrompt(t.Context(), "x", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
					t.Errorf("%s in front, a prompt that asks %.40s: %v; want -32603", tt.front, tt.question, err)
				}
			}
			back.Close()
		})
	}
}

// T-73: so it is with a legacy server whose form the caller's revision cannot show.
func TestChoicesInFrontOf2025_06_18(t *testing.T) {
	type in struct {
		Colors []string `json:"colors" enum:"red,blue"`
	}
	srv := one(func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Elicit[in](ctx, "which?")
		return fmt.Sprint(errors.Is(err, mcp.ErrDeclined)), nil
	})
	back := mcptest.Connect(t, srv, middle(t), mcp.V2025_11_25)
	s := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: back}, user(), mcp.V2025_06_18)
	if got, err := mcp.CallAs[string](t.Context(), s, "ask", nil); err != nil || got != "true" {
		t.Errorf("the server sees a refusal: %s, %v", got, err)
	}
}

// T-36, T-45: questions that a legacy server asks at once come in one round, and of the progress
// that nobody was there for the last is told.
func TestQuestionsAtOnceInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := one(func(ctx context.Context, _ struct{}) (string, error) {
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					if _, err := mcp.Confirm(ctx, fmt.Sprint("really ", i, "?"), mcp.QuestionKey(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Second)
			for i := range 5 {
				mcp.Progress(ctx, float64(i+1), 9, "")
			}
			wg.Wait()
			mcp.Progress(ctx, 9, 9, "")
			return "done", nil
		})
		back := mcptest.Connect(t, srv, middle(t), mcp.V2025_11_25)
		p := rawClient(t, &mcp.Server{Name: "front", Version: "1", Handler: back})
		const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask"%s,"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		p.sendf(call, 1, "")
		state, qs := inputRequired(t, p.answer(1))
		if len(qs) != 3 {
			t.Errorf("%d questions in the first round, want 3", len(qs))
		}
		time.Sleep(time.Minute)
		p.sendf(call, 2, ","+accept(qs, `{"confirm":true}`)+`,"requestState":`+quote(state))
		var progress []string
		for {
			m := p.read()
			if m.Method == "" {
				if !strings.Contains(string(m.Result), "done") {
					t.Errorf("got %s", show(&m))
				}
				break
			}
			raw, _ := m.Param("progress")
			progress = append(progress, string(raw))
		}
		if fmt.Sprint(progress) != "[5 9]" {
			t.Errorf("progress %v, want [5 9]", progress)
		}
	})
}

// T-38: when the caller does not come back, the server's questions get the answer of a user who has
// left, and its call is cancelled. T-94: an answer to a question that the server has withdrawn is
// ignored.
func TestCallersWhoDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := jsonrpc.Pipe()
		var mu sync.Mutex
		var told []string
		send := func(format string, args ...any) { far.Write(fmt.Appendf(nil, format, args...)) }
		served := make(chan struct{})
		go func() {
			defer close(served)
			for {
				frame, err := far.Read(nil)
				if err != nil {
					return
				}
				m, _ := jsonrpc.Decode(frame, jsonrpc.Limits{})
				id := string(m.ID.AppendJSON(nil))
				switch m.Method {
				case "initialize":
					send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, id)
				case "tools/call":
					for i, q := range []string{askForm, askModel, askRoots} {
						send(`{"jsonrpc":"2.0","id":"q%d",%s`, i, strings.Replace(q[1:], `"mode":"form",`, "", 1))
					}
					if name, _ := m.Param("name"); string(name) == `"back"` {
						time.Sleep(time.Second)
						send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q0"}}`)
					}
				case "notifications/cancelled":
					mu.Lock()
					told = append(told, "cancelled")
					mu.Unlock()
				case "":
					mu.Lock()
					switch code := 0; {
					case m.Error != nil:
						code = m.Error.Code
						told = append(told, fmt.Sprint(id, " ", code))
					default:
						told = append(told, id+" "+string(m.Result))
					}
					mu.Unlock()
				}
			}
		}()
		c := middle(t)
		c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
		c.Revisions = []mcp.Revision{mcp.V2025_06_18}
		back, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Fatal(err)
		}
		p := rawClient(t, &mcp.Server{Name: "front", Version: "1", Handler: back})
		const all = `{"elicitation":{},"sampling":{},"roots":{}}`
		p.send(modern(1, "tools/call", all, `"name":"gone"`))
		_, qs := inputRequired(t, p.answer(1))
		if len(qs) != 3 {
			t.Errorf("%d questions, want 3", len(qs))
		}
		time.Sleep(16 * time.Minute)
		mu.Lock()
		for _, want := range []string{`"q0" {"action":"cancel"}`, `"q1" -1`, `"q2" -32603`, "cancelled"} {
			if !strings.Contains(strings.Join(told, "\n"), want) {
				t.Errorf("the server is told %q, want %s", told, want)
			}
		}
		told = nil
		mu.Unlock()

		p.send(modern(2, "tools/call", all, `"name":"back"`))
		state, qs := inputRequired(t, p.answer(2))
		time.Sleep(time.Minute)
		var answers []string
		for key, q := range qs {
			answers = append(answers, quote(key)+":"+map[string]string{
				"elicitation/create": `{"action":"accept","content":{"a":"late"}}`, "roots/list": `{"roots":[]}`,
				"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"t"}}`}[q.Method])
		}
		p.send(modern(3, "tools/call", all, `"name":"back","inputResponses":{`+strings.Join(answers, ",")+`},"requestState":`+quote(state)))
		time.Sleep(time.Minute)
		mu.Lock()
		if got := strings.Join(told, "\n"); strings.Contains(got, "late") || !strings.Contains(got, `"roots":[]`) {
			t.Errorf("the server is told %q, want no answer to what it took back", told)
		}
		mu.Unlock()
		back.Close()
		far.Close()
		<-served
	})
}
