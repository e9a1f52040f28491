package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// hooked is a State that calls before with each operation, and fails with its error.
type hooked struct {
	cluster.State
	before atomic.Pointer[func(op, key string) error]
}

func (h *hooked) call(op, key string) error {
	if f := h.before.Load(); f != nil {
		return (*f)(op, key)
	}
	return nil
}

func (h *hooked) hook(f func(op, key string) error) { h.before.Store(&f) }

func (h *hooked) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := h.call("get", key); err != nil {
		return cluster.Entry{}, err
	}
	return h.State.Get(ctx, key)
}

func (h *hooked) Delete(ctx context.Context, key string, version uint64) error {
	if err := h.call("delete", key); err != nil {
		return err
	}
	return h.State.Delete(ctx, key, version)
}

func (h *hooked) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := h.call("put", key); err != nil {
		return 0, err
	}
	return h.State.Put(ctx, key, value, version, ttl)
}

// two are nodes n0 and n1 that continue each other's sessions, each with a State and a Bus of its own in front of one Memory.
type two struct {
	memory *cluster.Memory
	states [2]*hooked
	buses  [2]*cut
	nodes  [2]*cluster.Node
	enter  [2]atomic.Pointer[func(http.ResponseWriter) bool] // is called before the server gets a request, and may answer it
}

func twoNodes(t *testing.T) *two {
	f := &two{memory: new(cluster.Memory)}
	for i := range f.nodes {
		f.states[i], f.buses[i] = &hooked{State: f.memory}, &cut{Bus: f.memory}
		f.begin(t, i)
	}
	return f
}

// begin begins node i, as a new process.
func (f *two) begin(t *testing.T, i int) {
	t.Helper()
	s := &mcp.Server{Name: "nodes", Version: "1"}
	name := fmt.Sprint("n", i)
	mcp.AddTool(s, mcp.Tool{Name: "where"}, func(context.Context, struct{}) (string, error) { return name + " here", nil })
	node := &cluster.Node{Name: name, State: f.states[i], Bus: f.buses[i], Logger: slog.New(slog.DiscardHandler)}
	node.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if enter := f.enter[i].Load(); enter != nil && (*enter)(w) {
			return
		}
		s.ServeHTTP(w, r)
	})
	s.HTTP.Sessions = node.Sessions("/mcp")
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.nodes[i] = node
	t.Cleanup(func() { f.die(node) })
}

// die ends a node and cuts off its requests.
func (f *two) die(node *cluster.Node) {
	now, end := context.WithCancel(context.Background())
	end()
	_ = node.Leave(now) // the error is that of now
}

// remove removes the entries whose keys begin with a prefix and a dot.
func (f *two) remove(t *testing.T, prefix string) {
	t.Helper()
	for c, err := range f.memory.Watch(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			return
		}
		f.drop(t, c.Key)
	}
}

// drop removes an entry.
func (f *two) drop(t *testing.T, key string) {
	t.Helper()
	await(t, key+" is gone", func() bool {
		e, err := f.memory.Get(t.Context(), key)
		if err == nil {
			err = f.memory.Delete(t.Context(), e.Key, e.Version)
		}
		return err == nil || errors.Is(err, cluster.ErrNotFound)
	})
}

// entries returns how many entries there are.
func (f *two) entries(t *testing.T, prefix string) (n int) {
	t.Helper()
	for c, err := range f.memory.Watch(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			break
		}
		n++
	}
	return n
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so within %v: %s", patience, what)
		}
	}
}

// on sees that a call at each of some nodes runs on the one with that name.
func (f *two) on(t *testing.T, id, name string, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		if w := post(t, f.nodes[i], "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), name+" here") {
			t.Errorf("a call at n%d: %d %s, want one on %s", i, w.Code, w.Body, name)
		}
	}
}

