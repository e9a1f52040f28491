package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/stream"
)

// Bus tests a Bus as several nodes see it. Each call of nodes returns one without listeners.
func Bus(t *testing.T, nodes func(t *testing.T) []cluster.Bus) {
	for name, test := range map[string]func(t *testing.T, nodes []cluster.Bus){
		"conn": conn, "nobody": nobody, "http": overHTTP, "slow reader": slowReader, "many": many, "topics": topics,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, nodes(t))
		})
	}
}

// conn runs the tests of golang.org/x/net for net.Conn.
func conn(t *testing.T, nodes []cluster.Bus) {
	n := 0
	nettest.TestConn(t, func() (near, far net.Conn, stop func(), err error) {
		n++
		near, far = connected(t, nodes, fmt.Sprint("node-", n))
		return near, far, func() { near.Close(); far.Close() }, nil
	})
}

// dial opens a connection to a node that has begun to listen, which the other nodes see a moment later.
func dial(t *testing.T, from cluster.Bus, node string) net.Conn {
	t.Helper()
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		c, err := from.Dial(ctx, node)
		switch {
		case err == nil:
			return c
		case !errors.Is(err, cluster.ErrNoNode):
			t.Fatal(err)
		}
	}
}

func nobody(t *testing.T, nodes []cluster.Bus) {
	ctx := within(t)
	_, err := nodes[0].Dial(ctx, "nobody")
	wantError(t, "Dial of a node that is not there", err, cluster.ErrNoNode)
	if _, err := nodes[0].Dial(ctx, "no.*"); err == nil || errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("Dial of a name that is not one: %v", err)
	}
	l, err := nodes[0].Listen("here")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes[0].Listen("here"); err == nil {
		t.Error("two listeners have one name")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	l.Close()
	wantError(t, "Accept of a listener that is closed", <-ended, net.ErrClosed)
	for { // nodes see the end a moment later
		c, err := nodes[len(nodes)-1].Dial(ctx, "here")
		if errors.Is(err, cluster.ErrNoNode) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("Dial after Close: %v", err)
		}
		if err == nil {
			c.Close()
		}
	}
	if l, err = nodes[0].Listen("here"); err != nil {
		t.Fatalf("Listen after Close: %v", err)
	}
	l.Close()
}

// overHTTP has large bodies both ways, an answer that streams, and one whose request is cancelled.
func overHTTP(t *testing.T, nodes []cluster.Bus) {
	ctx := within(t)
	l, err := nodes[0].Listen("web")
	if err != nil {
		t.Fatal(err)
	}
	cancelled := make(chan struct{})
	more := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-more
		fmt.Fprintln(w, "second")
	})
	mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(cancelled)
	})
	server := &http.Server{Handler: mux}
	go server.Serve(l)
	defer server.Close()
	dial(t, nodes[len(nodes)-1], "web").Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return nodes[len(nodes)-1].Dial(ctx, "web")
	}}
	defer transport.CloseIdleConnections()
	do := func(ctx context.Context, path string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://web"+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return transport.RoundTrip(req)
	}

	large := bytes.Repeat([]byte("0123456789abcdef"), 512<<10) // 8 MB
	r, err := do(ctx, "/echo", large)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(large), err)
	}
	r.Body.Close()

	if r, err = do(ctx, "/stream", nil); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(r.Body, line); err != nil || string(line) != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(more)
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != "second\n" {
		t.Errorf("%q, %v", rest, err)
	}
	r.Body.Close()

	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := do(short, "/wait", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that was cancelled: %v", err)
	}
	select {
	case <-cancelled:
	case <-ctx.Done():
		t.Error("the other node did not see that the request was cancelled")
	}
}

// connected returns two ends of a connection.
func connected(t *testing.T, nodes []cluster.Bus, node string) (near, far net.Conn) {
	t.Helper()
	l, err := nodes[0].Listen(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	near = dial(t, nodes[len(nodes)-1], node)
	far = <-accepted
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// slowReader sees that a writer waits for a reader, who may go on later and misses nothing.
func slowReader(t *testing.T, nodes []cluster.Bus) {
	near, far := connected(t, nodes, "slow")
	data := bytes.Repeat([]byte("slow "), stream.Window)
	if err := near.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := near.Write(data)
	if n > stream.Window || err == nil {
		t.Fatalf("Write took %d bytes that nobody reads, %v; the window has %d", n, err, stream.Window)
	}
	if err := near.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	go func() {
		if _, err := near.Write(data[n:]); err != nil {
			t.Error(err)
		}
		near.Close()
	}()
	if err := far.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d arrived, %v", len(got), len(data), err)
	}
}

// many connections between two nodes do not mix their bytes.
func many(t *testing.T, nodes []cluster.Bus) {
	l, err := nodes[0].Listen("many")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	ctx := within(t)
	dial(t, nodes[len(nodes)-1], "many").Close()
	n := race(t, 50, func(i int) error {
		c, err := nodes[len(nodes)-1].Dial(ctx, "many")
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		for j := range 20 {
			text := fmt.Appendf(nil, "%d of %d", j, i)
			if _, err := c.Write(text); err != nil {
				return err
			}
			got := make([]byte, len(text))
			if _, err := io.ReadFull(c, got); err != nil {
				return err
			}
			if !bytes.Equal(got, text) {
				return fmt.Errorf("%q came in place of %q", got, text)
			}
		}
		return nil
	}, nil)
	if n != 50 {
		t.Errorf("%d of 50 connections worked", n)
	}
}

func topics(t *testing.T, nodes []cluster.Bus) {
	ctx := within(t)
	a, b := nodes[0], nodes[len(nodes)-1]
	got := make(chan string, 100)
	listen := func(bus cluster.Bus, name, topic string) func() {
		stop, err := bus.Subscribe(topic, func(data []byte) { got <- name + " " + string(data) })
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	stopX := listen(a, "x", "news")
	defer listen(b, "y", "news")()
	defer listen(b, "z", "other.news")()
	want := func(list ...string) {
		t.Helper()
		left := map[string]bool{}
		for _, w := range list {
			left[w] = true
		}
		for len(left) > 0 {
			select {
			case s := <-got:
				if strings.HasSuffix(s, " begin") {
					continue // several publishers have no order among them
				}
				if !left[s] {
					t.Fatalf("%q came, %v is left", s, left)
				}
				delete(left, s)
			case <-ctx.Done():
				t.Fatalf("%v did not come", left)
			}
		}
	}
	publish := func(bus cluster.Bus, topic, data string) {
		t.Helper()
		if err := bus.Publish(ctx, topic, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []cluster.Bus{a, b} { // that others listen is seen a moment later
		for _, w := range []string{"x", "y", "z"} {
			for seen := false; !seen; {
				publish(from, map[string]string{"x": "news", "y": "news", "z": "other.news"}[w], "begin")
				for late := time.After(10 * time.Millisecond); !seen && late != nil; { // a flood would be lost in part
					select {
					case s := <-got:
						seen = s == w+" begin"
					case <-late:
						late = nil
					}
				}
			}
		}
	}
	publish(a, "news", "one")
	want("x one", "y one")
	publish(b, "news", "two")
	want("x two", "y two")
	publish(b, "other.news", "three")
	want("z three")
	stopX()
	publish(b, "news", "four")
	want("y four")
	if err := a.Publish(ctx, "no topic", nil); err == nil {
		t.Error("a topic that is not one was taken")
	}
	if _, err := a.Subscribe("no topic", func([]byte) {}); err == nil {
		t.Error("a topic that is not one was taken")
	}
}
