package nats_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// slowWay is a way between a node and NATS: each byte takes a time in each direction, so many pass in a second, or none.
type slowWay struct {
	net.Listener
	to    string
	delay atomic.Int64 // of a direction; see time.Duration
	bytes atomic.Int64 // that pass a direction in a second; 0: all

	mu     sync.Mutex
	open   chan struct{} // closed while bytes pass; guarded by mu
	passes bool          // guarded by mu
}

func newSlowWay(t *testing.T, to string) *slowWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &slowWay{Listener: l, to: to, open: make(chan struct{})}
	w.pass(true)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		stop()
		all.Wait()
	})
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			all.Go(func() { w.carry(ctx, near, far) })
			all.Go(func() { w.carry(ctx, far, near) })
		}
	})
	return w
}

// pass lets bytes pass, or keeps those that come.
func (w *slowWay) pass(passes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case passes && !w.passes:
		close(w.open)
	case !passes && w.passes:
		w.open = make(chan struct{})
	}
	w.passes = passes
}

// whole lets bytes pass at once.
func (w *slowWay) whole() {
	w.delay.Store(0)
	w.bytes.Store(0)
	w.pass(true)
}

func (w *slowWay) opened() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// lateTime is what a busy machine may be late with a piece, without fewer bytes in a second.
const lateTime = 100 * time.Millisecond