// A State that has lost everything gets the sessions again, whole: other nodes continue them later. Until then, no node says that
// one of them is gone.
func TestLostState(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	f.states[0].hook(func(string, string) error { return errors.New("no answer") })
	f.remove(t, "session")
	f.remove(t, "lease")
	f.remove(t, "cluster")
	if w := post(t, f.nodes[1], "POST", id, callWhere); w.Code != 503 || !strings.Contains(w.Body.String(), "put it again") {
		t.Errorf("while the State has nothing: %d %s", w.Code, w.Body)
	}
	f.states[0].hook(func(string, string) error { return nil })
	await(t, "the session is in the State again", func() bool { return f.entries(t, "session") == 1 })
	await(t, "n0 has its sessions", func() bool { return f.nodes[0].Check() == nil })
	f.on(t, id, "n0", 0, 1)
	f.die(f.nodes[0])
	f.on(t, id, "n1", 1)
}

// A change of a session whose entry is gone puts it again, and the State has each session as it was last, also if it did not answer
// when that changed.
func TestLostEntry(t *testing.T) {
	t.Parallel()
	const setLevel = `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}`
	for name, lose := range map[string]func(*two){
		"gone": func(f *two) { f.remove(t, "session") },
		"no answer": func(f *two) {
			f.states[0].hook(func(_, key string) error {
				if strings.HasPrefix(key, "session.") {
					return errors.New("no answer")
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := twoNodes(t)
			id := opened(t, f.nodes[0])
			lose(f)
			if w := post(t, f.nodes[0], "POST", id, setLevel); w.Code != 200 {
				t.Fatalf("logging/setLevel: %d %s", w.Code, w.Body)
			}
			if name == "no answer" {
				f.on(t, id, "n0", 0) // a call waits until the change was put, or could not be
				f.states[0].hook(func(string, string) error { return nil })
				f.remove(t, "lease.node")
			}
			await(t, "the State has the level", func() bool {
				for c, err := range f.memory.Watch(t.Context(), "session") {
					if err != nil || c.Key == "" {
						return false
					}
					return strings.Contains(string(c.Value), "debug")
				}
				return false
			})
		})
	}
}

// A node that comes back while another one waits for its end keeps the sessions that it has continued: no two nodes have one.
func TestBackInTime(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	away := error(fmt.Errorf("n0: %w", cluster.ErrNoNode))
	f.buses[1].err.Store(&away)
	asked, back := make(chan struct{}), make(chan struct{})
	var gets atomic.Int64
	f.states[1].hook(func(op, key string) error {
		if op == "get" && key == "lease.node.n0" {
			if gets.Add(1) == 2 { // it has seen who has the name
				close(asked)
				<-back
			}
		}
		return nil
	})
	first := make(chan int)
	go func() { first <- post(t, f.nodes[1], "POST", id, callWhere).Code }()
	<-asked
	f.die(f.nodes[0])
	f.begin(t, 0)
	f.on(t, id, "n0", 0)
	f.buses[1].err.Store(nil)
	close(back)
	if code := <-first; code != 200 && code != 503 {
		t.Errorf("the call that waited: %d", code)
	}
	f.on(t, id, "n0", 1, 0)
}

// A node that was not seen for a while keeps its sessions, also if another one was about to take them.
func TestSeenAgain(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	f.states[0].hook(func(string, string) error { return errors.New("no answer") })
	away := error(fmt.Errorf("n0: %w", cluster.ErrNoNode))
	f.buses[1].err.Store(&away)
	f.remove(t, "lease.node")
	taking, seen := make(chan struct{}), make(chan struct{})
	f.states[1].hook(func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "session.") {
			close(taking)
			<-seen
		}
		return nil
	})
	first := make(chan int)
	go func() { first <- post(t, f.nodes[1], "POST", id, callWhere).Code }()
	<-taking
	f.states[1].hook(func(string, string) error { return nil })
	await(t, "n0 has lost its name", func() bool { return f.nodes[0].Check() != nil })
	f.states[0].hook(func(string, string) error { return nil })
	await(t, "n0 has its sessions", func() bool { return f.nodes[0].Check() == nil })
	f.buses[1].err.Store(nil)
	close(seen)
	if code := <-first; code != 200 && code != 503 {
		t.Errorf("the call of the node that was about to take the session: %d", code)
	}
	f.on(t, id, "n0", 0, 1)
}

// late is a Bus whose first Dial takes until it is told to fail.
type late struct {
	cluster.Bus
	first atomic.Bool
	fail  chan struct{}
}

