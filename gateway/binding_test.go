package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// studio is a server with something of each kind that can belong to a caller.
type studio struct {
	*mcp.Server
	began chan struct{} // a call of hold has begun
	end   chan struct{} // lets one of them end
}

func newStudio() *studio {
	s := &studio{&mcp.Server{Name: "studio", Version: "1", Tasks: mcp.TaskConfig{Poll: 10 * time.Millisecond}}, make(chan struct{}, 10), make(chan struct{})}
	mcp.AddTool(s.Server, mcp.Tool{Name: "hold"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "begun")
		s.began <- struct{}{}
		select {
		case <-s.end:
			return "held", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	mcp.AddTool(s.Server, mcp.Tool{Name: "paint"}, func(ctx context.Context, _ struct{}) (string, error) {
		c, err := mcp.Elicit[color](ctx, "which?")
		return "painted " + c.Color, err
	})
	mcp.AddTool(s.Server, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, "which?")
			if errors.Is(err, mcp.ErrNotSupported) {
				return "", err
			}
			return "worked " + c.Color, err
		})
	mcp.AddResource(s.Server, mcp.Resource{URI: "studio://wall", Name: "wall"}, func(context.Context) (string, error) { return "wall", nil })
	return s
}

// bound is a server as callers reach it.
type bound struct {
	*studio
	url    string
	prefix string // of the names of tools
	tasks  bool   // its tools become tasks for callers that request tasks
}

// bindings are the ways in which callers reach a server, each with one of its own.
var bindings = []struct {
	name   string
	prefix string
	behind mcp.Revision // spoken with the server; empty if there is no gateway
	handle func(t *testing.T, s *studio, rev mcp.Revision) mcp.Handler
}{
	{"server", "", "", nil},
	{"session of 2025-11-25", "", mcp.V2025_11_25, throughSession},
	{"session of 2026-07-28", "", mcp.V2026_07_28, throughSession},
	{"gateway in process", "st_", "", func(t *testing.T, s *studio, _ mcp.Revision) mcp.Handler {
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		if err := g.Set("st", s.Server); err != nil {
			t.Fatal(err)
		}
		return g
	}},
	{"gateway shared 2025-11-25", "st_", mcp.V2025_11_25, throughGateway(gateway.Shared)},
	{"gateway per client 2025-11-25", "st_", mcp.V2025_11_25, throughGateway(gateway.PerClient)},
	{"gateway shared 2026-07-28", "st_", mcp.V2026_07_28, throughGateway(gateway.Shared)},
	{"gateway shared 2025-03-26", "st_", mcp.V2025_03_26, throughGateway(gateway.Shared)},
	{"bridge shared 2025-11-25", "", mcp.V2025_11_25, throughBridge},
	{"bridge shared 2026-07-28", "", mcp.V2026_07_28, throughBridge},
}

func middleClient(rev mcp.Revision) *mcp.Client {
	c := &mcp.Client{Name: "middle", Version: "1", Revisions: []mcp.Revision{rev}}
	c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return c
}

func throughSession(t *testing.T, s *studio, rev mcp.Revision) mcp.Handler {
	return mcptest.Connect(t, s.Server, middleClient(rev), rev)
}

// pooled runs a gateway with the server.
func pooled(t *testing.T, s *studio, share gateway.Share, rev mcp.Revision) *gateway.Gateway {
	ready := make(chan struct{}, 100)
	g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready && s.Tools > 0 {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		g.Run(ctx, gateway.Source{Name: "st", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
			near, far := jsonrpc.Pipe()
			go s.Serve(context.WithoutCancel(ctx), far) // ends with the connection
			c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
			gateway.Relay(ctx, c)
			return c.Connect(ctx, mcptest.Wire(near))
		}})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	<-ready
	return g
}

func throughGateway(share gateway.Share) func(*testing.T, *studio, mcp.Revision) mcp.Handler {
	return func(t *testing.T, s *studio, rev mcp.Revision) mcp.Handler { return pooled(t, s, share, rev) }
}

func throughBridge(t *testing.T, s *studio, rev mcp.Revision) mcp.Handler {
	return pooled(t, s, gateway.Shared, rev).Direct("st")
}

// surfer writes HTTP requests for a user.
type surfer struct {
	t       *testing.T
	at      *bound
	user    string
	rev     mcp.Revision
	session string // of a revision with sessions
}