// carry copies one direction.
func (w *slowWay) carry(ctx context.Context, from, to net.Conn) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<12)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 4<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now().Add(time.Duration(w.delay.Load()))}
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		from.Close()
		to.Close()
		for range pieces { // until the reader has ended
		}
	}()
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	var free time.Time // when the way is free for the next piece
	for p := range pieces {
		wait(time.Until(p.due))
		select {
		case <-w.opened():
		case <-ctx.Done():
		}
		if rate := w.bytes.Load(); rate > 0 {
			if least := time.Now().Add(-lateTime); free.Before(least) {
				free = least
			}
			free = free.Add(time.Duration(len(p.data)) * time.Second / time.Duration(rate))
			wait(time.Until(free))
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// apart are three nodes whose servers of NATS are in another process, behind a way for each.
type apart struct {
	name    string
	ways    []*slowWay
	nodes   []*cluster.Node
	servers []*mcp.Server
	calls   atomic.Int64
	ran     sync.Map     // calls that have run, by number
	broken  atomic.Int64 // calls that may have run, as far as their client knows
}

// newApart begins the nodes behind ways with a delay. Those with a true listen connect directly to each other.
func newApart(t *testing.T, address string, delay time.Duration, listen ...bool) *apart {
	t.Helper()
	n := len(listen)
	a := &apart{name: rand.Text(), ways: make([]*slowWay, n), nodes: make([]*cluster.Node, n), servers: make([]*mcp.Server, n)}
	begun := make(chan error, n)
	for i := range n {
		a.ways[i] = newSlowWay(t, strings.TrimPrefix(address, "nats://"))
		a.ways[i].delay.Store(int64(delay))
		opts := nats.Options{Cluster: a.name}
		if listen[i] {
			opts.Listen = "127.0.0.1:0"
		}
		go func() { begun <- a.begin(t, i, opts) }()
	}
	for range n {
		if err := <-begun; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() { // before the nodes end
		for _, w := range a.ways {
			w.whole()
		}
	})
	return a
}

// begin begins a node.
func (a *apart) begin(t *testing.T, i int, opts nats.Options) error {
	nc, err := natsgo.Connect("nats://"+a.ways[i].Addr().String(), natsgo.UserInfo("patchbay", "right"), natsgo.Timeout(time.Minute), natsgo.MaxReconnects(-1), natsgo.IgnoreDiscoveredServers())
	if err != nil {
		return err
	}
	t.Cleanup(nc.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c, err := nats.Open(ctx, nc, opts)
	if err != nil {
		return err
	}
	t.Cleanup(func() { c.Close() })
	s, name := &mcp.Server{Name: "apart", Version: "1"}, fmt.Sprint("n", i)
	type work struct {
		Number int64 `json:"number"`
		Bytes  int   `json:"bytes"` // of the answer
	}
	mcp.AddTool(s, mcp.Tool{Name: "work", Description: "notes that it has run"}, func(_ context.Context, w work) (string, error) {
		if _, again := a.ran.LoadOrStore(w.Number, true); again {
			t.Errorf("call %d ran twice", w.Number)
		}
		return fmt.Sprint("ran at ", name, ".", strings.Repeat("x", w.Bytes)), nil
	})
	mcp.AddResource(s, mcp.Resource{URI: "test://page", Name: "page"}, func(context.Context) (string, error) { return "text of the page", nil })
	node := &cluster.Node{Name: name, State: c, Bus: c, Handler: s, Logger: slog.New(slog.DiscardHandler)}
	s.Shared = node.Share("/")
	if err := node.Join(ctx); err != nil {
		return err
	}
	a.nodes[i], a.servers[i] = node, s
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("server of %s: %v", name, err)
		}
		if err := node.Leave(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return nil
}

// post sends a request of a session, empty for none, to a node.
func (a *apart) post(t *testing.T, at int, session, method, params string) (status int, answer, id string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.calls.Add(1), method, params)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken == http.ErrAbortHandler {
			status, answer, id = 0, brokenOff, ""
		} else if broken != nil {
			panic(broken)
		}
	}()
	a.nodes[at].ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header().Get("Mcp-Session-Id")
}

// brokenOff stands for an answer in the midst of which the connection of the client breaks.
const brokenOff = "the connection broke"

const apartInitialize = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"apart","version":"1"}}`

// open opens a session at a node.
func (a *apart) open(t *testing.T, at int) (id string) {
	t.Helper()
	until(t, fmt.Sprintf("n%d opens a session", at), func() bool {
		status, answer, session := a.post(t, at, "", "initialize", apartInitialize)
		id = session
		return a.answered(t, at, status, answer)
	})
	return id
}

// openAll opens a session at each node.
func (a *apart) openAll(t *testing.T) []string {
	t.Helper()
	ids := make([]string, len(a.nodes))
	var all sync.WaitGroup
	for at := range a.nodes {
		all.Go(func() { ids[at] = a.open(t, at) })
	}
	all.Wait()
	return ids
}

// refusals are the words with which a request is refused while NATS is slow: it has not run.
var refusals = []string{
	"the cluster does not answer", "cut off from the others", "the node of the session cannot be reached", "the session moves",
	"the store of sessions does not answer", "the nodes have just come together",
}

// answered reports whether a request was answered. If not, it was refused in words.
func (a *apart) answered(t *testing.T, at, status int, answer string) bool {
	t.Helper()
	if status == http.StatusOK && strings.Contains(answer, `"result"`) {
		return true
	}
	if status != http.StatusServiceUnavailable || !slices.ContainsFunc(refusals, func(words string) bool { return strings.Contains(answer, words) }) {
		t.Fatalf("n%d: %d %.300s", at, status, answer)
	}
	return false
}

var ranAt = regexp.MustCompile(`ran at (n\d)\.`)

// try calls at a node, and returns the node where the call ran; empty: it was not answered. If it was refused, it has not run.
func (a *apart) try(t *testing.T, at int, session string, bytes int) (node string) {
	t.Helper()
	number := a.calls.Add(1)
	status, answer, _ := a.post(t, at, session, "tools/call", fmt.Sprintf(`{"name":"work","arguments":{"number":%d,"bytes":%d}}`, number, bytes))
	if status == 0 || status == http.StatusBadGateway && strings.Contains(answer, "whether it has done what was asked is not known") {
		a.broken.Add(1) // it may have run
		return ""
	}
	answered := a.answered(t, at, status, answer)
	m := ranAt.FindStringSubmatch(answer)
	switch _, ran := a.ran.Load(number); {
	case !answered && ran:
		t.Errorf("n%d: a call was refused, and ran: %s", at, answer)
	case answered && (m == nil || !ran):
		t.Errorf("n%d: a call was answered, and did not run: %.300s", at, answer)
	case answered:
		return m[1]
	}
	return ""
}

// work calls at a node until the call is answered, and returns the node where it ran.
func (a *apart) work(t *testing.T, at int, session string) (node string) {
	t.Helper()
	until(t, fmt.Sprintf("n%d works for a session", at), func() bool {
		node = a.try(t, at, session, 0)
		return node != ""
	})
	return node
}

// reads sees that a node answers lists and reads of a session.
func (a *apart) reads(t *testing.T, at int, session string) {
	t.Helper()
	for method, params := range map[string]string{"tools/list": `{}`, "resources/read": `{"uri":"test://page"}`} {
		if status, answer, _ := a.post(t, at, session, method, params); status != http.StatusOK || !strings.Contains(answer, `"result"`) {
			t.Errorf("n%d: %s: %d %s", at, method, status, answer)
		}
	}
}

// watched has the leases of nodes as they were, and sees whether the machine runs as it should, until the test ends.
type watched struct {
	state  cluster.State // over a direct connection
	leases []string
	pause  atomic.Int64 // the longest time in which this did not run, or NATS did not keep something over a direct connection; see time.Duration
}

func (a *apart) watch(t *testing.T) *watched {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	nc, err := natsgo.Connect("nats://"+a.ways[0].to, natsgo.UserInfo("patchbay", "right"), natsgo.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c, err := nats.Open(ctx, nc, nats.Options{Cluster: a.name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w, stopped := &watched{state: c}, make(chan struct{})
	w.leases = w.now(t, len(a.nodes))
	t.Cleanup(func() { <-stopped })
	go func() {
		defer close(stopped)
		version := uint64(0)
		for last := time.Now(); t.Context().Err() == nil; last = time.Now() {
			time.Sleep(20 * time.Millisecond)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			version, _ = c.Put(ctx, "pause", nil, version, 0) // if it fails, that took long
			stop()
			w.pause.Store(max(w.pause.Load(), int64(time.Since(last))))
		}
	}()
	return w
}

// now returns the leases of n nodes. A lease that is lost is another one when its node is back.
func (w *watched) now(t *testing.T, n int) []string {
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer stop()
	values := make([]string, n)
	for i := range values {
		switch e, err := w.state.Get(ctx, fmt.Sprint("lease.node.n", i)); {
		case err == nil:
			values[i] = string(e.Value)
		case !errors.Is(err, cluster.ErrNotFound):
			t.Error(err)
		}
	}
	return values
}

// kept reports whether all nodes have the leases that they had.
func (w *watched) kept(t *testing.T) bool { return slices.Equal(w.leases, w.now(t, len(w.leases))) }

// steady reports whether the machine ran as it should. Otherwise a node may have been too late with a renewal, or with an answer.
func (w *watched) steady(t *testing.T) bool {
	pause := time.Duration(w.pause.Load())
	t.Logf("the longest pause was %v", pause.Round(time.Millisecond))
	return pause < 300*time.Millisecond
}

// none sees that no node has lost its lease.
func (w *watched) none(t *testing.T) {
	t.Helper()
	if now := w.now(t, len(w.leases)); !slices.Equal(w.leases, now) && w.steady(t) {
		t.Errorf("nodes have lost their leases: %q became %q", w.leases, now)
	}
}

// A server of NATS that is slow, or cannot be reached for a while, costs time, and no session and no call.
func TestSlowNATS(t *testing.T) {
	t.Parallel()
	address := process(t)
	for name, test := range map[string]func(t *testing.T, address string){"late": late, "cut_off": cutOff, "narrow": narrow, "alone": alone, "narrow_alone": narrowAlone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, address)
		})
	}
}

// late has 200 ms between each node and NATS, in each direction. Sessions are opened, forwarded and moved as usual, and no lease is lost.
func late(t *testing.T, address string) {
	const delay = 200 * time.Millisecond
	a := newApart(t, address, long.Or(delay, 0), true, true, false)
	for _, way := range a.ways {
		way.delay.Store(int64(delay))
	}
	w := a.watch(t)
	sessions := a.openAll(t)
	var all sync.WaitGroup
	for owner, session := range sessions {
		for at := range a.nodes {
			all.Go(func() {
				for range 2 {
					if node := a.work(t, at, session); node != fmt.Sprint("n", owner) && w.kept(t) {
						t.Errorf("n%d: a session of n%d is at %s", at, owner, node)
					}
				}
				a.reads(t, at, session)
			})
		}
	}
	all.Wait()
	w.none(t)
	a.nodes[2].Retire()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := a.servers[2].Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := a.nodes[2].Leave(ctx); err != nil {
		t.Error(err)
	}
	for at := range 2 {
		if node := a.work(t, at, sessions[2]); node == "n2" {
			t.Errorf("n%d: a session is at %s, which has ended", at, node)
		}
	}
}

// A lease is renewed also when NATS becomes slow from one moment to the next, and needs longer for an answer than requests wait before they are
// sent again.
func TestSuddenlySlowNATS(t *testing.T) {
	t.Parallel()
	way := newSlowWay(t, strings.TrimPrefix(process(t), "nats://"))
	nc, err := natsgo.Connect("nats://"+way.Addr().String(), natsgo.UserInfo("patchbay", "right"), natsgo.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c, err := nats.Open(ctx, nc, nats.Options{Cluster: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	lease, err := cluster.TryAcquire(ctx, c, "slow", "n0", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	way.delay.Store(int64(330 * time.Millisecond))
	select {
	case <-lease.Lost():
		t.Error("the lease is lost")
	case <-time.After(5 * time.Second):
	}
	way.whole()
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}

// isCutOff sees that a node which is cut off says so, and answers reads of a session that it has.
func (a *apart) isCutOff(t *testing.T, at int, session string) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		status, answer, _ := a.post(t, at, session, "tools/call", `{"name":"work","arguments":{"number":-1,"bytes":0}}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(answer, "this node is cut off from the others, one of which may have the session: only lists and reads are answered; try again") {
			t.Errorf("a call: %d %s", status, answer)
		}
		if _, ran := a.ran.Load(int64(-1)); ran {
			t.Error("a call that was refused ran")
		}
	})
	all.Go(func() { a.reads(t, at, session) })
	all.Go(func() {
		status, answer, _ := a.post(t, at, "", "initialize", apartInitialize)
		if status != http.StatusServiceUnavailable || !strings.Contains(answer, "the store of sessions does not answer") {
			t.Errorf("initialize: %d %s", status, answer)
		}
	})
	all.Wait()
}

