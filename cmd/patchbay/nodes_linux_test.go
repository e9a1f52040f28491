package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/mcp"
)

// node is one up of a cluster.
type node struct {
	name string
	*running
	out   *transcript
	clock time.Duration // how far its clock goes before the right time
}

const nodesFile = `
servers: mcp.json
listen: {http: "${NODE_HTTP}"}
audit: {file: "${NODE}.jsonl", key: "${NODE}.key", checkpoint: 1s}
limits: ["tool:own_roll_dice=12/h"]
cluster:
  nats: embedded
  name: test
  node: ${NODE}
  listen: ${NODE_LISTEN}
  routes: [%s]
  store: ${NODE}
  secret: ${NODE_SECRET}
  drain: 20s
`

// threeNodes returns three nodes with the servers of a configuration. They have not begun.
func threeNodes(t *testing.T, servers map[string]any) (nodes []*node) {
	t.Helper()
	dir := t.TempDir()
	writeConfig(t, filepath.Join(dir, "mcp.json"), servers)
	addresses, web := freeAddresses(t, 3), freeAddresses(t, 3)
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, nodesFile, "nats://"+strings.Join(addresses, ", nats://")), 0o600); err != nil {
		t.Fatal(err)
	}
	sockets := socketFolder(t)
	for i, address := range addresses {
		n := &node{name: "n" + strconv.Itoa(i+1), running: new(running), out: new(transcript)}
		n.cmd, n.stderr = program(t, "up", "--gateway", file, "--sse")
		n.cmd.Env = append(n.cmd.Env, "XDG_RUNTIME_DIR="+sockets, "NODE="+n.name, "NODE_HTTP="+web[i], "NODE_LISTEN="+address, "NODE_SECRET=a secret of the test")
		n.cmd.Stdout = n.out
		nodes = append(nodes, n)
	}
	return nodes
}

// awaited is until for what three processes do together, on a machine that may be busy.
func awaited(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so within 2 minutes: %s", what)
		}
	}
}

// begin starts the process of a node.
func (n *node) begin(t *testing.T) {
	t.Helper()
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.cmd.Process.Kill()
		n.cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", n.name, n.stderr)
		}
	})
}

// again starts a node that has ended.
func (n *node) again(t *testing.T) {
	t.Helper()
	was := n.cmd
	n.cmd, n.stderr = program(t, was.Args[1:]...)
	n.cmd.Env, n.out = was.Env, new(transcript)
	n.cmd.Stdout = n.out
	n.begin(t)
}

// serves waits until a node serves.
func (n *node) serves(t *testing.T) {
	t.Helper()
	awaited(t, n.name+" serves", func() bool { return strings.Contains(n.out.String(), "ctrl-C ends it") })
	n.url = "http://" + addressIn(t, n.out.String()) + "/mcp"
}

// front sends each connection to the next of some addresses, or to one after it that takes it.
type front struct {
	net.Listener
	to   []string
	turn atomic.Int64
	away []atomic.Bool // of to: /readyz says that it may get no requests

	mu       sync.Mutex
	late     time.Duration  // how long it keeps the end of a connection; set before the first one
	measured bool           // set before the first connection
	posts    []exchange     // that took longer than a second, if they are measured; guarded by mu
	taken    map[string]int // nodes of connections by the addresses of clients, -1: none; guarded by mu
}

// exchange is a connection with one request, to the node with a number.
type exchange struct {
	node int
	span
	head string // the begin of the request
}