func (at *bound) surfer(t *testing.T, user string, rev mcp.Revision) *surfer {
	t.Helper()
	s := &surfer{t: t, at: at, user: user, rev: rev}
	if rev < mcp.V2026_07_28 {
		res := s.send(s.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + string(rev) + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`))
		s.session = res.Header.Get("Mcp-Session-Id")
		io.Copy(io.Discard, res.Body)
		if s.session == "" {
			t.Fatalf("%s: initialize = %s", rev, res.Status)
		}
	}
	return s
}

// request builds a request of a method with its params, "" for none.
func (s *surfer) request(id int, method, params string) *http.Request {
	if s.rev < mcp.V2026_07_28 {
		return s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params))
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}},"progressToken":"token"}`
	if params != "" {
		meta = "," + meta
	}
	r := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, meta))
	r.Header.Set("Mcp-Method", method)
	var named struct{ Name, TaskID string }
	if err := json.Unmarshal([]byte("{"+params+"}"), &named); err != nil {
		s.t.Fatal(err)
	}
	if name := named.Name + named.TaskID; name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	return r
}

func (s *surfer) post(body string) *http.Request { return s.bare("POST", body) }

func (s *surfer) bare(method, body string) *http.Request {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.at.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("User", s.user)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == "GET" {
		r.Header.Set("Accept", "text/event-stream")
	}
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
	}
	if s.rev >= mcp.V2025_06_18 {
		r.Header.Set("MCP-Protocol-Version", string(s.rev))
	}
	return r
}

// surfing keeps its connections to itself: each httptest.Server that ends closes those of the default client.
var surfing = &http.Client{Transport: new(http.Transport)}

func (s *surfer) send(r *http.Request) *http.Response {
	s.t.Helper()
	res, err := surfing.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

// answer is a complete HTTP response: status, headers and body.
func (s *surfer) answer(r *http.Request) string {
	s.t.Helper()
	res := s.send(r)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return seen(res) + string(body)
}

func seen(res *http.Response) string {
	var lines []string
	for name, v := range res.Header {
		if name != "Date" {
			lines = append(lines, name+": "+strings.Join(v, ", ")+"\n")
		}
	}
	slices.Sort(lines)
	return res.Status + "\n" + strings.Join(lines, "") + "\n"
}

// reading is an event stream.
type reading struct {
	t  *testing.T
	in *bufio.Scanner
}

func (s *surfer) read(r *http.Request) *reading {
	s.t.Helper()
	res := s.send(r)
	if t := res.Header.Get("Content-Type"); t != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%s %s: %s", res.Status, t, body)
	}
	return &reading{s.t, bufio.NewScanner(res.Body)}
}

// next returns the next message whose text contains what, and the id of its event. Messages that it
// skips must not contain the texts of others.
func (r *reading) next(what string, others ...string) (id, data string) {
	r.t.Helper()
	for r.in.Scan() {
		line := r.in.Text()
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if ok && strings.Contains(data, what) {
			return id, data
		}
		for _, other := range others {
			if ok && strings.Contains(data, other) {
				r.t.Errorf("the stream brings %s", data)
			}
		}
	}
	r.t.Fatalf("no %s: the stream ended with %v", what, r.in.Err())
	return "", ""
}

// claim is something that belongs to a caller, and the ways in which another may try to use it.
type claim struct {
	name string
	in   func(rev mcp.Revision, at *bound) bool // whether there is such a thing

	// mine makes the thing for ada. It returns its name, and a check that it has not changed.
	mine func(t *testing.T, ada *surfer) (id string, untouched func())

	// tries are eve's attempts with the name, each of which gets an answer at once.
	tries func(eve *surfer, id string) []*http.Request
}

func legacyRev(rev mcp.Revision, _ *bound) bool { return rev < mcp.V2026_07_28 }