// cutOff has 2 s between one node and NATS, in each direction, for a while, which is more than a lease can wait for its renewal; and a NATS that passes
// nothing to another node, though connections stay. Both come back by themselves, with the sessions that the third one has not taken.
func cutOff(t *testing.T, address string) {
	a := newApart(t, address, 0, true, true, false)
	const taker = 2
	var stays, moves [taker]string
	for at := range taker {
		stays[at], moves[at] = a.open(t, at), a.open(t, at)
		for _, session := range []string{stays[at], moves[at]} {
			a.work(t, at, session)
		}
	}
	a.ways[0].delay.Store(int64(2 * time.Second))
	a.ways[1].pass(false)
	var all sync.WaitGroup
	for at := range taker {
		until(t, fmt.Sprintf("n%d is cut off", at), func() bool { return a.nodes[at].Check() != nil })
		all.Go(func() { a.isCutOff(t, at, stays[at]) })
		all.Go(func() {
			if node := a.work(t, taker, moves[at]); node != "n2" { // which has not asked for it before
				t.Errorf("a session of n%d, which is cut off, is at %s", at, node)
			}
		})
	}
	all.Wait()
	for at := range taker {
		a.ways[at].whole()
	}
	for at := range taker {
		until(t, fmt.Sprintf("n%d is back", at), func() bool { return a.nodes[at].Check() == nil })
	}
	w := a.watch(t)
	for owner := range taker {
		for at := range a.nodes {
			if node := a.work(t, at, stays[owner]); node != fmt.Sprint("n", owner) && w.kept(t) {
				t.Errorf("n%d: a session of n%d that no other node has taken is at %s", at, owner, node)
			}
			if node := a.work(t, at, moves[owner]); node != "n2" && w.kept(t) {
				t.Errorf("n%d: a session of n%d that n2 has taken is at %s", at, owner, node)
			}
		}
	}
}