// look asks each node whether it may get requests, as load balancers do, until the test ends.
func (f *front) look(t *testing.T) {
	for i, at := range f.to {
		go func() {
			for t.Context().Err() == nil {
				res, err := http.Get("http://" + at + "/readyz")
				f.away[i].Store(err != nil || res.StatusCode != http.StatusOK)
				if err == nil {
					res.Body.Close()
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
}

func newFront(t *testing.T, nodes []*node) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f := &front{Listener: l, taken: map[string]int{}}
	for _, n := range nodes {
		f.to = append(f.to, strings.TrimSuffix(strings.TrimPrefix(n.url, "http://"), "/mcp"))
	}
	f.away = make([]atomic.Bool, len(f.to))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.pass(c)
		}
	}()
	return f
}

// url is where clients connect.
func (f *front) url() string { return "http://" + f.Addr().String() + "/mcp" }

func (f *front) pass(c net.Conn) {
	defer c.Close()
	begin, in := time.Now(), bufio.NewReader(c)
	method, err := in.Peek(1)
	if err != nil {
		return
	}
	head, _ := in.Peek(in.Buffered()) // which are there
	head = bytes.Clone(head)
	first := int(f.turn.Add(1))
	for i := range f.to {
		n := (first + i) % len(f.to)
		if f.away[n].Load() {
			continue
		}
		to, err := net.Dial("tcp", f.to[n])
		if err != nil {
			continue
		}
		defer to.Close()
		f.note(c, n)
		go func() {
			io.Copy(to, in)
			to.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, to)
		time.Sleep(f.late)
		if e := (exchange{n, span{begin, time.Now()}, string(head)}); f.measured && string(method) == "P" && e.to.Sub(e.from) > time.Second {
			f.mu.Lock()
			f.posts = append(f.posts, e)
			f.mu.Unlock()
		}
		return
	}
	f.note(c, -1)
}

// note notes the node that has taken a connection.
func (f *front) note(c net.Conn, node int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken[c.RemoteAddr().String()] = node
}

// client connects through the front, with a connection for each request.
func (f *front) client(t *testing.T, r mcp.Revision) *mcp.Session {
	t.Helper()
	s, err := f.dial(t, r, "/mcp")
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (f *front) dial(t *testing.T, r mcp.Revision, path string) (*mcp.Session, error) {
	c := &mcp.Client{
		Name: "desk", Revisions: []mcp.Revision{r}, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "Thursday", "confirm": true}}, nil
		},
	}
	return c.Dial(t.Context(), "http://"+f.Addr().String()+path)
}

// daysServer returns the URL of a server that each node reaches.
func daysServer(t *testing.T) string {
	srv := &mcp.Server{Name: "asking", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		day, err := mcp.Elicit[struct {
			Value string `json:"value"`
		}](ctx, "Which day?")
		return day.Value, err
	})
	mcp.AddTool(srv, mcp.Tool{Name: "say"}, func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	return web.URL
}

// nodesAt returns what patchbay nodes says, at a node.
func nodesAt(t *testing.T, n *node) (list steer.NodeList, said string, code int) {
	t.Helper()
	out, said, code := n.steer(t, "nodes", "--json")
	if code == 0 {
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
	}
	return list, said, code
}

// steer runs a verb that acts on a node.
func (n *node) steer(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	cmd, stderr := program(t, append(args, "--pid", strconv.Itoa(n.cmd.Process.Pid))...)
	cmd.Env = n.cmd.Env
	stdout, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(stdout), stderr.String(), cmd.ProcessState.ExitCode()
}

// states returns the states of nodes by their names.
func states(l steer.NodeList) string {
	var list []string
	for _, n := range l.Nodes {
		list = append(list, n.Name+" "+n.State)
	}
	return strings.Join(list, ", ")
}

