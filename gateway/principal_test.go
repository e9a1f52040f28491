package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// users connects sessions with a gateway over HTTP, one per principal.
func users(t *testing.T, g *gateway.Gateway) func(user string, rev mcp.Revision) *mcp.Session {
	t.Helper()
	front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	srv := httptest.NewServer(front)
	t.Cleanup(srv.Close)
	return func(user string, rev mcp.Revision) *mcp.Session {
		t.Helper()
		var asked []string
		c := frontClient(&asked)
		c.Revisions, c.Header = []mcp.Revision{rev}, http.Header{"User": {user}}
		s, err := c.Dial(t.Context(), srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// T-31: each principal has a connection of its own to a server with state, whichever of its
// requests comes first, and anonymous callers share one.
func TestConnectionsAreOfPrincipals(t *testing.T) {
	f := &farm{rev: mcp.V2025_11_25}
	g := &gateway.Gateway{Name: "gw"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx, gateway.Source{Name: "db", Open: f.Open}) }()
	t.Cleanup(func() { cancel(); <-done })
	connect := users(t, g)
	seen := map[string]string{} // user by server
	for range 2 {
		for _, user := range []string{"ada", "eve", ""} {
			for range 2 {
				n := which(t, connect(user, mcp.V2026_07_28))
				if whose, ok := seen[n]; ok && whose != user {
					t.Errorf("%q and %q reach the same server %s", user, whose, n)
				}
				seen[n] = user
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("servers of %v, want three", seen)
	}
	// A session has its own connection, even a session of a known principal.
	if n := which(t, connect("ada", mcp.V2025_06_18)); seen[n] != "" || n == "" {
		t.Errorf("a session reaches server %s of %q", n, seen[n])
	}
}

// One principal does not see the lists of another, neither in routing nor while the server is not
// running.
func TestListsAreOfPrincipals(t *testing.T) {
	long := strings.Repeat("secret", 20)
	srv := newsServer("news")
	mcp.AddTool(srv, mcp.Tool{Name: long}, func(context.Context, struct{}) (string, error) { return "told", nil })
	mcp.AddResource(srv, mcp.Resource{URI: "secret://page", Name: "secret"}, func(context.Context) (string, error) { return "told", nil })
	srv.Visible = func(ctx context.Context, f mcp.Feature) bool {
		return !strings.Contains(f.Name, "secret") || mcp.CallFrom(ctx).Principal == "ada"
	}
	g := &gateway.Gateway{Name: "gw"}
	if err := g.Set("news", srv); err != nil {
		t.Fatal(err)
	}
	connect := users(t, g)
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		ada, eve := connect("ada", rev), connect("eve", rev)
		if a, e := tools(t, ada), tools(t, eve); a != 3 || e != 2 {
			t.Errorf("ada sees %d tools and eve %d, want 3 and 2", a, e)
		}
		name := gateway.Name("news", long)
		if res, err := ada.CallTool(t.Context(), name, nil); err != nil || res.Text() != "told" {
			t.Errorf("ada's call = %v, %v", res, err)
		}
		if res, err := eve.CallTool(t.Context(), name, nil); err == nil {
			t.Errorf("eve's call = %v", res)
		}
		if res, err := ada.ReadResource(t.Context(), "secret://page"); err != nil || res.Contents[0].Text != "told" {
			t.Errorf("ada reads %v, %v", res, err)
		}
		if res, err := eve.ReadResource(t.Context(), "secret://page"); err == nil {
			t.Errorf("eve reads %v", res)
		}
	}
}

// A question that continues in another round belongs to the caller that was asked (T-35, T-37).
func TestRoundsAreOfPrincipals(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		_, g := openPair(t, mcp.V2026_07_28, back, jsonrpc.Pipe)
		front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
		post := func(user, more string) (out struct {
			Result struct {
				ResultType    string
				RequestState  string
				InputRequests map[string]json.RawMessage
				Content       []struct{ Text string }
			}
			Error *mcp.Error
		}) {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one_book","arguments":{}` + more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`
			r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(body))
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "one_book", "User": user} {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			return out
		}
		answer := func(state string, qs map[string]json.RawMessage) string {
			answers := map[string]any{}
			for key := range qs {
				answers[key] = map[string]any{"action": "accept", "content": map[string]any{"color": "red"}}
			}
			raw, err := json.Marshal(answers)
			if err != nil {
				t.Fatal(err)
			}
			return `,"inputResponses":` + string(raw) + `,"requestState":"` + state + `"`
		}
		first := post("ada", "")
		if first.Result.ResultType != "input_required" {
			t.Fatalf("%s: call = %+v", back, first)
		}
		retry := answer(first.Result.RequestState, first.Result.InputRequests)
		if got := post("eve", retry); got.Error == nil || got.Error.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: eve goes on with ada's call: %+v", back, got)
		}
		second := post("ada", retry)
		if second.Result.ResultType != "input_required" {
			t.Fatalf("%s: second round = %+v", back, second)
		}
		if got := post("ada", answer(second.Result.RequestState, second.Result.InputRequests)); len(got.Result.Content) != 1 || got.Result.Content[0].Text != "one: red, red" {
			t.Errorf("%s: the call ends with %+v", back, got)
		}
	}
}

