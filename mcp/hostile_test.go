package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// kinds are JSON values of every kind, some of them awkward.
var kinds = []string{`null`, `true`, `-1`, `1e400`, `""`, `"x"`, `[]`, `[null]`, `["x",{}]`, `{}`, `{ }`, `{"x":1}`, `{"":{"":[]}}`}

// spoil yields value with each member in turn, at any depth, left out or replaced by
// a value of every kind.
func spoil(value string, yield func(string)) {
	for _, k := range kinds {
		yield(k)
	}
	var obj map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &obj) == nil && obj != nil {
		for _, name := range slices.Sorted(maps.Keys(obj)) {
			rest := maps.Clone(obj)
			delete(rest, name)
			b, _ := json.Marshal(rest)
			yield(string(b))
			spoil(string(obj[name]), func(v string) {
				rest[name] = json.RawMessage(v)
				b := []byte{'{'}
				for i, n := range slices.Sorted(maps.Keys(rest)) {
					if i > 0 {
						b = append(b, ',')
					}
					b = fmt.Appendf(b, "%q:%s", n, rest[n])
				}
				yield(string(append(b, '}')))
			})
		}
		return
	}
	var list []json.RawMessage
	if json.Unmarshal([]byte(value), &list) == nil {
		for i, e := range list {
			spoil(string(e), func(v string) {
				parts := slices.Clone(list)
				parts[i] = json.RawMessage(v)
				b := append([]byte{'['}, bytes.Join(raws(parts), []byte{','})...)
				yield(string(append(b, ']')))
			})
		}
	}
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

// hostileParams are good params of each request that a client may send.
var hostileParams = map[string]string{
	"ping":                     `{}`,
	"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}`,
	"server/discover":          `{}`,
	"tools/list":               `{"cursor":"x"}`,
	"tools/call":               `{"name":"ask","arguments":{"text":"x"},"inputResponses":{"k":{"action":"accept","content":{"color":"red"}}},"requestState":"x"}`,
	"prompts/list":             `{"cursor":"x"}`,
	"prompts/get":              `{"name":"brief","arguments":{"text":"x"}}`,
	"resources/list":           `{"cursor":"x"}`,
	"resources/templates/list": `{"cursor":"x"}`,
	"resources/read":           `{"uri":"test://a"}`,
	"resources/subscribe":      `{"uri":"test://a"}`,
	"resources/unsubscribe":    `{"uri":"test://a"}`,
	"completion/complete":      `{"ref":{"type":"ref/prompt","name":"brief"},"argument":{"name":"text","value":"x"},"context":{"arguments":{"a":"b"}}}`,
	"logging/setLevel":         `{"level":"debug"}`,
	"subscriptions/listen":     `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]}}`,
	"elicitation/create":       `{}`,
	"example.com/unknown":      `{}`,
}

func hostileTarget(t testing.TB) *mcp.Server {
	s := one(func(ctx context.Context, in text) (string, error) {
		mcp.Progress(ctx, 1, 2, "m")
		mcp.Log(ctx).Error("m")
		mcp.CallFrom(ctx)
		c, err := mcp.Elicit[color](ctx, "Which?", mcp.QuestionKey("k"))
		return c.Color, err
	})
	s.OnPanic = func(_ context.Context, v any, stack []byte) { t.Errorf("panic: %v\n%s", v, stack) }
	mcp.AddPrompt(s, mcp.Prompt{Name: "brief", Complete: map[string]mcp.CompleteFunc{
		"text": func(context.Context, string, map[string]string) ([]string, error) { return nil, nil },
	}}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
	mcp.AddResource(s, mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context) (string, error) { return "a", nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "test://b/{text}", Name: "b"},
		func(_ context.Context, in text) (string, error) { return in.Text, nil })
	return s
}

// A request with any params is answered once, nothing panics, and the connection goes on.
func TestHostileParams(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			p := rawClient(t, hostileTarget(t))
			if rev < mcp.V2026_07_28 {
				p.initializeOnly(rev)
			}
			id := int64(0)
			one := func(method, params string) {
				id++
				p.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
				for {
					m := p.read()
					switch {
					case m.Method == "elicitation/create":
						t.Errorf("%s %s: asked without a capability", method, params)
						return
					case m.Method == "notifications/subscriptions/acknowledged":
						p.sendf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
						return
					case m.Kind() == jsonrpc.KindNotification:
						continue
					case m.ID == jsonrpc.IntID(id):
						return
					case m.ID.IsZero() && m.Error != nil && params[0] != '{' && params[0] != '[':
						t.Errorf("%s %s: the answer has no id", method, params)
						return
					default:
						t.Fatalf("%s %s: got %s", method, params, show(&m))
					}
				}
			}
			for _, method := range slices.Sorted(maps.Keys(hostileParams)) {
				good := hostileParams[method]
				if method == "initialize" && rev < mcp.V2026_07_28 {
					continue
				}
				meta := `{"progressToken":1}`
				if rev == mcp.V2026_07_28 {
					meta = `{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"debug"}`
				}
				more := good[:len(good)-1]
				if len(good) > 2 {
					more += ","
				}
				spoil(more+`"_meta":`+meta+`}`, func(params string) { one(method, params) })
			}
		})
	}
}

