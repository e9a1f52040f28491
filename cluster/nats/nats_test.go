package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/suite"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/internal/freeport"
)

// free returns an address of this machine where nobody listens.
func free(t testing.TB) string {
	t.Helper()
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// start runs a server and ends it with the test.
func start(t testing.TB, opts nats.ServerOptions) *nats.Server {
	t.Helper()
	s, err := nats.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
		defer stop()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// servers runs n of them as one cluster.
func servers(t testing.TB, n int) []*nats.Server {
	t.Helper()
	routes := make([]string, n)
	for i := range routes {
		routes[i] = free(t)
	}
	list := make([]*nats.Server, n)
	for i := range list {
		opts := nats.ServerOptions{Cluster: "test", Node: "n" + strconv.Itoa(i), Dir: t.TempDir(), MaxDisk: 8 << 30} // each cluster reserves a part
		if n > 1 {
			opts.Listen, opts.Routes = routes[i], routes
		}
		list[i] = start(t, opts)
	}
	return list
}

// open joins a cluster over one of its servers. All that nodes say to each other passes NATS.
func open(t testing.TB, s *nats.Server, name string) *nats.Cluster {
	t.Helper()
	return join(t, s, nats.Options{Cluster: name})
}

// linked is open with direct connections between nodes.
func linked(t testing.TB, s *nats.Server, name string) *nats.Cluster {
	t.Helper()
	return join(t, s, nats.Options{Cluster: name, Server: s})
}

func join(t testing.TB, s *nats.Server, opts nats.Options) *nats.Cluster {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c, err := nats.Open(ctx, nc, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers int
		open    func(t testing.TB, s *nats.Server, name string) *nats.Cluster
	}{"1": {1, open}, "3": {3, open}, "3, linked": {3, linked}} {
		t.Run(name, func(t *testing.T) {
			n := tc.servers
			list := servers(t, n)
			var tests atomic.Int32
			nodes := func(t *testing.T) (all []*nats.Cluster) {
				name := fmt.Sprint("test-", tests.Add(1))
				for _, s := range list {
					all = append(all, tc.open(t, s, name))
				}
				return all
			}
			suite.State(t, func(t *testing.T) (all []cluster.State) {
				for _, c := range nodes(t) {
					all = append(all, c)
				}
				return all
			})
			if n == 3 {
				suite.Nodes(t, func(t *testing.T) (states []cluster.State, buses []cluster.Bus) {
					for _, c := range nodes(t) {
						states, buses = append(states, c), append(buses, c)
					}
					return states, buses
				})
			}
			suite.Bus(t, func(t *testing.T) (all []cluster.Bus) {
				for _, c := range nodes(t) {
					all = append(all, c)
				}
				return all
			})
		})
	}
}

// A node that leaves takes no further dials, and still serves those that it has answered.
func TestDrain(t *testing.T) {
	t.Parallel()
	bus := open(t, servers(t, 1)[0], "drain")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	l, err := bus.Listen("n")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled := make(chan net.Conn, 1)
	go func() {
		near, err := bus.Dial(ctx, "n")
		if err != nil {
			t.Error(err)
		}
		dialled <- near
	}()
	until(t, "an answer to Dial", func() bool { return bus.Conns() == 2 })
	if err := l.(interface{ Drain() error }).Drain(); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Dial(ctx, "n"); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("a further dial: %v, want %v", err, cluster.ErrNoNode)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near := <-dialled
	if near == nil {
		t.FailNow()
	}
	defer near.Close()
	if _, err := near.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := far.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the connection that was dialled before: %d, %v", n, err)
	}
}
