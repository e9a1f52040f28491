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

// A server declares the features it offers: tools (TOOL-26-003), resources (RES-26-001), prompts
// (PROM-26-001), completion where the revision has a capability for it (COMP-26-001) and log
// messages, which any handler may write (LOG-26-003). A declared feature can be listed, also when
// none is left (TOOL-26-004, RES-26-002, PROM-26-002).
func TestCapabilitiesOfAServer(t *testing.T) {
	tool := func(s *mcp.Server) { addTools(s, 0, 1) }
	prompt := func(s *mcp.Server) {
		mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	resource := func(s *mcp.Server) {
		mcp.AddResource(s, mcp.Resource{URI: "a:b", Name: "r"}, func(context.Context) (string, error) { return "", nil })
	}
	template := func(s *mcp.Server) {
		mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "a:{x}", Name: "t"}, func(context.Context, struct {
			X string `json:"x"`
		}) (string, error) {
			return "", nil
		})
	}
	tests := []struct {
		name  string
		offer func(*mcp.Server)
		want  string   // beside logging
		lists []string // methods that answer
	}{
		{"tools", tool, "tools", []string{"tools/list"}},
		{"prompts", prompt, "prompts completions", []string{"prompts/list"}},
		{"resources", resource, "resources", []string{"resources/list", "resources/templates/list"}},
		{"templates", template, "resources completions", []string{"resources/list", "resources/templates/list"}},
		{"nothing", func(*mcp.Server) {}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var srv *mcp.Server
			newServer := func() *mcp.Server {
				srv = &mcp.Server{Name: "s", Version: "1"}
				tt.offer(srv)
				return srv
			}
			mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
				srv := srv
				caps := s.Server().Capabilities
				for _, name := range []string{"tools", "prompts", "resources", "completions", "logging"} {
					want := name == "logging" || strings.Contains(tt.want, name)
					if name == "completions" && s.Revision() == mcp.V2024_11_05 {
						want = false
					}
					if got := caps.Has(name); got != want {
						t.Errorf("capability %s declared: %v, want %v (%s)", name, got, want, caps)
					}
				}
				srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "t000"}, mcp.Feature{Kind: mcp.KindPrompt, Name: "p"},
					mcp.Feature{Kind: mcp.KindResource, Name: "a:b"}, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "a:{x}"})
				for _, method := range tt.lists {
					raw, err := s.Raw(t.Context(), method, nil)
					if err != nil || !strings.Contains(string(raw), "[]") {
						t.Errorf("%s of nothing = %s, %v; want an empty list", method, raw, err)
					}
				}
			})
		})
	}
}

// The lists of a server depend neither on the connection nor on earlier calls: tools (TOOL-26-005),
// resources (RES-26-003) and prompts (PROM-26-003).
func TestListsAreTheSameForAll(t *testing.T) {
	s := library()
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Elicit[color](ctx, "Which?")
		return "", err
	})
	addTools(s, 0, 3)
	fresh, used := rawClient(t, s), rawClient(t, s)
	used.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
	used.send(modern(2, "tools/call", `{}`, `"name":"t001"`))
	used.send(modern(3, "resources/read", canElicit, `"uri":"lib:asks"`))
	used.send(modern(4, "prompts/get", `{}`, `"name":"greet","arguments":{"name":"x"}`))
	used.send(modern(5, "subscriptions/listen", `{}`, listenTo))
	for range 5 { // four answers and an acknowledgement
		if m := used.read(); m.Error != nil {
			t.Fatal(show(&m))
		}
	}
	for i, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		id := int64(10 + i)
		fresh.send(modern(id, method, `{}`, ""))
		used.send(modern(id, method, `{"elicitation":{},"roots":{},"sampling":{}}`, ""))
		a, b := fresh.answer(id), used.answer(id)
		if a.Error != nil || string(a.Result) != string(b.Result) {
			t.Errorf("%s = %s for one and %s for another", method, show(&a), show(&b))
		}
	}
}

