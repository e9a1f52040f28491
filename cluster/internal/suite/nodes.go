package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Nodes tests three nodes behind a front that takes them in turn. Each call of join returns the State and the Bus of each.
func Nodes(t *testing.T, join func(t *testing.T) ([]cluster.State, []cluster.Bus)) {
	for name, test := range map[string]func(t *testing.T, f *Members){"sessions": sessions, "lost": lost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, buses := join(t)
			test(t, Join(t, states, buses))
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
}

// Join begins as many nodes as there are states, and ends them with the test.
func Join(t *testing.T, states []cluster.State, buses []cluster.Bus) *Members {
	t.Helper()
	n := len(states)
	f := &Members{down: make([]atomic.Bool, n)}
	for i := range n {
		name := fmt.Sprint("n", i)
		s := newServer(name)
		node := &cluster.Node{Name: name, State: states[i], Bus: buses[i], Handler: s, Logger: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		if err := node.Join(ctx); err != nil {
			t.Fatal(err)
		}
		f.Nodes, f.Servers = append(f.Nodes, node), append(f.Servers, s)
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

type none struct{}

func newServer(name string) *mcp.Server {
	s := &mcp.Server{
		Name: "nodes", Version: "1",
		State: mcp.StateConfig{Keys: [][]byte{[]byte("a key that all nodes of this test have")}},
	}
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
	mcp.AddTool(s, mcp.Tool{Name: "steps", Description: "reports progress"}, func(ctx context.Context, _ none) (string, error) {
		for i := range 5 {
			mcp.Progress(ctx, float64(i+1), 5, "")
		}
		return "done", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "grow", Description: "adds a tool"}, func(context.Context, none) (string, error) {
		mcp.AddTool(s, mcp.Tool{Name: "grown", Description: "was added"}, func(context.Context, none) (string, error) { return "grown", nil })
		return "done", nil
	})
	return s
}

func (f *Members) dial(t *testing.T, r mcp.Revision) *mcp.Session {
	t.Helper()
	client := &mcp.Client{Name: "test", Version: "1", OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return &mcp.SampleResult{Role: "assistant", Model: "none", Content: []mcp.Content{mcp.Text("pong")}}, nil
	}}
	client.Revisions = []mcp.Revision{r}
	s, err := client.Dial(t.Context(), f.front.URL)
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
			var where []string
			for range 9 {
				node, _, _ := strings.Cut(call(t, s, "where"), " ")
				where = append(where, node)
			}
			slices.Sort(where)
			if n := len(slices.Compact(where)); n != 1 && sessions || n != 3 && !sessions {
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

// lost sees that a client whose node has died opens another session, and that calls that were not sent are not counted
// as done.
func lost(t *testing.T, f *Members) {
	s := f.dial(t, mcp.Revision(revision.Latest(revision.All, true).Name))
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
	if names, err := f.Nodes[(dead+1)%3].Nodes(ctx); err != nil || len(names) != 2 || slices.Contains(names, node) {
		t.Errorf("nodes %v, %v, without %s", names, err, node)
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
