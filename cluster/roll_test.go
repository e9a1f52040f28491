package cluster_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// rolled are three nodes that are restarted in turn.
type rolled struct {
	memory *cluster.Memory
	nodes  [3]*cluster.Node
	begun  int // processes
}

// begin begins a process of node i.
func (f *rolled) begin(t *testing.T, i int) {
	t.Helper()
	f.begun++
	process := fmt.Sprint("process ", f.begun)
	s := &mcp.Server{Name: "nodes", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "where"}, func(context.Context, struct{}) (string, error) { return process, nil })
	n := &cluster.Node{Name: fmt.Sprint("n", i), State: f.memory, Bus: f.memory, Handler: s, Logger: slog.New(slog.DiscardHandler)}
	s.HTTP.Sessions = n.Sessions("/mcp")
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.nodes[i] = n
}

// end ends the process of node i as patchbay up does.
func (f *rolled) end(t *testing.T, i int) {
	t.Helper()
	f.nodes[i].Retire()
	time.Sleep(5 * time.Second)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if err := f.nodes[i].Leave(ctx); err != nil {
		t.Error(err)
	}
}

// where returns the process that serves a session, asked at node i.
func (f *rolled) where(t *testing.T, i int, id string) string {
	t.Helper()
	w := post(t, f.nodes[i], "POST", id, callWhere)
	process := regexp.MustCompile(`process \d+`).FindString(w.Body.String())
	if w.Code != 200 || process == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return process
}

// Nodes that are restarted in turn, twice. A session of the first one moves twice each time, and one of the others once: none goes to a node that will be
// restarted if there is one that was. So does a session without requests meanwhile, whichever node has its next one.
func TestSessionsMoveLittleInARoll(t *testing.T) {
	t.Parallel()
	for _, idle := range []bool{false, true} {
		t.Run(fmt.Sprint("idle: ", idle), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &rolled{memory: new(cluster.Memory)}
				for i := range f.nodes {
					f.begin(t, i)
				}
				time.Sleep(20 * time.Minute) // they are old
				var ids []string
				for i := range f.nodes {
					for range 4 {
						ids = append(ids, opened(t, f.nodes[i]))
					}
				}
				for roll := range 2 {
					at, moves := map[string]string{}, map[string]int{}
					var mu sync.Mutex
					look := func(i int) {
						for _, id := range ids {
							now := f.where(t, i, id)
							mu.Lock()
							if before := at[id]; before != "" && before != now {
								moves[id]++
							}
							at[id] = now
							mu.Unlock()
						}
					}
					look(0)
					of := maps.Clone(at)
					for i := range f.nodes {
						if !idle {
							ended := make(chan struct{})
							go func() {
								f.end(t, i)
								close(ended)
							}()
							for ends := false; !ends; {
								look((i + 1) % 3)
								select {
								case <-ended:
									ends = true
								case <-time.After(time.Second):
								}
							}
						} else {
							f.end(t, i)
						}
						f.begin(t, i)
						time.Sleep(2 * time.Second)
						look((i + 2) % 3)
					}
					for _, id := range ids {
						most := 1
						if of[id] == fmt.Sprint("process ", 3*roll+1) {
							most = 2
						}
						if moves[id] < 1 || moves[id] > most {
							t.Errorf("roll %d: a session of %s has moved %d times, want 1 to %d", roll, of[id], moves[id], most)
						}
					}
					time.Sleep(20 * time.Minute)
				}
				for i := range f.nodes {
					f.end(t, i)
				}
			})
		})
	}
}

// stubborn is a State whose watches of nodes do not end with their context.
type stubborn struct {
	cluster.State
	held chan struct{}
}

func (s stubborn) Watch(ctx context.Context, prefix string) iter.Seq2[cluster.Change, error] {
	return func(yield func(cluster.Change, error) bool) {
		for c, err := range s.State.Watch(ctx, prefix) {
			if !yield(c, err) {
				return
			}
		}
		if prefix == "lease.node" {
			<-s.held
		}
	}
}

// Leave does not wait for a State that does not end what it was asked for, and says so.
func TestLeaveWithAStubbornState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, held := new(cluster.Memory), make(chan struct{})
		defer close(held)
		n := &cluster.Node{Name: "n", State: stubborn{m, held}, Bus: m, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := n.Leave(t.Context())
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "did not end within 10s") || took > 12*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
