package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// steps adds a tool, a prompt and a resource that ask two questions. Their results name the server that answers.
func steps(name string) func(n int, s *mcp.Server) {
	ask := func(ctx context.Context, n int) (string, error) {
		for i := range 2 {
			if ok, err := mcp.Confirm(ctx, fmt.Sprintf("Step %d?", i+1)); err != nil || !ok {
				return "", errors.Join(err, errors.New("not confirmed"))
			}
		}
		return fmt.Sprint("done by ", name, n), nil
	}
	return func(n int, s *mcp.Server) {
		mcp.AddTool(s, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) { return ask(ctx, n) })
		mcp.AddPrompt(s, mcp.Prompt{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) { return ask(ctx, n) })
		mcp.AddResource(s, mcp.Resource{URI: "steps://all", Name: "steps"}, func(ctx context.Context) (string, error) { return ask(ctx, n) })
	}
}

// A client of 2026-07-28 whose requests come to two gateways in turn answers the questions of servers that each gateway has for itself,
// over several rounds, however their connections are shared. A client of 2025-11-25 does too.
func TestNodesAnswerQuestionsOfTheirOwnServers(t *testing.T) {
	for _, share := range []gateway.Share{gateway.ShareAuto, gateway.PerSession, gateway.PerPrincipal, gateway.Exclusive} {
		for _, front := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
			t.Run(fmt.Sprint(share, " ", front), func(t *testing.T) {
				mcptest.LeakCheck(t)
				nodes := twoNodes(t, map[string]func() *farm{"ops": func() *farm {
					return &farm{rev: mcp.V2026_07_28, share: share, more: steps("")}
				}})
				web := inTurn(t, nodes)
				var asked atomic.Int64
				s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{front}, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
				}}).Dial(t.Context(), web.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for range 2 { // begins at the one, then at the other
					if res, err := s.CallTool(t.Context(), "ops_steps", nil); err != nil || !strings.HasPrefix(res.Text(), "done") {
						t.Errorf("a tool: %v, %v", res, err)
					}
					if _, err := s.GetPrompt(t.Context(), "ops_steps", nil); err != nil {
						t.Errorf("a prompt: %v", err)
					}
					if _, err := s.ReadResource(t.Context(), "steps://all"); err != nil {
						t.Errorf("a resource: %v", err)
					}
					if _, err := s.CallTool(t.Context(), "ops_which", nil); err != nil { // one request more, so that the next begins elsewhere
						t.Fatal(err)
					}
				}
				if n := asked.Load(); n != 12 {
					t.Errorf("%d questions, want 12", n)
				}
			})
		}
	}
}

// sentCall is a call of 2026-07-28 without the helpers of a client.
type sentCall struct {
	user, tool string
	state      string // requestState; empty: none
	answers    string // inputResponses; empty: none
}

