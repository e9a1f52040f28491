package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// newsServer has one of each kind of feature.
func newsServer(name string) *mcp.Server {
	s := &mcp.Server{Name: name, Version: "1", Instructions: "Read " + name + "."}
	mcp.AddTool(s, mcp.Tool{Name: "whoami", Description: "Names the server"},
		func(context.Context, struct{}) (string, error) { return name, nil })
	type form struct {
		Color string `json:"color"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "ask", Description: "Asks the user"}, func(ctx context.Context, _ struct{}) (string, error) {
		v, err := mcp.Elicit[form](ctx, "Which color?")
		return name + " " + v.Color, err
	})
	type topic struct {
		Topic string `json:"topic"`
	}
	mcp.AddPrompt(s, mcp.Prompt{Name: "brief", Complete: map[string]mcp.CompleteFunc{
		"topic": func(context.Context, string, map[string]string) ([]string, error) {
			return []string{name + "-topic"}, nil
		},
	}}, func(_ context.Context, in topic) (string, error) { return name + " on " + in.Topic, nil })
	mcp.AddResource(s, mcp.Resource{URI: name + "://front", Name: "front"},
		func(context.Context) (string, error) { return "front of " + name, nil })
	mcp.AddResource(s, mcp.Resource{URI: "shared://page", Name: "page"},
		func(context.Context) (string, error) { return "page of " + name, nil })
	type id struct {
		ID string `json:"id"`
	}
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: name + "://item/{id}", Name: "item"},
		func(_ context.Context, in id) (string, error) { return name + " item " + in.ID, nil })
	return s
}

func newGateway(t *testing.T, ups map[string]mcp.Handler, order ...string) *gateway.Gateway {
	t.Helper()
	g := &gateway.Gateway{Name: "gw", Version: "1"}
	for _, name := range order {
		if err := g.Set(name, ups[name]); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// every runs body on a gateway of two servers, over five revisions and all wires.
func every(t *testing.T, body func(t *testing.T, s *mcp.Session)) {
	newServer := func() *mcp.Server {
		g := newGateway(t, map[string]mcp.Handler{"daily": newsServer("daily"), "weekly news": newsServer("weekly")}, "weekly news", "daily")
		return &mcp.Server{Name: "gw", Version: "1", Handler: g}
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, body)
}

// Names depend on the configured names of servers (TOOL-26-018), not on their own (TOOL-26-019).
func TestListsAreMergedAndCallsRouted(t *testing.T) {
	every(t, func(t *testing.T, s *mcp.Session) {
		ctx := t.Context()
		var names []string
		for tool, err := range s.Tools(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got, want := strings.Join(names, " "), "daily_whoami daily_ask "+gateway.Name("weekly news", "whoami")+" "+gateway.Name("weekly news", "ask"); got != want {
			t.Errorf("tools = %s, want %s", got, want)
		}
		for tool, want := range map[string]string{"daily_whoami": "daily", gateway.Name("weekly news", "whoami"): "weekly"} {
			res, err := s.CallTool(ctx, tool, nil)
			if err != nil || res.Text() != want {
				t.Errorf("call %s = %v, %v, want %q", tool, res, err, want)
			}
		}
		p, err := s.GetPrompt(ctx, gateway.Name("weekly news", "brief"), map[string]string{"topic": "rain"})
		if err != nil || p.Messages[0].Content.(mcp.TextContent).Text != "weekly on rain" {
			t.Errorf("prompt = %v, %v", p, err)
		}
		c, err := s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: gateway.Name("weekly news", "brief")}, "topic", "", nil)
		if err != nil || len(c.Values) != 1 || c.Values[0] != "weekly-topic" {
			t.Errorf("completion = %v, %v", c, err)
		}
		for uri, want := range map[string]string{
			"daily://front": "front of daily", "weekly://front": "front of weekly",
			"weekly://item/7": "weekly item 7",
			"shared://page":   "page of daily", // belongs to the first server by name
		} {
			r, err := s.ReadResource(ctx, uri)
			if err != nil || r.Contents[0].Text != want {
				t.Errorf("read %s = %v, %v, want %q", uri, r, err, want)
			}
		}
		if in := s.Server().Instructions; !strings.Contains(in, "Read daily.") || !strings.Contains(in, "Read weekly.") {
			t.Errorf("instructions = %q, want those of both servers", in)
		}
	})
}

func TestUnknownNamesAreRefused(t *testing.T) {
	every(t, func(t *testing.T, s *mcp.Session) {
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), "monthly_whoami", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("call of an unknown server = %v, want -32602", err)
		}
		want := mcp.CodeResourceNotFound
		if s.Revision() == mcp.V2026_07_28 {
			want = jsonrpc.CodeInvalidParams
		}
		if _, err := s.ReadResource(t.Context(), "nobody://has/this"); !errors.As(err, &rpc) || rpc.Code != want {
			t.Errorf("read of an unknown resource = %v, want %d", err, want)
		}
	})
}

func TestQuestionsReachTheCaller(t *testing.T) {
	every(t, func(t *testing.T, s *mcp.Session) {
		if s.Revision() < mcp.V2025_06_18 {
			t.Skip("revision has no elicitation")
		}
		res, err := s.CallTool(t.Context(), gateway.Name("weekly news", "ask"), nil)
		if err != nil || res.Text() != "weekly red" {
			t.Errorf("call = %v, %v, want the answer of the user", res, err)
		}
	})
}

// broken fails every request.
type broken struct{ block bool }

func (b broken) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if b.block {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("out of order")
}

func TestABrokenServerIsMissingFromListsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, map[string]mcp.Handler{"a": broken{}, "b": newsServer("b"), "c": broken{block: true}}, "a", "b", "c")
		res, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(res.JSON(), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != 2 || list.Tools[0].Name != "b_whoami" {
			t.Errorf("tools = %v, want those of b", list.Tools)
		}
	})
}

// Unknown members of a server's entries pass through the gateway.
func TestUnknownMembersPass(t *testing.T) {
	raw := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(`{"tools":[{"name":"x","inputSchema":{"type":"object"},"x-new":{"a":[1,2.50]}}]}`), nil
	})
	g := newGateway(t, map[string]mcp.Handler{"u": raw}, "u")
	res, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"tools":[{"name":"u_x","inputSchema":{"type":"object"},"x-new":{"a":[1,2.50]}}]}`
	if got := string(res.JSON()); got != want {
		t.Errorf("tools/list = %s, want %s", got, want)
	}
}

// T-122: tools for the pages of other tools are only for clients that display them.
func TestToolsForPages(t *testing.T) {
	raw := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(`{"tools":[{"name":"page","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}},` +
			`{"name":"both","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app","model"]}}}]}`), nil
	})
	g := newGateway(t, map[string]mcp.Handler{"u": raw}, "u")
	srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	for _, rev := range mcp.Revisions() {
		for _, tt := range []struct {
			extensions map[string]json.RawMessage
			want       int
		}{{nil, 1}, {map[string]json.RawMessage{"io.modelcontextprotocol/ui": json.RawMessage(`{}`)}, 2}} {
			s := mcptest.Connect(t, srv, &mcp.Client{Name: "c", Extensions: tt.extensions}, rev)
			if n := tools(t, s); n != tt.want {
				t.Errorf("%s with %s: %d tools, want %d", rev, tt.extensions, n, tt.want)
			}
		}
	}
}

