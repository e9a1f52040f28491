package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// Nodes tests three nodes behind a front that takes them in turn. Each call of join returns the State and the Bus of each.
func Nodes(t *testing.T, join func(t *testing.T) ([]cluster.State, []cluster.Bus)) {
	for name, test := range map[string]func(t *testing.T, f *Members){"sessions": sessions, "lost": lost, "streams": streams, "changes": changes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, buses := join(t)
			test(t, Join(t, states, buses))
		})
	}
	for name, test := range map[string]func(t *testing.T, f *Members){"kept": sessions, "continued": continued, "restarted": restarted, "retired": retired, "events": events} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, buses := join(t)
			test(t, JoinKept(t, states, buses))
		})
	}
}

// Members are nodes behind an address that takes them in turn.
type Members struct {
	Nodes   []*cluster.Node
	Servers []*mcp.Server
	front   *httptest.Server
	turn    atomic.Int64
	down    []atomic.Bool // the front leaves these out

	begun, finish chan struct{} // calls of slow
}

// Join begins as many nodes as there are states, and ends them with the test.
func Join(t *testing.T, states []cluster.State, buses []cluster.Bus) *Members {
	t.Helper()
	return begin(t, states, buses, false)
}

// JoinKept is Join with nodes that continue sessions of each other.
func JoinKept(t *testing.T, states []cluster.State, buses []cluster.Bus) *Members {
	t.Helper()
	return begin(t, states, buses, true)
}

func begin(t *testing.T, states []cluster.State, buses []cluster.Bus, keep bool) *Members {
	t.Helper()
	n := len(states)
	f := &Members{begun: make(chan struct{}), finish: make(chan struct{}), down: make([]atomic.Bool, n), Nodes: make([]*cluster.Node, n), Servers: make([]*mcp.Server, n)}
	for i := range n {
		f.start(t, i, states[i], buses[i], keep)
	}
	f.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if i := int(f.turn.Add(1)) % n; !f.down[i].Load() {
				f.Nodes[i].ServeHTTP(w, r)
				return
			}
		}
	}))
	t.Cleanup(func() {
		f.front.Close()
		for i, node := range f.Nodes {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			if err := f.Servers[i].Shutdown(ctx); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
			if err := node.Leave(ctx); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
			stop()
		}
	})
	return f
}

// start begins node i.
func (f *Members) start(t *testing.T, i int, state cluster.State, bus cluster.Bus, keep bool) {
	t.Helper()
	name := fmt.Sprint("n", i)
	s := f.newServer(name)
	mux, streams := http.NewServeMux(), s.SSE("/messages")
	mux.Handle("/", s)
	mux.Handle("/sse", streams)
	mux.Handle("/messages", streams)
	node := &cluster.Node{Name: name, State: state, Bus: bus, Handler: mux, Logger: slog.New(slog.DiscardHandler)}
	if s.Shared = node.Share("/"); !keep {
		s.Shared = keysAlone{s.Shared}
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := node.Join(ctx); err != nil {
		t.Fatal(err)
	}
	f.Nodes[i], f.Servers[i] = node, s
}

// keysAlone shares the keys and changes, and nothing else.
type keysAlone struct{ store.Shared }

func (keysAlone) Sessions() store.Sessions { return nil }
func (keysAlone) Events() store.Events     { return nil }
func (keysAlone) Tasks() store.Tasks       { return nil }

type none struct{}

func (f *Members) newServer(name string) *mcp.Server {
	s := &mcp.Server{Name: "nodes", Version: "1"}
	var calls atomic.Int64
	mcp.AddTool(s, mcp.Tool{Name: "where", Description: "says which node has run it, and how often"},
		func(context.Context, none) (string, error) { return fmt.Sprint(name, " ", calls.Add(1)), nil })
	mcp.AddTool(s, mcp.Tool{Name: "ask", Description: "asks the model of the client"}, func(ctx context.Context, _ none) (string, error) {
		r, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}}})
		if err != nil {
			return "", err
		}
		return r.Text(), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "slow", Description: "ends when it is told to"}, func(context.Context, none) (string, error) {
		f.begun <- struct{}{}
		<-f.finish
		return name + " was slow", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "steps", Description: "reports progress"}, func(ctx context.Context, _ none) (string, error) {
		for i := range 5 {
			mcp.Progress(ctx, float64(i+1), 5, "")
		}
		return "done", nil
	})
	mcp.AddResource(s, mcp.Resource{URI: "test://clock", Name: "clock"}, func(context.Context) (string, error) { return name, nil })
	mcp.AddResource(s, mcp.Resource{URI: "test://bell", Name: "bell"}, func(context.Context) (string, error) { return name, nil })
	mcp.AddTool(s, mcp.Tool{Name: "tick", Description: "changes the clock"}, func(ctx context.Context, _ none) (string, error) {
		s.ResourceUpdated("test://clock")
		mcp.Log(ctx).Debug("tick")
		return name, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "grow", Description: "adds a tool"}, func(context.Context, none) (string, error) {
		mcp.AddTool(s, mcp.Tool{Name: "grown", Description: "was added"}, func(context.Context, none) (string, error) { return "grown", nil })
		return "done", nil
	})
	return s
}

