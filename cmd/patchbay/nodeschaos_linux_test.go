package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

const chaosFile = `
servers: mcp.json
listen: {http: "${NODE_HTTP}"}
audit: {file: "${NODE}.jsonl", arguments: redacted, sync: none, key: "${NODE}.key", checkpoint: 1s}
limits: ["tool:ledger_scarce=20/s"]
cluster:
  name: chaos
  node: ${NODE}
  drain: 10s
`

const chaosEmbedded = `  nats: embedded
  listen: ${NODE_LISTEN}
  routes: [%s]
  store: ${NODE}
  secret: ${NODE_SECRET}
`

// scarce is the limit of calls of ledger_scarce in a second.
const scarce = 20

// chaos is several nodes that are harmed, and what clients see of it.
type chaos struct {
	dir       string
	book      *ledger
	nodes     []*node
	addresses []string // for clients
	env       func(i int) []string
	clocks    []time.Duration // how far those of the nodes go before the right time; nil: they are right

	mu        sync.Mutex
	processes []*node    // of the nodes, also those that have ended; guarded by mu
	harms     []harmed   // guarded by mu until all are done
	stopped   []exchange // when the process of a node was stopped; guarded by mu
	busy      []bool     // nodes that are harmed now; guarded by mu
}

// harmed is a time in which a node did not serve as it should.
type harmed struct {
	how, node string
	span
}

// counts returns the number of harms of each kind.
func (c *chaos) counts() map[string]int {
	n := map[string]int{}
	for _, h := range c.harms {
		n[h.how]++
	}
	return n
}

// clocks of nodes differ by a minute, as docs/nodes.md allows.
var clocks = []time.Duration{-30 * time.Second, 0, 30 * time.Second}

