package cluster_test

import (
	"bufio"
	"context"
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
)

// apart joins two nodes. The first one has a session, and serves its requests by a handler; the second one, whose address is
// returned, forwards them.
func apart(t *testing.T, bus func(*cluster.Memory) cluster.Bus, handler http.HandlerFunc) (at string) {
	t.Helper()
	at, _ = pairOf(t, bus, handler)
	return at
}

// pairOf is apart, and returns the nodes.
func pairOf(t *testing.T, bus func(*cluster.Memory) cluster.Bus, handler http.HandlerFunc) (at string, nodes []*cluster.Node) {
	t.Helper()
	nodes = pair(t, new(cluster.Memory), bus, handler)
	front := httptest.NewUnstartedServer(nodes[1])
	front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		nodes[1].ServeHTTP(w, r)
	})
	front.Start()
	t.Cleanup(front.Close)
	return front.URL + "/mcp", nodes
}

// pair joins the nodes of pairOf, of which none is reached from outside.
func pair(t *testing.T, m *cluster.Memory, bus func(*cluster.Memory) cluster.Bus, handler http.HandlerFunc) (nodes []*cluster.Node) {
	t.Helper()
	for i := range 2 {
		n := &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: bus(m), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Mcp-Session-Id") == "":
				w.Header().Set("Mcp-Session-Id", "one")
			case i == 1:
				http.Error(w, "the session is not here", http.StatusNotFound)
			default:
				handler(w, r)
			}
		})}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			defer stop()
			if err := n.Leave(ctx); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, n)
	}
	w := httptest.NewRecorder()
	nodes[0].ServeHTTP(w, httptest.NewRequest("POST", "/mcp", strings.NewReader("{}")))
	if w.Code != http.StatusOK {
		t.Fatalf("the session was not opened: %d %s", w.Code, w.Body)
	}
	return nodes
}

func plain(m *cluster.Memory) cluster.Bus { return m }

// request makes one in the session.
func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", "one")
	return r
}

func do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// TestForwardedAsSent sees that another node gets a request, and the client its answer, as if nothing stood between.
func TestForwardedAsSent(t *testing.T) {
	t.Parallel()
	at := apart(t, plain, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Add("Seen", fmt.Sprintf("%s %s %s %d", r.Method, r.RequestURI, r.Host, r.ContentLength))
		w.Header().Add("Seen", fmt.Sprint(r.RemoteAddr != "", r.Header["Own"], r.Header["X-Forwarded-For"], r.Header["Hop"], r.Header["Connection"], r.Header["Te"], r.Header["Expect"]))
		w.Header().Set("Gone", "x")
		w.Header().Set("Connection", "gone")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(body)
	})
	large := strings.Repeat("0123456789abcdef", 50_000)
	for name, tc := range map[string]struct {
		method, query string
		body          func() io.Reader
		seen          string
		answer        string
	}{
		"length":   {"POST", "?a=b%20c", func() io.Reader { return strings.NewReader(large) }, fmt.Sprintf("POST /mcp?a=b%%20c example.test %d", len(large)), large},
		"chunks":   {"POST", "", func() io.Reader { return io.MultiReader(strings.NewReader(large)) }, "POST /mcp example.test -1", large},
		"no body":  {"POST", "", nil, "POST /mcp example.test 0", ""},
		"GET":      {"GET", "", nil, "GET /mcp example.test 0", ""},
		"DELETE":   {"DELETE", "", nil, "DELETE /mcp example.test 0", ""},
		"expected": {"POST", "", func() io.Reader { return strings.NewReader("x") }, "POST /mcp example.test 1", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 3 { // over one connection
				var sent io.Reader
				if tc.body != nil {
					sent = tc.body()
				}
				r := request(t, tc.method, at+tc.query, sent)
				r.Host = "example.test"
				r.Header.Set("Own", "1")
				r.Header.Set("X-Forwarded-For", "192.0.2.1")
				r.Header.Set("Hop", "1")
				r.Header.Set("Te", "trailers")
				r.Header.Set("Connection", "keep-alive, hop")
				if name == "expected" {
					r.Header.Set("Expect", "100-continue")
				}
				res, body := do(t, r)
				if res.StatusCode != http.StatusAccepted || body != tc.answer {
					t.Errorf("%d with %d bytes, want 202 with %d", res.StatusCode, len(body), len(tc.answer))
				}
				seen := strings.Join(res.Header["Seen"], "; ")
				if want := tc.seen + "; true [1] [192.0.2.1] [] [] [] []"; seen != want {
					t.Errorf("the node saw %s, want %s", seen, want)
				}
				if res.Header["Gone"] != nil {
					t.Errorf("a header of the connection between nodes came to the client: %v", res.Header)
				}
			}
		})
	}
}