func (f *Members) dial(t *testing.T, r mcp.Revision) *mcp.Session {
	t.Helper()
	return f.dialAt(t, r, "")
}

func (f *Members) dialAt(t *testing.T, r mcp.Revision, path string) *mcp.Session {
	t.Helper()
	client := &mcp.Client{Name: "test", Version: "1", OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return &mcp.SampleResult{Role: "assistant", Model: "none", Content: []mcp.Content{mcp.Text("pong")}}, nil
	}}
	client.Revisions = []mcp.Revision{r}
	s, err := client.Dial(t.Context(), f.front.URL+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func call(t *testing.T, s *mcp.Session, tool string, opts ...mcp.CallOption) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	r, err := s.CallTool(ctx, tool, none{}, opts...)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r.Text()
}

// sessions calls the servers as a client of each revision.
func sessions(t *testing.T, f *Members) {
	for _, r := range mcp.Revisions() {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			sessions := revision.Find(revision.All, string(r)).Sessions
			s := f.dial(t, r)
			changed := make(chan struct{}, 1)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ready := make(chan struct{})
			go func() {
				close(ready)
				for e, err := range s.Watch(ctx) {
					if err == nil && e.Method == "notifications/tools/list_changed" {
						select {
						case changed <- struct{}{}:
						default:
						}
					}
				}
			}()
			<-ready
			where, wanted := map[string]bool{}, 3 // others call too, so that the turn of a node may pass
			if sessions {
				wanted = 1
			}
			for n := 0; n < 9 || n < 300 && len(where) < wanted; n++ {
				node, _, _ := strings.Cut(call(t, s, "where"), " ")
				where[node] = true
			}
			if len(where) != wanted {
				t.Errorf("calls ran on %v", where)
			}
			if got := call(t, s, "ask"); got != "pong" { // the answer to the question is another request
				t.Errorf("ask = %q", got)
			}
			var progress []float64
			call(t, s, "steps", mcp.OnProgress(func(done, _ float64, _ string) { progress = append(progress, done) }))
			if !slices.Equal(progress, []float64{1, 2, 3, 4, 5}) {
				t.Errorf("progress %v", progress)
			}
			if sessions { // the list changes on one node alone
				call(t, s, "grow")
				select {
				case <-changed:
				case <-time.After(patience):
					t.Error("the change of the list did not arrive")
				}
			}
		})
	}
}

// streams sees that the messages of a client of HTTP+SSE come to the node that has its event stream, until that has ended.
func streams(t *testing.T, f *Members) {
	oldest := mcp.Revisions()[0]
	clients := []*mcp.Session{f.dialAt(t, oldest, "/sse"), f.dialAt(t, oldest, "/sse"), f.dialAt(t, oldest, "/sse")}
	var at string
	for _, s := range clients {
		where := map[string]bool{}
		for range 9 {
			at, _, _ = strings.Cut(call(t, s, "where"), " ")
			where[at] = true
		}
		if len(where) != 1 {
			t.Errorf("calls of one event stream ran on %v", where)
		}
		if got := call(t, s, "ask"); got != "pong" {
			t.Errorf("ask = %q", got)
		}
	}
	for _, id := range []string{at + ".x", "x." + at, "nobody.x", at, "."} { // not of a stream
		res, err := http.Post(f.front.URL+"/messages?sessionId="+url.QueryEscape(id), "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("a message to the stream %q: %d", id, res.StatusCode)
		}
	}
	f.end(t, at)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if _, err := clients[2].CallTool(ctx, "where", none{}); err == nil {
		t.Error("a call of an event stream that has ended with its node was answered")
	}
}