// A client declares what its functions answer, in the words of each revision: with every
// request of 2026-07-28 and in initialize before it. Elicitation (ELIC-26-007) is declared
// with its modes, or as {} before those existed, which means forms (ELIC-26-008); sampling
// (SAMP-26-007) with tools (SAMP-26-005); roots (ROOT-26-003) with listChanged, as
// RootsChanged announces changes (ROOT-25-001), but for 2026-07-28, which has no such word.
func TestCapabilitiesOfAClient(t *testing.T) {
	elicit := func(c *mcp.Client) {
		c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }
	}
	sample := func(c *mcp.Client) {
		c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return nil, nil }
	}
	roots := func(c *mcp.Client) { c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil } }
	tests := []struct {
		name string
		set  func(*mcp.Client)
		want map[mcp.Revision]string // from that revision on
	}{
		{"nothing", func(*mcp.Client) {}, map[mcp.Revision]string{mcp.V2024_11_05: `{}`}},
		{"elicitation", elicit, map[mcp.Revision]string{
			mcp.V2024_11_05: `{}`, mcp.V2025_06_18: `{"elicitation":{}}`, mcp.V2025_11_25: `{"elicitation":{"form":{},"url":{}}}`}},
		{"sampling", sample, map[mcp.Revision]string{
			mcp.V2024_11_05: `{"sampling":{}}`, mcp.V2025_11_25: `{"sampling":{"tools":{}}}`}},
		{"roots", roots, map[mcp.Revision]string{mcp.V2024_11_05: `{"roots":{"listChanged":true}}`, mcp.V2026_07_28: `{"roots":{}}`}},
	}
	for _, tt := range tests {
		want := ""
		for _, rev := range mcp.Revisions() {
			if w, ok := tt.want[rev]; ok {
				want = w
			}
			t.Run(tt.name+" "+string(rev), func(t *testing.T) {
				c := nothing()
				c.Revisions = []mcp.Revision{rev}
				tt.set(c)
				requests := 0
				s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
					declared, ok := m.ParamIn("_meta", "io.modelcontextprotocol/clientCapabilities")
					if m.Method == "initialize" {
						declared, ok = m.Param("capabilities")
					}
					if must := rev == mcp.V2026_07_28 || m.Method == "initialize"; ok != must {
						t.Errorf("capabilities in %s: %v, want %v", show(&m), ok, must)
					}
					if ok {
						requests++
						var members map[string]json.RawMessage
						if err := json.Unmarshal(declared, &members); err != nil {
							t.Error(err)
						}
						delete(members, "extensions") // and tasks, which are not questions
						delete(members, "tasks")
						if got, _ := json.Marshal(members); string(got) != want {
							t.Errorf("%s declares %s, want %s", m.Method, declared, want)
						}
					}
					switch m.Method {
					case "initialize":
						return initialized(m, string(rev))
					case "server/discover":
						return result(m, discovered)
					case "tools/call":
						return result(m, `{"resultType":"complete","content":[]}`)
					}
					return []string{}
				}))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
					t.Error(err)
				}
				if most := map[bool]int{true: 2, false: 1}[rev == mcp.V2026_07_28]; requests != most {
					t.Errorf("declared %d times, want %d", requests, most)
				}
			})
		}
	}
}

// A server asks only in the ways that its client declared: forms for {} (ELIC-26-008), no
// mode that is missing (ELIC-26-009), no tools in sampling without sampling.tools
// (SAMP-26-006). It holds in both eras.
func TestQuestionsFitCapabilities(t *testing.T) {
	form := func(ctx context.Context) error { _, err := mcp.Elicit[color](ctx, "Which?"); return err }
	visit := func(ctx context.Context) error { return mcp.ElicitURL(ctx, "Log in", "https://example.com/") }
	sample := func(tools ...*mcp.Tool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Tools: tools, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("x")}}}})
			return err
		}
	}
	tool := &mcp.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}
	for _, tt := range []struct {
		question string
		ask      func(context.Context) error
		caps     string
		want     bool
	}{
		{"form", form, `{}`, false},
		{"form", form, `{"elicitation":{}}`, true},
		{"form", form, `{"elicitation":{"form":{}}}`, true},
		{"form", form, `{"elicitation":{"url":{}}}`, false},
		{"form", form, `{"elicitation":{"form":{},"url":{}}}`, true},
		{"form", form, `{"sampling":{"tools":{}},"roots":{}}`, false},
		{"URL", visit, `{}`, false},
		{"URL", visit, `{"elicitation":{}}`, false},
		{"URL", visit, `{"elicitation":{"form":{}}}`, false},
		{"URL", visit, `{"elicitation":{"url":{}}}`, true},
		{"URL", visit, `{"elicitation":{"form":{},"url":{}}}`, true},
		{"sampling", sample(), `{"elicitation":{}}`, false},
		{"sampling", sample(), `{"sampling":{}}`, true},
		{"sampling with tools", sample(tool), `{"sampling":{}}`, false},
		{"sampling with tools", sample(tool), `{"sampling":{"context":{}}}`, false},
		{"sampling with tools", sample(tool), `{"sampling":{"tools":{}}}`, true},
	} {
		bothEras(t, func(t *testing.T, rev mcp.Revision) {
			p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) { return "", tt.ask(ctx) }))
			asked := false
			if rev == mcp.V2026_07_28 {
				p.send(modern(1, "tools/call", tt.caps, `"name":"ask"`))
				asked = strings.Contains(string(p.answer(1).Result), `"input_required"`)
			} else {
				p.initialize(rev, tt.caps)
				p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
				m := p.read()
				if asked = m.Kind() == jsonrpc.KindRequest; asked {
					p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}`, m.ID.AppendJSON(nil)))
					p.answer(1)
				}
			}
			if asked != tt.want {
				t.Errorf("%s of a client with %s is asked: %v, want %v", tt.question, tt.caps, asked, tt.want)
			}
		})
	}
}
