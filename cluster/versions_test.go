package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
)

// rewritten replaces the record of the one session by what change makes of it, and returns that.
func rewritten(t *testing.T, m *cluster.Memory, change func(record map[string]any)) cluster.Entry {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for c, err := range m.Watch(ctx, "session") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			break
		}
		record := map[string]any{}
		if err := json.Unmarshal(c.Value, &record); err != nil {
			t.Fatal(err)
		}
		change(record)
		value, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		version, err := m.Put(t.Context(), c.Key, value, c.Version, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.Entry{Key: c.Key, Value: value, Version: version}
	}
	t.Fatal("the State has no session")
	return cluster.Entry{}
}

const newerWords = "a newer version of the program has opened the session; update this node"

// TestNewerSession sees that a node forwards requests of a session whose record a newer version has written, refuses them in words when the
// node of the session has ended, and leaves the record as it is.
func TestNewerSession(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	nodes := pair(t, m, plain, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "answered") })
	written := rewritten(t, m, func(record map[string]any) {
		record["v"], record["data"], record["before"] = 2, "of another kind", map[string]any{"n": 1}
	})
	for range 2 { // found in the State, and remembered
		if w := post(t, nodes[1], "POST", "one", "{}"); w.Code != http.StatusOK || w.Body.String() != "answered" {
			t.Errorf("at a node of the older version: %d %s", w.Code, w.Body)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := nodes[0].Leave(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := post(t, nodes[1], "POST", "one", "{}")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), newerWords) {
			t.Errorf("when the node of the session has ended: %d %s", w.Code, w.Body)
		}
	}
	if e, err := m.Get(t.Context(), written.Key); err != nil || e.Version != written.Version || !bytes.Equal(e.Value, written.Value) {
		t.Errorf("the record is %+v, %v; it was %+v", e, err, written)
	}
}

// TestNewerSessionGivenUp sees that a session which a node of a newer version has given up waits for another one of that version.
func TestNewerSessionGivenUp(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"", "n1"} { // the second one ran the newer version before
		m := new(cluster.Memory)
		nodes := pair(t, m, plain, func(http.ResponseWriter, *http.Request) { t.Error("the request was served") })
		written := rewritten(t, m, func(record map[string]any) { record["v"], record["node"], record["process"] = 2, node, "another" })
		if w := post(t, nodes[1], "POST", "one", "{}"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), newerWords) {
			t.Errorf("of node %q: %d %s", node, w.Code, w.Body)
		}
		if e, err := m.Get(t.Context(), written.Key); err != nil || e.Version != written.Version {
			t.Errorf("the record is %+v, %v; it was %+v", e, err, written)
		}
	}
}

// TestBackBesideNewer sees that a node which was cut off comes back, although another one has meanwhile taken its session and written a record
// that it cannot read.
func TestBackBesideNewer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(record map[string]any){
		"newer":      func(record map[string]any) { record["v"], record["node"], record["process"] = 2, "n1", "another" },
		"unreadable": func(record map[string]any) { record["v"] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := new(cluster.Memory)
			nodes := pair(t, m, plain, func(http.ResponseWriter, *http.Request) { t.Error("the request was served") })
			written := rewritten(t, m, change)
			const key = "lease.node.n0"
			var before []byte
			await(t, "the lease of n0 is lost", func() bool {
				e, err := m.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				before = e.Value
				return m.Delete(t.Context(), key, e.Version) == nil // it may just have been renewed
			})
			await(t, "n0 has taken another lease", func() bool {
				e, err := m.Get(t.Context(), key)
				return err == nil && !bytes.Equal(e.Value, before)
			})
			await(t, "n0 is back", func() bool { return nodes[0].Check() == nil })
			if e, err := m.Get(t.Context(), written.Key); err != nil || e.Version != written.Version {
				t.Errorf("the record is %+v, %v; it was %+v", e, err, written)
			}
			w := post(t, nodes[0], "POST", "one", "{}")
			if name == "newer" { // n1 has it no more than n0
				if w.Code == http.StatusOK {
					t.Errorf("the session was served where it is not: %d %s", w.Code, w.Body)
				}
			} else if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the record of the session in the cluster cannot be read") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