// lost sees that a client whose node has died opens another session, and that calls that were not sent are not counted
// as done.
func lost(t *testing.T, f *Members) {
	s := f.dial(t, latest)
	node, _, _ := strings.Cut(call(t, s, "where"), " ")
	dead := slices.IndexFunc(f.Nodes, func(n *cluster.Node) bool { return n.Name == node })
	f.down[dead].Store(true)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	now, end := context.WithCancel(ctx)
	end()
	if err := f.Nodes[dead].Leave(now); !errors.Is(err, context.Canceled) { // with the client's event stream
		t.Fatal(err)
	}
	for { // a busy machine may lose sight of a node that lives, for a moment
		names, err := f.Nodes[(dead+1)%3].Nodes(ctx)
		if err != nil || slices.Contains(names, node) {
			t.Fatalf("nodes %v, %v, without %s", names, err, node)
		}
		if len(names) == 2 {
			break
		}
	}
	if _, err := s.CallTool(ctx, "where", none{}); !errors.Is(err, mcp.ErrSessionLost) {
		t.Errorf("the call after the death: %v, want %v", err, mcp.ErrSessionLost)
	}
	for range 6 {
		if got, _, _ := strings.Cut(call(t, s, "where"), " "); got == node || got == "" {
			t.Errorf("a call ran on %q", got)
		}
	}
}

// raw is a client of one session that never opens another.
type raw struct {
	url, id string
	n       int
}

// send sends a message, and returns the answer with its status.
func (c *raw) send(t *testing.T, method, params string) (status int, answer string) {
	t.Helper()
	c.n++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.n, method, params)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.id != "" {
		r.Header.Set("Mcp-Session-Id", c.id)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	data, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if id := w.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
	return w.StatusCode, string(data)
}

// where returns the node on which a call runs.
func (c *raw) where(t *testing.T) string {
	t.Helper()
	status, answer := c.send(t, "tools/call", callWhere)
	return ranAt(t, status, answer)
}

const callWhere = `{"name":"where","arguments":{}}`

func ranAt(t *testing.T, status int, answer string) string {
	t.Helper()
	m := regexp.MustCompile(`"(n\d+) \d+"`).FindStringSubmatch(answer)
	if status != http.StatusOK || m == nil {
		t.Fatalf("where: %d %s", status, answer)
	}
	return m[1]
}

// afterEnd is where, right after a node has ended: another node may lose a request over a connection to it, and says so.
func (c *raw) afterEnd(t *testing.T) string {
	t.Helper()
	for {
		status, answer := c.send(t, "tools/call", callWhere)
		if status != http.StatusBadGateway || !strings.Contains(answer, "whether it has done what was asked is not known") {
			return ranAt(t, status, answer)
		}
	}
}

// latest is the newest revision with sessions.
var latest = mcp.Revision(revision.Latest(revision.All, true).Name)

