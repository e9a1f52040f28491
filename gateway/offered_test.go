package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
)

// foreign is a server with its own error texts, with tools that it does not list, and with names
// that ignore case.
type foreign struct {
	mu    sync.Mutex
	tools []string // listed; guarded by mu
	calls []string // names that it was called with; guarded by mu
	lists int      // times that it was asked for tools; guarded by mu
	fault error    // of lists; guarded by mu
}

func (f *foreign) Handle(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p struct {
		Name string
		Ref  struct{ Name string }
	}
	if req.Params != nil {
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
	}
	kind := "tools"
	switch req.Method {
	case "server/discover":
		return mcp.RawResult(`{"supportedVersions":[],"capabilities":{"tools":{},"prompts":{},"completions":{}}}`), nil
	case "prompts/list":
		kind = "prompts"
		fallthrough
	case "tools/list":
		if f.lists++; f.fault != nil {
			return nil, f.fault
		}
		var all []string
		for _, name := range f.tools {
			all = append(all, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		return mcp.RawResult(`{"` + kind + `":[` + strings.Join(all, ",") + `]}`), nil
	case "tools/call", "prompts/get", "completion/complete":
	default:
		return mcp.RawResult(`{}`), nil
	}
	f.calls = append(f.calls, p.Name+p.Ref.Name)
	if !slices.ContainsFunc([]string{"safe", "delete_all", "hidden"}, func(known string) bool { return strings.EqualFold(known, p.Name+p.Ref.Name) }) {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "Unknown thing: %s", p.Name)
	}
	return mcp.RawResult(`{"content":[],"messages":[],"completion":{"values":[]}}`), nil
}

// take returns the calls since the previous take.
func (f *foreign) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// Only listed tools are called, by their exact names. A tool that a policy refuses for good gets
// the same answer as one that does not exist, whoever wrote the server (trap 21): through the
// gateway, and through a bridge with a policy.
func TestOnlyListedNames(t *testing.T) {
	refuse := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name != "delete_all", Rule: "test"}
	})
	guard := func(server string) mcp.Middleware { return policy.Middleware(server, refuse, nil) }
	methods := map[string]string{
		"tools/call":          `{"name":%q}`,
		"prompts/get":         `{"name":%q}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":""}}`,
	}
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		for _, way := range []string{"gateway", "gateway with a policy", "bridge with a policy"} {
			t.Run(string(rev)+" "+way, func(t *testing.T) {
				f := &foreign{tools: []string{"safe", "delete_all", "a__b"}}
				g := &gateway.Gateway{Name: "gw"}
				if strings.HasSuffix(way, "policy") {
					g.Middleware = guard
				}
				behind := mcptest.Connect(t, &mcp.Server{Name: "m", Version: "1", Handler: f}, &mcp.Client{Name: "gw", Version: "1"}, rev)
				if err := g.Set("m", behind); err != nil {
					t.Fatal(err)
				}
				var h mcp.Handler = g
				prefix := "m_"
				if strings.HasPrefix(way, "bridge") {
					h, prefix = g.Direct("m"), ""
				}
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: h}, &mcp.Client{Name: "c", Version: "1"}, rev)
				for method, params := range methods {
					use := func(name string) error {
						_, err := s.Raw(t.Context(), method, json.RawMessage(fmt.Sprintf(params, name)))
						return err
					}
					if err := use(prefix + "safe"); err != nil || !slices.Equal(f.take(), []string{"safe"}) {
						t.Errorf("%s of what is listed: %v", method, err)
					}
					names := []string{"DELETE_ALL", "hidden", "Safe", "safe ", "nothing"}
					if g.Middleware != nil {
						names = append(names, "delete_all")
					}
					answers := map[string]bool{}
					for _, name := range names {
						err := use(prefix + name)
						var rpc *mcp.Error
						if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams || len(f.take()) > 0 {
							t.Errorf("%s %q = %v, want that there is none", method, name, err)
							continue
						}
						answers[strings.ReplaceAll(rpc.Message, prefix+name, "NAME")+string(rpc.Data)] = true
					}
					if len(answers) != 1 {
						t.Errorf("%s: the answers differ: %v", method, answers)
					}
				}
			})
		}
	}
}

