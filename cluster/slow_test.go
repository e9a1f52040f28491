package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/node"
)

// pipes is a listener whose connections hold no bytes that nobody reads.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// fronted serves a node, and returns a function that dials it.
func fronted(t *testing.T, node *cluster.Node) (dial func() net.Conn) {
	t.Helper()
	l := make(pipes)
	s := &http.Server{Handler: node}
	go func() { _ = s.Serve(l) }() // until the end of the test
	t.Cleanup(func() {
		close(l)
		_ = s.Close()
	})
	return func() net.Conn {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close() })
		l <- far
		_ = near.SetDeadline(time.Now().Add(time.Hour)) // a pipe has deadlines
		return near
	}
}

const slowPost = "POST /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: one\r\n"

// TestForwardedSlowBody sees that a body has the same time at a node that forwards it: 20 seconds, and one more for each KiB.
func TestForwardedSlowBody(t *testing.T) {
	t.Parallel()
	kib := strings.Repeat("x", 1024)
	for name, tc := range map[string]struct {
		head, piece string
		pieces      int // one every half of a second
		status      int
		after       time.Duration // about
	}{
		"stalls":            {"Content-Length: 200\r\n\r\n", "x", 1, 408, 20 * time.Second},
		"stalls in a chunk": {"Transfer-Encoding: chunked\r\n\r\n", "3\r\nx", 1, 408, 20 * time.Second},
		"drips":             {"Content-Length: 200\r\n\r\n", "x", 200, 408, 20 * time.Second},
		"of a DELETE":       {"Content-Length: 200\r\n\r\n", "x", 1, 408, 20 * time.Second},
		"steady":            {"Content-Length: 102400\r\n\r\n", kib, 100, 200, 110 * time.Second}, // the handler takes a minute more
		"at once":           {"Content-Length: 1024\r\n\r\n", kib, 1, 200, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := pair(t, new(cluster.Memory), plain, func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return
					}
					select {
					case <-time.After(time.Minute):
					case <-r.Context().Done():
						t.Error("the request was ended while the handler ran")
					}
					fmt.Fprint(w, len(body))
				})
				c := fronted(t, nodes[1])()
				begin := time.Now()
				var sending sync.WaitGroup
				defer sending.Wait()
				defer c.Close()
				sending.Go(func() {
					head := slowPost
					if name == "of a DELETE" {
						head = strings.Replace(head, "POST", "DELETE", 1)
					}
					_, err := io.WriteString(c, head+tc.head)
					for i := 0; i < tc.pieces && err == nil; i++ {
						if i > 0 {
							time.Sleep(time.Second / 2)
						}
						_, err = io.WriteString(c, tc.piece)
					}
				})
				in := bufio.NewReader(c)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				said, _ := io.ReadAll(res.Body)
				took := time.Since(begin)
				if res.StatusCode != tc.status || took < tc.after-time.Second || took > tc.after+2*time.Second {
					t.Errorf("%d %s after %v, want %d after %v", res.StatusCode, said, took, tc.status, tc.after)
				}
				if tc.status == http.StatusRequestTimeout {
					if !strings.Contains(string(said), "it may take 20 seconds, and one more for each KiB") {
						t.Errorf("a slow body is refused in other words: %s", said)
					}
					if _, err := in.ReadByte(); err == nil {
						t.Error("the connection goes on after a body that was not read")
					}
				}
			})
		})
	}
}

