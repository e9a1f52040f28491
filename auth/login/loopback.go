package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Loopback receives the browser on its way back from an authorization server, on a random port of
// 127.0.0.1. It serves requests only while Visit waits.
//
// Specification: RFC 8252, 7.3.
type Loopback struct {
	open func(ctx context.Context, page string) error
	ln   net.Listener

	visiting sync.Mutex // one visit at a time
}

const visitTimeout = 5 * time.Minute

// NewLoopback starts to listen; Close stops. The function open brings the user to a page; it must
// not wait for the user. See [OpenBrowser].
func NewLoopback(open func(ctx context.Context, page string) error) (*Loopback, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	return &Loopback{open: open, ln: ln}, nil
}

// RedirectURL returns the URL that the browser has to come back to.
func (l *Loopback) RedirectURL() string { return "http://" + l.ln.Addr().String() + "/callback" }

// Close ends the listening. A Visit that waits fails.
func (l *Loopback) Close() error { return l.ln.Close() }

// Visit opens a page and waits until the browser comes back from it, for at most 5 minutes and as
// long as ctx. It accepts one request, the one with the state of the page, and refuses all others.
// It fits [Transport.Visit].
func (l *Loopback) Visit(ctx context.Context, page string) (*url.URL, error) {
	l.visiting.Lock()
	defer l.visiting.Unlock()
	u, err := url.Parse(page)
	if err != nil {
		return nil, errors.New("the page to visit is not a URL")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, visitTimeout, fmt.Errorf("the user did not come back within %v", visitTimeout))
	defer cancel()
	back := make(chan *url.URL, 1) // one is sent, by the request that sets answered
	var answered atomic.Bool
	state := u.Query().Get("state")
	srv := &http.Server{
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("Content-Security-Policy", "default-src 'none'")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Connection", "close")
			// The host is checked because the name of another site may lead here.
			if r.Method != http.MethodGet || r.Host != l.ln.Addr().String() || r.URL.Path != "/callback" || state == "" || r.URL.Query().Get("state") != state {
				http.Error(w, "this is not the redirect of a pending login", http.StatusBadRequest)
				return
			}
			got, _ := url.Parse(l.RedirectURL())
			got.RawQuery = r.URL.RawQuery
			if answered.Swap(true) {
				http.Error(w, "this login is already complete", http.StatusBadRequest)
				return
			}
			fmt.Fprintln(w, "Thank you. You can close this page and go back to your program.")
			_ = http.NewResponseController(w).Flush() // the page is on its way before the wait ends, and the server with it
			back <- got
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(keepOpen{l.ln}) }()
	defer func() {
		l.interrupt()
		// The answer to the browser is on its way; connections that hang are closed.
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if srv.Shutdown(bounded) != nil {
			srv.Close()
		}
		<-ended
		l.resume()
	}()
	if err := l.open(ctx, page); err != nil {
		return nil, err
	}
	select {
	case u := <-back:
		return u, nil
	case err := <-ended:
		ended <- err
		return nil, fmt.Errorf("listen for the browser: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keepOpen is a listener that outlives the servers on it.
type keepOpen struct{ net.Listener }

func (keepOpen) Close() error { return nil }

// interrupt ends the Accept of a server, and resume lets the next one accept.
func (l *Loopback) interrupt() { l.deadline(time.Unix(1, 0)) }
func (l *Loopback) resume()    { l.deadline(time.Time{}) }

func (l *Loopback) deadline(at time.Time) {
	if tl, ok := l.ln.(*net.TCPListener); ok {
		_ = tl.SetDeadline(at) // it fails on a closed listener, which accepts nothing either
	}
}
