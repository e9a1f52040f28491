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

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// inTurn asks one server for each resource first and then the next, as a gateway does.
type inTurn []mcp.Handler

func (h inTurn) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != "resources/read" {
		return h[0].Handle(ctx, req)
	}
	for _, next := range h {
		if _, err := next.Handle(ctx, &mcp.Request{Method: "resources/list", Params: json.RawMessage(`{}`)}); err != nil {
			return nil, err
		}
	}
	res, err := h[0].Handle(ctx, req)
	if rpc := new(mcp.Error); len(h) > 1 && errors.As(err, &rpc) {
		return h[1].Handle(ctx, req)
	}
	return res, err
}

// A user's answer to one server reaches no other, though both may serve one call (T-01, T-09), and
// neither does its requestState.
func TestAnswersStayWithTheirServer(t *testing.T) {
	for _, front := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(string(front+" on "+back), func(t *testing.T) {
				// Both ask the same, under the same key.
				server := func(name string, seen *[]string, mu *sync.Mutex) mcp.Handler {
					s := &mcp.Server{Name: name, Version: "1"}
					mcp.AddResource(s, mcp.Resource{URI: "test://x", Name: "x"}, func(ctx context.Context) (string, error) {
						v, err := mcp.Elicit[text](ctx, name+"'s password?", mcp.QuestionKey("k"))
						if err != nil {
							return "", err
						}
						if name == "a" {
							return "", mcp.ResourceNotFound("test://x")
						}
						return v.Text, nil
					})
					s.OnFrame = func(f trace.Frame) {
						mu.Lock()
						defer mu.Unlock()
						if f.Dir == trace.In {
							*seen = append(*seen, string(f.Msg))
						}
					}
					asking := &mcp.Client{Name: "gw", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return nil, errors.New("nobody is here")
					}}
					return mcptest.Connect(t, s, asking, back)
				}
				var mu sync.Mutex
				var toA, toB []string
				gw := &mcp.Server{Name: "gw", Version: "1", Handler: inTurn{server("a", &toA, &mu), server("b", &toB, &mu)}}
				user := &mcp.Client{Name: "c", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": "secret of " + r.Message[:1]}}, nil
				}}
				res, err := mcptest.Connect(t, gw, user, front).ReadResource(t.Context(), "test://x")
				if err != nil || res.Contents[0].Text != "secret of b" {
					t.Errorf("read = %v, %v; want what b was told", res, err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, f := range toB {
					if strings.Contains(f, "secret of a") || strings.Contains(f, "inputResponses") && strings.Contains(f, "resources/list") {
						t.Errorf("b got %s", f)
					}
				}
				for _, f := range toA {
					if strings.Contains(f, "secret of b") {
						t.Errorf("a got %s", f)
					}
				}
			})
		}
	}
}

// T-01, T-04: ids of one hop do not reach the next.
func TestIdsStayOnTheirHop(t *testing.T) {
	back := foreign(t, &mcp.Client{Name: "gw"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
		tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}`
		switch m.Method {
		case "tools/call":
			send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,%s}}`, tag)
			send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},%s}}`, tag)
			send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{%s}}`, tag)
			send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`, id)
		case "subscriptions/listen":
			asked, _ := m.Param("notifications")
			send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,%s}}`, asked, tag)
			send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://x",%s}}`, tag)
		}
	})
	t.Run("of a call", func(t *testing.T) {
		p := rawClient(t, &mcp.Server{Name: "gw", Version: "1", Handler: back})
		p.send(modern(1, "tools/call", `{}`, `"name":"x"`))
		if p.answer(1); len(p.notes) > 0 {
			t.Errorf("the caller got %q", p.notes)
		}
	})
	t.Run("of a subscription", func(t *testing.T) {
		p := rawClient(t, &mcp.Server{Name: "gw", Version: "1", Handler: back})
		p.initializeOnly(mcp.V2025_11_25)
		p.sendf(subscribeX, 1)
		updated := false
		for answered := false; !answered || !updated; {
			m := p.read()
			if strings.Contains(string(m.Params), "_meta") {
				t.Errorf("a legacy client got %s", show(&m))
			}
			if m.Error != nil {
				t.Fatalf("subscribe: %v", m.Error)
			}
			answered = answered || m.Kind() == jsonrpc.KindResponse
			updated = updated || m.Method == "notifications/resources/updated"
		}
	})
}

