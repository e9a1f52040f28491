package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// turns sends each request to the next node.
type turns struct {
	nodes []*cluster.Node
	n     int
}

func (f *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	f.n++
	w := httptest.NewRecorder()
	f.nodes[f.n%len(f.nodes)].ServeHTTP(w, r)
	return w.Result(), nil
}

// asker begins node i, whose tool asks a question that it repeats.
func asker(t *testing.T, state cluster.State, m *cluster.Memory, i int) *cluster.Node {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		yes, err := mcp.Confirm(ctx, "Go on?")
		return fmt.Sprint(in.N, " ", yes), err
	})
	n := &cluster.Node{Name: fmt.Sprint("n", i), State: state, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
	srv.Shared = n.Share("/mcp")
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// leave ends a node at once.
func leave(n *cluster.Node) {
	now, end := context.WithCancel(context.Background())
	end()
	_ = n.Leave(now) // the error is that of now
}

// MRTR-26: keys of requestState are replaced each day, while nodes run, end and begin, and two are kept. An answer that a person gives after
// 14 minutes is taken by a node that has not asked.
func TestKeysAreReplaced(t *testing.T) {
	long.WithoutRace(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const days = 3
		m := new(cluster.Memory)
		f, seal := &turns{}, []string{} // keys
		for i := range 3 {
			f.nodes = append(f.nodes, asker(t, m, m, i))
		}
		defer func() {
			for _, n := range f.nodes {
				leave(n)
			}
		}()
		client := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2026_07_28}, HTTPClient: &http.Client{Transport: f},
			OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				for range 14 * 60 { // whoever answers at once can come to any node, too
					time.Sleep(time.Second)
					for i, n := range f.nodes {
						key := n.Share("").StateKeys()[0]
						if !slices.Contains(seal, string(key)) {
							seal = append(seal, string(key))
						}
						for _, other := range f.nodes {
							list := other.Share("").StateKeys()
							if len(list) > 2 || !slices.ContainsFunc(list, func(k []byte) bool { return bytes.Equal(k, key) }) {
								return nil, fmt.Errorf("node %d seals with a key of which another has %d others", i, len(list))
							}
						}
					}
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}}
		s, err := client.Dial(t.Context(), "http://node/mcp")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, begin := 0, time.Now(); time.Since(begin) < days*24*time.Hour; i++ {
			res, err := s.CallTool(t.Context(), "ask", map[string]int{"n": i})
			if err != nil || res.Text() != fmt.Sprint(i, " true") {
				t.Fatalf("after %v: %v, %v", time.Since(begin), res, err)
			}
			time.Sleep(time.Duration(i%7) * 17 * time.Second)
			if i%20 == 19 { // less than five hours
				at := i / 20 % len(f.nodes)
				leave(f.nodes[at])
				f.nodes[at] = asker(t, m, m, at)
			}
		}
		if len(seal) != days && len(seal) != days+1 { // the last call ends later
			t.Errorf("%d keys have sealed in %d days", len(seal), days)
		}
	})
}

// Keys that the State has lost are put again, also beside one that a new node has made. A node that the State does not answer keeps its keys,
// and so does one that meets a newer version's.
func TestKeysStay(t *testing.T) {
	long.WithoutRace(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		state := &hooked{State: m}
		one := asker(t, state, m, 1)
		defer leave(one)
		keys := func(n *cluster.Node) (list []string) {
			for _, key := range n.Share("").StateKeys() {
				list = append(list, string(key))
			}
			return list
		}
		put := func(change func(e cluster.Entry) []byte) {
			t.Helper()
			e, err := m.Get(t.Context(), "cluster.keys")
			if err != nil {
				t.Fatal(err)
			}
			if value := change(e); value == nil {
				err = m.Delete(t.Context(), e.Key, e.Version)
			} else {
				_, err = m.Put(t.Context(), e.Key, value, e.Version, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		first := keys(one)
		if len(first) != 1 || len(first[0]) != 32 {
			t.Fatalf("the keys are %x", first)
		}
		put(func(cluster.Entry) []byte { return nil })
		time.Sleep(6 * time.Second)
		two := asker(t, m, m, 2)
		defer leave(two)
		if got := keys(two); !slices.Equal(got, first) {
			t.Errorf("after the State has lost them, the keys of another node are %x, want %x", got, first)
		}
		put(func(cluster.Entry) []byte { return nil })
		three := asker(t, m, m, 3) // before the others look
		defer leave(three)
		if got := keys(three); len(got) != 1 || got[0] == first[0] {
			t.Fatalf("the keys of a node that knows none are %x", got)
		}
		time.Sleep(6 * time.Second)
		for i, n := range []*cluster.Node{one, two, three} {
			if got := keys(n); len(got) != 2 || got[0] == got[1] || !slices.Contains(got, first[0]) {
				t.Errorf("node %d has the keys %x", i+1, got)
			}
		}
		before := keys(one)
		state.hook(func(op, key string) error {
			if key == "cluster.keys" {
				return errors.New("no answer")
			}
			return nil
		})
		time.Sleep(time.Hour)
		if got := keys(one); len(got) != 2 || !slices.Contains(before, got[0]) || !slices.Contains(before, got[1]) {
			t.Errorf("without the State the keys are %x, want %x", got, before)
		}
		put(func(e cluster.Entry) []byte {
			return []byte(strings.Replace(string(e.Value), `"v":1`, `"v":2`, 1))
		})
		state.hook(func(string, string) error { return nil })
		time.Sleep(2 * 24 * time.Hour)
		if e, err := m.Get(t.Context(), "cluster.keys"); err != nil || !strings.Contains(string(e.Value), `"v":2`) || len(keys(one)) != 2 {
			t.Errorf("the keys of a newer version: %s, %v; %x", e.Value, err, keys(one))
		}
		late := &cluster.Node{Name: "late", State: m, Bus: m, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		if err := late.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "node late: cluster.keys: format 2, this node knows 1: update it") {
			t.Errorf("Join: %v", err)
		}
	})
}

// Of two clocks that differ by days neither makes the nodes change keys faster than they can learn them.
func TestKeysAndClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		n := asker(t, m, m, 1)
		defer leave(n)
		seen := map[string]bool{}
		for range 10 * 12 { // ten hours, with a node whose clock is three days ahead or behind
			var of map[string]any
			e, err := m.Get(t.Context(), "cluster.keys")
			if err == nil {
				err = json.Unmarshal(e.Value, &of)
			}
			if err != nil {
				t.Fatal(err)
			}
			off := 3 * 24 * time.Hour
			if len(seen)%2 == 0 {
				off = -off
			}
			of["since"] = time.Now().Add(off)
			value, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Put(t.Context(), e.Key, value, e.Version, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			for _, key := range n.Share("").StateKeys() {
				seen[string(key)] = true
			}
		}
		if len(seen) < 5 || len(seen) > 11 {
			t.Errorf("%d keys in ten hours", len(seen))
		}
	})
}
