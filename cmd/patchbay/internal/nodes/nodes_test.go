package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/config/deploy"
)

// member returns a node that has not announced itself, of a cluster in a server of NATS.
func member(t *testing.T, s *nats.Server, node string) *Member {
	t.Helper()
	conn, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	shared, err := nats.Open(t.Context(), conn, nats.Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.Close() })
	return &Member{options: Options{Cluster: &deploy.Cluster{Name: "c", Node: node}, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)}, shared: shared, changed: make(chan struct{}, 1)}
}

// All nodes have the keys of the first. A key older than a day is replaced by a node that starts alone, which keeps one more.
func TestKeys(t *testing.T) {
	t.Parallel()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "nats", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	ctx := t.Context()
	begin := func(name string) *Member {
		t.Helper()
		m := member(t, s, name)
		if err := m.announce(ctx); err != nil {
			t.Fatal(err)
		}
		return m
	}
	one, two := begin("n1"), begin("n2")
	if len(one.Keys()) != 1 || len(one.Keys()[0]) != 32 || !bytes.Equal(one.Keys()[0], two.Keys()[0]) {
		t.Fatalf("the keys are %x and %x", one.Keys(), two.Keys())
	}
	age := func() {
		t.Helper()
		var r ring
		e, err := one.shared.Get(ctx, keysKey)
		if err == nil {
			err = one.read(e, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Since = r.Since.Add(-2 * keyTime)
		if err := one.put(ctx, keysKey, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	age()
	if m := begin("n1"); !bytes.Equal(m.Keys()[0], one.Keys()[0]) || len(m.Keys()) != 1 {
		t.Errorf("a node that starts beside another has the keys %x, not %x", m.Keys(), one.Keys())
	}
	if err := two.forget(ctx); err != nil {
		t.Fatal(err)
	}
	next := begin("n1")
	if len(next.Keys()) != 2 || bytes.Equal(next.Keys()[0], one.Keys()[0]) || !bytes.Equal(next.Keys()[1], one.Keys()[0]) {
		t.Errorf("a node that starts alone after two days has the keys %x, after %x", next.Keys(), one.Keys())
	}
	age()
	if last := begin("n1"); len(last.Keys()) != 2 || !bytes.Equal(last.Keys()[1], next.Keys()[0]) {
		t.Errorf("then %x, after %x", last.Keys(), next.Keys())
	}
}

// One node at a time has an exclusive server.
func TestLock(t *testing.T) {
	t.Parallel()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "nats", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	const server = "a server: of 100 % any/name"
	held, err := member(t, s, "n1").Lock()(t.Context(), server)
	if err != nil || !held.HeldFor(time.Second) {
		t.Fatal(held, err)
	}
	two := member(t, s, "n2").Lock()
	short, stop := context.WithTimeout(t.Context(), time.Second/2)
	defer stop()
	if _, err := two(short, server); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside the other node: %v", err)
	}
	if other, err := two(t.Context(), "another"); err != nil {
		t.Error(err)
	} else if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if held, err = two(t.Context(), server); err != nil {
		t.Error(err)
	} else if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node refuses keys in a format that it does not know, and lists a node that writes one with a warning.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "nats", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	m := member(t, s, "n1")
	raw, err := json.Marshal(ring{Format: format + 1, Since: time.Now(), Keys: [][]byte{make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.shared.Put(t.Context(), keysKey, raw, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.announce(t.Context()); err == nil || !strings.Contains(err.Error(), "gateway.keys has format 2, which patchbay 1.2.3 does not know: update this node") {
		t.Errorf("keys of a newer version: %v", err)
	}
	if m.Keys() != nil {
		t.Errorf("the keys are %x", m.Keys())
	}
}

// A wait says which nodes do not answer; this one is not among them.
func TestMissing(t *testing.T) {
	t.Parallel()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "n1", Dir: t.TempDir(), Listen: "127.0.0.1:0", Routes: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	own := s.Addr().String()
	c := &deploy.Cluster{NATS: deploy.Embedded, Listen: own, Routes: []string{own, "127.0.0.1:1", "127.0.0.1:2"}}
	m := &Member{options: Options{Cluster: c}}
	if got := m.missing(t.Context()); got != "a majority of 3 nodes: 127.0.0.1:1, 127.0.0.1:2 do not answer" {
		t.Errorf("missing = %q", got)
	}
	c.Routes = c.Routes[1:2]
	if got := m.missing(t.Context()); got != "a majority of 2 nodes: 127.0.0.1:1 does not answer" {
		t.Errorf("without its own address: %q", got)
	}
	c.NATS = "tls://ada:secret@nats:4222"
	if got := m.missing(t.Context()); got != "JetStream of tls://nats:4222" {
		t.Errorf("NATS elsewhere: %q", got)
	}
}
