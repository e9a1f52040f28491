package nats_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// TestDialWaitsForAccept sees that a connection is usable when Dial returns it, and that one which is not accepted is an error of Dial.
func TestDialWaitsForAccept(t *testing.T) {
	t.Parallel()
	s := servers(t, 1)[0]
	listen := func(t *testing.T) (here *nats.Cluster, l net.Listener) {
		name := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		here, there := linked(t, s, name), linked(t, s, name)
		l, err := there.Listen("there")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return here, l
	}
	dials := func(ctx context.Context, here *nats.Cluster, n int) (wait func() []error) {
		errs := make([]error, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				var c net.Conn
				if c, errs[i] = here.Dial(ctx, "there"); errs[i] != nil {
					return
				}
				defer c.Close()
				_ = c.SetReadDeadline(time.Now().Add(soon)) // it fails if c is closed, as the next read does
				_, errs[i] = io.ReadFull(c, make([]byte, 1))
			})
		}
		return func() []error { all.Wait(); return errs }
	}
	t.Run("more_than_the_backlog", func(t *testing.T) {
		t.Parallel()
		here, l := listen(t)
		wait := dials(t.Context(), here, 1200)
		time.Sleep(300 * time.Millisecond)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("x"))
			}
		}()
		if err := errors.Join(wait()...); err != nil {
			t.Error(err)
		}
	})
	t.Run("the_listener_ends", func(t *testing.T) {
		t.Parallel()
		here, l := listen(t)
		wait := dials(t.Context(), here, 20)
		until(t, "dials", func() bool { return here.Conns() == 20 })
		l.Close()
		for _, err := range wait() {
			if !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("Dial of a node that has ended before it accepted: %v", err)
			}
		}
	})
	t.Run("nobody_accepts", func(t *testing.T) {
		t.Parallel()
		here, _ := listen(t)
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		for _, err := range dials(ctx, here, 1)() {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial of a node that does not accept: %v", err)
			}
		}
		until(t, "the end of the connection", func() bool { return here.Conns() == 0 })
	})
}

// TestBurst sends requests of a session all at once to a node that does not have it.
func TestBurst(t *testing.T) {
	t.Parallel()
	s := servers(t, 1)[0]
	var nodes []*cluster.Node
	for i := range 2 {
		c := linked(t, s, "burst")
		n := &cluster.Node{Name: fmt.Sprint("n", i), State: c, Bus: c, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") == "" {
				w.Header().Set("Mcp-Session-Id", "one")
				return
			}
			time.Sleep(50 * time.Millisecond)
			_, _ = io.Copy(w, r.Body)
		})}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, stop := context.WithTimeout(context.Background(), soon)
			defer stop()
			if err := n.Leave(ctx); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, n)
	}
	nodes[0].ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", strings.NewReader("{}")))
	begin := time.Now()
	var all sync.WaitGroup
	n := long.OrRaced(800, 100) // a node answers within three seconds, or refuses
	for i := range n {
		all.Go(func() {
			w, body := httptest.NewRecorder(), fmt.Sprint("request ", i)
			r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
			r.Header.Set("Mcp-Session-Id", "one")
			nodes[1].ServeHTTP(w, r)
			if w.Code != http.StatusOK || w.Body.String() != body {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		})
	}
	all.Wait()
	t.Logf("%d requests took %v", n, time.Since(begin))
}
