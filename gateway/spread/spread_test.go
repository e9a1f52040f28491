package spread_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// box is a server over HTTP that can be killed, started again, and made to fail.
type box struct {
	t    *testing.T
	name string
	addr string
	srv  *mcp.Server

	limit time.Duration // of calls to it; zero: an hour

	hang   atomic.Bool // accept requests and never answer
	broken atomic.Bool // answer every call with -32603
	calls  atomic.Int64
	asked  sync.Map  // methods that it got
	begun  chan bool // receives calls of "wait"
	wrong  atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]

	mu      sync.Mutex
	running *http.Server
	over    chan struct{}
}

func newBox(t *testing.T, name string) *box {
	b := &box{t: t, name: name, srv: &mcp.Server{Name: "work", Version: "1"}}
	mcp.AddTool(b.srv, mcp.Tool{Name: "which"}, func(ctx context.Context, _ struct{}) (string, error) {
		b.calls.Add(1)
		if b.broken.Load() {
			return "", mcp.Errorf(jsonrpc.CodeInternal, "out of order")
		}
		return name, nil
	})
	mcp.AddTool(b.srv, mcp.Tool{Name: "fails"}, func(context.Context, struct{}) (string, error) {
		b.calls.Add(1)
		return "", errors.New("the tool's own error")
	})
	b.start()
	t.Cleanup(b.kill)
	return b
}

// start listens, at the same address as before.
func (b *box) start() {
	b.t.Helper()
	var l net.Listener
	var err error
	for range 100 { // the system may need a moment
		at := b.addr
		if at == "" { // while it is killed, no outgoing connection of another test takes such a port
			if at, err = freeport.Addr(); err != nil {
				b.t.Fatal(err)
			}
		}
		if l, err = net.Listen("tcp", at); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if b.addr == "" {
		b.addr = l.Addr().String()
	}
	over := make(chan struct{})
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.hang.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-over:
			}
			return
		}
		if wrong := b.wrong.Load(); wrong != nil && (*wrong)(w, r) {
			return
		}
		b.asked.Store(r.Header.Get("Mcp-Method"), true)
		b.srv.ServeHTTP(w, r)
	})}
	b.mu.Lock()
	b.running, b.over = hs, over
	b.mu.Unlock()
	go hs.Serve(l)
}

// kill ends the server with its connections.
func (b *box) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running != nil {
		close(b.over)
		b.running.Close()
		b.running = nil
	}
}

// opener counts the connections that were opened.
func (b *box) replica(rev mcp.Revision, opened *atomic.Int64) spread.Replica {
	return spread.Replica{Name: b.name, Open: func(ctx context.Context) (gateway.Upstream, error) {
		if opened != nil {
			opened.Add(1)
		}
		c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
		c.Limits.CallTimeout = cmp.Or(b.limit, time.Hour)
		gateway.Relay(ctx, c)
		s, err := c.Dial(ctx, "http://"+b.addr)
		if err != nil {
			return nil, err
		}
		return s, nil
	}}
}

