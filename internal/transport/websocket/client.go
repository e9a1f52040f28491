package websocket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ClientOptions configure [Dial]. URL is required.
type ClientOptions struct {
	URL        string        // with the scheme ws or wss
	HTTP       *http.Client  // sends the opening request; nil: a client without a timeout
	Header     http.Header   // of the opening request
	MaxMessage int           // bytes of one message; zero means 16 MiB
	KeepAlive  time.Duration // between pings; zero means 30 seconds, negative never
	Tap        *engine.Tap   // gets the opening request and its answer; may be nil
}

const (
	defaultMaxMessage = 16 << 20
	defaultKeepAlive  = 30 * time.Second
	openTimeout       = 30 * time.Second // for the answer to the opening request
)

// Dial opens a connection. The opening is bounded by ctx and by 30 seconds. If the answer does not
// open a connection, the error is an *engine.HTTPError.
func Dial(ctx context.Context, opts ClientOptions) (jsonrpc.Conn, error) {
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = defaultMaxMessage
	}
	if opts.KeepAlive == 0 {
		opts.KeepAlive = defaultKeepAlive
	}
	opening, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %v", openTimeout))
	defer cancel()
	client, release := web.NewClient(opts.HTTP, opts.Tap)
	defer release()
	u := &upgrader{RoundTripper: client.Transport}
	if u.RoundTripper == nil {
		u.RoundTripper = http.DefaultTransport
	}
	client.Transport = u
	ws, res, err := websocket.Dial(opening, opts.URL, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: opts.Header.Clone(), Subprotocols: []string{Subprotocol},
	})
	switch {
	case err == nil:
		return newConn(ctx, ws, u.body, opts.MaxMessage, opts.KeepAlive, websocket.StatusNormalClosure), nil
	case opening.Err() != nil:
		return nil, context.Cause(opening)
	case res != nil && res.StatusCode != http.StatusSwitchingProtocols:
		return nil, web.Failure(res)
	}
	return nil, err
}

// upgrader keeps the connection that a response returns as its body.
type upgrader struct {
	http.RoundTripper
	body io.Closer
}

func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := u.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		u.body = res.Body
	}
	return res, err
}