func (l *late) Dial(ctx context.Context, node string) (net.Conn, error) {
	if l.first.CompareAndSwap(false, true) {
		<-l.fail
		return nil, fmt.Errorf("%s: %w", node, cluster.ErrNoNode)
	}
	return l.Bus.Dial(ctx, node)
}

// A request that finds late that the node of its session has died does no harm to the session, which another request has taken.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	slow := &late{Bus: f.memory, fail: make(chan struct{})}
	f.buses[1].Bus = slow
	done := make(chan int, 2)
	call := func(n string) {
		done <- post(t, f.nodes[1], "POST", id, strings.Replace(callWhere, `"id":2`, `"id":`+n, 1)).Code
	}
	go call("10")
	await(t, "the first request dials", slow.first.Load)
	f.die(f.nodes[0])
	entered, goOn := make(chan struct{}, 2), make(chan struct{})
	enter := func(http.ResponseWriter) bool { entered <- struct{}{}; <-goOn; return false }
	f.enter[1].Store(&enter)
	go call("11") // takes the session
	<-entered
	close(slow.fail)
	<-entered // the first one has found that n1 has it
	close(goOn)
	for range 2 {
		if code := <-done; code != 200 {
			t.Errorf("a call: %d", code)
		}
	}
	f.on(t, id, "n1", 1)
}

// A request of somebody else, who is refused, does no harm to a session that its node has not continued yet.
func TestRefusedRequest(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	f.die(f.nodes[0])
	enter := func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true }
	f.enter[1].Store(&enter)
	if w := post(t, f.nodes[1], "POST", id, callWhere); w.Code != 404 {
		t.Fatalf("the request of somebody else: %d %s", w.Code, w.Body)
	}
	f.enter[1].Store(nil)
	f.on(t, id, "n1", 1)
}

// A node that has given a session up knows where it is, also if a request for it came back to this node once by way of another one.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[1])
	f.on(t, id, "n1", 0)
	await(t, "n1 sees n0", func() bool { return f.nodes[1].Seen() == 2 })
	f.nodes[1].Retire()
	f.on(t, id, "n0", 0) // by way of n1
	f.die(f.nodes[1])
	f.begin(t, 1)
	f.states[0].hook(func(string, string) error { return errors.New("no answer") })
	away := error(fmt.Errorf("n0: %w", cluster.ErrNoNode))
	f.buses[1].err.Store(&away)
	f.drop(t, "lease.node.n0")
	f.on(t, id, "n1", 1)
	f.buses[1].err.Store(nil)
	await(t, "n0 has lost its name", func() bool { return f.nodes[0].Check() != nil })
	f.states[0].hook(func(string, string) error { return nil })
	await(t, "n0 has its sessions", func() bool { return f.nodes[0].Check() == nil })
	f.on(t, id, "n1", 0, 1)
}

// timeless is a State in which nothing expires, as if its clock were far behind.
type timeless struct{ cluster.State }

func (s timeless) Put(ctx context.Context, key string, value []byte, version uint64, _ time.Duration) (uint64, error) {
	return s.State.Put(ctx, key, value, version, 0)
}

// Nodes see by their own clocks that another one has died, or was started again, and come back after a while without a State: a
// lease that is not renewed has ended, although the State still has it.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	for i, state := range f.states {
		f.die(f.nodes[i])
		state.State = timeless{f.memory}
		f.begin(t, i)
	}
	id := opened(t, f.nodes[0])
	lost := errors.New("no answer")
	f.states[0].hook(func(string, string) error { return lost })
	await(t, "n0 has lost its name", func() bool { return f.nodes[0].Check() != nil })
	f.states[0].hook(func(string, string) error { return nil })
	await(t, "n0 has its name again", func() bool { return f.nodes[0].Check() == nil })

	f.states[0].hook(func(string, string) error { return lost }) // its lease stays
	f.die(f.nodes[0])
	await(t, "n1 does not see n0", func() bool {
		names, err := f.nodes[1].Nodes(t.Context())
		return err == nil && slices.Equal(names, []string{"n1"})
	})
	await(t, "n1 has the session", func() bool { return post(t, f.nodes[1], "POST", id, callWhere).Code == 200 })
	f.on(t, id, "n1", 1)
	f.states[0].hook(func(string, string) error { return nil })
	f.begin(t, 0)
	f.on(t, id, "n1", 0)
}