// hostileResults are good results of each request that a session sends.
var hostileResults = map[string]string{
	"tools/list":               `{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}},"annotations":{"title":"t"},"icons":[{"src":"x"}]}],"nextCursor":"a"}`,
	"prompts/list":             `{"prompts":[{"name":"x","arguments":[{"name":"a","required":true}]}]}`,
	"resources/list":           `{"resources":[{"uri":"test://a","name":"a","size":1,"annotations":{"priority":1}}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"test://{a}","name":"a"}]}`,
	"tools/call":               `{"content":[{"type":"text","text":"x"},{"type":"image","data":"AA==","mimeType":"x"},{"type":"resource","resource":{"uri":"a","blob":"AA=="}},{"type":"resource_link","uri":"a","name":"b"}],"structuredContent":{"a":1},"isError":false,"_meta":{"a":1}}`,
	"prompts/get":              `{"description":"x","messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`,
	"resources/read":           `{"contents":[{"uri":"test://a","text":"x","mimeType":"y"}]}`,
	"completion/complete":      `{"completion":{"values":["x"],"total":1,"hasMore":false}}`,
	"input_required":           `{"requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"x","enum":["x"]}},"required":["a"]}}}}}`,
	"sampling":                 `{"requestState":"s","inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"m"}}],"maxTokens":1,"tools":[{"name":"x","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}}}}`,
}

// With any answer of a server, the call returns, nothing panics, the session goes on, and a
// gateway's caller of any revision gets an answer that is valid JSON.
func TestHostileResults(t *testing.T) {
	long.WithoutRace(t)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			var result string // of the next request
			near, far := jsonrpc.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				serveHostile(t, far, func(m *jsonrpc.Message) string {
					if _, ok := m.Param("inputResponses"); ok {
						return `{"resultType":"complete","content":[]}`
					}
					return result
				})
			}()
			c := &mcp.Client{
				Name: "c", Revisions: []mcp.Revision{rev}, Limits: mcp.Limits{Rounds: 2}, Logger: slog.New(slog.DiscardHandler),
				OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept"}, nil
				},
				OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
					for _, tool := range r.Tools {
						_ = tool.Name
					}
					return &mcp.SampleResult{Content: []mcp.Content{mcp.Text("x")}}, nil
				},
			}
			s, err := c.Connect(t.Context(), mcptest.Wire(near))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { s.Close(); far.Close(); <-done }()
			gw := &mcp.Server{Name: "gw", Version: "1", Handler: s, OnPanic: func(_ context.Context, v any, stack []byte) {
				t.Errorf("result %s: panic: %v\n%s", result, v, stack)
			}}
			fronts := map[mcp.Revision]*peer{}
			for _, r := range mcp.Revisions() {
				fronts[r] = rawClient(t, gw)
				if r < mcp.V2026_07_28 {
					fronts[r].initializeOnly(r)
				}
			}
			calls := map[string]func(){
				"tools/list":               func() { drainSeq(s.Tools(t.Context())) },
				"prompts/list":             func() { drainSeq(s.Prompts(t.Context())) },
				"resources/list":           func() { drainSeq(s.Resources(t.Context())) },
				"resources/templates/list": func() { drainSeq(s.ResourceTemplates(t.Context())) },
				"tools/call":               func() { mcp.CallAs[map[string]any](t.Context(), s, "x", nil) },
				"prompts/get":              func() { s.GetPrompt(t.Context(), "x", nil) },
				"resources/read":           func() { s.ReadResource(t.Context(), "test://a") },
				"completion/complete": func() {
					s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "x"}, "a", "b", nil)
				},
			}
			calls["input_required"], calls["sampling"] = calls["tools/call"], calls["tools/call"]
			id := int64(0)
			for _, name := range slices.Sorted(maps.Keys(hostileResults)) {
				good, method := hostileResults[name], name
				if calls[name] == nil {
					t.Fatalf("no call for %s", name)
				}
				if name == "input_required" || name == "sampling" {
					if rev < mcp.V2026_07_28 {
						continue
					}
					good, method = `{"resultType":"input_required",`+good[1:], "tools/call"
				}
				spoil(good, func(r string) {
					if !json.Valid([]byte(r)) {
						t.Fatalf("bad test: %s", r)
					}
					result = r
					calls[name]()
					id++
					for front, p := range fronts {
						if front < mcp.V2026_07_28 {
							p.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"name":"x","uri":"test://a"}}`, id, method)
						} else {
							p.send(modern(id, method, `{"elicitation":{},"sampling":{"tools":{}}}`, `"name":"x","uri":"test://a"`))
						}
						p.answer(id)
					}
				})
			}
		})
	}
}

// serveHostile answers as a server of either era until the wire ends.
func serveHostile(t testing.TB, conn jsonrpc.Conn, result func(m *jsonrpc.Message) string) {
	for {
		frame, err := conn.Read(nil)
		if err != nil {
			return
		}
		m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
		if err != nil {
			t.Errorf("server got %s: %v", frame, err)
			continue
		}
		if m.Kind() != jsonrpc.KindRequest {
			continue
		}
		var r string
		switch m.Method {
		case "initialize":
			r = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
		case "server/discover":
			r = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`
		default:
			r = result(&m)
		}
		conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID.AppendJSON(nil), r))
	}
}

func drainSeq[T any](seq func(yield func(*T, error) bool)) {
	n := 0
	for range seq {
		if n++; n > 10 {
			return
		}
	}
}

// synctestRun is t.Run in a bubble: a server that wants a call again later costs no time.
func synctestRun(t *testing.T, name string, body func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, body) })
}