var claims = []claim{
	{
		"session", legacyRev,
		func(t *testing.T, ada *surfer) (string, func()) {
			return ada.session, func() {
				if got := ada.answer(ada.request(9, "ping", "")); !strings.Contains(got, `"result"`) {
					t.Errorf("ada's session answers %s", got)
				}
			}
		},
		func(eve *surfer, id string) []*http.Request {
			thief := *eve
			thief.session = id
			resume := thief.bare("GET", "")
			resume.Header.Set("Last-Event-ID", id+"-1")
			return []*http.Request{
				thief.request(1, "ping", ""), thief.request(1, "tools/list", ""),
				thief.request(1, "initialize", `"protocolVersion":"`+string(eve.rev)+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}`),
				thief.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`),
				thief.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`),
				thief.post(`{"jsonrpc":"2.0","id":1,"result":{}}`),
				thief.bare("GET", ""), resume, thief.bare("DELETE", ""),
			}
		},
	},
	{
		"event stream", legacyRev,
		func(t *testing.T, ada *surfer) (string, func()) {
			r := ada.read(ada.request(1, "tools/call", `"name":"`+ada.at.prefix+`hold","_meta":{"progressToken":"token"}`))
			id, _ := r.next("notifications/progress")
			return id, func() {
				ada.at.end <- struct{}{}
				r.next(`"held"`)
				again := ada.bare("GET", "")
				again.Header.Set("Last-Event-ID", id)
				ada.read(again).next(`"held"`)
			}
		},
		func(eve *surfer, id string) []*http.Request {
			resume := eve.bare("GET", "")
			resume.Header.Set("Last-Event-ID", id)
			return []*http.Request{resume}
		},
	},
	{
		"call", func(mcp.Revision, *bound) bool { return true },
		func(t *testing.T, ada *surfer) (string, func()) {
			r := ada.read(ada.request(77, "tools/call", `"name":"`+ada.at.prefix+`hold"`+legacyToken(ada.rev)))
			r.next("notifications/progress")
			return "77", func() {
				ada.at.end <- struct{}{}
				r.next(`"held"`, "notifications/progress")
			}
		},
		func(eve *surfer, id string) []*http.Request {
			return []*http.Request{eve.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id +
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + string(eve.rev) + `"}}}`)}
		},
	},
	{
		"question",
		func(rev mcp.Revision, at *bound) bool {
			return (rev == mcp.V2025_06_18 || rev == mcp.V2025_11_25) && at.tasks
		},
		func(t *testing.T, ada *surfer) (string, func()) {
			r := ada.read(ada.request(1, "tools/call", `"name":"`+ada.at.prefix+`paint"`))
			_, q := r.next("elicitation/create")
			var asked struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(q), &asked); err != nil {
				t.Fatal(err)
			}
			return string(asked.ID), func() {
				ada.answer(ada.post(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"action":"accept","content":{"color":"red"}}}`))
				r.next("painted red", "blue")
			}
		},
		func(eve *surfer, id string) []*http.Request {
			return []*http.Request{eve.post(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"color":"blue"}}}`)}
		},
	},
	{
		"requestState", func(rev mcp.Revision, at *bound) bool { return rev == mcp.V2026_07_28 && at.tasks },
		func(t *testing.T, ada *surfer) (string, func()) {
			call := `"name":"` + ada.at.prefix + `paint"`
			var round struct {
				Result struct{ RequestState string }
			}
			got := ada.answer(ada.request(1, "tools/call", call))
			if err := json.Unmarshal([]byte(bodyOf(got)), &round); err != nil || round.Result.RequestState == "" {
				t.Fatalf("no state in %s", got)
			}
			for k := range questionsIn(t, got) {
				return round.Result.RequestState + " " + k, func() {
					if got := ada.answer(retried(ada, round.Result.RequestState+" "+k, "red")); !strings.Contains(got, "painted red") {
						t.Errorf("ada's call ends with %s", got)
					}
				}
			}
			t.Fatalf("no question in %s", got)
			return "", nil
		},
		func(eve *surfer, id string) []*http.Request { return []*http.Request{retried(eve, id, "blue")} },
	},
	{
		"task of 2025-11-25", func(rev mcp.Revision, at *bound) bool { return rev == mcp.V2025_11_25 && at.tasks },
		func(t *testing.T, ada *surfer) (string, func()) {
			id := taskIn(t, ada.answer(ada.request(1, "tools/call", `"name":"`+ada.at.prefix+`work","task":{}`)))
			return id, func() {
				r := ada.read(ada.request(2, "tasks/result", `"taskId":"`+id+`"`))
				_, q := r.next("elicitation/create")
				var asked struct{ ID json.RawMessage }
				if err := json.Unmarshal([]byte(q), &asked); err != nil {
					t.Fatal(err)
				}
				ada.answer(ada.post(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"action":"accept","content":{"color":"red"}}}`))
				r.next("worked red")
			}
		},
		func(eve *surfer, id string) []*http.Request {
			named := `"taskId":"` + id + `"`
			return []*http.Request{
				eve.request(1, "tasks/get", named), eve.request(1, "tasks/result", named), eve.request(1, "tasks/cancel", named),
				eve.request(1, "tasks/list", ""), eve.request(1, "tasks/update", named+`,"inputResponses":{}`),
			}
		},
	},
	{
		"task of 2026-07-28", func(rev mcp.Revision, at *bound) bool { return rev == mcp.V2026_07_28 && at.tasks },
		func(t *testing.T, ada *surfer) (string, func()) {
			call := `"name":"` + ada.at.prefix + `work"`
			first := ada.answer(ada.request(1, "tools/call", call))
			if !strings.Contains(first, `"taskId"`) {
				return "", nil // the server in front of this is asked for no task (T-104)
			}
			id := taskIn(t, first)
			return id, func() {
				var key string
				for key == "" {
					got := ada.answer(ada.request(2, "tasks/get", `"taskId":"`+id+`"`))
					if strings.Contains(got, "cancelled") || strings.Contains(got, "completed") || strings.Contains(got, `"error"`) {
						t.Fatalf("ada's task is %s", got)
					}
					for k := range questionsIn(t, got) {
						key = k
					}
				}
				ada.answer(ada.request(3, "tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"accept","content":{"color":"red"}}}`))
				for {
					got := ada.answer(ada.request(4, "tasks/get", `"taskId":"`+id+`"`))
					if strings.Contains(got, "worked red") {
						return
					}
					if strings.Contains(got, "cancelled") || strings.Contains(got, "blue") || strings.Contains(got, `"error"`) {
						t.Fatalf("ada's task became %s", got)
					}
				}
			}
		},
		func(eve *surfer, id string) []*http.Request {
			named := `"taskId":"` + id + `"`
			return []*http.Request{
				eve.request(1, "tasks/get", named), eve.request(1, "tasks/cancel", named),
				eve.request(1, "tasks/update", named+`,"inputResponses":{"q1":{"action":"accept","content":{"color":"blue"}}}`),
			}
		},
	},
}

