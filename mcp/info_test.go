package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Every result of 2026-07-28 says which server it is of (META-26-014), also one that asks
// for input; which client asks changes nothing of it (META-26-015).
func TestServerInfoInResults(t *testing.T) {
	s := library()
	addTools(s, 0, 1)
	p := rawClient(t, s)
	for i, tt := range []struct{ method, more string }{
		{"server/discover", ""}, {"tools/list", ""}, {"tools/call", `"name":"t000"`}, {"resources/list", ""},
		{"resources/templates/list", ""}, {"resources/read", `"uri":"lib:text"`}, {"resources/read", `"uri":"lib:result"`},
		{"resources/read", `"uri":"lib:asks"`}, {"prompts/list", ""}, {"prompts/get", `"name":"greet","arguments":{"name":"x"}`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"}`},
	} {
		first := ""
		for j, client := range []string{"", `{"name":"library","version":"1"}`, `{"name":"Patchbay","version":"999","title":"Root","websiteUrl":"https://example.com"}`, `7`} {
			id := int64(10*i + j)
			frame := modern(id, tt.method, canElicit, tt.more)
			if client != "" {
				frame = strings.Replace(frame, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/clientInfo":`+client+`,`, 1)
			}
			p.send(frame)
			m := p.answer(id)
			if !strings.Contains(string(m.Result), `"io.modelcontextprotocol/serverInfo":{"name":"library","version":"1"}`) {
				t.Errorf("%s of the client %s = %s", tt.method, client, show(&m))
			}
			got := string(m.Result)
			if before, _, ok := strings.Cut(got, `"requestState"`); ok {
				got = before // sealed anew each time
			}
			if j == 0 {
				first = got
			} else if got != first {
				t.Errorf("%s of the client %s = %s, and of no client %s", tt.method, client, got, first)
			}
		}
	}
}

// A client says with every request of 2026-07-28 who it is (META-26-009), and does the
// same whoever the server says it is (DISC-26-005, -006).
func TestClientInfoInRequests(t *testing.T) {
	var first []string
	for i, server := range []string{`{"name":"stub","version":"1"}`, `{"name":"patchbay","version":"999"}`, `{"name":"c","version":"1","title":"Root"}`, `{"name":"","version":""}`, ``} {
		var sent []string
		s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			if m.Kind() == jsonrpc.KindRequest {
				sent = append(sent, show(&m))
			}
			if info, _ := m.ParamIn("_meta", "io.modelcontextprotocol/clientInfo"); !strings.Contains(string(info), `"name":"c"`) {
				t.Errorf("%s has the client %s", m.Method, info)
			}
			meta := ""
			if server != "" {
				meta = `,"_meta":{"io.modelcontextprotocol/serverInfo":` + server + `}`
			}
			switch m.Method {
			case "server/discover":
				return result(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"`+meta+`}`)
			case "tools/list":
				return result(m, `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"`+meta+`}`)
			}
			return result(m, `{"resultType":"complete","content":[]`+meta+`}`)
		}))
		if err != nil {
			t.Fatalf("server %s: %v", server, err)
		}
		toolNames(t, s)
		if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
			t.Errorf("server %s: %v", server, err)
		}
		s.Close()
		if i == 0 {
			first = sent
		} else if got, want := strings.Join(sent, "\n"), strings.Join(first, "\n"); got != want {
			t.Errorf("to the server %s is sent\n%s\nand to another\n%s", server, got, want)
		}
	}
}

// A server's ServerInfo is kept with its encodings, until its features change.
func TestIntroductionFollowsFeatures(t *testing.T) {
	s := &mcp.Server{Name: "growing", Version: "1"}
	p := rawClient(t, s)
	id := int64(0)
	check := func(want ...string) {
		t.Helper()
		for range 2 {
			id++
			p.send(modern(id, "server/discover", "{}", ""))
			m := p.answer(id)
			caps, _ := jsonx.Lookup(m.Result, "capabilities")
			for _, name := range []string{"tools", "prompts", "resources", "completions", "extensions"} {
				if _, has := jsonx.Lookup(caps, name); has != slices.Contains(want, name) {
					t.Errorf("capabilities %s, want %q beside logging", caps, want)
				}
			}
		}
	}
	check()
	addTools(s, 0, 1)
	check("tools")
	s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "t000"})
	check("tools")
	mcp.AddTool(s, mcp.Tool{Name: "slow", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) { return "", nil })
	check("tools", "extensions")
	s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "slow"})
	check("tools")
	mcp.AddResource(s, mcp.Resource{URI: "a:b", Name: "b"}, func(context.Context) (string, error) { return "", nil })
	check("tools", "resources")
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "a:{name}", Name: "t"}, func(context.Context, struct {
		Name string `json:"name"`
	}) (string, error) {
		return "", nil
	})
	check("tools", "resources", "completions")
}

// A result that is encoded once for all callers of a server differs from the result of a second
// server that forwards it: the second has its own revisions and name (T-10, META-26-014).
func TestKeptAnswersAreOfOneHop(t *testing.T) {
	back := &mcp.Server{Name: "back", Version: "1", Cache: mcp.CacheHint{TTL: time.Minute}}
	addTools(back, 0, 3)
	front := &mcp.Server{Name: "front", Version: "2", Handler: back, Revisions: []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25}}
	for range 2 {
		for _, s := range []*mcp.Server{back, front} {
			p := rawClient(t, s)
			p.send(modern(1, "server/discover", "{}", ""))
			m := p.answer(1)
			var info struct{ SupportedVersions []string }
			if err := json.Unmarshal(m.Result, &info); err != nil {
				t.Fatal(err)
			}
			if want := map[*mcp.Server]int{back: 5, front: 2}[s]; len(info.SupportedVersions) != want {
				t.Errorf("%s names the versions %q, want %d", s.Name, info.SupportedVersions, want)
			}
			p.send(modern(2, "tools/list", "{}", ""))
			m = p.answer(2)
			if !strings.Contains(string(m.Result), `/serverInfo":{"name":"`+s.Name+`"`) {
				t.Errorf("the list of %s is %s", s.Name, m.Result)
			}
			if ttl := strings.Contains(string(m.Result), `"ttlMs":60000`); ttl != (s == back) {
				t.Errorf("the list of %s may be kept for a minute: %v", s.Name, ttl)
			}
		}
	}
}