// Three nodes are one gateway for clients whose requests come to any of them. One is drained, ends, and the others go on; the last
// one alone says that it cannot.
func TestUpCluster(t *testing.T) {
	t.Parallel()
	days := daysServer(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nodes := threeNodes(t, map[string]any{
		"asking": map[string]any{"url": days}, "device": map[string]any{"url": days, "patchbay": map[string]any{"share": "exclusive"}},
		"own": map[string]any{"builtin": "everything"}, "program": map[string]any{"command": "env", "args": []string{testRun + "=patchbay", self, "serve", "everything"}},
	})
	nodes[0].begin(t)
	awaited(t, "the first node waits", func() bool {
		return strings.Contains(nodes[0].stderr.String(), "waiting for a majority of 3 nodes") && strings.Contains(nodes[0].stderr.String(), " do not answer")
	})
	nodes[1].begin(t)
	nodes[2].begin(t)
	for _, n := range nodes {
		n.serves(t)
	}
	f := newFront(t, nodes)
	for _, r := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		s := f.client(t, r)
		for i := range 4 {
			res, err := s.CallTool(t.Context(), "asking_say", map[string]string{"text": fmt.Sprint(i)})
			if err != nil || res.Text() != fmt.Sprint(i) {
				t.Fatalf("%s: call %d: %v, %v", r, i, res, err)
			}
		}
		if r < mcp.V2025_06_18 {
			continue // without elicitation
		}
		for range 2 {
			if res, err := s.CallTool(t.Context(), "asking_ask", nil); err != nil || res.Text() != "Thursday" {
				t.Errorf("%s: a question: %v, %v", r, res, err)
			}
			for _, tool := range []string{"own_lucky_number", "program_lucky_number"} { // of a server of each node
				if res, err := s.CallTool(t.Context(), tool, nil); err != nil || !strings.HasSuffix(res.Text(), " is yours.") {
					t.Errorf("%s: a question of %s: %v, %v", r, tool, res, err)
				}
			}
		}
	}
	exclusive(t, nodes)
	limited(t, nodes)
	s, err := f.dial(t, mcp.V2024_11_05, "/sse")
	if err != nil {
		t.Fatalf("HTTP+SSE: %v", err)
	}
	defer s.Close()
	for i := range 6 { // each message comes to another node than the one before
		if res, err := s.CallTool(t.Context(), "asking_say", map[string]string{"text": fmt.Sprint(i)}); err != nil || res.Text() != fmt.Sprint(i) {
			t.Fatalf("HTTP+SSE: call %d: %v, %v", i, res, err)
		}
	}
	var list steer.NodeList
	awaited(t, "all nodes are ready", func() bool {
		list, _, _ = nodesAt(t, nodes[0])
		return states(list) == "n1 ready, n2 ready, n3 ready"
	})
	if list.Cluster != "test" || list.Node != "n1" || list.Nodes[1].URL != nodes[1].url || list.Nodes[2].Version != Version || len(list.Warnings) > 0 {
		t.Errorf("patchbay nodes = %+v", list)
	}
	drains(t, nodes)
	f.look(t)
	old := newFront(t, nodes[:1]).client(t, mcp.V2025_11_25)
	ends(t, nodes, f)
	lastNode(t, nodes[0], old)
	nodes[0].end(t)
	noted(t, nodes)
}

// noted verifies the audit logs of three nodes that have noted each other's checkpoints, also after the end of one was cut off.
func noted(t *testing.T, nodes []*node) {
	args := []string{"audit", "verify"}
	var keys []string
	for _, n := range nodes {
		log := filepath.Join(filepath.Dir(n.cmd.Args[3]), n.name)
		args, keys = append(args, log+".jsonl"), append(keys, "--key", log+".key.pub")
	}
	verify := func(want int) string {
		t.Helper()
		var out strings.Builder
		if code := run(t.Context(), append(args, keys...), strings.NewReader(""), &out, &out); code != want {
			t.Errorf("audit verify of three nodes = %d: %s", code, &out)
		}
		return out.String()
	}
	if said := verify(exitOK); strings.Count(said, " as other logs have noted them") != 3 {
		t.Errorf("the logs have not noted each other: %s", said)
	}
	log := args[3]
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if err := errors.Join(os.WriteFile(log, []byte(strings.Join(lines[:4], "")), 0o600), os.Remove(log+".head")); err != nil {
		t.Fatal(err)
	}
	if said := verify(exitRefused); strings.Count(said, log+":5: line 5 of the log: cut: the end is gone: "+filepath.Dir(log)) != 2 {
		t.Errorf("n2 was cut: %s", said)
	}
}