// T-31, T-40: over a connection of one caller, a server may ask only what that caller declares.
// Over a shared connection, the caller is told which capability is missing, and the call at the
// server ends.
func TestUndeclaredQuestion(t *testing.T) {
	for _, share := range []gateway.Share{gateway.PerClient, gateway.Shared} {
		synctest.Test(t, func(t *testing.T) {
			f := &farm{rev: mcp.V2025_11_25}
			ended := make(chan error, 10)
			f.more = func(_ int, s *mcp.Server) {
				mcp.AddTool(s, mcp.Tool{Name: "paint"}, func(ctx context.Context, _ struct{}) (string, error) {
					_, err := mcp.Elicit[color](ctx, "which?")
					ended <- err
					return "", err
				})
			}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: share})
			for name, c := range map[string]*mcp.Client{
				"nothing": {Name: "c"},
				"another": {Name: "c", Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }},
			} {
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, c, mcp.V2026_07_28)
				res, err := s.CallTool(t.Context(), "db_paint", nil)
				var rpc *mcp.Error
				switch {
				case share == gateway.PerClient && (err != nil || !res.IsError || !strings.Contains(res.Text(), "elicitation")):
					t.Errorf("%s declared: %+v, %v; want the server's own words", name, res, err)
				case share == gateway.Shared && (!errors.As(err, &rpc) || rpc.Code != mcp.CodeMissingCapability || !strings.Contains(string(rpc.Data), `"elicitation"`)):
					t.Errorf("%s declared: %v, want -32021", name, err)
				}
				if err := <-ended; err == nil || errors.Is(err, mcp.ErrNotSupported) != (share == gateway.PerClient) {
					t.Errorf("%s declared: the server learns %v", name, err)
				}
			}
		})
	}
}

// T-31: callers of one principal with different capabilities have different connections, and each
// finds its tasks again, whatever it declares later.
func TestConnectionsAreOfCapabilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2025_11_25, more: func(_ int, s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}},
				func(context.Context, struct{}) (string, error) { time.Sleep(time.Minute); return "done", nil })
		}}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		var asked []string
		full := mcptest.Connect(t, srv, frontClient(&asked), mcp.V2026_07_28)
		bare := mcptest.Connect(t, srv, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
		again := mcptest.Connect(t, srv, frontClient(&asked), mcp.V2026_07_28)
		if a, b, c := which(t, full), which(t, bare), which(t, again); a == b || a != c {
			t.Errorf("who can answer reaches %s and %s, who cannot %s", a, c, b)
		}
		task, err := full.StartTask(t.Context(), "db_job", nil)
		if err != nil || task.ID == "" {
			t.Fatalf("task %+v, %v", task, err)
		}
		for name, s := range map[string]*mcp.Session{"full": full, "bare": bare} {
			raw, err := s.Raw(t.Context(), "tasks/get", map[string]string{"taskId": task.ID})
			if err != nil || !strings.Contains(string(raw), `"status":"working"`) {
				t.Errorf("%s: tasks/get = %s, %v", name, raw, err)
			}
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
			t.Errorf("task = %v, %v", res, err)
		}
	})
}

// A call that waits for its caller keeps the connection open, however short Idle is.
func TestIdleWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2025_11_25}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Idle: time.Second})
		c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			time.Sleep(10 * time.Minute) // the user thinks
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
		}}
		s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, c, mcp.V2026_07_28)
		res, err := s.CallTool(t.Context(), "db_ask", nil)
		if err != nil || res.Text() != "news red" {
			t.Errorf("call = %v, %v", res, err)
		}
		time.Sleep(20 * time.Minute)
		if st := g.Status()[0]; st.Conns != 0 || st.State != gateway.Idle {
			t.Errorf("status = %+v", st)
		}
	})
}

// inProcess is a connection to a server in this process, which sees the caller.
type inProcess struct{ *mcp.Server }

func (inProcess) Done() <-chan struct{} { return nil }
func (inProcess) Err() error            { return nil }
func (inProcess) Close() error          { return nil }

// While a server is not running, a caller gets the lists that it received before, and never those
// of another caller.
func TestKeptListsAreOfPrincipals(t *testing.T) {
	srv := newsServer("news")
	mcp.AddTool(srv, mcp.Tool{Name: "secret"}, func(context.Context, struct{}) (string, error) { return "told", nil })
	srv.Visible = func(ctx context.Context, f mcp.Feature) bool {
		call := mcp.CallFrom(ctx)
		return f.Name != "secret" || call != nil && call.Principal == "ada"
	}
	idle := make(chan struct{}, 1000)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Idle {
			idle <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "news", Idle: 50 * time.Millisecond, Open: func(context.Context) (gateway.Upstream, error) {
			return inProcess{srv}, nil
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	connect := users(t, g)
	ada, eve, nobody := connect("ada", mcp.V2025_06_18), connect("eve", mcp.V2025_06_18), connect("", mcp.V2025_06_18)
	for range 2 {
		for who, s := range map[string]*mcp.Session{"ada": ada, "eve": eve, "": nobody} {
			want := 2
			if who == "ada" {
				want = 3
			}
			n := tools(t, s)
			for end := time.Now().Add(time.Minute); n < want && time.Now().Before(end); n = tools(t, s) { // a server that is slow to list is left out
				time.Sleep(10 * time.Millisecond)
			}
			if n != want {
				t.Errorf("%q sees %d tools, want %d", who, n, want)
			}
		}
		for state(g) != "idle" { // then all three lists are kept
			<-idle
		}
	}
}