// BASE-26: a result is an object. Any other result is an error of that call, and not a fault of a
// handler.
func TestResultsThatAreNoObjects(t *testing.T) {
	for _, result := range []string{`[]`, `"x"`, `1`, `null`, `true`} {
		back := foreign(t, &mcp.Client{Name: "gw"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
			send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		})
		if res, err := back.CallTool(t.Context(), "x", nil); err == nil {
			t.Errorf("CallTool with the result %s = %v, want an error", result, res)
		}
		gw := &mcp.Server{Name: "gw", Version: "1", Handler: back, OnPanic: func(_ context.Context, v any, _ []byte) {
			t.Errorf("the result %s is a panic: %v", result, v)
		}}
		p := rawClient(t, gw)
		p.send(modern(1, "tools/call", `{}`, `"name":"x"`))
		wantError(t, p.answer(1), jsonrpc.CodeInternal)
	}
}

// Two retries with one requestState at once: one goes on with the held call, the
// other is refused; the server runs once (T-37).
func TestHeldCallIsResumedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		legacy := one(func(ctx context.Context, _ struct{}) (string, error) {
			runs++
			v, err := mcp.Elicit[text](ctx, "Text?")
			return v.Text, err
		})
		back := mcptest.Connect(t, legacy, answering("decline", nil), mcp.V2025_11_25)
		p := rawClient(t, &mcp.Server{Name: "gw", Version: "1", Handler: back})
		const args = `"name":"ask","arguments":{}`
		p.send(modern(1, "tools/call", canElicit, args))
		state, qs := inputRequired(t, p.answer(1))
		retry := args + "," + accept(qs, `{"text":"hello"}`) + `,"requestState":` + quote(state)
		p.send(modern(2, "tools/call", canElicit, retry))
		p.send(modern(3, "tools/call", canElicit, retry))
		good, bad := 0, 0
		for range 2 {
			switch m := p.read(); {
			case m.Error != nil && m.Error.Code == jsonrpc.CodeInvalidParams:
				bad++
			case strings.Contains(string(m.Result), "hello"):
				good++
			default:
				t.Errorf("got %s", show(&m))
			}
		}
		if good != 1 || bad != 1 || runs != 1 {
			t.Errorf("%d answered, %d refused, %d runs; want 1 of each", good, bad, runs)
		}
	})
}

// A legacy server that asks before its answer to initialize is refused; one that asks
// right after it is not.
func TestEarlyQuestions(t *testing.T) {
	near, far := jsonrpc.Pipe()
	answers := make(chan jsonrpc.Message, 10)
	go func() {
		defer close(answers)
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			switch {
			case err != nil:
				t.Error(err)
			case m.Method == "initialize":
				far.Write([]byte(`{"jsonrpc":"2.0","id":"before","method":"roots/list"}`))
				far.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID.AppendJSON(nil)) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`))
				far.Write([]byte(`{"jsonrpc":"2.0","id":"at once","method":"roots/list"}`))
			case m.Method == "notifications/initialized":
				far.Write([]byte(`{"jsonrpc":"2.0","id":"after","method":"roots/list"}`))
			case m.Kind() == jsonrpc.KindResponse:
				answers <- m
			}
		}
	}()
	c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}, Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }}
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if m := <-answers; m.ID == jsonrpc.StringID("after") && m.Error != nil {
			t.Errorf("got %s", show(&m))
		}
	}
	s.Close()
	far.Close()
}

// A legacy server that answers a call without waiting for the answer to its question, or
// that takes the question back: the user in front is asked no longer, and the call has its
// result.
func TestForwardedQuestionThatNobodyNeeds(t *testing.T) {
	for name, end := range map[string]string{
		"answered":  `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`,
		"withdrawn": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := jsonrpc.Pipe()
				asked, over := make(chan struct{}), make(chan struct{})
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
							send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, id)
						case "tools/call":
							send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Text?","requestedSchema":{"type":"object","properties":{}}}}`)
							<-asked
							far.Write([]byte(strings.ReplaceAll(end, "%s", id)))
							if name == "withdrawn" {
								<-over // the question is, the call is not
								send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
							}
						}
					}
				}()
				gwClient := answering("decline", nil)
				gwClient.Revisions = []mcp.Revision{mcp.V2025_11_25}
				back, err := gwClient.Connect(t.Context(), mcptest.Wire(near))
				if err != nil {
					t.Fatal(err)
				}
				user := &mcp.Client{Name: "c", OnElicit: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					close(asked)
					<-ctx.Done()
					close(over)
					return nil, ctx.Err()
				}}
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: back}, user, mcp.V2025_11_25)
				if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
					t.Errorf("call = %v", err)
				}
				<-over
				back.Close()
				far.Close()
				<-served
			})
		})
	}
}
