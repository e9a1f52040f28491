package nats_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// Two of three servers are a majority, also if they have just begun: one again while another is away, or both after all three had
// ended. They have what was written before.
func TestTwoOfThreeBegin(t *testing.T) {
	t.Parallel()
	routes, dirs := []string{free(t), free(t), free(t)}, []string{t.TempDir(), t.TempDir(), t.TempDir()}
	list, states := make([]*nats.Server, 3), make([]*nats.Cluster, 3)
	begin := func(numbers ...int) {
		t.Helper()
		for _, i := range numbers {
			list[i] = start(t, nats.ServerOptions{Cluster: "test", Node: fmt.Sprint("n", i), Dir: dirs[i], Listen: routes[i], Routes: routes})
		}
		for _, i := range numbers {
			states[i] = linked(t, list[i], "two")
		}
	}
	write := func(at int, key string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), soon)
		defer stop()
		for _, on := range []interface {
			Put(context.Context, string, []byte, uint64, time.Duration) (uint64, error)
		}{states[at], states[at].Recent()} {
			if _, err := on.Put(ctx, key, []byte("x"), 0, 0); err != nil {
				t.Fatalf("write %s: %v", key, err)
			}
		}
	}
	has := func(at int, key string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), soon)
		defer stop()
		if _, err := states[at].Get(ctx, key); err != nil {
			t.Errorf("read %s: %v", key, err)
		}
	}
	begin(0, 1, 2)
	write(0, "first")
	closeServer(t, list[2])
	closeServer(t, list[1])
	begin(1)
	write(0, "second")
	has(1, "first")
	closeServer(t, list[0])
	closeServer(t, list[1])
	begin(0, 2)
	write(2, "third")
	has(2, "second")
}

// A server that has ended counts until it is removed: with it, two of four are no majority; without it two of three are.
func TestRemove(t *testing.T) {
	t.Parallel()
	list := servers(t, 4)
	states := make([]*nats.Cluster, len(list))
	for i, s := range list {
		states[i] = linked(t, s, "removed")
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*soon)
	defer stop()
	if err := list[0].Remove(ctx, "n7"); err == nil || !strings.Contains(err.Error(), "is not in the cluster") {
		t.Errorf("a server that is not there: %v", err)
	}
	for i, s := range list {
		if got, want := nats.PeerID(fmt.Sprint("n", i)), s.Peer(); got != want {
			t.Errorf("the id of server %d is %s, want %s", i, got, want)
		}
	}
	members := func(want string) {
		t.Helper()
		names, err := list[1].Members(ctx)
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("the servers that count are %s, %v; want %s", got, err, want)
		}
	}
	closeServer(t, list[3])
	members("n0 n1 n2 n3")
	if err := list[0].Remove(ctx, "n3"); err != nil {
		t.Fatal(err)
	}
	members("n0 n1 n2")
	until(t, "the others have what it had", func() bool {
		return list[0].Copied("removed") && list[1].Copied("removed") && list[2].Copied("removed")
	})
	closeServer(t, list[2])
	if _, err := states[0].Put(ctx, "k", []byte("x"), 0, 0); err != nil {
		t.Errorf("without the server that was removed, and another one: %v", err)
	}
	if _, err := states[1].Recent().Put(ctx, "k", []byte("x"), 0, 0); err != nil {
		t.Errorf("an event, likewise: %v", err)
	}
	back := start(t, nats.ServerOptions{Cluster: "test", Node: "n3", Dir: t.TempDir(), Listen: free(t), Routes: []string{list[0].Addr().String()}})
	again := linked(t, back, "removed")
	if _, err := again.Get(ctx, "k"); err != nil {
		t.Errorf("at the server that was removed and is back: %v", err)
	}
	c := linked(t, list[1], "another")
	if _, err := c.Put(ctx, "k", []byte("x"), 0, 0); err != nil {
		t.Error(err)
	}
}