// A node that retires gives up the sessions that have no request, and another one has them while the first still runs.
func TestIdleSessionsAreGivenUp(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	await(t, "the nodes see each other", func() bool { return f.nodes[0].Seen() == 2 })
	f.nodes[0].Retire()
	await(t, "the session has no node", func() bool {
		for c, err := range f.memory.Watch(t.Context(), "session") {
			return err == nil && strings.Contains(string(c.Value), `"node":""`)
		}
		return false
	})
	f.on(t, id, "n1", 1, 0)
}

// A node that is cut off for long answers at once: lists and reads of its sessions, and everything else with words. It goes on with them
// when it is seen again.
func TestCutOffReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := twoNodes(t)
		id := opened(t, f.nodes[0])
		f.states[0].hook(func(string, string) error { return errors.New("no answer") })
		for f.nodes[0].Check() == nil {
			time.Sleep(time.Second / 10)
		}
		const list = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
		for _, most := range []time.Duration{5 * time.Second, 0} { // it waits to be seen again, and then no longer
			for _, tt := range []struct {
				method, body string
				code         int
				said         string
			}{
				{"POST", list, 200, `"where"`},
				{"POST", `{"jsonrpc":"2.0","id":8,"method":"ping"}`, 200, `"id":8`},
				{"POST", strings.Replace(callWhere, "{", ` {`, 1), 503, "only lists and reads are answered; try again"},
				{"POST", `{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}`, 503, `"id":9`},
				{"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 503, "only lists"},
				{"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, 503, "only lists"},
				{"POST", initialize, 503, "only lists"},
				{"POST", "[" + list + "]", 503, "only lists"},
				{"GET", "", 503, "cut off from the others"},
				{"DELETE", "", 503, "cut off from the others"},
			} {
				begin := time.Now()
				w := post(t, f.nodes[0], tt.method, id, tt.body)
				if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.said) || tt.code == 503 && w.Header().Get("Retry-After") == "" {
					t.Errorf("%s %s: %d %v %s, want %d %s", tt.method, tt.body, w.Code, w.Header(), w.Body, tt.code, tt.said)
				}
				if took := time.Since(begin); took > most {
					t.Errorf("%s %s: %v, want %v at most", tt.method, tt.body, took, most)
				}
				if most > 0 {
					break
				}
			}
			time.Sleep(5 * time.Second)
		}
		f.states[0].hook(func(string, string) error { return nil })
		for f.nodes[0].Check() != nil {
			time.Sleep(time.Second / 10)
		}
		f.on(t, id, "n0", 0, 1)
		if w := post(t, f.nodes[0], "POST", "unknown", callWhere); w.Code != 503 || !strings.Contains(w.Body.String(), "the nodes have just come together") {
			t.Errorf("a session that the State does not show: %d %s", w.Code, w.Body)
		}
		time.Sleep(10 * time.Second)
		if w := post(t, f.nodes[0], "POST", "unknown", callWhere); w.Code != 404 {
			t.Errorf("an unknown session, later: %d %s", w.Code, w.Body)
		}
	})
}

// A session of a node that has ended, which the State does not show, is not called lost while the nodes have just come together: another one may put it
// there again.
func TestUnsettledOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := twoNodes(t)
		id := opened(t, f.nodes[1])
		f.on(t, id, "n1", 0) // so that n0 knows its node
		f.states[0].hook(func(string, string) error { return errors.New("no answer") })
		time.Sleep(10 * time.Second) // it loses its name
		f.states[0].hook(func(string, string) error { return nil })
		for f.nodes[0].Check() != nil {
			time.Sleep(time.Second / 10)
		}
		f.die(f.nodes[1])
		f.remove(t, "session")
		if w := post(t, f.nodes[0], "POST", id, callWhere); w.Code != 503 || !strings.Contains(w.Body.String(), "the nodes have just come together") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		time.Sleep(10 * time.Second)
		if w := post(t, f.nodes[0], "POST", id, callWhere); w.Code != 404 || !strings.Contains(w.Body.String(), "call initialize again") {
			t.Errorf("later: %d %s", w.Code, w.Body)
		}
	})
}

