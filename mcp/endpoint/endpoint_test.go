package endpoint_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// get returns the status and the body of a page.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// memory is a listener for connections in memory, so that a test can have a clock of its own.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memory) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// client returns a client whose requests all go to l.
func (l *memory) client(t *testing.T) *http.Client {
	wire := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case l.conns <- far:
			return near, nil
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}}
	t.Cleanup(wire.CloseIdleConnections)
	return &http.Client{Transport: wire}
}

const inMemory = "http://127.0.0.1"

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// When ctx ends, /readyz says so while requests are still taken; then calls in progress finish, streams
// end, and Serve returns, on every revision.
func TestGracefulEnd(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			called, finish := make(chan struct{}), make(chan struct{})
			var away, shut atomic.Bool
			key, entry := auth.NewAPIKey("alice")
			srv := &mcp.Server{Name: "s", OnShutdown: func(context.Context) error { shut.Store(true); return nil }}
			mcp.AddTool(srv, mcp.Tool{Name: "slow"}, func(context.Context, struct{}) (string, error) {
				close(called)
				<-finish
				return "done", nil
			})
			ln := listen(t)
			base := "http://" + ln.Addr().String()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h := &endpoint.HTTP{
				Server: srv, Delay: 300 * time.Millisecond, Grace: time.Minute,
				Protect: (&auth.Guard{Verifiers: []auth.Verifier{&auth.APIKeys{Keys: []auth.APIKey{entry}}}}).Protect,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) }),
				Ready: func(context.Context) error {
					if away.Load() {
						return errors.New("the database at db.internal is away")
					}
					return nil
				},
			}
			served := make(chan error, 1)
			go func() { served <- h.Serve(ctx, ln) }()

			wire := &http.Transport{}
			defer wire.CloseIdleConnections()
			web := &http.Client{Transport: wire}
			want := func(path string, status int, body string) {
				t.Helper()
				if gotStatus, gotBody := get(t, web, base+path); gotStatus != status || gotBody != body {
					t.Errorf("%s = %d %q, want %d %q", path, gotStatus, gotBody, status, body)
				}
			}
			want("/healthz", 200, "{\"state\":\"alive\"}\n")
			want("/readyz", 200, "{\"state\":\"ready\"}\n")
			want("/metrics", 200, "page /metrics")
			away.Store(true)
			want("/readyz", 503, "{\"state\":\"not ready\"}\n")
			away.Store(false)
			if status, _ := get(t, web, base+"/mcp"); status != http.StatusUnauthorized {
				t.Errorf("without a key, /mcp = %d", status)
			}

			s, err := (&mcp.Client{Revisions: []mcp.Revision{rev}, HTTPClient: web, Header: http.Header{"Authorization": {"Bearer " + key}}}).Dial(t.Context(), base+"/mcp")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			answered := make(chan string, 1)
			go func() {
				res, err := s.CallTool(t.Context(), "slow", nil)
				if err != nil {
					answered <- err.Error()
					return
				}
				answered <- res.Text()
			}()
			<-called
			stop()
			for {
				if status, body := get(t, web, base+"/readyz"); status == 503 {
					if body != "{\"state\":\"ending\"}\n" {
						t.Errorf("/readyz at the end = %q", body)
					}
					break
				}
			}
			close(finish)
			if got := <-answered; got != "done" {
				t.Errorf("the call in progress = %q", got)
			}
			if err := <-served; err != nil {
				t.Errorf("Serve = %v", err)
			}
			if !shut.Load() {
				t.Error("OnShutdown was not called")
			}
			if _, err := web.Get(base + "/healthz"); err == nil {
				t.Error("the listener is still open")
			}
		})
	}
}