// TestForwardedToNobodyWhoReads sees that a client which does not read an answer has 30 seconds for each write at a node that forwards it, and that the
// other node learns of the end.
func TestForwardedToNobodyWhoReads(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 64<<10)
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		pause   time.Duration // before each read of a part; 0: the client does not read
		after   time.Duration
	}{
		"large answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = io.WriteString(w, large)
		}, 0, 30 * time.Second},
		"chunks": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) }, 0, 30 * time.Second},
		"event stream": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: x\n\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(15 * time.Second):
				case <-r.Context().Done():
				}
			}
		}, 0, 30 * time.Second},
		"slow reader": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) }, 10 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan time.Duration, 10)
				nodes := pair(t, new(cluster.Memory), plain, func(w http.ResponseWriter, r *http.Request) {
					begin := time.Now()
					tc.handler(w, r)
					ended <- time.Since(begin)
				})
				c := fronted(t, nodes[1])()
				if _, err := io.WriteString(c, slowPost+"Content-Length: 2\r\n\r\n{}"); err != nil {
					t.Fatal(err)
				}
				if tc.pause == 0 {
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					select {
					case took := <-ended:
						if took < tc.after || took > tc.after+time.Second {
							t.Errorf("the request ended after %v, want %v", took, tc.after)
						}
					default:
						t.Error("the request of a client which does not read has not ended")
					}
					if _, err := io.Copy(io.Discard, c); err != nil { // a few bytes may be in the pipe
						t.Error(err)
					}
					return
				}
				in := bufio.NewReaderSize(&paused{c, tc.pause}, 64<<10)
				for range 2 { // a deadline of the first answer does not bound the second one
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, res.Body); n != int64(len(large)) || err != nil {
						t.Errorf("%d bytes, %v; want %d", n, err, len(large))
					}
					time.Sleep(time.Minute)
					if _, err := io.WriteString(c, slowPost+"Content-Length: 2\r\n\r\n{}"); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// paused is a client that takes its time for each read.
type paused struct {
	net.Conn
	pause time.Duration
}

func (p *paused) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	return p.Conn.Read(b)
}

// TestHeadersOfNodesStayInside sees that no answer to a client has a header that nodes have for each other, whatever another node sends.
func TestHeadersOfNodesStayInside(t *testing.T) {
	t.Parallel()
	nodes := pair(t, new(cluster.Memory), plain, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Take", "Node", "Client", "Hops", "Passed", "Certificate", "Later"} {
			w.Header().Set("Patchbay-Cluster-"+name, "1")
		}
		w.Header().Set("Own", "1")
	})
	for _, method := range []string{"POST", "GET", "DELETE"} {
		w := post(t, nodes[1], method, "one", "{}")
		if method == "GET" {
			r := httptest.NewRequest(method, "/mcp", nil)
			r.Header.Set("Mcp-Session-Id", "one")
			w = httptest.NewRecorder()
			nodes[1].ServeHTTP(w, r)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Patchbay-") {
				t.Errorf("the answer to %s has the header %s", method, name)
			}
		}
		if method == "POST" && (w.Code != http.StatusOK || w.Header().Get("Own") == "") {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
}

// TestUnreadableRecord sees that a request is refused at once, in words, if the State has something that cannot be the record of its session.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, unreadableRecord)
}

func unreadableRecord(t *testing.T) {
	m := new(cluster.Memory)
	nodes := pair(t, m, plain, func(http.ResponseWriter, *http.Request) { t.Error("the request was served") })
	var key string
	for c, err := range m.Watch(t.Context(), "session") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			break
		}
		key = c.Key
	}
	for _, value := range []string{`{"v":1,"node":"no such*name"}`, `{"v":1,"node":"a..b"}`, `{"v":1,"node":"` + strings.Repeat("x", 197) + `"}`, `[]`, `not JSON`} {
		e, err := m.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Put(t.Context(), key, []byte(value), e.Version, time.Minute); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		w := post(t, nodes[1], "POST", "one", "{}")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the record of the session in the cluster cannot be read") {
			t.Errorf("with the record %s: %d %s", value, w.Code, w.Body)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("with the record %s: the refusal took %v", value, took)
		}
	}
}

// TestSlowBodyForAnotherNode sees that a request without a session, whose node is known from its body, gets there however long its client needs for
// the body.
func TestSlowBodyForAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		var first http.Handler
		for _, name := range []string{"n1", "n0"} {
			n := &cluster.Node{Name: name, State: m, Bus: m, Logger: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if here := node.From(r.Context()); here.NodeName() == "n1" || !here.SendTo("n1", w, r, body) {
					fmt.Fprintf(w, "%s has %s", here.NodeName(), body)
				}
			})}
			if err := n.Join(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer n.Leave(context.Background())
			first = n
		}
		far, near := io.Pipe()
		go func() {
			time.Sleep(15 * time.Second)
			io.WriteString(near, "all of it")
			near.Close()
		}()
		r := httptest.NewRequest("POST", "/mcp", far)
		w := httptest.NewRecorder()
		first.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Body.String() != "n1 has all of it" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