// legacyToken asks for progress; a request of 2026-07-28 does so always.
func legacyToken(rev mcp.Revision) string {
	if rev == mcp.V2026_07_28 {
		return ""
	}
	return `,"_meta":{"progressToken":"token"}`
}

// retried continues a call with its state and the key of its question.
func retried(s *surfer, id, with string) *http.Request {
	state, key, _ := strings.Cut(id, " ")
	return s.request(2, "tools/call", `"name":"`+s.at.prefix+`paint","requestState":"`+state+`","inputResponses":{"`+key+
		`":{"action":"accept","content":{"color":"`+with+`"}}}`)
}

func bodyOf(answer string) string {
	_, body, _ := strings.Cut(answer, "\n\n")
	if i := strings.Index(body, "data: {"); i >= 0 { // the last message of a stream
		body = body[strings.LastIndex(body, "data: {")+len("data: "):]
	}
	return body
}

func taskIn(t *testing.T, answer string) string {
	t.Helper()
	var m struct {
		Result struct {
			TaskID string
			Task   struct{ TaskID string }
		}
	}
	if err := json.Unmarshal([]byte(bodyOf(answer)), &m); err != nil || m.Result.TaskID+m.Result.Task.TaskID == "" {
		t.Fatalf("no task in %s", answer)
	}
	return m.Result.TaskID + m.Result.Task.TaskID
}

