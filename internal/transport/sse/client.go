package sse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ClientOptions configure [Dial]. URL is required.
type ClientOptions struct {
	URL        string       // of the event stream
	HTTP       *http.Client // nil: a client without a timeout
	Header     http.Header  // sent with every request
	Tap        *engine.Tap  // gets every exchange with its messages; may be nil
	MaxMessage int          // bytes of one message; zero means 4 MiB
}

const (
	defaultMaxMessage = 4 << 20
	endpointTimeout   = 30 * time.Second // for the endpoint event
	postTimeout       = 60 * time.Second // for the answer to a POST, which is only a receipt
)

// conn is the client's end of a session.
type conn struct {
	opts    ClientOptions
	http    *http.Client
	release func()          // closes the idle connections of http
	ctx     context.Context // of all requests; ends with the session
	cancel  context.CancelCauseFunc
	body    io.Closer // of the stream
	events  *web.EventReader
	post    string // URL for messages
}

var _ jsonrpc.Conn = (*conn)(nil)

// Dial opens an event stream and waits for its endpoint event, at most 30 seconds and until ctx
// ends. The stream itself outlives ctx.
//
// The error is an *engine.HTTPError for a response that is not a success. Dial also fails if the
// content type is not that of an event stream, or if the endpoint has another origin than the
// stream (SSE-24-006).
//
// A Write of the connection returns when the server has accepted the message. If the server
// refuses it, the error is an *engine.HTTPError and the connection stays open; but status 404 or
// 410 means that the session has ended, and ends the connection.
func Dial(ctx context.Context, opts ClientOptions) (jsonrpc.Conn, error) {
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = defaultMaxMessage
	}
	c := &conn{opts: opts}
	c.http, c.release = web.NewClient(opts.HTTP, opts.Tap)
	c.ctx, c.cancel = context.WithCancelCause(engine.WithoutCause(context.WithoutCancel(ctx)))
	ctx, stop := context.WithTimeoutCause(ctx, endpointTimeout, fmt.Errorf("no endpoint event within %v", endpointTimeout))
	defer stop()
	detach := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	err := c.open()
	if !detach() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open opens the stream and reads up to the endpoint event.
func (c *conn) open() error {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.opts.URL, nil)
	if err != nil {
		return err
	}
	c.header(req)
	req.Header.Set("Accept", "text/event-stream")
	res, err := c.http.Do(req)
	if err != nil {
		return c.cause(err)
	}
	c.body = res.Body
	if res.StatusCode/100 != 2 {
		return web.Failure(res)
	}
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || t != "text/event-stream" {
		return fmt.Errorf("the answer to GET is HTTP %d of type %q, want an event stream", res.StatusCode, text.Short(t))
	}
	c.events = web.NewEventReader(res.Body, c.opts.MaxMessage)
	for {
		name, data, err := c.events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the event stream ended before its endpoint event")
		case err != nil:
			return c.cause(err)
		case name != "endpoint":
			continue // SSE-24-005 requires it first, but waiting does no harm
		}
		c.post, err = endpoint(req.URL, res.Request.URL, string(data))
		return err
	}
}

// endpoint resolves the URI of an endpoint event. The origin must be that of the URL given to
// Dial: headers and messages must not go to other servers.
func endpoint(dialled, stream *url.URL, uri string) (string, error) {
	u, err := stream.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("endpoint event: %q is not a URI", text.Short(uri))
	}
	if !web.SameOrigin(u, dialled) || u.User != nil {
		return "", fmt.Errorf("endpoint event: %q does not have the origin of the stream, %s://%s; messages are not sent elsewhere", text.Short(uri), dialled.Scheme, dialled.Host)
	}
	u.Fragment = ""
	return u.String(), nil
}

func (c *conn) header(req *http.Request) {
	for name, v := range c.opts.Header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(v)
	}
}

// cause returns the reason why the session ended, if it has, else err.
func (c *conn) cause(err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return err
}

// Read implements jsonrpc.Conn.
func (c *conn) Read(buf []byte) ([]byte, error) {
	data, err := c.events.Message()
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err == web.ErrEventTooLarge:
		return nil, &jsonrpc.FrameTooLargeError{Limit: c.opts.MaxMessage}
	case err != nil:
		return nil, err
	}
	return append(buf[:0], data...), nil
}

// Write implements jsonrpc.Conn: it posts a message.
func (c *conn) Write(frame []byte) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	ctx, cancel := context.WithTimeoutCause(c.ctx, postTimeout, fmt.Errorf("the server did not accept a message within %v", postTimeout))
	defer cancel()
	// The transport may still read the body after the response has come.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.post, bytes.NewReader(bytes.Clone(frame)))
	if err != nil {
		return err
	}
	c.header(req)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if res.StatusCode/100 == 2 {
		web.Discard(res)
		return nil
	}
	defer res.Body.Close()
	refusal := web.Failure(res)
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone {
		gone := fmt.Errorf("the server has ended the session; connect again: %v", refusal)
		c.cancel(gone)
		return gone
	}
	return refusal
}

// Close implements jsonrpc.Conn.
func (c *conn) Close() error {
	c.cancel(jsonrpc.ErrClosed)
	if c.body != nil {
		c.body.Close()
	}
	c.release()
	return nil
}