// open opens a session.
func (f *Members) open(t *testing.T, r mcp.Revision) *raw {
	t.Helper()
	c := &raw{url: f.front.URL}
	status, answer := c.send(t, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"sampling":{}},"clientInfo":{"name":"raw","version":"1"}}`, r))
	if status != http.StatusOK || c.id == "" {
		t.Fatalf("initialize: %d %s", status, answer)
	}
	return c
}

// end ends the node of that name, and returns its number. Requests in progress there are cut off.
func (f *Members) end(t *testing.T, name string) int {
	t.Helper()
	dead := slices.IndexFunc(f.Nodes, func(n *cluster.Node) bool { return n.Name == name })
	f.down[dead].Store(true)
	now, end := context.WithCancel(t.Context())
	end()
	if err := f.Nodes[dead].Leave(now); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return dead
}

// continued sees that a session goes on when its node has ended, with its subscriptions and its log level, and again when
// the next one has.
func continued(t *testing.T, f *Members) {
	c := f.open(t, latest)
	for method, params := range map[string]string{"logging/setLevel": `{"level":"debug"}`, "resources/subscribe": `{"uri":"test://clock"}`} {
		if status, answer := c.send(t, method, params); status != http.StatusOK || strings.Contains(answer, `"error"`) {
			t.Fatalf("%s: %d %s", method, status, answer)
		}
	}
	id, at := c.id, c.where(t)
	for range 2 {
		f.end(t, at)
		var next []string
		for range 4 {
			next = append(next, c.afterEnd(t))
		}
		if slices.Sort(next); next[0] != next[3] || next[0] == at || c.id != id {
			t.Fatalf("after the end of %s, calls of session %s ran on %v, of session %s", at, id, next, c.id)
		}
		at = next[0]
		stream := c.stream(t)
		status, answer := c.send(t, "tools/call", `{"name":"tick","arguments":{}}`)
		if status != http.StatusOK || !strings.Contains(answer, `"level":"debug"`) {
			t.Errorf("on %s: %d, without a log message: %s", at, status, answer)
		}
		for line := ""; !strings.Contains(line, "test://clock"); {
			var err error
			if line, err = stream.ReadString('\n'); err != nil {
				t.Fatalf("on %s: no change of the resource: %v", at, err)
			}
		}
	}
}

// stream opens the stream of a session for messages outside of calls.
func (c *raw) stream(t *testing.T) *bufio.Reader {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", c.id)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Body.Close() })
	if w.StatusCode != http.StatusOK {
		t.Fatalf("GET: %s", w.Status)
	}
	return bufio.NewReader(w.Body)
}

// restarted sees that a node which begins again under its name continues its sessions, and that a session ended by its client is
// gone for good.
func restarted(t *testing.T, f *Members) {
	c := f.open(t, latest)
	over := f.open(t, latest)
	at := c.where(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, over.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", over.id)
	w, err := http.DefaultClient.Do(r)
	if err != nil || w.StatusCode/100 != 2 {
		t.Fatalf("DELETE: %v %v", w, err)
	}
	w.Body.Close()
	for i, node := range f.Nodes { // all of them
		name := node.Name
		f.end(t, name)
		if err := f.Servers[i].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range f.Nodes {
		f.start(t, i, node.State, node.Bus, true)
		f.down[i].Store(false)
	}
	got := c.where(t)
	for range 3 {
		if again := c.where(t); again != got {
			t.Errorf("a session of %s was on %s and then on %s", at, got, again)
		}
	}
	if status, answer := over.send(t, "ping", `{}`); status != http.StatusNotFound {
		t.Errorf("a session that had ended: %d %s", status, answer)
	}
}

// retired sees that the sessions of a node that is about to end go on elsewhere, although clients still come to it, and that
// a call in progress there ends as it should.
func retired(t *testing.T, f *Members) {
	c := f.open(t, latest)
	at := c.where(t)
	i := slices.IndexFunc(f.Nodes, func(n *cluster.Node) bool { return n.Name == at })
	for deadline := time.Now().Add(patience); f.Nodes[i].Seen() < len(f.Nodes); { // there is no event for what a node has seen
		if time.Now().After(deadline) {
			t.Fatalf("%s sees %d nodes", at, f.Nodes[i].Seen())
		}
		time.Sleep(time.Millisecond)
	}
	slow := make(chan string)
	go func() {
		again := *c
		again.n = 1000
		_, answer := again.send(t, "tools/call", `{"name":"slow","arguments":{}}`)
		slow <- answer
	}()
	<-f.begun
	f.Nodes[i].Retire()
	for range 6 {
		if got := c.where(t); got == at {
			t.Errorf("a call ran on %s, which has retired", got)
		}
	}
	if now := f.open(t, latest).where(t); now == at {
		t.Errorf("a session was opened on %s, which has retired", now)
	}
	f.finish <- struct{}{}
	if answer := <-slow; !strings.Contains(answer, at+" was slow") {
		t.Errorf("the call in progress: %s", answer)
	}
}

// events reads at a node what another one keeps of a stream, also when that one has ended.
func events(t *testing.T, f *Members) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	one, two := f.Nodes[0].Events(), f.Nodes[1].Events()
	a, b := one.Name("a"), one.Name("b")
	add := func(stream string, position int64) {
		if err := one.Append(ctx, stream, position, fmt.Append(nil, position)); err != nil {
			t.Error(err)
		}
	}
	for i := range int64(100) {
		add(a, i+1)
		add(b, i+1)
		if i%10 == 0 {
			time.Sleep(50 * time.Millisecond) // several entries
		}
	}
	time.Sleep(500 * time.Millisecond)
	var got []int64
	for e, err := range two.Follow(ctx, a, 90) {
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Data) != fmt.Sprint(e.Position) && e.Position > 0 {
			t.Errorf("event %d is %s", e.Position, e.Data)
		}
		if got = append(got, e.Position); e.Position == 0 && len(got) == 11 {
			go func() {
				add(a, 101)
				time.Sleep(300 * time.Millisecond)
				add(a, 102)
				if err := f.Nodes[0].Leave(ctx); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	if want := []int64{91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 0, 101, 102, 0}; !slices.Equal(got, want) {
		t.Errorf("followed %v, want %v", got, want)
	}
	got = nil
	for e, err := range two.Follow(ctx, b, 98) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Position)
	}
	if want := []int64{99, 100, 0}; !slices.Equal(slices.Compact(got), want) { // the 0 may come again
		t.Errorf("of a node that has ended %v is followed, want %v", got, want)
	}
}
