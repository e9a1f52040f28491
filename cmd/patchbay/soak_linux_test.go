package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	soakTime     = 5 * time.Minute
	soakSessions = 1000
)

// TestSoak keeps a thousand sessions of all revisions open at an "up" for minutes, and replaces
// them steadily. Each call is answered; memory and descriptors stay as they were after the first
// minute, and return to the start when all sessions are closed.
func TestSoak(t *testing.T) {
	long.Only(t)
	if racing() {
		t.Skip("measures memory")
	}
	runtimeFolder(t)
	older := stubServer(t, "stuck", string(mcp.V2025_11_25))
	older["patchbay"] = map[string]any{"share": "shared"}
	r := startUp(t, map[string]any{"older": older, "plain": stubServer(t), "here": map[string]any{"builtin": "everything"}})
	pid := r.cmd.Process.Pid
	before := settled(t, pid, nil)
	began := time.Now()
	var full sync.WaitGroup // until each slot has had its first session
	var sessions, calls atomic.Int64
	var all sync.WaitGroup
	const workers = 20
	full.Add(workers)
	for i := range workers {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			open := make([]*mcp.Session, soakSessions/workers)
			once := sync.OnceFunc(full.Done)
			defer once()
			// Each worker has connections of its own, like a client on another machine.
			pool := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}
			for k := 0; time.Since(began) < soakTime && !t.Failed(); k++ {
				slot := k % len(open)
				if k >= len(open) {
					once()
					slot = rnd.IntN(len(open))
					open[slot].Close()
				}
				rev := mcp.Revisions()[rnd.IntN(len(mcp.Revisions()))]
				s, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}, HTTPClient: pool}).Dial(t.Context(), r.url)
				if err != nil {
					t.Errorf("session %d: %v", sessions.Load(), err)
					return
				}
				open[slot] = s
				sessions.Add(1)
				for _, tool := range []string{"older_args", "plain_args", "here_echo"} {
					text := fmt.Sprint("it ", rnd.Uint32())
					args := map[string]any{"text": text}
					if tool == "here_echo" {
						args = map[string]any{"message": text}
					}
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					res, err := open[rnd.IntN(min(k+1, len(open)))].CallTool(ctx, tool, args)
					cancel()
					if err != nil || !strings.Contains(res.Text(), text) {
						t.Errorf("%s: %v, %v", tool, res, err)
					}
					calls.Add(1)
				}
			}
			for _, s := range open {
				if s != nil {
					s.Close()
				}
			}
			pool.CloseIdleConnections()
		})
	}
	full.Wait()
	time.Sleep(time.Until(began.Add(soakTime / 5))) // caches and pools are full by then
	first := holds(t, pid)
	n := sessions.Load()
	time.Sleep(time.Until(began.Add(soakTime - 2*time.Second))) // most of the test's time
	last := holds(t, pid)
	came := sessions.Load() - n
	all.Wait()
	after := settled(t, pid, &before)
	fmt.Printf("report: %s: %d sessions, %d calls in %v; up held %+v before, %+v with %d sessions, %+v %d sessions later, %+v after\n",
		t.Name(), sessions.Load(), calls.Load(), soakTime, before, first, soakSessions, last, came, after)
	if last.megabytes > first.megabytes*5/4+16 || last.fds > first.fds*5/4+spareFDs || last.processes != first.processes {
		t.Errorf("up holds %+v after %d more sessions, with the first it was %+v", last, came, first)
	}
	if after.fds > before.fds+spareFDs || after.processes > before.processes || after.megabytes > before.megabytes+spareMB {
		t.Errorf("up holds %+v when all are gone, before it was %+v", after, before)
	}
	if n := goroutines(t, r); n > mostGoroutines {
		t.Errorf("up has %d goroutines when all are gone, want %d at most", n, mostGoroutines)
	}
}