// at sends the call to a gateway, and returns the result or the error as JSON, the requestState and the key of the first question.
func (c sentCall) at(t *testing.T, node http.Handler) (reply, state, key string) {
	t.Helper()
	params := map[string]any{"name": c.tool, "arguments": map[string]any{}, "_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "c", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
	}}
	if c.state != "" {
		params["requestState"] = c.state
	}
	if c.answers != "" {
		params["inputResponses"] = map[string]any{c.answers: map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", inTurn(t, []http.Handler{node}).URL, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method": {"tools/call"}, "Mcp-Name": {c.tool}, "User": {c.user}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, ok := strings.Cut(string(raw), "data: "); ok {
		raw = []byte(data)
	}
	var m struct {
		Result struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	for key = range m.Result.InputRequests {
	}
	return string(raw), m.Result.RequestState, key
}

// A retry comes to the gateway whose server asked, for its principal alone. When that gateway has ended, the answer says so. A server that is
// restarted gets the state that it has given, and says itself that it does not know it.
func TestNodesSendAnswersToTheServerThatAsked(t *testing.T) {
	farms := []*farm{}
	nodes, ends := twoGateways(t, map[string]func() *farm{"ops": func() *farm {
		f := &farm{rev: mcp.V2026_07_28, share: gateway.PerPrincipal, more: steps(fmt.Sprint("farm", len(farms), "."))}
		farms = append(farms, f)
		return f
	}})
	for _, at := range nodes {
		at.Handler.(*mcp.Server).HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	}
	first := sentCall{user: "ann", tool: "ops_steps"}
	reply, state, key := first.at(t, nodes[0])
	if state == "" {
		t.Fatal(reply)
	}
	if reply, _, _ := (sentCall{"bob", "ops_steps", state, key}).at(t, nodes[1]); !strings.Contains(reply, "requestState is invalid or expired") {
		t.Errorf("another principal: %s", reply)
	}
	again, kept, _ := (sentCall{"ann", "ops_steps", state, ""}).at(t, nodes[1]) // the question stays open
	if kept == "" {
		t.Fatalf("without an answer: %s", again)
	}
	reply, second, key2 := (sentCall{"ann", "ops_steps", kept, key}).at(t, nodes[1])
	if second == "" {
		t.Fatalf("the second round: %s", reply)
	}
	if reply, _, _ := (sentCall{"ann", "ops_steps", second, key2}).at(t, nodes[1]); !strings.Contains(reply, "done by farm0.") {
		t.Errorf("the result: %s", reply)
	}
	farms[0].mu.Lock()
	for _, n := range farms[0].running {
		n.Close()
	}
	farms[0].mu.Unlock()
	for range 2 { // the first may learn of the loss
		reply, _, _ = (sentCall{"ann", "ops_steps", second, key2}).at(t, nodes[1])
	}
	if !strings.Contains(reply, "requestState is invalid or expired") {
		t.Errorf("after a restart of the server: %s", reply)
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends[0]()
	reply, _, _ = (sentCall{"ann", "ops_steps", state, key}).at(t, nodes[1])
	if !strings.Contains(reply, "the node one, whose server asked, has ended; start the call again") || !strings.Contains(reply, "-32602") {
		t.Errorf("after the end of the node: %s", reply)
	}
	if reply, state, _ := first.at(t, nodes[1]); state == "" {
		t.Errorf("the call from the beginning: %s", reply)
	}
	reader, err := (&mcp.Client{Name: "c", Header: http.Header{"User": {"ann"}}, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		farms[1].mu.Lock()
		defer farms[1].mu.Unlock()
		for _, n := range farms[1].running {
			n.Close()
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}}).Dial(t.Context(), inTurn(t, nodes[1:]).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.ReadResource(t.Context(), "steps://all"); err == nil || !strings.Contains(err.Error(), "requestState is invalid or expired") {
		t.Errorf("a resource after a restart of its server: %v", err)
	}
}

// stateless serves a connection: its tool "pick" asks a question without a requestState. It reports the calls with an answer.
func stateless(t *testing.T, answered func()) func(jsonrpc.Conn) {
	return func(conn jsonrpc.Conn) {
		for {
			frame, err := conn.Read(nil)
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params map[string]json.RawMessage
			}
			if err := json.Unmarshal(frame, &m); err != nil || m.ID == nil {
				continue
			}
			result := `{"resultType":"complete"}`
			switch {
			case m.Method == "server/discover":
				result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`
			case m.Method == "tools/list":
				result = `{"resultType":"complete","tools":[{"name":"pick","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
			case m.Method == "tools/call" && m.Params["requestState"] != nil:
				t.Errorf("a state that it did not give: %s", frame)
			case m.Method == "tools/call" && m.Params["inputResponses"] == nil:
				result = `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}}}`
			case m.Method == "tools/call":
				answered()
				result = `{"resultType":"complete","content":[{"type":"text","text":"picked"}]}`
			}
			if err := conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)); err != nil {
				return
			}
		}
	}
}

// A question without a requestState is answered at any gateway, also after the one whose server asked has ended.
func TestNodesAnswerQuestionsWithoutState(t *testing.T) {
	var at []*atomic.Int64
	nodes := twoNodes(t, map[string]func() *farm{"ops": func() *farm {
		n := new(atomic.Int64)
		at = append(at, n)
		return &farm{rev: mcp.V2026_07_28, raw: stateless(t, func() { n.Add(1) })}
	}})
	reply, state, key := (sentCall{tool: "ops_pick"}).at(t, nodes[0])
	if state == "" {
		t.Fatal(reply)
	}
	last := sentCall{tool: "ops_pick", state: state, answers: key}
	for i, ended := range []bool{false, true} {
		if ended {
			if err := nodes[0].Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if reply, _, _ := last.at(t, nodes[1]); !strings.Contains(reply, "picked") || at[1].Load() != int64(i+1) {
			t.Errorf("its node has ended: %v: %s, calls %d and %d", ended, reply, at[0].Load(), at[1].Load())
		}
	}
}

// A question of a server that every gateway reaches is answered at the gateway that gets the answer, also after the other has ended.
func TestNodesAnswerQuestionsOfSharedServers(t *testing.T) {
	ops := &mcp.Server{Name: "ops", Version: "1"}
	steps("it ")(0, ops)
	web := inTurn(t, []http.Handler{ops})
	nodes := twoNodes(t, map[string]func() *farm{"ops": func() *farm { return &farm{rev: mcp.V2026_07_28, url: web.URL} }})
	_, state, key := (sentCall{tool: "ops_steps"}).at(t, nodes[0])
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	reply, state, key := (sentCall{tool: "ops_steps", state: state, answers: key}).at(t, nodes[1])
	if state == "" {
		t.Fatal(reply)
	}
	if reply, _, _ := (sentCall{tool: "ops_steps", state: state, answers: key}).at(t, nodes[1]); !strings.Contains(reply, "done by it 0") {
		t.Error(reply)
	}
}
