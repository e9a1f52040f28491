package nats_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// soon is more than what is waited for takes.
const soon = time.Minute

// echoes makes a node echo what comes over its connections.
func echoes(t *testing.T, c *nats.Cluster, node string) {
	t.Helper()
	l, err := c.Listen(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
}

// dial dials a node that may just have begun to listen.
func dial(t *testing.T, c *nats.Cluster, node string) net.Conn {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	for {
		conn, err := c.Dial(ctx, node)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		if !errors.Is(err, cluster.ErrNoNode) {
			t.Fatal(err)
		}
	}
}

// until waits for something.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, soon)
		}
	}
}

// TestLinks sees what connections of nodes do with links, and without them.
func TestLinks(t *testing.T) {
	t.Parallel()
	list := servers(t, 3)
	var pairs atomic.Int32
	offering := func(t *testing.T, change func(offer []string) string) (here, there *nats.Cluster) {
		name := fmt.Sprint("links-", pairs.Add(1))
		here, there = linked(t, list[0], name), linked(t, list[1], name)
		there.SetOffer(change(strings.Split(there.Offer(), " ")))
		echoes(t, there, "there")
		return here, there
	}
	pair := func(t *testing.T) (here, there *nats.Cluster) {
		return offering(t, func(offer []string) string { return strings.Join(offer, " ") })
	}
	for name, test := range map[string]func(t *testing.T){
		"pass_NATS_by": func(t *testing.T) {
			here, there := pair(t)
			c := dial(t, here, "there")
			echo(t, c)
			before := here.Sent() + there.Sent()
			for range 100 {
				echo(t, c)
			}
			if n := here.Sent() + there.Sent() - before; n > 10 { // leases and the like
				t.Errorf("%d messages over NATS for 200 over a link", n)
			}
			if here.Links() != 1 || there.Links() != 1 {
				t.Errorf("%d and %d links", here.Links(), there.Links())
			}
		},
		"break": func(t *testing.T) {
			here, there := pair(t)
			c := dial(t, here, "there")
			echo(t, c)
			there.BreakLinks()
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("Read over a link that has ended: %v", err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("Write over a link that has ended: %v", err)
			}
			echo(t, dial(t, here, "there"))
			if here.Links() != 1 {
				t.Errorf("%d links after another Dial", here.Links())
			}
		},
		"end_with_the_process": func(t *testing.T) {
			here, there := pair(t)
			c := dial(t, here, "there")
			echo(t, c)
			there.Abandon()
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("Read from a dead node: %v", err)
			}
			if _, err := here.Dial(t.Context(), "there"); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("Dial of a dead node: %v", err)
			}
		},
		"stay_without_NATS": func(t *testing.T) {
			here, _ := pair(t)
			c := dial(t, here, "there")
			echo(t, c)
			for range 3 {
				if err := here.Reconnect(); err != nil {
					t.Fatal(err)
				}
				echo(t, c)
			}
		},
		"idle": func(t *testing.T) {
			here, there := pair(t)
			here.SetIdle(time.Millisecond)
			c := dial(t, here, "there")
			echo(t, c)
			c.Close()
			until(t, "the end of a link that nobody uses", func() bool { return here.Links()+there.Links() == 0 })
			echo(t, dial(t, here, "there"))
		},
		"closed_port": func(t *testing.T) {
			here, _ := offering(t, func(offer []string) string { return offer[0] + " " + free(t) + " " + offer[2] })
			for range 2 {
				echo(t, dial(t, here, "there"))
			}
			if here.Links() != 0 {
				t.Errorf("%d links", here.Links())
			}
		},
		"odd_offers": func(t *testing.T) {
			for _, offer := range []string{"x", "a b c", "n1 :1", "n1 :1 c", "n1 :: c", "nobody 0.0.0.0:1 c", "n1 0.0.0.0:1 c", "n1 127.0.0.1:x c"} {
				here, _ := offering(t, func([]string) string { return offer }) // one attempt is made for each process
				echo(t, dial(t, here, "there"))
				if n := here.Links(); n != 0 {
					t.Errorf("%d links after the offer %q", n, offer)
				}
			}
		},
		"strangers": func(t *testing.T) {
			here, there := pair(t)
			c := dial(t, here, "there")
			parts := strings.Split(there.Offer(), " ")
			stranger := func(says string) *bufio.Reader {
				conn, err := net.Dial("tcp", parts[1])
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				if _, err := io.WriteString(conn, says); err != nil {
					t.Fatal(err)
				}
				return bufio.NewReader(conn)
			}
			for _, says := range []string{strings.Repeat("x", len(parts[2])), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
				if heard, err := io.ReadAll(stranger(says)); len(heard) > 0 {
					t.Errorf("a stranger who says %q hears %q, %v", says, heard, err)
				}
			}
			for what, says := range map[string]string{"nothing": "", "a frame that is too large": "\x00\xff\xff\xff\xff", "a frame that is too small": "\x09\x00\x00\x00\x05"} {
				if heard, err := io.ReadAll(stranger(parts[2] + says)); len(heard) == 0 || heard[0] != '!' {
					t.Errorf("a stranger with the key who sends %s hears %q, %v", what, heard, err)
				}
			}
			echo(t, c)
			until(t, "the end of links of strangers", func() bool { return there.Links() == 1 })
		},
		"many_strangers": func(t *testing.T) {
			here, there := pair(t)
			at := strings.Split(there.Offer(), " ")[1]
			for range 200 {
				c, err := net.Dial("tcp", at)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			echo(t, dial(t, here, "there")) // over NATS at first
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
	t.Run("host", func(t *testing.T) {
		for i := range list {
			for j := range list {
				want := "127.0.0.1"
				if i == j {
					want = ""
				}
				name := "n" + strconv.Itoa(j)
				until(t, fmt.Sprintf("n%d sees %s at %q", i, name, want), func() bool { return list[i].Host(name) == want }) // servers may not have met yet
			}
		}
	})
}

// TestSecureLinks sees that links speak TLS where servers do, with the certificate of the offer.
func TestSecureLinks(t *testing.T) {
	t.Parallel()
	member := authority(t)
	var routes []string
	for range 3 {
		routes = append(routes, free(t))
	}
	var list []*nats.Server
	for i, at := range routes {
		list = append(list, start(t, nats.ServerOptions{Cluster: "secure", Node: fmt.Sprint("n", i), Dir: t.TempDir(), Listen: at, Routes: routes, TLS: member()}))
	}
	here, there := linked(t, list[0], "secure"), linked(t, list[1], "secure")
	echoes(t, there, "there")
	c := dial(t, here, "there")
	echo(t, c)
	if here.Links() != 1 {
		t.Errorf("%d links", here.Links())
	}
	parts := strings.Split(there.Offer(), " ")
	conn, err := net.Dial("tcp", parts[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, parts[2]) // without TLS
	if heard, _ := io.ReadAll(conn); strings.Contains(string(heard), "!") {
		t.Errorf("a link without TLS: %q", heard)
	}
	other := linked(t, list[2], "secure")
	other.SetOffer(strings.Join(append(strings.Split(other.Offer(), " ")[:3], strings.Repeat("0", 64)), " "))
	echoes(t, other, "other")
	echo(t, dial(t, here, "other"))
	if here.Links() != 1 {
		t.Error("a link with another certificate than that of the offer")
	}
}