// exclusive sees that one session at all nodes uses an exclusive server, until it ends.
func exclusive(t *testing.T, nodes []*node) {
	use := func(s *mcp.Session) string {
		res, err := s.CallTool(t.Context(), "device_say", map[string]string{"text": "used"})
		if err != nil {
			return err.Error()
		}
		return res.Text()
	}
	var at []*mcp.Session
	for _, n := range nodes[:2] {
		s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}}).Dial(t.Context(), n.url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		at = append(at, s)
	}
	if got := use(at[0]); got != "used" {
		t.Errorf("an exclusive server: %s", got)
	}
	if got := use(at[1]); !strings.Contains(got, "in use by a caller at another node") {
		t.Errorf("an exclusive server, at another node: %s", got)
	}
	at[0].Close()
	awaited(t, "the exclusive server is free", func() bool { return use(at[1]) == "used" })
}

// limited sees that one node has nearly all of a limit if a caller sends all calls to it, and the others hardly more.
func limited(t *testing.T, nodes []*node) {
	made := make([]int, len(nodes))
	call := func(i int) bool {
		s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), nodes[i].url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for {
			_, err := s.CallTool(t.Context(), "own_roll_dice", nil)
			if err != nil {
				if !strings.Contains(err.Error(), "more calls of") {
					t.Errorf("a call with a limit: %v", err)
				}
				return made[0] >= 11
			}
			made[i]++
		}
	}
	awaited(t, "one node has nearly all of the limit", func() bool { return call(0) })
	call(1)
	call(2)
	if made[0]+made[1]+made[2] > 14 {
		t.Errorf("%d calls, of 12 in an hour", made)
	}
}