// A tool that is newer than the list can be called: the server is asked for its list again, once
// for concurrent callers. A call fails if the list cannot be fetched.
func TestNewNamesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreign{tools: []string{"safe"}}
		g := &gateway.Gateway{Name: "gw"}
		if err := g.Set("m", f); err != nil {
			t.Fatal(err)
		}
		call := func(name string) error {
			_, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + name + `"}`)})
			return err
		}
		if err := call("m_safe"); err != nil { // its list was never asked for
			t.Fatal(err)
		}
		if err := call(`m_\u0073afe`); err != nil {
			t.Errorf("an escaped name: %v", err)
		}
		f.mu.Lock()
		lists := f.lists
		f.tools = append(f.tools, "hidden")
		f.mu.Unlock()
		if lists != 1 {
			t.Errorf("the server was asked %d times for its tools, want once", lists)
		}
		if err := call("m_hidden"); err != nil {
			t.Errorf("a new tool: %v", err)
		}
		f.mu.Lock()
		lists = f.lists
		f.fault = errors.New("busy")
		f.mu.Unlock()
		if lists != 2 {
			t.Errorf("the server was asked %d times for its tools, want twice", lists)
		}
		if err := call("m_hidden"); err != nil {
			t.Errorf("a known tool of a server whose list fails: %v", err)
		}
		f.take()
		if err := call("m_other"); err == nil || !strings.Contains(err.Error(), "busy") || len(f.take()) > 0 {
			t.Errorf("a name of a server whose list fails: %v", err)
		}
	})
}

// Many concurrent calls with unknown names cost a server few lists.
func TestMissedNamesShareAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreign{tools: []string{"safe"}}
		gate := make(chan struct{})
		g := &gateway.Gateway{Name: "gw"}
		slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/list" {
				<-gate
			}
			return f.Handle(ctx, req)
		})
		if err := g.Set("m", slow); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"m_nothing"}`)}); err == nil {
					t.Error("a tool that there is not was called")
				}
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		if f.lists > 2 {
			t.Errorf("100 calls had the server asked %d times for its tools, want at most twice", f.lists)
		}
	})
}

// The names of a list that is too long to keep are still known.
func TestNamesOfALongList(t *testing.T) {
	f := &foreign{}
	for i := range 30 {
		f.tools = append(f.tools, strings.Repeat("x", 200_000)+fmt.Sprint(i))
	}
	f.tools = append(f.tools, "safe")
	g := &gateway.Gateway{Name: "gw"}
	if err := g.Set("m", f); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"m_safe"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if f.lists != 1 {
		t.Errorf("the server was asked %d times for its tools, want once", f.lists)
	}
}

// A server that reports an unknown URI in its own words does not keep others from being asked.
func TestUnlistedResources(t *testing.T) {
	g := &gateway.Gateway{Name: "gw"}
	rude := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "bad scheme")
	})
	kind := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == "resources/read" && strings.Contains(string(req.Params), "made://1") {
			return mcp.RawResult(`{"contents":[]}`), nil
		}
		return nil, mcp.ResourceNotFound("?")
	})
	for name, h := range map[string]mcp.Handler{"a": rude, "b": kind} {
		if err := g.Set(name, h); err != nil {
			t.Fatal(err)
		}
	}
	read := func(uri string) error {
		_, err := g.Handle(t.Context(), &mcp.Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"` + uri + `"}`)})
		return err
	}
	if err := read("made://1"); err != nil {
		t.Errorf("what the second server has: %v", err)
	}
	if err := read("made://2"); err == nil || !strings.Contains(err.Error(), "bad scheme") {
		t.Errorf("what no server has: %v, want the fault of the first", err)
	}
}

// Trap F10: a tool that Source.Offers leaves out is missing from lists, calls and the counts of
// Status, behind Gateway and Direct, with middleware and without.
func TestOffers(t *testing.T) {
	around := func(string) mcp.Middleware { return func(next mcp.Handler) mcp.Handler { return next } }
	for _, tt := range []struct {
		name       string
		middleware func(string) mcp.Middleware
		direct     bool
		prefix     string
	}{
		{"gateway", nil, false, "db_"},
		{"gateway with middleware", around, false, "db_"},
		{"direct", nil, true, ""},
		{"direct with middleware", around, true, ""},
	} {
		for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(tt.name+" "+string(rev), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &farm{rev: rev}
					g := &gateway.Gateway{Name: "gw", Version: "1", Middleware: tt.middleware}
					run(t, g, gateway.Source{Name: "db", Open: f.Open, Offers: func(tool string) bool { return tool != "whoami" }})
					h := mcp.Handler(g)
					if tt.direct {
						h = g.Direct("db")
					}
					s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: h}, &mcp.Client{Name: "c", Version: "1"}, rev)
					for range 2 { // the second call finds what is kept
						var rpc *mcp.Error
						if res, err := s.CallTool(t.Context(), tt.prefix+"whoami", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
							t.Errorf("a call of a tool that is left out = %v, %v", res, err)
						}
					}
					if res, err := s.CallTool(t.Context(), tt.prefix+"which", nil); err != nil {
						t.Errorf("a call of another tool = %v, %v", res, err)
					}
					var names []string
					for tool, err := range s.Tools(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						names = append(names, tool.Name)
					}
					if got, want := strings.Join(names, " "), tt.prefix+"ask "+tt.prefix+"which"; got != want {
						t.Errorf("tools = %q, want %q", got, want)
					}
					if n := g.Status()[0].Tools; n != 2 {
						t.Errorf("Status has %d tools, want 2", n)
					}
				})
			})
		}
	}
}