// TestForwardedStream sees that each part of an answer comes at once, its header too, and that the node of the session learns when the
// client has left.
func TestForwardedStream(t *testing.T) {
	t.Parallel()
	next, left := make(chan string), make(chan struct{})
	at := apart(t, plain, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text := <-next:
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	res, err := http.DefaultClient.Do(request(t, "GET", at, nil).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		want := fmt.Sprintf("event %d\n", i)
		next <- want
		if got, err := lines.ReadString('\n'); got != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	stop()
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("the node of the session was not told that the client has left")
	}
}

// TestForwardedBreaks lists what a client is told when one of both sides breaks off.
func TestForwardedBreaks(t *testing.T) {
	t.Parallel()
	seen := make(chan error, 1)
	at := apart(t, plain, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "early":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "refused")
		case "half":
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "nothing":
			panic(http.ErrAbortHandler)
		default:
			_, err := io.ReadAll(r.Body)
			seen <- err
		}
	})
	large := strings.Repeat("x", 2<<20)
	// More than a connection between nodes takes before somebody reads.
	res, body := do(t, request(t, "POST", at+"?early", strings.NewReader(large[:1<<20])))
	if res.StatusCode != http.StatusForbidden || body != "refused" {
		t.Errorf("a refusal before the body was read: %d %s", res.StatusCode, body)
	}
	res, err := http.DefaultClient.Do(request(t, "POST", at+"?half", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(res.Body); string(got) != "half" || err == nil {
		t.Errorf("an answer that breaks off: %q, %v", got, err)
	}
	res.Body.Close()
	for _, method := range []string{"GET", "POST"} {
		res, body = do(t, request(t, method, at+"?nothing", nil))
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "whether it has done what was asked is not known") {
			t.Errorf("no answer to %s: %d %s", method, res.StatusCode, body)
		}
	}
	for _, chunked := range []bool{false, true} {
		var body io.Reader = strings.NewReader(large)
		if chunked {
			body = io.MultiReader(body)
		}
		res, said := do(t, request(t, "POST", at, body))
		if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(said, "1048576 bytes") {
			t.Errorf("a body that is too large: %d %s", res.StatusCode, said)
		}
		if err := <-seen; err == nil {
			t.Error("the node of the session took a part of a body for all of it")
		}
	}
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: one\r\nContent-Length: 200000\r\n\r\n%s", large[:100_000])
	_ = conn.(*net.TCPConn).CloseWrite()
	if err := <-seen; err == nil {
		t.Error("the node of the session took a half of a body for all of it")
	}
	conn.Close()
}

// TestKeptConnections sees that requests share a connection, that one that has ended at the other node is not used again, and that one
// that does not tell is not kept.
func TestKeptConnections(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tells bool
		dials int64
	}{"tells": {true, 2}, "does not tell": {false, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bus *counting
			var ends int
			at := apart(t, func(m *cluster.Memory) cluster.Bus {
				bus = &counting{Bus: m}
				if !tc.tells {
					return mute{bus}
				}
				return bus
			}, func(w http.ResponseWriter, r *http.Request) {
				if ends++; ends == 3 {
					w.Header().Set("Connection", "close")
				}
			})
			for range 5 {
				if res, body := do(t, request(t, "POST", at, strings.NewReader("{}"))); res.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", res.StatusCode, body)
				}
			}
			if n := bus.dials.Load(); n != tc.dials {
				t.Errorf("%d dials, want %d", n, tc.dials)
			}
		})
	}
}

// mute is a Bus whose connections do not tell whether they live.
type mute struct{ cluster.Bus }

func (m mute) Dial(ctx context.Context, node string) (net.Conn, error) {
	c, err := m.Bus.Dial(ctx, node)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// TestRetireWaits sees that the handler of a node has what is for it when Retire returns, and that a request which takes long does not
// hold it up.
func TestRetireWaits(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"short": 100 * time.Millisecond, "long": patience} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, over := make(chan struct{}), make(chan struct{})
			at, nodes := pairOf(t, plain, func(http.ResponseWriter, *http.Request) {
				close(began)
				<-over
			})
			sent := make(chan error, 1)
			go func() {
				res, err := http.DefaultClient.Do(request(t, "POST", at, strings.NewReader("{}")))
				if err == nil {
					res.Body.Close()
				}
				sent <- err
			}()
			<-began
			end := sync.OnceFunc(func() { close(over) })
			timer := time.AfterFunc(takes, end)
			defer timer.Stop()
			begin := time.Now()
			nodes[0].Retire()
			took := time.Since(begin)
			select {
			case <-over:
				if name == "long" {
					t.Errorf("Retire waited %v", took)
				}
			default:
				if name == "short" && took < takes {
					t.Errorf("Retire did not wait: %v", took)
				}
			}
			end()
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLeaveWithKeptConnections sees that a node which leaves closes no connection over which a request may come: others close what they
// have kept, also when the answer did not say that it was the last one.
func TestLeaveWithKeptConnections(t *testing.T) {
	t.Parallel()
	began, over := make(chan struct{}), make(chan struct{})
	var bus *counting
	at, nodes := pairOf(t, func(m *cluster.Memory) cluster.Bus {
		bus = &counting{Bus: m}
		return bus
	}, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-over
	})
	sent := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(request(t, "POST", at, strings.NewReader("{}")))
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		sent <- err
	}()
	<-began
	nodes[0].Retire()
	close(over)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := nodes[0].Leave(ctx); err != nil {
		t.Error(err)
	}
	if n := bus.open.Load(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}