func TestListenersAreToldOfServersAndTheirChanges(t *testing.T) {
	daily := newsServer("daily")
	g := newGateway(t, map[string]mcp.Handler{"daily": daily}, "daily")
	s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listening := startListening(ctx, t, s, "weekly://front", "daily://item/7")
	listening.want("notifications/subscriptions/acknowledged")
	daily.ResourceUpdated("daily://front") // not subscribed
	daily.ResourceUpdated("daily://item/7")
	listening.want("notifications/resources/updated")

	if err := g.Set("weekly", newsServer("weekly")); err != nil {
		t.Fatal(err)
	}
	listening.want("notifications/tools/list_changed")
	listening.want("notifications/prompts/list_changed")
	listening.want("notifications/resources/list_changed")
	g.Remove("weekly")
	listening.want("notifications/tools/list_changed")
	listening.want("notifications/prompts/list_changed")
	listening.want("notifications/resources/list_changed")
	mcp.AddTool(daily, mcp.Tool{Name: "late"}, func(context.Context, struct{}) (string, error) { return "", nil })
	listening.want("notifications/tools/list_changed")
}

// listening is a Watch whose events a test takes one by one.
type listening struct {
	t      *testing.T
	events chan mcp.Event
}

func startListening(ctx context.Context, t *testing.T, s *mcp.Session, uris ...string) *listening {
	l := &listening{t, make(chan mcp.Event, 100)}
	go func() {
		defer close(l.events)
		for e, err := range s.Watch(ctx, uris...) {
			if err != nil {
				t.Error(err)
				return
			}
			l.events <- e
		}
	}()
	return l
}

func (l *listening) want(method string) {
	l.t.Helper()
	e, ok := <-l.events
	if !ok {
		l.t.Fatalf("no event, want %s", method)
	}
	if e.Method != method {
		l.t.Fatalf("event %s, want %s", e.Method, method)
	}
}

// HTTP-26-069: the gateway itself refuses requests with wrong headers, with the right status.
func TestBadHeadersAreRefused(t *testing.T) {
	g := newGateway(t, map[string]mcp.Handler{"daily": newsServer("daily")}, "daily")
	srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"daily_whoami","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, tt := range []struct {
		header, value string
		status        int
		want          string
	}{
		{"Mcp-Name", "daily_whoami", 200, "daily"},
		{"Mcp-Name", "daily_ask", 400, "-32020"},
		{"Mcp-Name", "", 400, "-32020"},
		{"Mcp-Method", "tools/list", 400, "-32020"},
		{"MCP-Protocol-Version", "2025-11-25", 400, "-32020"},
		{"Origin", "http://evil.example.com", 403, ""},
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(call))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "daily_whoami", tt.header: tt.value,
		} {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %q = %d %s, want %d with %q", tt.header, tt.value, w.Code, w.Body, tt.status, tt.want)
		}
	}
}

