package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// rollClient calls without an end while nodes are restarted.
type rollClient struct {
	name     string
	revision mcp.Revision
	kept     bool // its connections
	calls    atomic.Int64
	lost     atomic.Int64 // calls that failed because the state of its session was lost
	restarts *atomic.Int64
}

// http returns how it connects. The connections of a client that does not keep them are each to another node.
func (c *rollClient) http(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: !c.kept}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (c *rollClient) open(t *testing.T, url string) (*mcp.Session, error) {
	client := &mcp.Client{Name: c.name, Revisions: []mcp.Revision{c.revision}, HTTPClient: c.http(t)}
	s, err := client.Dial(t.Context(), url)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// call calls a server without state and one with state in turn, until ctx ends.
func (c *rollClient) call(ctx context.Context, t *testing.T, s *mcp.Session) {
	for n := 0; ctx.Err() == nil; n++ {
		id, tool := fmt.Sprintf("%s-%d", c.name, n), "open_work"
		if n%2 == 1 {
			tool = "desk_work"
		}
		res, err := s.CallTool(t.Context(), tool, errand{ID: id})
		switch {
		case err != nil && n%2 == 1 && c.revision != mcp.V2026_07_28 && strings.Contains(err.Error(), "kept for you is gone: the process that used it for your session has ended. This request did not reach it"):
			restarts := c.restarts.Load()
			// A session goes to the node that began last: only those of the first one that is restarted go to one that will be, too. In the gate, other tests
			// may keep a node from running for so long that another one takes its sessions.
			if lost := c.lost.Add(1); lost > long.Or(min(restarts, 2*((restarts+2)/3)), restarts) {
				t.Errorf("%s: its state was lost %d times in %d restarts of three nodes", c.name, lost, restarts)
			}
		case err != nil:
			t.Errorf("%s: %s: %v", id, tool, err)
		case res.IsError || res.Text() != "did "+id:
			t.Errorf("%s: %s answers %q", id, tool, res.Text())
		}
		c.calls.Add(1)
		time.Sleep(long.Or(0, 100*time.Millisecond)) // which leaves the machine to others
	}
}

// watch reads a clock whenever it may have changed, until ctx ends.
func (c *rollClient) watch(ctx context.Context, t *testing.T, s *mcp.Session, saw *atomic.Int64) {
	for ctx.Err() == nil { // a stream of 2026-07-28 ends with its node
		for _, err := range s.Watch(ctx, clockURI) {
			if err != nil && c.revision != mcp.V2026_07_28 {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			if err != nil {
				break
			}
			res, err := s.ReadResource(ctx, clockURI)
			if ctx.Err() != nil {
				return
			}
			var now int64
			if err == nil {
				_, err = fmt.Sscan(res.Contents[0].Text, &now)
			}
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			saw.Store(max(now, saw.Load()))
		}
	}
}

const clockURI = "test://clock"

// Three nodes are restarted one after another while clients of every revision call and watch through a balancer that asks /readyz. No
// call fails, except that an older client is told of each restart of the node of its session once by a server that had state for it. No
// call runs twice, and no change is missed.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	book := filepath.Join(t.TempDir(), "ledger")
	open := weekServer("open", "", book, mcp.V2026_07_28)
	var clock atomic.Int64
	mcp.AddResource(open, mcp.Resource{URI: clockURI, Name: "clock"}, func(context.Context) (string, error) { return fmt.Sprint(clock.Load()), nil })
	nodes := threeNodes(t, map[string]any{
		"open": map[string]any{"url": weekWeb(t, open)},
		"desk": map[string]any{"command": self, "args": []string{"desk", "", book, string(mcp.V2025_11_25)}, "env": map[string]string{testRun: "week"}},
	})
	for _, n := range nodes {
		n.begin(t)
	}
	for _, n := range nodes {
		n.serves(t)
	}
	f := newFront(t, nodes)
	f.late = 50 * time.Millisecond // as a busy one does: a client that has not seen the end may use the connection again
	f.look(t)
	var restarts atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var callers []*rollClient
	var saw []*atomic.Int64
	for _, r := range mcp.Revisions() {
		for i := range long.Or(20, 2) {
			c := &rollClient{name: fmt.Sprintf("%s-%d", r, i), revision: r, kept: i%2 == 0, restarts: &restarts}
			s, err := c.open(t, "http://"+f.Addr().String()+"/mcp")
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			callers = append(callers, c)
			all.Go(func() { c.call(ctx, t, s) })
			if i < 2 {
				last := new(atomic.Int64)
				saw = append(saw, last)
				all.Go(func() { c.watch(ctx, t, s, last) })
			}
		}
	}
	all.Go(func() { // time goes on when all have seen it
		for ctx.Err() == nil {
			now := clock.Add(1)
			open.ResourceUpdated(clockURI)
			for began := time.Now(); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
				late := -1
				for i, last := range saw {
					if last.Load() < now {
						late = i
					}
				}
				if late < 0 {
					time.Sleep(long.Or(0, 100*time.Millisecond))
					break
				}
				if time.Since(began) > time.Minute {
					t.Errorf("watcher %d has not seen %d, but %d", late, now, saw[late].Load())
					stop()
				}
			}
		}
	})
	// more waits until each client has made some calls since, and the clock has gone on.
	more := func(what string) {
		t.Helper()
		then := clock.Load()
		var before []int64
		for _, c := range callers {
			before = append(before, c.calls.Load())
		}
		awaited(t, what, func() bool {
			for i, c := range callers {
				if c.calls.Load() < before[i]+6 {
					return false
				}
			}
			return clock.Load() > then+1 || t.Failed()
		})
	}
	more("clients call")
	for range long.Or(5, 1) {
		for i, n := range nodes {
			restarts.Add(1)
			n.end(t)
			more("clients call without " + n.name)
			n.again(t)
			n.serves(t)
			awaited(t, n.name+" is ready", func() bool {
				if f.away[i].Load() {
					return false
				}
				time.Sleep(time.Second / 2) // each look starts a process
				list, _, _ := nodesAt(t, nodes[(i+1)%3])
				return states(list) == "n1 ready, n2 ready, n3 ready"
			})
			more("clients call with " + n.name)
		}
	}
	stop()
	all.Wait()
	ran, calls, lost := map[string]int{}, int64(0), int64(0)
	for _, d := range deeds(t, book) {
		if ran[d.ID]++; ran[d.ID] > 1 {
			t.Errorf("%s ran %d times", d.ID, ran[d.ID])
		}
	}
	for _, c := range callers {
		calls += c.calls.Load()
		lost += c.lost.Load()
	}
	if int64(len(ran)) != calls-lost {
		t.Errorf("%d of %d calls ran, and %d were refused", len(ran), calls, lost)
	}
	if lost == 0 {
		t.Error("no session was moved")
	}
	t.Logf("%d calls of %d clients in %d restarts, %d states lost; %d changes", calls, len(callers), restarts.Load(), lost, clock.Load())
	for _, n := range nodes {
		all.Go(func() { n.end(t) })
	}
	all.Wait()
}