// through returns a caller of a gateway with the group as server "work".
func through(t *testing.T, group *spread.Group, older gateway.Share) (g *gateway.Gateway, session func() *mcp.Session) {
	t.Helper()
	g = &gateway.Gateway{Name: "gw", Logger: group.Logger}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx, gateway.Source{Name: "work", Open: group.Open, Older: older}) }()
	t.Cleanup(func() { cancel(); <-done; group.Close() })
	eventually(t, "the server is ready", func() bool {
		all := g.Status()
		return len(all) == 1 && all[0].State == gateway.Ready
	})
	return g, func() *mcp.Session {
		t.Helper()
		s, err := (&mcp.Client{Name: "caller", Version: "1"}).Open(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}

// connected waits until all replicas are connected.
func connected(t *testing.T, group *spread.Group) {
	t.Helper()
	eventually(t, "all replicas are connected", func() bool {
		for _, s := range group.Status() {
			if s.Conns == 0 {
				return false
			}
		}
		return true
	})
}

func call(t *testing.T, s *mcp.Session, tool string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := s.CallTool(ctx, tool, nil)
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

// load calls a tool from 16 callers until stop is called, which returns how many calls there were and
// the errors.
func load(t *testing.T, session func() *mcp.Session, tool string) (mark func() (calls int, errs []error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var calls int
	var errs []error
	var wg sync.WaitGroup
	for range 16 {
		s := session()
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := call(t, s, tool)
				mu.Lock()
				if calls++; err != nil {
					errs = append(errs, err)
				}
				mu.Unlock()
				time.Sleep(40 * time.Millisecond) // 400 calls a second are enough; more cost only time of the processor
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return func() (int, []error) {
		mu.Lock()
		defer mu.Unlock()
		n, e := calls, errs
		calls, errs = 0, nil
		return n, e
	}
}

// quiet drops the log of a test that provokes faults.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// One of two replicas under 16 callers is killed: at most 1 % of the calls fail after the first second.
// It comes back, and gets calls again.
func TestReplicaDies(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		t.Run(string(rev), func(t *testing.T) {
			a, b := newBox(t, "a"), newBox(t, "b")
			group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: 200 * time.Millisecond},
				Replicas: []spread.Replica{a.replica(rev, nil), b.replica(rev, nil)}}
			_, session := through(t, group, gateway.Shared)
			shared := session()
			if _, err := call(t, shared, "work_which"); err != nil {
				t.Fatal(err)
			}
			connected(t, group)
			mark := load(t, func() *mcp.Session { return session() }, "work_which")
			eventually(t, "both replicas get calls", func() bool { return a.calls.Load() > 50 && b.calls.Load() > 50 })
			if _, errs := mark(); len(errs) > 0 {
				t.Fatalf("before: %v", errs[0])
			}
			a.kill()
			time.Sleep(time.Second)
			first, firstErrs := mark()
			later, laterErrs := 0, []error(nil)
			eventually(t, "calls go on", func() bool {
				n, errs := mark()
				later, laterErrs = later+n, append(laterErrs, errs...)
				return later >= 500 // so that an error of the first second that is late does not count
			})
			t.Logf("first second: %d calls, %d failed; then: %d calls, %d failed", first, len(firstErrs), later, len(laterErrs))
			if len(laterErrs)*100 > later {
				t.Errorf("after the first second %d of %d calls have failed, such as %v", len(laterErrs), later, laterErrs)
			}
			for _, err := range firstErrs {
				if !strings.Contains(err.Error(), "may or may not have run") {
					t.Errorf("a call in flight failed with %v", err)
				}
			}
			before := a.calls.Load()
			a.start()
			eventually(t, "the replica gets calls again", func() bool { return a.calls.Load() > before+10 })
		})
	}
}

// A replica that accepts requests and never answers gets no further calls, although its connections are
// open. Probes use a connection of their own.
func TestReplicaHangs(t *testing.T) {
	a, b := newBox(t, "a"), newBox(t, "b")
	a.limit, b.limit = 3*time.Second, 3*time.Second
	var opened atomic.Int64
	group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: 300 * time.Millisecond},
		Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, &opened), b.replica(mcp.V2026_07_28, nil)}}
	_, session := through(t, group, gateway.PerSession)
	if _, err := call(t, session(), "work_which"); err != nil {
		t.Fatal(err)
	}
	connected(t, group)
	if n := opened.Load(); n != 1 {
		t.Fatalf("%d connections opened, want 1", n)
	}
	mark := load(t, session, "work_which")
	eventually(t, "both replicas get calls", func() bool { return a.calls.Load() > 50 && b.calls.Load() > 50 })
	mark()
	a.hang.Store(true)
	time.Sleep(time.Second)
	mark()
	time.Sleep(time.Second)
	if n, _ := mark(); n <= 20 { // 16 would be one call of each caller
		t.Errorf("%d calls in the second second: callers wait for the replica that hangs", n)
	}
	time.Sleep(4 * time.Second)
	mark()
	time.Sleep(time.Second)
	n, errs := mark()
	if len(errs)*100 > n {
		t.Errorf("%d of %d calls failed: %v", len(errs), n, errs[0])
	}
	eventually(t, "the breaker opens", func() bool { return group.Status()[0].Breaker.Open })
	before := a.calls.Load()
	a.hang.Store(false)
	eventually(t, "the replica gets calls again", func() bool { return a.calls.Load() > before+10 })
	if opened.Load() < 2 {
		t.Error("the probe had no connection of its own")
	}
}