// newChaos begins nodes whose gateway.yaml is in a folder, and ends with the text cluster.
func newChaos(t *testing.T, dir string, n int, clocks []time.Duration, cluster string, env func(i int) []string) *chaos {
	t.Helper()
	c := &chaos{clocks: clocks, dir: dir, book: &ledger{path: filepath.Join(dir, "ledger")}, nodes: make([]*node, n), busy: make([]bool, n), addresses: freeAddresses(t, n)}
	writeConfig(t, filepath.Join(c.dir, "mcp.json"), map[string]any{"ledger": map[string]any{"url": c.book.serve(t)}})
	if err := os.WriteFile(filepath.Join(c.dir, "gateway.yaml"), []byte(chaosFile+cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	sockets := socketFolder(t)
	c.env = func(i int) []string { return append(env(i), "XDG_RUNTIME_DIR="+sockets, "NODE_HTTP="+c.addresses[i]) }
	for i := range c.nodes {
		c.begin(t, i)
	}
	for _, n := range c.nodes {
		awaited(t, n.name+" serves", n.ready)
	}
	return c
}

// newChaosEmbedded begins three nodes with the embedded NATS.
func newChaosEmbedded(t *testing.T, clocks []time.Duration) *chaos {
	t.Helper()
	between := freeAddresses(t, 3)
	return newChaos(t, t.TempDir(), 3, clocks, fmt.Sprintf(chaosEmbedded, "nats://"+strings.Join(between, ", nats://")), func(i int) []string {
		return []string{"NODE_LISTEN=" + between[i], "NODE_SECRET=a secret of the test"}
	})
}

// begin begins a process of a node.
func (c *chaos) begin(t *testing.T, i int) {
	n := &node{name: fmt.Sprint("n", i+1), running: new(running), out: new(transcript)}
	n.cmd, n.stderr = program(t, "up", "--gateway", filepath.Join(c.dir, "gateway.yaml"), "--no-page")
	n.cmd.Env = append(n.cmd.Env, append(c.env(i), "NODE="+n.name)...)
	n.skewed(c.clocks, i)
	n.cmd.Stdout = n.out
	n.url = "http://" + c.addresses[i] + "/mcp"
	n.begin(t)
	c.nodes[i] = n
	c.mu.Lock()
	c.processes = append(c.processes, n)
	c.mu.Unlock()
}

// skewed gives the node the clock with a number.
func (n *node) skewed(clocks []time.Duration, i int) {
	if clocks != nil && skewClock != nil {
		n.clock = clocks[i]
		n.cmd.Env = append(n.cmd.Env, fmt.Sprint(testClock, "=", n.clock))
	}
}

// ready reports whether a node says that it may get requests.
func (n *node) ready() bool {
	client := http.Client{Timeout: time.Second}
	res, err := client.Get(strings.TrimSuffix(n.url, "/mcp") + "/readyz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// over reports whether the process of a node has ended. It can still be waited for.
func (n *node) over() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, n.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// harm does something to a node, and waits until it is a node again.
func (c *chaos) harm(t *testing.T, how string, i int) {
	n := c.nodes[i]
	h := harmed{how: how, node: n.name, span: span{from: time.Now()}}
	switch how {
	case "kill":
		n.cmd.Process.Kill()
		n.cmd.Wait()
		c.begin(t, i)
	case "end":
		n.end(t)
		c.begin(t, i)
	case "stop": // others take its sessions meanwhile
		n.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(long.Or(10*time.Second, 5*time.Second)) // which is the fault
		n.cmd.Process.Signal(syscall.SIGCONT)
		c.mu.Lock()
		c.stopped = append(c.stopped, exchange{node: i, span: span{h.from, time.Now()}})
		c.mu.Unlock()
	case "full": // no file grows: neither the audit log nor those of NATS
		n.disk(t, 1)
		time.Sleep(long.Or(5*time.Second, 2*time.Second)) // which is the fault
		n.disk(t, unix.RLIM_INFINITY)
		awaited(t, n.name+" has a disk again", func() bool { return n.ready() || n.over() })
		if n.over() { // a supervisor begins it again
			if err := n.cmd.Wait(); n.cmd.ProcessState.ExitCode() != exitLocal || !strings.Contains(n.stderr.String(), "disk") {
				t.Errorf("%s: %v: %s", n.name, err, n.stderr)
			}
			h.how = "full, ended"
			c.begin(t, i)
		}
		awaited(t, "the NATS of "+n.name+" has a disk again", func() bool {
			said := n.stderr.String()
			return n != c.nodes[i] || strings.LastIndex(said, "nats: begins again") >= strings.LastIndex(said, "nats: stopped, until") // which may be said twice
		})
	}
	awaited(t, n.name+" serves again", c.nodes[i].ready)
	c.did(h)
}

// did notes a harm that is over.
func (c *chaos) did(h harmed) {
	h.to = time.Now()
	c.mu.Lock()
	c.harms = append(c.harms, h)
	c.mu.Unlock()
}

// harmOne does something to a node that is whole, unless two are harmed already, and reports whether it did.
func (c *chaos) harmOne(t *testing.T, how string) bool {
	c.mu.Lock()
	var whole []int
	for i, busy := range c.busy {
		if !busy {
			whole = append(whole, i)
		}
	}
	if len(c.nodes)-len(whole) >= 2 {
		c.mu.Unlock()
		return false
	}
	i := whole[rand.IntN(len(whole))]
	c.busy[i] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.busy[i] = false
		c.mu.Unlock()
	}()
	c.harm(t, how, i)
	return true
}

// killEvery kills a node at each tick, whatever else is done to others, and does other harms meanwhile, until a time.
func (c *chaos) killEvery(t *testing.T, tick time.Duration, others []string, end time.Time) {
	ctx, stop := context.WithDeadline(t.Context(), end)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				all.Go(func() {
					for !c.harmOne(t, "kill") && ctx.Err() == nil && !t.Failed() {
						time.Sleep(100 * time.Millisecond) // two are down
					}
				})
			}
		}
	})
	for n := 0; time.Now().Before(end.Add(-2 * time.Second)); n++ {
		c.harmOne(t, others[n%len(others)])
		time.Sleep(time.Second)
	}
}

// disk limits the size of the files that a node writes.
func (n *node) disk(t *testing.T, bytes uint64) {
	if err := unix.Prlimit(n.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}

// freeAddresses returns addresses that nobody listens at.
func freeAddresses(t *testing.T, n int) (list []string) {
	for range n {
		addr, err := freeport.Addr()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, addr)
	}
	return list
}