// A session that another node has taken, and given up already, while this one was about to take it is continued here, and not called lost.
func TestGivenUpAgain(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]map[string]string{
		"by a node that ends":          {"node": "", "process": ""},
		"by a process before this one": {"node": "n0", "process": "before"},
	} {
		for _, seen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, seen before: %v", name, seen), func(t *testing.T) {
				t.Parallel()
				f := twoNodes(t)
				id := opened(t, f.nodes[1])
				if seen {
					f.on(t, id, "n1", 0)
				}
				f.die(f.nodes[1])
				f.states[0].hook(func(op, key string) error {
					if op == "put" && strings.HasPrefix(key, "session.") {
						f.states[0].before.Store(nil)
						f.rewrite(t, key, now)
					}
					return nil
				})
				if w := post(t, f.nodes[0], "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), "n0 here") {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if f.states[0].before.Load() != nil {
					t.Error("n0 did not take the session")
				}
			})
		}
	}
}

// rewrite changes members of an entry as another node would.
func (f *two) rewrite(t *testing.T, key string, now map[string]string) {
	e, err := f.memory.Get(t.Context(), key)
	var r map[string]any
	if err == nil {
		err = json.Unmarshal(e.Value, &r)
	}
	if err != nil {
		t.Error(err)
		return
	}
	for name, value := range now {
		r[name] = value
	}
	e.Value, _ = json.Marshal(r)
	if _, err := f.memory.Put(t.Context(), key, e.Value, e.Version, time.Hour); err != nil {
		t.Error(err)
	}
}

// A session that goes to another node while its server here has a request is not called unknown.
func TestUnknownWhileItMoves(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	id := opened(t, f.nodes[0])
	moved := func(w http.ResponseWriter) bool {
		f.enter[0].Store(nil)
		away := errors.New("away")
		f.buses[1].err.Store(&away)
		f.states[0].hook(func(string, string) error { return away })
		await(t, "n1 has the session", func() bool {
			return strings.Contains(post(t, f.nodes[1], "POST", id, callWhere).Body.String(), "n1 here")
		})
		f.buses[1].err.Store(nil)
		f.states[0].hook(func(string, string) error { return nil })
		await(t, "n0 is seen again", func() bool { return f.nodes[0].Check() == nil })
		http.Error(w, "unknown session", http.StatusNotFound)
		return true
	}
	f.enter[0].Store(&moved)
	if w := post(t, f.nodes[0], "POST", id, callWhere); w.Code != 503 || !strings.Contains(w.Body.String(), "moves from node to node; try again") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.on(t, id, "n1", 0, 1)
}

// A node whose renewal is late waits for it before it does something for a session, and gives up when the name is lost.
func TestOwnWaitsForARenewal(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := twoNodes(t)
			f.states[0].hook(func(string, string) error { return errors.New("no answer") })
			for f.nodes[0].Check() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			if comes {
				time.AfterFunc(time.Second/2, func() { f.states[0].hook(func(string, string) error { return nil }) })
			}
			begin := time.Now()
			err := f.nodes[0].Own(t.Context())
			if took := time.Since(begin); (err == nil) != comes || !comes && !errors.Is(err, cluster.ErrOwner) || took < time.Second/2 || took > time.Second {
				t.Errorf("the renewal comes: %v; %v after %v", comes, err, took)
			}
			for _, n := range f.nodes {
				f.die(n)
			}
		})
	}
}

// A request has one time to wait at all nodes that it comes to: for its node to be found at the first one, and for the second one, which the others do not
// see for the moment.
func TestOneWaitAtAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := twoNodes(t)
		id := opened(t, f.nodes[1])
		f.states[0].hook(func(op, key string) error {
			if op == "get" && strings.HasPrefix(key, "session.") {
				time.Sleep(2500 * time.Millisecond)
			}
			return nil
		})
		f.states[1].hook(func(string, string) error { return errors.New("no answer") })
		for f.nodes[1].Check() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		begin := time.Now()
		w := post(t, f.nodes[0], "POST", id, callWhere)
		if took := time.Since(begin); w.Code != 503 || took < 3900*time.Millisecond || took > 4300*time.Millisecond {
			t.Errorf("after %v: %d %s, want 503 after 4 s", took, w.Code, w.Body)
		}
		for _, n := range f.nodes {
			f.die(n)
		}
	})
}