// A call that does not end within Grace is canceled, and is answered.
func TestGraceIsOver(t *testing.T) {
	mcptest.LeakCheck(t)
	synctest.Test(t, func(t *testing.T) {
		called := make(chan struct{})
		srv := &mcp.Server{Name: "s"}
		mcp.AddTool(srv, mcp.Tool{Name: "slow"}, func(ctx context.Context, _ struct{}) (string, error) {
			close(called)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		ln := newMemory()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		served := make(chan error, 1)
		go func() { served <- (&endpoint.HTTP{Server: srv, Grace: 50 * time.Millisecond}).Serve(ctx, ln) }()
		s, err := (&mcp.Client{HTTPClient: ln.client(t)}).Dial(t.Context(), inMemory+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if res, err := s.CallTool(t.Context(), "slow", nil); err != nil || !res.IsError || !strings.Contains(res.Text(), "shutting down") {
				t.Errorf("the call = %v, %v", res, err)
			}
		}()
		<-called
		stop()
		<-ended
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}

// Without fields, other paths name that of the server. With TLS it is HTTPS.
func TestDefaults(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS()
	defer pair.Close()
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	ln := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	h := &endpoint.HTTP{Server: &mcp.Server{Name: "s"}, TLS: &tls.Config{Certificates: pair.TLS.Certificates}}
	go func() { served <- h.Serve(ctx, ln) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}}
	if status, body := get(t, client, "https://"+ln.Addr().String()+"/"); status != 404 || body != "the MCP endpoint is at /mcp\n" {
		t.Errorf("/ = %d %q", status, body)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// Faults of the fields and of the address are errors at once.
func TestFaults(t *testing.T) {
	ln := listen(t)
	defer ln.Close()
	srv := &mcp.Server{Name: "s"}
	for _, tt := range []struct {
		http *endpoint.HTTP
		addr string
		want string
	}{
		{&endpoint.HTTP{}, "127.0.0.1:0", "HTTP.Server is nil"},
		{&endpoint.HTTP{Server: srv, Path: "mcp"}, "127.0.0.1:0", `HTTP.Path "mcp" is not a path`},
		{&endpoint.HTTP{Server: srv, Path: "/{x}"}, "127.0.0.1:0", "is not a path"},
		{&endpoint.HTTP{Server: srv, Path: "/mcp?x"}, "127.0.0.1:0", `HTTP.Path "/mcp?x" cannot be requested`},
		{&endpoint.HTTP{Server: srv, Path: "/mcp#x"}, "127.0.0.1:0", "cannot be requested"},
		{&endpoint.HTTP{Server: srv, Path: "//mcp"}, "127.0.0.1:0", "cannot be requested"},
		{&endpoint.HTTP{Server: srv, Path: "/a/../mcp"}, "127.0.0.1:0", "cannot be requested"},
		{&endpoint.HTTP{Server: srv, Path: "/readyz"}, "127.0.0.1:0", "health check"},
		{&endpoint.HTTP{Server: srv, Grace: -1}, "127.0.0.1:0", "negative"},
		{&endpoint.HTTP{Server: &mcp.Server{HTTP: mcp.HTTPConfig{AllowedHosts: []string{"https://x"}}}}, "127.0.0.1:0", "allowed host"},
		{&endpoint.HTTP{Server: srv}, ln.Addr().String(), "bind: "},
	} {
		if err := tt.http.ListenAndServe(t.Context(), tt.addr); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ListenAndServe = %v, want %s", err, tt.want)
		}
	}
}

// start serves h until the test ends or the returned function is called, which returns the error of Serve.
func start(t *testing.T, h *endpoint.HTTP) (base string, stop func() error) {
	t.Helper()
	ln := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, ln) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() { stop() })
	return "http://" + ln.Addr().String(), stop
}

// A path that ends with a slash is that path alone; Handler has those below it.
func TestPathWithSlash(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/", "/mcp/"} {
		base, stop := start(t, &endpoint.HTTP{Server: &mcp.Server{Name: "s"}, Path: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page") })})
		s, err := new(mcp.Client).Dial(t.Context(), base+path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s.Close()
		if status, body := get(t, client, base+path+"more"); status != 200 || body != "page" {
			t.Errorf("below %s = %d %q", path, status, body)
		}
		if status, _ := get(t, client, base+"/healthz"); status != 200 {
			t.Errorf("with the path %s, /healthz = %d", path, status)
		}
		if err := stop(); err != nil {
			t.Errorf("%s: Serve = %v", path, err)
		}
	}
}

// An HTTP is served once: a second Serve fails, closes its listener, and leaves the server alone.
func TestServedTwice(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	h := &endpoint.HTTP{Server: &mcp.Server{Name: "s"}}
	base, _ := start(t, h)
	if status, _ := get(t, client, base+"/readyz"); status != 200 {
		t.Fatalf("/readyz = %d", status)
	}
	ln := listen(t)
	if err := h.Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "is served already") {
		t.Errorf("the second Serve = %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the second listener is open: %v", err)
	}
	s, err := new(mcp.Client).Dial(t.Context(), base+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if status, _ := get(t, client, base+"/readyz"); status != 200 {
		t.Errorf("after the second Serve, /readyz = %d", status)
	}
}

// /readyz says when the server refuses all requests: after Shutdown, here by another endpoint, and
// while OnStart fails, until it succeeds.
func TestReadyServer(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var present atomic.Bool
	srv := &mcp.Server{Name: "s"}
	srv.OnStart = func(context.Context) error {
		srv.Check() // does not wait for itself
		if !present.Load() {
			return errors.New("the database is absent")
		}
		return nil
	}
	ready := func(base string, status int, body string) {
		t.Helper()
		if gotStatus, gotBody := get(t, client, base+"/readyz"); gotStatus != status || gotBody != body {
			t.Errorf("/readyz = %d %q, want %d %q", gotStatus, gotBody, status, body)
		}
	}
	one, stopOne := start(t, &endpoint.HTTP{Server: srv})
	two, stopTwo := start(t, &endpoint.HTTP{Server: srv})
	ready(one, 200, "{\"state\":\"ready\"}\n")
	if s, err := new(mcp.Client).Dial(t.Context(), one+"/mcp"); err == nil {
		t.Error("Dial succeeded although OnStart fails")
		s.Close()
	}
	ready(one, 503, "{\"state\":\"not ready\"}\n")
	present.Store(true)
	ready(one, 200, "{\"state\":\"ready\"}\n")
	if err := stopOne(); err != nil {
		t.Errorf("Serve = %v", err)
	}
	ready(two, 503, "{\"state\":\"ending\"}\n")
	if err := stopTwo(); err != nil {
		t.Errorf("Serve of the other endpoint = %v", err)
	}
	if err := (&endpoint.HTTP{Server: srv}).ListenAndServe(t.Context(), "127.0.0.1:0"); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("a server that is shut down is served: %v", err)
	}
}
