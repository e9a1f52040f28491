package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// streamTime bounds how long the opening of a session waits for its GET stream.
const streamTime = time.Second

// awaitListening opens the GET stream of a legacy session, once, and waits until the server has
// accepted or refused it: some servers send requests of a call on that stream, and lose them if
// it is not open yet.
func (c *Client) awaitListening(ctx context.Context) {
	c.mu.Lock()
	if c.listening || c.table == nil || !c.table.Sessions {
		c.mu.Unlock()
		return
	}
	c.listening = true
	c.mu.Unlock()
	settled := make(chan struct{})
	if !c.start(func() { c.listenLoop(sync.OnceFunc(func() { close(settled) })) }) {
		return
	}
	t := time.NewTimer(streamTime)
	defer t.Stop()
	select {
	case <-settled:
	case <-t.C:
	case <-ctx.Done():
	}
}

// listenLoop keeps the stream open until the client or the session ends or the server answers that
// it has none. The function settled is called when the first attempt is answered.
func (c *Client) listenLoop(settled func()) {
	var (
		q        questions
		lastID   string
		retry    = time.Duration(-1)
		failures int
	)
	defer q.end()
	session := c.sessionID()
	for c.sessionID() == session { // another session has a stream of its own
		res, err := c.stream(c.ctx, lastID)
		settled()
		if err == nil {
			c.streams.Add(1)
			events := web.NewEventReader(res.Body, c.opts.MaxMessage)
			events.LastID, events.Retry = lastID, retry
			if c.receive(events, &q) {
				failures = 0
			}
			c.ended.Add(1)
			res.Body.Close()
			lastID, retry = events.LastID, events.Retry
		} else if !transient(err) {
			if lost, ok := c.renewable(c.ctx, err); ok {
				// The session is renewed at once: the next call may come late, and notifications
				// are expected.
				c.start(func() { _ = c.renew(c.ctx, lost) }) // a failure ends the client
				return
			}
			var he *engine.HTTPError
			refused := errors.As(err, &he)
			if refused && he.Status == http.StatusBadRequest && lastID != "" {
				lastID = "" // later events are no longer kept; only new ones come
				continue
			}
			if !refused || he.Status != http.StatusMethodNotAllowed { // SHTTP-25-023
				c.opts.Logger.Debug("event stream refused", "err", err)
			}
			return
		}
		failures++
		if sleep(c.ctx, pause(retry, failures)) != nil {
			return
		}
	}
}

// Streams returns the number of times the GET stream was opened or ended, and whether it is open.
// The stream carries the server's messages outside of calls, which may be lost while the stream is
// closed.
func (c *Client) Streams() (times uint64, open bool) {
	ended := c.ended.Load()
	opened := c.streams.Load()
	return opened + ended, opened > ended
}

// receive passes on the messages of the GET stream. It reports whether there were any.
func (c *Client) receive(events *web.EventReader, q *questions) (some bool) {
	for {
		data, err := events.Message()
		if err != nil {
			if err != io.EOF && c.ctx.Err() == nil {
				c.opts.Logger.Debug("event stream broke", "err", err)
			}
			return some
		}
		some = true
		lim := jsonrpc.Limits{MaxDepth: c.opts.MaxDepth}
		if jsonrpc.IsBatch(data) {
			batch, err := jsonrpc.DecodeBatch(data, lim)
			if err != nil {
				c.opts.Logger.Warn("event dropped", "err", err)
			}
			for i := range batch {
				if batch[i].Err == nil {
					c.take(&batch[i].Message, q)
				}
			}
			continue
		}
		msg, err := jsonrpc.Decode(data, lim)
		if err != nil {
			c.opts.Logger.Warn("event dropped", "err", err)
			continue
		}
		c.take(&msg, q)
	}
}

// take passes on one message outside of calls.
func (c *Client) take(msg *jsonrpc.Message, q *questions) {
	switch msg.Kind() {
	case jsonrpc.KindRequest:
		q.start(c, c.ctx, msg, c.opts.Inbox.Question)
	case jsonrpc.KindNotification:
		if msg.Method == revision.NoteCancelled {
			q.cancel(msg)
			return
		}
		c.opts.Inbox.Note(msg.Method, append(json.RawMessage(nil), msg.Params...))
	default:
		// A response is not allowed here (SHTTP-25-025), but the server will not send it again.
		c.mu.Lock()
		x := c.open[msg.ID]
		c.mu.Unlock()
		if x == nil {
			c.opts.Logger.Warn("response outside of a call dropped", "id", msg.ID)
			return
		}
		x.astray(msg)
	}
}

// stream opens a stream with GET: that of the session, or, if lastID is set, the stream that
// broke after that event.
func (c *Client) stream(ctx context.Context, lastID string) (*http.Response, error) {
	req, _, err := c.request(ctx, http.MethodGet, nil, "")
	if err != nil {
		return nil, err
	}
	req.Header["Accept"] = typeEvents // SHTTP-25-022
	if lastID != "" {
		req.Header.Set(headerLastEvent, lastID)
	}
	res, err := c.do(req, nil)
	if err != nil {
		return nil, err
	}
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || t != "text/event-stream" {
		web.Discard(res)
		return nil, &engine.HTTPError{Status: res.StatusCode, Header: res.Header, Body: fmt.Sprintf("the answer to GET is %q, want text/event-stream", text.Short(t))}
	}
	return res, nil
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	var he *engine.HTTPError
	if errors.As(err, &he) {
		return he.Status >= 500 || he.Status == http.StatusTooManyRequests || he.Status == http.StatusRequestTimeout
	}
	var gone *SessionLostError
	return !errors.As(err, &gone) && !errors.Is(err, context.Canceled) && !errors.Is(err, jsonrpc.ErrClosed)
}

const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// pause returns the backoff before the n-th consecutive attempt: at least the server's retry time
// (SHTTP-25-016), longer each time, with jitter.
func pause(retry time.Duration, n int) time.Duration {
	d := firstPause
	if retry >= 0 {
		d = retry
	}
	if n > 1 {
		grown := max(d, 100*time.Millisecond) << min(n-1, 10)
		d = max(d, min(grown, maxPause))
	}
	return d + rand.N(d/4+1)
}

// sleep waits for d, or returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