func questionsIn(t *testing.T, answer string) map[string]json.RawMessage {
	t.Helper()
	var m struct {
		Result struct{ InputRequests map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(bodyOf(answer)), &m); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return m.Result.InputRequests
}

// never returns a similar name that was never given out.
func never(id string) string {
	if strings.Trim(id, "0123456789") == "" {
		return id + "1"
	}
	b := []byte(id)
	for i := len(b) / 2; ; i++ {
		if b[i] == 'A' {
			b[i] = 'B'
			return string(b)
		}
		if 'B' <= b[i] && b[i] <= 'Z' || 'a' <= b[i] && b[i] <= 'z' {
			b[i] = 'A'
			return string(b)
		}
	}
}

// Eve knows the name of ada's thing. Each of her requests with it gets the same answer as for a name
// that never existed, byte for byte except for the name, and ada's thing does not change.
//
// TASK-25-060, TASK-25-061, XTASK-26-046, MRTR-26-011, T-31, T-35, T-112.
func TestWhatIsOfAPrincipal(t *testing.T) {
	everyBinding(t, func(t *testing.T, at *bound, rev mcp.Revision) {
		for _, c := range claims {
			if !c.in(rev, at) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				ada := at.surfer(t, "ada", rev)
				id, untouched := c.mine(t, ada)
				if untouched == nil {
					return
				}
				for _, user := range []string{"eve", ""} {
					eve := at.surfer(t, user, rev)
					foreign, unknown := c.tries(eve, id), c.tries(eve, never(id))
					for i := range foreign {
						got, want := eve.answer(foreign[i]), eve.answer(unknown[i])
						got, want = strings.ReplaceAll(got, id, "ID"), strings.ReplaceAll(want, never(id), "ID")
						if got != want {
							t.Errorf("%q, %s %d: ada's is answered with\n%s\nand what never was with\n%s", user, foreign[i].Method, i, got, want)
						}
					}
				}
				untouched()
			})
		}
	})
}

// everyBinding runs a test on every revision, on each way to a server.
func everyBinding(t *testing.T, test func(t *testing.T, at *bound, rev mcp.Revision)) {
	for _, way := range bindings {
		for _, rev := range mcp.Revisions() {
			t.Run(way.name+"/"+string(rev), func(t *testing.T) {
				t.Parallel()
				st := newStudio()
				front := st.Server
				if way.handle != nil {
					front = &mcp.Server{Name: "front", Version: "1", Handler: way.handle(t, st, way.behind)}
				}
				front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
				srv := httptest.NewServer(front)
				t.Cleanup(srv.Close)
				t.Cleanup(func() { front.Shutdown(t.Context()) })
				test(t, &bound{st, srv.URL, way.prefix, way.behind == "" || way.behind >= mcp.V2025_11_25}, rev)
			})
		}
	}
}

// A subscription belongs to its caller: nobody else can end it or receive its events. TASK-25-060,
// T-112.
func TestSubscriptionsAreOfPrincipals(t *testing.T) {
	everyBinding(t, func(t *testing.T, at *bound, rev mcp.Revision) {
		ada, eve := at.surfer(t, "ada", rev), at.surfer(t, "eve", rev)
		fence := func() {
			mcp.AddTool(at.Server, mcp.Tool{Name: "fence"}, func(context.Context, struct{}) (string, error) { return "", nil })
		}
		const changed = "notifications/tools/list_changed"
		if rev < mcp.V2026_07_28 {
			news, others := ada.read(ada.bare("GET", "")), eve.read(eve.bare("GET", ""))
			wall := `"uri":"studio://wall"`
			if got := ada.answer(ada.request(1, "resources/subscribe", wall)); !strings.Contains(got, `"result"`) {
				t.Fatalf("subscribe: %s", got)
			}
			eve.answer(eve.request(1, "resources/unsubscribe", wall))
			at.ResourceUpdated("studio://wall")
			news.next("resources/updated")
			fence()
			others.next(changed, "resources/updated")
			return
		}
		if !at.tasks {
			return
		}
		first := ada.answer(ada.request(1, "tools/call", `"name":"`+at.prefix+`work"`))
		if !strings.Contains(first, `"taskId"`) {
			return
		}
		id := taskIn(t, first)
		listen := func(s *surfer, id string) (*reading, string) {
			r := s.read(s.request(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"taskIds":["`+id+`"]}`))
			_, ack := r.next("acknowledged")
			return r, strings.ReplaceAll(ack, id, "ID")
		}
		own, _ := listen(ada, id)
		others, got := listen(eve, id)
		if _, want := listen(eve, never(id)); got != want {
			t.Errorf("a listen to ada's task is acknowledged by %s, to one that never was by %s", got, want)
		}
		ada.answer(ada.request(3, "tasks/cancel", `"taskId":"`+id+`"`))
		own.next("cancelled")
		fence()
		others.next(changed, "notifications/tasks")
	})
}
