package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/suite"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const patience = time.Minute

func join(t *testing.T, n int, state cluster.State, bus cluster.Bus) *suite.Members {
	states, buses := make([]cluster.State, n), make([]cluster.Bus, n)
	for i := range n {
		states[i], buses[i] = state, bus
	}
	return suite.Join(t, states, buses)
}

// post sends one message to a node.
func post(t *testing.T, h http.Handler, method, session, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	callWhere  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"where","arguments":{}}}`
)

func opened(t *testing.T, h http.Handler) string {
	t.Helper()
	w := post(t, h, "POST", "", initialize)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != 200 || id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

// TestSessionEnds sees that a session that one node has ended is gone on all, and its entry too.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	f := join(t, 3, m, m)
	id := opened(t, f.Nodes[0])
	for i, node := range f.Nodes {
		if w := post(t, node, "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), "n0 ") {
			t.Fatalf("call at node %d: %d %s", i, w.Code, w.Body)
		}
	}
	if w := post(t, f.Nodes[1], "DELETE", id, ""); w.Code/100 != 2 {
		t.Fatalf("DELETE at another node: %d %s", w.Code, w.Body)
	}
	for i, node := range f.Nodes {
		if w := post(t, node, "POST", id, callWhere); w.Code != 404 {
			t.Errorf("call at node %d after the end: %d %s", i, w.Code, w.Body)
		}
	}
	if w := post(t, f.Nodes[2], "POST", "made-up", callWhere); w.Code != 404 {
		t.Errorf("call with an id that nobody has: %d %s", w.Code, w.Body)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for c, err := range m.Watch(ctx, "session") {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Key == "":
			return
		default:
			t.Errorf("the State still has %s", c.Key)
		}
	}
}

// TestForwardedHeaders sees what a handler learns of a client whose request another node has received.
func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	var mu sync.Mutex
	var got []*http.Request
	var nodes []*cluster.Node
	for i := range 2 {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if i != 0 {
				t.Errorf("node %d has served a request of a session of node 0", i)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r)
			if r.Header.Get("Mcp-Session-Id") == "" {
				w.Header().Set("Mcp-Session-Id", "the-session") // and nothing else
			}
		})
		node := &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: m, Handler: h}
		if err := node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer node.Leave(context.Background())
		nodes = append(nodes, node)
	}
	send := func(node *cluster.Node, session string) {
		r := httptest.NewRequest("POST", "https://mcp.example/some/path?q=1", strings.NewReader("body"))
		r.RemoteAddr = "192.0.2.7:1234"
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.Header.Set("Patchbay-Cluster-Client", "203.0.113.9:1")
		r.Header.Set("Patchbay-Cluster-Waited", "60000")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		node.ServeHTTP(httptest.NewRecorder(), r)
	}
	send(nodes[0], "")
	send(nodes[0], "the-session")
	send(nodes[1], "the-session")
	if len(got) != 3 {
		t.Fatalf("%d requests arrived", len(got))
	}
	for i, r := range got {
		if r.RemoteAddr != "192.0.2.7:1234" || r.Host != "mcp.example" || r.URL.RequestURI() != "/some/path?q=1" ||
			r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Forwarded-For") != "198.51.100.1" || r.Header.Get("Patchbay-Cluster-Client") != "" || r.Header.Get("Patchbay-Cluster-Waited") != "" {
			t.Errorf("request %d: %s %s %s %v", i, r.RemoteAddr, r.Host, r.URL.RequestURI(), r.Header)
		}
	}
	for c, err := range m.Watch(t.Context(), "session") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			break
		}
		if strings.Contains(c.Key+string(c.Value), "the-session") {
			t.Error("the State has the id of a session, which is a secret")
		}
	}
}

// broken is a State that cannot be reached.
type broken struct {
	cluster.State
	down atomic.Bool
}

func (b *broken) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if b.down.Load() {
		return 0, errors.New("no majority")
	}
	return b.State.Put(ctx, key, value, version, ttl)
}

func (b *broken) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if b.down.Load() {
		return cluster.Entry{}, errors.New("no majority")
	}
	return b.State.Get(ctx, key)
}

// TestWithoutState sees that no session is opened that others would not find, and that those of a node go on there.
func TestWithoutState(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	state := &broken{State: m}
	f := join(t, 2, state, m)
	id := opened(t, f.Nodes[0])
	state.down.Store(true)
	defer state.down.Store(false)
	if w := post(t, f.Nodes[0], "POST", "", initialize); w.Code != 503 || w.Header().Get("Mcp-Session-Id") != "" || w.Header().Get("Retry-After") == "" {
		t.Errorf("initialize without a State: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := post(t, f.Nodes[0], "POST", id, callWhere); w.Code != 200 {
		t.Errorf("call where the session is: %d %s", w.Code, w.Body)
	}
	if w := post(t, f.Nodes[1], "POST", id, callWhere); w.Code != 503 {
		t.Errorf("call where it is not: %d %s", w.Code, w.Body)
	}
}

// TestSessionsInUseAreFound sees that the entry of a session is kept as long as a request of it runs, and no longer.
func TestSessionsInUseAreFound(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	leave, running := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Mcp-Session-Id") == "":
			w.Header().Set("Mcp-Session-Id", "the-session")
		case r.Method == "GET":
			close(running)
			<-leave
		}
	})
	node := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: h, SessionIdle: 6 * time.Second}
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer node.Leave(context.Background())
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var ended sync.WaitGroup
	defer ended.Wait()
	const enough = 6 // for longer than SessionIdle
	renewals := 0
	for c, err := range m.Watch(ctx, "session") {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Key == "":
			post(t, node, "POST", "", initialize)
			ended.Go(func() { post(t, node, "GET", "the-session", "") })
			<-running
		case c.Deleted:
			if renewals < enough {
				t.Errorf("the entry expired after %d renewals, while a stream was open", renewals)
			}
			return
		default:
			if renewals++; renewals == enough {
				close(leave)
			}
		}
	}
	t.Error("the entry did not expire")
}

// stuck is a State that answers nothing.
type stuck struct {
	cluster.State
	down atomic.Bool
}

func (s *stuck) Delete(ctx context.Context, key string, version uint64) error {
	if s.down.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.State.Delete(ctx, key, version)
}

// TestLeaveWithoutState sees that a node ends although the State does not answer, as the last of three machines does.
func TestLeaveWithoutState(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	state := &stuck{State: m}
	f := join(t, 1, state, m)
	state.down.Store(true)
	left := make(chan error)
	go func() { left <- f.Nodes[0].Leave(context.Background()) }()
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the node does not end")
	}
}

// TestUnreachedNode sees that a session is not given up while its node may live, and that a request that may have arrived is not
// called lost.
func TestUnreachedNode(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	bus := &cut{Bus: m}
	f := join(t, 2, m, bus)
	id := opened(t, f.Nodes[0])
	for _, tc := range []struct {
		err  error
		want int
	}{{fmt.Errorf("n0: %w", cluster.ErrNoNode), 503}, {errors.New("busy"), 503}} {
		bus.err.Store(&tc.err)
		if w := post(t, f.Nodes[1], "POST", id, callWhere); w.Code != tc.want || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %s, want %d", tc.err, w.Code, w.Body, tc.want)
		}
	}
	bus.err.Store(nil)
	if w := post(t, f.Nodes[1], "POST", id, callWhere); w.Code != 200 {
		t.Errorf("when the node can be reached again: %d %s", w.Code, w.Body)
	}
}

// TestBrokenForward sees that a request whose connection breaks when it has been sent is not said to be without effect.
func TestBrokenForward(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	var nodes []*cluster.Node
	for i := range 2 {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") == "" {
				w.Header().Set("Mcp-Session-Id", "the-session")
				return
			}
			panic(http.ErrAbortHandler)
		})
		node := &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: m, Handler: h}
		if err := node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer node.Leave(context.Background())
		nodes = append(nodes, node)
	}
	post(t, nodes[0], "POST", "", initialize)
	if w := post(t, nodes[1], "POST", "the-session", callWhere); w.Code != 502 || !strings.Contains(w.Body.String(), "is not known") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// cut is a Bus on which nobody can be reached for a while.
type cut struct {
	cluster.Bus
	err atomic.Pointer[error]
}

func (c *cut) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := c.err.Load(); err != nil {
		return nil, *err
	}
	return c.Bus.Dial(ctx, node)
}

// counting counts the connections that a node has opened to others.
type counting struct {
	cluster.Bus
	open, dials atomic.Int64
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *counting) Dial(ctx context.Context, node string) (net.Conn, error) {
	conn, err := c.Bus.Dial(ctx, node)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	c.dials.Add(1)
	return &countedConn{conn, sync.OnceFunc(func() { c.open.Add(-1) })}, nil
}

func (c *countedConn) Live() bool { return c.Conn.(interface{ Live() bool }).Live() }

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestRetiredNodeKeepsNoConnections sees that no request can come over a connection that a node closes when it leaves: others keep
// none to a node that has retired.
func TestRetiredNodeKeepsNoConnections(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	bus := &counting{Bus: m}
	f := suite.Join(t, []cluster.State{m, m}, []cluster.Bus{m, bus})
	id := opened(t, f.Nodes[0])
	for i := range 2 {
		if w := post(t, f.Nodes[1], "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), "n0 ") {
			t.Fatalf("call: %d %s", w.Code, w.Body)
		}
		if i == 0 {
			if n := bus.open.Load(); n != 1 {
				t.Fatalf("%d connections are open after a call", n)
			}
			f.Nodes[0].Retire()
		}
		for deadline := time.Now().Add(patience / 2); bus.open.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are open to a node that has retired", bus.open.Load())
			}
		}
	}
}

// moved is the State of a node that sees a session at another one, when it looks for the first and the second time.
type moved struct {
	cluster.State
	from, to string
	looks    atomic.Int64
}

func (s *moved) Get(ctx context.Context, key string) (cluster.Entry, error) {
	e, err := s.State.Get(ctx, key)
	if strings.HasPrefix(key, "session.") && s.looks.Add(1) <= 2 {
		e.Value = []byte(strings.Replace(string(e.Value), `"`+s.from+`"`, `"`+s.to+`"`, 1))
	}
	return e, err
}

// TestMovingSession sees that a request finds a session that has moved while the request was forwarded, and moves again.
func TestMovingSession(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	states := []cluster.State{m, &moved{State: m, from: "n0", to: "n2"}, &moved{State: m, from: "n0", to: "n3"}, m}
	f := suite.Join(t, states, []cluster.Bus{m, m, m, m})
	id := opened(t, f.Nodes[0])
	if w := post(t, f.Nodes[1], "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), "n0 ") {
		t.Fatalf("call: %d %s", w.Code, w.Body)
	}
}

// TestNames sees that a name belongs to one node at a time.
func TestNames(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	f := join(t, 1, m, m)
	second := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: f.Servers[0]}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := second.Join(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second node of one name: %v", err)
	}
	for _, bad := range []*cluster.Node{{}, {Name: "x"}, {Name: "a b", State: m, Bus: m, Handler: f.Servers[0]}} {
		if err := bad.Join(t.Context()); err == nil {
			t.Errorf("node %q joined", bad.Name)
		}
	}
}

// A node serves nothing before it has joined, and its stores keep nothing; it joins once.
func TestBeforeJoin(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) { return "done", nil })
	n := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
	srv.Shared = n.Share("/mcp")
	if w := post(t, n, "POST", "", initialize); w.Code != 503 || !strings.Contains(w.Body.String(), "has not joined the others yet; try again") || w.Header().Get("Retry-After") == "" {
		t.Errorf("a node before Join: %d %s", w.Code, w.Body)
	}
	if w := post(t, srv, "POST", "", initialize); w.Code < 400 || w.Header().Get("Mcp-Session-Id") != "" {
		t.Errorf("its server alone: %d %s", w.Code, w.Body)
	}
	s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2026_07_28)
	if _, err := s.StartTask(t.Context(), "work", nil); err == nil || !strings.Contains(err.Error(), "create a task: the node has not joined the others: call Join of the cluster.Node before") {
		t.Errorf("a task before Join: %v", err)
	}
	now, stop := context.WithCancel(t.Context())
	stop()
	first := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
	if err := first.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Join(now); err == nil {
		t.Error("two nodes have a name")
	}
	leave(first)
	if err := n.Join(t.Context()); err != nil { // a Join that has failed may be tried again
		t.Fatal(err)
	}
	defer leave(n)
	if w := post(t, n, "POST", "", initialize); w.Code != 200 {
		t.Errorf("after Join: %d %s", w.Code, w.Body)
	}
	if _, err := s.StartTask(t.Context(), "work", nil); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := n.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "node n0: has joined already, and a Node joins once") {
			t.Errorf("Join again: %v", err)
		}
		leave(n)
	}
}

// A request to a node that joins waits for it, and is refused in words if that takes too long.
func TestRequestWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		srv := &mcp.Server{Name: "s", Version: "1"}
		n := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
		srv.Shared = n.Share("/mcp")
		send := func(ctx context.Context) (int, time.Duration) {
			begin := time.Now()
			r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/mcp", strings.NewReader(initialize))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			w := httptest.NewRecorder()
			n.ServeHTTP(w, r)
			return w.Code, time.Since(begin)
		}
		if code, took := send(t.Context()); code != http.StatusServiceUnavailable || took < 2900*time.Millisecond || took > 3100*time.Millisecond {
			t.Errorf("a node that does not join: %d after %v", code, took)
		}
		gone, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if code, took := send(gone); code != http.StatusServiceUnavailable || took > 1100*time.Millisecond {
			t.Errorf("the client has gone: %d after %v", code, took)
		}
		joined := make(chan error, 1)
		go func() {
			time.Sleep(2 * time.Second)
			joined <- n.Join(t.Context())
		}()
		if code, took := send(t.Context()); code != http.StatusOK || took < 1900*time.Millisecond || took > 2900*time.Millisecond {
			t.Errorf("a node that joins after 2 seconds: %d after %v", code, took)
		}
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
		leave(n)
		srv.Shutdown(context.Background())
	})
}

// A node warns once of sessions at a path for which none are kept, where it keeps some for another one.
func TestStrangePath(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	var logged bytes.Buffer
	srv := &mcp.Server{Name: "s", Version: "1"}
	n := &cluster.Node{Name: "n0", State: m, Bus: m, Handler: srv, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	srv.Shared = n.Share("/mcp/")
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer leave(n)
	for range 2 {
		if w := post(t, n, "POST", "", initialize); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if n := strings.Count(logged.String(), "sessions at this path end with this node"); n != 1 {
		t.Errorf("%d warnings: %s", n, &logged)
	}
}