// STDIO-26-014, SUB-26-009: a listener continues to receive events of a server that was lost and
// came back.
func TestListenersSurviveALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		ctx, cancel := context.WithCancel(t.Context())
		var daily *mcp.Server
		var far jsonrpc.Conn
		open := func(ctx context.Context) (gateway.Upstream, error) {
			var near jsonrpc.Conn
			near, far = jsonrpc.Pipe()
			daily = newsServer("daily")
			go daily.Serve(context.WithoutCancel(ctx), far)
			return (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{mcp.V2026_07_28}}).Connect(ctx, mcptest.Wire(near))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.Run(ctx, gateway.Source{Name: "daily", Open: open})
		}()
		synctest.Wait()
		s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
		updates := make(chan string, 100)
		go func() {
			for e, err := range s.Watch(ctx, "daily://front") {
				if err == nil && e.Method == "notifications/resources/updated" {
					updates <- e.URI
				}
			}
		}()
		for range 2 {
			synctest.Wait()
			daily.ResourceUpdated("daily://front")
			if uri := <-updates; uri != "daily://front" {
				t.Errorf("told of %s", uri)
			}
			far.Close()
			time.Sleep(time.Minute)
		}
		cancel()
		<-done
		far.Close()
	})
}

func Example() {
	g := &gateway.Gateway{Name: "home", Version: "1"}
	calc := &mcp.Server{Name: "calc", Version: "1"}
	type pair struct{ A, B int }
	mcp.AddTool(calc, mcp.Tool{Name: "add"}, func(_ context.Context, in pair) (string, error) { return fmt.Sprint(in.A + in.B), nil })
	if err := g.Set("calc", calc); err != nil {
		fmt.Println(err)
		return
	}
	// &mcp.Server{Name: "home", Handler: g} serves it over any transport.
	res, err := g.Handle(context.Background(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"calc_add","arguments":{"A":1,"B":2}}`)})
	fmt.Println(string(res.JSON()), err)
	// Output: {"content":[{"type":"text","text":"3"}]} <nil>
}

// T-50, SUB-26-005: the gateway does not acknowledge a subscription that the server refuses.
func TestRefusedSubscriptions(t *testing.T) {
	deaf := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case "resources/list":
			return mcp.RawResult(`{"resources":[{"uri":"deaf://page","name":"page"}]}`), nil
		case "subscriptions/listen":
			err := forward.Notify(ctx, "notifications/subscriptions/acknowledged", json.RawMessage(`{"notifications":{"toolsListChanged":true}}`))
			<-ctx.Done()
			return mcp.RawResult(`{}`), err
		}
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
	})
	g := newGateway(t, map[string]mcp.Handler{"deaf": deaf, "daily": newsServer("daily")}, "deaf", "daily")
	for _, rev := range mcp.Revisions() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for e, err := range connect(t, g, rev).Watch(ctx, "deaf://page", "daily://front") {
			var rpc *mcp.Error
			switch {
			case rev < mcp.V2026_07_28 && (!errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams):
				t.Errorf("%s: %v, %v; want -32602", rev, e, err)
			case rev == mcp.V2026_07_28 && (err != nil || strings.Contains(string(e.Params), "deaf") || !strings.Contains(string(e.Params), "daily")):
				t.Errorf("%s: %s, %v; want daily alone", rev, e.Params, err)
			}
			break
		}
		cancel()
	}
}

// Gateways of one program can be chained, because each has its own ID. Gateways with the same ID
// count as one, which refuses a request that comes back (trap 1).
func TestChainOfGateways(t *testing.T) {
	for _, tt := range []struct {
		ids   [2]string
		loops bool
	}{{[2]string{}, false}, {[2]string{"one", "two"}, false}, {[2]string{"one", "one"}, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &mcp.Server{Name: "s", Version: "1"}
			mcp.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return "done", nil })
			var last *gateway.Gateway
			for _, id := range tt.ids {
				last = &gateway.Gateway{Name: "gw", ID: id}
				run(t, last, gateway.Source{Name: "x", Open: opener(s, mcp.V2026_07_28, false, mcp.Limits{})})
				synctest.Wait()
				s = &mcp.Server{Name: "front", Version: "1", Handler: last}
			}
			_, err := connect(t, last, mcp.V2026_07_28).CallTool(t.Context(), "x_x_t", nil)
			if (err != nil) != tt.loops {
				t.Errorf("ids %q: the call = %v, want an error: %v", tt.ids, err, tt.loops)
			}
		})
	}
}
