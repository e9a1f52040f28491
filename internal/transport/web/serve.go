package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve serves in the background, with HTTPS if srv has a TLSConfig. The channel receives the error
// that ended it.
func Serve(srv *http.Server, ln net.Listener) <-chan error {
	served := make(chan error, 1)
	go func() {
		if srv.TLSConfig != nil {
			served <- srv.ServeTLS(ln, "", "")
		} else {
			served <- srv.Serve(ln)
		}
	}()
	return served
}

// answerTime is the least time for the answers that are left when all calls have ended.
const answerTime = time.Second

// End calls shutdown of an MCP server, which cancels its calls in progress after d, and then shuts
// down the HTTP server in front of it. That order matters, because the first ends the event streams,
// which the second waits for. End goes on when ctx ends. If one of them fails, it closes the
// connections that are left.
func End(ctx context.Context, d time.Duration, shutdown func(context.Context) error, srv *http.Server) error {
	ctx, end := context.WithoutCancel(ctx), time.Now().Add(d)
	calls, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := shutdown(calls)
	answers, cancel := context.WithTimeout(ctx, max(time.Until(end), answerTime))
	defer cancel()
	if err = errors.Join(err, srv.Shutdown(answers)); err != nil {
		srv.Close()
	}
	return err
}