// run lets clients of every revision call and watch while harms are done, at least for a time, and judges what they have seen.
func (c *chaos) run(t *testing.T, clients int, during time.Duration, harms func(end time.Time)) {
	f := newFront(t, c.nodes)
	f.measured = true
	begin := time.Now()
	end := begin.Add(during)
	var all sync.WaitGroup
	defer all.Wait()
	calling, enough := context.WithCancel(t.Context())
	defer enough()
	var callers []*caller
	for i := range clients {
		r := mcp.Revisions()[i%len(mcp.Revisions())]
		callers = append(callers, newCaller(fmt.Sprintf("c%d", i), r, "do", long.Or(500*time.Millisecond, 50*time.Millisecond)))
	}
	for i := range 2 {
		callers = append(callers, newCaller(fmt.Sprintf("c%d", clients+i), mcp.V2026_07_28, "scarce", 20*time.Millisecond))
	}
	for _, caller := range callers {
		all.Go(func() { caller.call(t, f, calling) })
	}
	older := slices.DeleteFunc(mcp.Revisions(), func(r mcp.Revision) bool { return r == mcp.V2026_07_28 })
	var counters []*counter
	other := newFront(t, c.nodes) // as these requests last
	for i := range long.Or(12, 4) {
		counter := newCounter(i, older[i%len(older)], other)
		counters = append(counters, counter)
		all.Go(func() { counter.call(t, calling) })
	}
	var watchers []*watcher
	var ended sync.WaitGroup
	defer ended.Wait()
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range long.Or(20, 4) {
		if r := mcp.Revisions()[i%len(mcp.Revisions())]; r != mcp.V2026_07_28 {
			w := &watcher{url: f.url(), revision: r}
			watchers = append(watchers, w)
			ended.Go(func() { w.watch(t, watching) })
		}
	}
	harms(end)
	time.Sleep(time.Until(end))
	enough()
	all.Wait()
	c.limited(t, callers, time.Since(begin))
	c.changed(t, watchers)
	stop()
	ended.Wait()
	for _, n := range c.nodes {
		all.Go(func() { n.end(t) })
	}
	all.Wait()
	c.judge(t, callers, counters)
	c.waited(t, f)
	if !t.Failed() {
		return
	}
	t.Logf("clocks, which the logs of the nodes show: %v", c.clocks)
	for _, h := range c.harms {
		t.Logf("%s: %s, %s to %s", h.how, h.node, h.from.UTC().Format("15:04:05.000"), h.to.UTC().Format("15:04:05.000"))
	}
	for _, n := range c.processes {
		for line := range strings.Lines(n.stderr.String()) {
			if strings.Contains(line, "session") && !strings.Contains(line, "forwarded in vain") {
				t.Logf("%s (%d): %s", n.name, n.cmd.Process.Pid, line)
			}
		}
	}
}

// changed sees that each watcher sees a change, and another one, which cannot be taken for a change that it was told of because its
// session went on elsewhere.
func (c *chaos) changed(t *testing.T, watchers []*watcher) {
	for range 2 {
		var before []int
		for _, w := range watchers {
			before = append(before, w.changes())
		}
		c.book.server.ResourceUpdated(ledgerPage)
		for i, w := range watchers {
			awaited(t, "the watcher of "+string(w.revision)+" sees the last change", func() bool { return t.Failed() || w.changes() > before[i] })
		}
	}
	for _, w := range watchers {
		w.mu.Lock()
		if len(w.twice) > 0 {
			t.Errorf("the watcher of %s got %d events twice: %.5q", w.revision, len(w.twice), w.twice)
		}
		w.mu.Unlock()
	}
}

// waited sees that each request was answered in time, not counting the time in which the process that had its connection was stopped.
func (c *chaos) waited(t *testing.T, f *front) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var longest time.Duration
	var at exchange
	for _, e := range f.posts {
		took := e.to.Sub(e.from)
		for _, s := range c.stopped {
			if s.node == e.node {
				took -= s.common(e.span)
			}
		}
		if took > longest {
			longest, at = took, e
		}
	}
	t.Logf("the slowest request took %v, at %s (%s to %s): %q", longest.Round(time.Millisecond), c.nodes[at.node].name, at.from.UTC().Format("15:04:05.000"), at.to.UTC().Format("15:04:05.000"), at.head)
	if most := long.Or(5*time.Second, 20*time.Second); longest > most { // in the gate beside other tests
		t.Errorf("a request took %v", longest)
	}
}

// limited sees that all nodes together keep to the limit. A process begins with what a second allows, and a node that sees no other
// one for a moment allows all.
func (c *chaos) limited(t *testing.T, callers []*caller, during time.Duration) {
	refused := 0
	for _, caller := range callers {
		for _, f := range caller.failed {
			if f.words == limitWords {
				refused++
			}
		}
	}
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	most := int(during.Seconds()+1)*scarce + len(c.processes)*scarce + len(c.harms)*2*scarce
	t.Logf("%d calls of the limited tool, at most %d, %d refused", c.book.scarce, most, refused)
	if c.book.scarce > most || refused == 0 || c.book.scarce == 0 {
		t.Errorf("%d calls of the limited tool in %v ran, and %d were refused; at most %d may run", c.book.scarce, during, refused, most)
	}
}

// Clients of every revision call through three nodes, which are killed, stopped and restarted meanwhile, whose disks are full, and whose clocks differ by a minute. No
// call runs twice, none that was answered did not run, each is answered or fails with words in time, each that ran is in the log of
// a node, no session ends, and each change is seen.
func TestNodesChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	c := newChaosEmbedded(t, clocks)
	c.run(t, long.Or(200, 10), long.Or(5*time.Minute, 14*time.Second), func(end time.Time) {
		if long.On() {
			c.killEvery(t, 10*time.Second, []string{"stop", "full", "end"}, end)
			return
		}
		for _, how := range []string{"kill", "stop", "full", "end"} {
			c.harmOne(t, how)
		}
	})
}