// drains sees that a drained node says so, until that is undone.
func drains(t *testing.T, nodes []*node) {
	drain := func(args ...string) string {
		out, said, code := nodes[0].steer(t, append([]string{"drain"}, args...)...)
		return fmt.Sprint(code, " ", out, said)
	}
	ready := func(n *node) (code int, body string) {
		res, err := http.Get(strings.TrimSuffix(n.url, "/mcp") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(raw)
	}
	if got := drain("n4"); !strings.HasPrefix(got, "2 ") || !strings.Contains(got, `no node "n4"; nodes: n1, n2, n3`) {
		t.Errorf("drain n4 = %s", got)
	}
	if got := drain("n2"); !strings.HasPrefix(got, "0 n2: draining;") {
		t.Errorf("drain n2 = %s", got)
	}
	awaited(t, "n2 drains", func() bool {
		code, body := ready(nodes[1])
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"state":"draining"`) && strings.Contains(body, `"cluster":{"name":"test","node":"n2","config":"sha256:`)
	})
	if list, _, _ := nodesAt(t, nodes[2]); states(list) != "n1 ready, n2 draining, n3 ready" {
		t.Errorf("the nodes are %s", states(list))
	}
	if got := drain("n2", "--undo"); !strings.HasPrefix(got, "0 n2: no longer draining") {
		t.Errorf("drain n2 --undo = %s", got)
	}
	awaited(t, "n2 is ready again", func() bool { code, _ := ready(nodes[1]); return code == http.StatusOK })
}

// end ends a node, which ends as it should.
func (n *node) end(t *testing.T) {
	t.Helper()
	n.cmd.Process.Signal(syscall.SIGTERM)
	stuck := time.AfterFunc(2*time.Minute, func() { n.cmd.Process.Signal(syscall.SIGQUIT) }) // its last words are what its goroutines do
	defer stuck.Stop()
	if err := n.cmd.Wait(); err != nil {
		t.Errorf("%s: %v: %s", n.name, err, n.stderr)
	}
}

// ends ends the third node while clients call, and removes it. It sees that no call fails, also of a session of that node.
func ends(t *testing.T, nodes []*node, f *front) {
	f.turn.Store(-1) // n1 opens the next session
	older := f.client(t, mcp.V2025_11_25)
	newer := f.client(t, mcp.V2026_07_28)
	f.turn.Store(1) // n3 opens the next one, which goes on elsewhere
	moves := f.client(t, mcp.V2025_06_18)
	stop := make(chan struct{})
	calling := make(chan error, 3)
	var calls atomic.Int64
	for _, s := range []*mcp.Session{older, newer, moves} {
		go func() {
			for {
				select {
				case <-stop:
					calling <- nil
					return
				default:
				}
				if res, err := s.CallTool(t.Context(), "asking_say", map[string]string{"text": "x"}); err != nil || res.Text() != "x" {
					calling <- fmt.Errorf("%s: %v, %w", s.Revision(), res, err)
					return
				}
				calls.Add(1)
				time.Sleep(10 * time.Millisecond) // which leaves the machine to others
			}
		}()
	}
	nodes[2].end(t)
	after := calls.Load()
	awaited(t, "calls go on with two nodes", func() bool { return calls.Load() > after+10 || len(calling) > 0 })
	close(stop)
	for range 3 {
		if err := <-calling; err != nil {
			t.Error(err)
		}
	}
	const counts = "node n3 does not run, and counts for a majority: start it, or, if it has ended for good, remove it (patchbay drain n3 --remove)"
	if list, _, _ := nodesAt(t, nodes[1]); states(list) != "n1 ready, n2 ready" || !slices.Contains(list.Warnings, counts) {
		t.Errorf("the nodes are %s, %q", states(list), list.Warnings)
	}
	if out, said, code := nodes[0].steer(t, "drain", "n3", "--remove"); code != 0 || !strings.HasPrefix(out, "n3: removed") {
		t.Errorf("drain n3 --remove = %d %s%s", code, out, said)
	}
	awaited(t, "n3 does not count", func() bool {
		list, _, _ := nodesAt(t, nodes[1])
		return !slices.Contains(list.Warnings, counts)
	})
	for _, r := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		if res, err := f.client(t, r).CallTool(t.Context(), "asking_ask", nil); err != nil || res.Text() != "Thursday" {
			t.Errorf("%s: a question with two nodes: %v, %v", r, res, err)
		}
	}
	nodes[1].cmd.Process.Kill()
	nodes[1].cmd.Wait()
}

// lastNode sees that the last of three nodes says what it cannot do, and does what needs no other, also for a session that it has.
func lastNode(t *testing.T, n *node, old *mcp.Session) {
	awaited(t, "the node is cut off", func() bool {
		_, err := old.CallTool(t.Context(), "asking_say", map[string]string{"text": "x"})
		return err != nil && strings.Contains(err.Error(), "only lists and reads are answered; try again")
	})
	for _, err := range old.Tools(t.Context()) {
		if err != nil {
			t.Errorf("a list of a session at one of three nodes: %v", err)
		}
	}
	f := newFront(t, []*node{n})
	if _, err := f.dial(t, mcp.V2025_11_25, "/mcp"); err == nil || !strings.Contains(err.Error(), "the store of sessions does not answer") {
		t.Errorf("a session at one of three nodes: %v", err)
	}
	if res, err := f.client(t, mcp.V2026_07_28).CallTool(t.Context(), "asking_say", map[string]string{"text": "x"}); err != nil || res.Text() != "x" {
		t.Errorf("a call without a session at one of three nodes: %v, %v", res, err)
	}
	if _, said, code := nodesAt(t, n); code != exitLocal || !strings.Contains(said, "a majority of its nodes has to run") {
		t.Errorf("patchbay nodes at one of three = %d, %s", code, said)
	}
}
