package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// Events of streams that flood NATS take no more than their part of it, the newest ones, and no room from what the nodes need: they
// keep their names.
func TestEventsLeaveRoom(t *testing.T) {
	s, err := nats.Start(nats.ServerOptions{Cluster: "small", Node: "n", Dir: t.TempDir(), MaxDisk: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	shared := open(t, s, "small")
	if shared.Recent() == nil {
		t.Fatal("events are not shared at all")
	}
	var nodes []*cluster.Node
	for _, name := range []string{"n0", "n1"} {
		n := &cluster.Node{Name: name, State: shared, Bus: shared, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer n.Leave(context.Background())
		nodes = append(nodes, n)
	}
	one, two := nodes[0].Events(), nodes[1].Events()
	event := []byte(`"` + strings.Repeat("x", 300<<10) + `"`)
	last := ""
	for i := range 200 { // 59 MiB
		last = one.Name(fmt.Sprint("stream", i))
		if err := one.Append(t.Context(), last, 1, event); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			time.Sleep(150 * time.Millisecond)
		}
		if err := nodes[0].Check(); err != nil {
			t.Fatalf("after %d events: %v", i, err)
		}
	}
	found := func() bool {
		for e, err := range two.Follow(t.Context(), last, 0) {
			if err != nil {
				t.Fatal(err)
			}
			return e.Position == 1
		}
		return false
	}
	for end := time.Now().Add(soon); !found(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the newest event is not found")
		}
	}
	version, err := shared.Put(t.Context(), "after", make([]byte, 100<<10), 0, time.Minute)
	if err != nil || version == 0 {
		t.Errorf("a value of the nodes: %v", err)
	}
}
