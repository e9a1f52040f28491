package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A session that the server has ended is opened again (SHTTP-25-039), in this way:
//
//   - The client notices it by a 404. The request was refused, so it has not run.
//   - The first request that gets a 404 renews the session; requests that come in the meantime
//     wait.
//   - If only reads had happened in the session, no state is lost: the refused request is sent
//     again, once, in the new session. Reads are always sent again.
//   - Otherwise the refused requests that may depend on the lost state, or the next such request,
//     fail with a [*RenewedError]. The first one fails after a short wait, so that requests sent
//     at the same time fail too.
//   - A session that is lost before it has been useful is not renewed: the client is over. A
//     server thus cannot make a client initialize without end.

// Bounds of renewing.
const (
	renewTime  = 30 * time.Second // to open the new session
	usefulTime = 10 * time.Second // after which a session counts as useful

	// The time that the first request failing for lost state waits for others like it.
	tellTime = 200 * time.Millisecond
)

// renewal is a new session being opened.
type renewal struct {
	done chan struct{} // closed when it is open
	err  error         // read after done
}

type renewingKey struct{}

// SessionLostError reports that the server no longer knows the session, and that opening another
// one failed or was not wanted. The client is over.
type SessionLostError struct {
	Err error // the server's answer

	session string // the lost session
}

func (e *SessionLostError) Error() string {
	return "the server has ended the session; connect again: " + e.Err.Error()
}

func (e *SessionLostError) Unwrap() error { return e.Err }

// RenewedError reports that the server has ended the session and lost its state, and that another
// session is open. The request has not run.
type RenewedError struct {
	Err error // the server's answer

	told chan struct{} // closed when later requests are sent; nil before the first; guarded by mu of the client
}

func (e *RenewedError) Error() string {
	return fmt.Sprintf("the server has ended the session and lost its state (%v); this request has not run, the next one is sent in a new session", e.Err)
}

// needsState reports whether a request may depend on state of the session, or add to it.
// Subscriptions and the log level are renewed with the session.
func needsState(method string) bool {
	switch method {
	case "", revision.MethodInitialize, revision.MethodListen, revision.MethodSubscribe, revision.MethodUnsubscribe, revision.MethodSetLevel:
		return false
	}
	return !revision.Reads(method) && !strings.HasPrefix(method, "notifications/")
}

// tell returns the error for a request that fails because of lost state. Later requests succeed.
func (c *Client) tell(ctx context.Context, gone *RenewedError) error {
	c.mu.Lock()
	if gone.told == nil {
		gone.told = make(chan struct{})
		time.AfterFunc(tellTime, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.gone == gone {
				c.gone = nil
			}
			close(gone.told)
		})
	}
	told := gone.told
	c.mu.Unlock()
	select {
	case <-told:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return gone
}

// renewable reports whether a request of ctx, refused with err, may be sent again in a new
// session.
func (c *Client) renewable(ctx context.Context, err error) (lost *SessionLostError, ok bool) {
	// Not errors.As: inside a LostError it means that a stream cannot be resumed, and the call
	// may have run.
	lost, ok = err.(*SessionLostError)
	return lost, ok && c.opts.Renew != nil && ctx.Value(renewingKey{}) == nil
}

// place returns the negotiated revision and the session for a message. The argument method is the
// method of a user's message, empty for any other. A user's message waits while a session is being
// opened, and fails with a [*RenewedError] if the state it needs is lost.
func (c *Client) place(ctx context.Context, method string) (*revision.Table, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for method != "" && c.renewal != nil && ctx.Value(renewingKey{}) == nil {
		r := c.renewal
		c.mu.Unlock()
		err := r.wait(ctx)
		c.mu.Lock()
		if err != nil {
			return nil, "", err
		}
	}
	if c.gone != nil && needsState(method) {
		return nil, "", c.gone
	}
	return c.table, c.session, nil
}

func (r *renewal) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renew opens another session, unless that is done already. It returns when the session can be
// used.
func (c *Client) renew(ctx context.Context, lost *SessionLostError) error {
	c.mu.Lock()
	r := c.renewal
	switch {
	case r != nil: // it is being opened
	case c.session != lost.session: // it has been opened
		c.mu.Unlock()
		return nil
	case c.over:
		c.mu.Unlock()
		return lost
	case !c.useful && time.Since(c.opened) < usefulTime:
		c.mu.Unlock()
		c.cancel(lost)
		return lost
	default:
		r = &renewal{done: make(chan struct{})}
		c.renewal, c.useful, c.listening = r, false, false
		if c.acted {
			c.gone, c.acted = &RenewedError{Err: lost.Err}, false
		}
		c.wg.Go(func() { c.runRenewal(r, lost) })
	}
	c.mu.Unlock()
	return r.wait(ctx)
}

func (c *Client) runRenewal(r *renewal, lost *SessionLostError) {
	ctx, cancel := context.WithTimeout(context.WithValue(c.ctx, renewingKey{}, true), renewTime)
	defer cancel()
	err := c.opts.Renew(ctx)
	if err != nil {
		r.err = &SessionLostError{Err: fmt.Errorf("%w; opening another: %w", lost.Err, err), session: lost.session}
		c.cancel(r.err)
	}
	c.mu.Lock()
	c.renewal = nil
	c.mu.Unlock()
	close(r.done)
}

// used records that the session has answered a call, and whether it may have state.
func (c *Client) used(ctx context.Context, method string, err error) {
	if c.opts.Renew == nil || ctx.Value(renewingKey{}) != nil {
		return
	}
	acts := needsState(method) && !lostWith(err)
	if !acts && !answered(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.useful = c.useful || answered(err)
	c.acted = c.acted || acts
}

// lostWith reports whether a call failed because the server has ended the session.
func lostWith(err error) bool {
	if err == nil {
		return false // before there is a pointer that escapes
	}
	var lost *SessionLostError
	return errors.As(err, &lost)
}

// answered reports whether a call that ended with err was answered.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}

// Call sends a request and waits for the answer.
//
// Besides the errors of engine.Wire it returns a [*LostError] if the connection broke, a
// [*RenewedError] if the server ended the session, and a [*SessionLostError] if another could not
// be opened. When ctx ends, a modern call is cancelled by closing its response, a legacy one by
// notifications/cancelled, sent in the background.
func (c *Client) Call(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	raw, err := c.call(ctx, out)
	if lost, ok := c.renewable(ctx, err); ok {
		if err := c.renew(ctx, lost); err != nil {
			return nil, err
		}
		raw, err = c.call(ctx, out)
	}
	if gone, ok := err.(*RenewedError); ok {
		return nil, c.tell(ctx, gone)
	}
	c.used(ctx, out.Method, err)
	return raw, err
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	err := c.notify(ctx, method, params)
	if lost, ok := c.renewable(ctx, err); ok {
		if err := c.renew(ctx, lost); err != nil {
			return err
		}
		err = c.notify(ctx, method, params)
	}
	return err
}

// sessionID returns the id of the current session, empty for none.
func (c *Client) sessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// lost checks whether an error means that the session has ended: a 404 to a request with a
// session id that is not about the method (SHTTP-25-038, -039). Without Renew the client is then
// over.
func (c *Client) lost(session string, err error) error {
	var he *engine.HTTPError
	if session == "" || !errors.As(err, &he) || he.Status != http.StatusNotFound {
		return err
	}
	if he.RPC != nil && he.RPC.Code == jsonrpc.CodeMethodNotFound {
		return err
	}
	gone := &SessionLostError{Err: err, session: session}
	if c.opts.Renew == nil {
		c.cancel(gone)
	}
	return gone
}