// A replica that answers everything with -32603 gets no calls while its breaker is open, and a tool's
// own error opens no breaker.
func TestReplicaBroken(t *testing.T) {
	a, b := newBox(t, "a"), newBox(t, "b")
	group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: time.Hour}, Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
	_, session := through(t, group, gateway.PerSession)
	s := session()
	if _, err := call(t, s, "work_which"); err != nil {
		t.Fatal(err)
	}
	connected(t, group)
	for range 100 {
		if _, err := call(t, s, "work_fails"); err != nil {
			t.Fatal(err)
		}
	}
	for _, st := range group.Status() {
		if st.Breaker.Opened > 0 {
			t.Fatalf("isError has opened the breaker of %s", st.Name)
		}
	}
	mark := load(t, session, "work_which")
	eventually(t, "both replicas get calls", func() bool { return a.calls.Load() > 150 && b.calls.Load() > 150 })
	a.broken.Store(true)
	eventually(t, "the breaker opens", func() bool { return group.Status()[0].Breaker.Open })
	failed := 0 // as the callers see it: the breaker opens before the last of them has its error
	eventually(t, "ten calls have failed", func() bool { _, errs := mark(); failed += len(errs); return failed >= 10 })
	if failed > 10+16 { // those that were in flight
		t.Errorf("%d calls failed before the breaker opened", failed)
	}
	before := a.calls.Load()
	b.broken.Store(true)
	eventually(t, "both breakers open", func() bool { return group.Status()[1].Breaker.Open })
	if n := a.calls.Load() - before; n > 16 {
		t.Errorf("%d calls while the breaker was open", n)
	}
	_, err := call(t, s, "work_which")
	if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), `of server "work" has failed too often`) || !strings.Contains(err.Error(), "out of order") || !strings.Contains(err.Error(), "tried again in") {
		t.Errorf("while both breakers are open: %v", err)
	}
}

// A replica with other tools is reported, and gets only calls of tools that it lists.
func TestReplicaDiffers(t *testing.T) {
	t.Parallel()
	a, b := newBox(t, "a"), newBox(t, "b")
	b.srv.Version = "2"
	mcp.AddTool(b.srv, mcp.Tool{Name: "only_b"}, func(context.Context, struct{}) (string, error) { return "b", nil })
	b.srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "fails"})
	var out lockedBuffer
	group := &spread.Group{Name: "work", Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
	_, session := through(t, group, gateway.PerSession)
	s := session()
	eventually(t, "the difference is seen and logged", func() bool {
		return group.Status()[0].Differs+group.Status()[1].Differs != "" && strings.Contains(out.String(), "replica differs")
	})
	differs := group.Status()[0].Differs + group.Status()[1].Differs
	for _, want := range []string{"work 2", "work 1", "only_b", "fails"} {
		if !strings.Contains(differs, want) || !strings.Contains(out.String(), want) {
			t.Errorf("%q in %q and the log %q", want, differs, out.String())
		}
	}
	own := "work_fails" // only the replica with the lists has it
	if group.Status()[0].Differs != "" {
		own = "work_only_b"
	}
	for range 50 {
		if text, err := call(t, s, own); err != nil || text == "" {
			t.Fatalf("a call of a tool that only one replica has: %q, %v", text, err)
		}
	}
	if n := strings.Count(out.String(), "replica differs"); n != 1 {
		t.Errorf("reported %d times", n)
	}
}

// The session of a client before 2026-07-28 stays at one replica, and its end is told.
func TestSessionStays(t *testing.T) {
	t.Parallel()
	a, b := newBox(t, "a"), newBox(t, "b")
	boxes := map[string]*box{"a": a, "b": b}
	group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{a.replica(mcp.V2025_06_18, nil), b.replica(mcp.V2025_06_18, nil)}}
	g, _ := through(t, group, gateway.PerSession)
	front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	seen := map[string]bool{}
	var sessions []*mcp.Session
	for range 20 {
		s := mcptest.Connect(t, front, &mcp.Client{Name: "caller", Version: "1"}, mcp.V2025_06_18)
		first, err := call(t, s, "work_which")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if again, err := call(t, s, "work_which"); err != nil || again != first {
				t.Fatalf("%s, then %s, %v", first, again, err)
			}
		}
		seen[first] = true
		sessions = append(sessions, s)
	}
	if len(seen) != 2 {
		t.Errorf("all sessions are at %v", seen)
	}
	s := sessions[0]
	first, _ := call(t, s, "work_which")
	boxes[first].kill()
	_, err := call(t, s, "work_which")
	if err == nil {
		t.Error("the loss of a session was not told")
	}
	eventually(t, "the session goes on at the other replica", func() bool {
		text, err := call(t, s, "work_which")
		return err == nil && text != first
	})
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