// narrow has 64 KiB a second between each node and NATS, in each direction, and large answers that are forwarded. These pass direct
// connections, so that no lease is lost and no call fails.
func narrow(t *testing.T, address string) { large(t, address, 64<<10, true) }

// alone has 1 MiB a second, and nodes that connect to NATS alone.
func alone(t *testing.T, address string) { large(t, address, 1<<20, false) }

// narrowAlone has 64 KiB a second, and nodes that connect to NATS alone. A large answer then keeps the renewal of a lease waiting, and what nodes ask
// each other to see whether they live: connections break, and nodes may be cut off for a moment. The answer is lost then.
func narrowAlone(t *testing.T, address string) {
	long.Only(t)
	large(t, address, 0, false)
}

// large lets a session of each node get large answers at all nodes, for longer than a lease lasts, with a narrow way to NATS, over which so many
// bytes pass in a second; 0: too few. Afterwards the sessions are there.
func large(t *testing.T, address string, bytes int64, linked bool) {
	a := newApart(t, address, 0, linked, linked, linked)
	w := a.watch(t)
	sessions := a.openAll(t)
	for _, way := range a.ways {
		way.bytes.Store(cmp.Or(bytes, 64<<10))
	}
	var all sync.WaitGroup
	for _, session := range sessions {
		all.Go(func() {
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && !t.Failed(); {
				for at := range a.nodes {
					a.try(t, at, session, 200<<10)
				}
			}
		})
	}
	all.Wait()
	if bytes > 0 {
		w.none(t)
		if n := a.broken.Load(); n > 0 && w.steady(t) {
			t.Errorf("%d calls broke", n)
		}
	}
	t.Logf("of about %d calls %d broke; the leases are those of the begin: %v", a.calls.Load()/2, a.broken.Load(), w.kept(t))
	for _, way := range a.ways {
		way.whole()
	}
	for _, session := range sessions {
		for at := range a.nodes {
			a.work(t, at, session)
		}
	}
}
