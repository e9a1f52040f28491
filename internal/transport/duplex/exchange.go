package duplex

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// exchange is one request in flight, or the sender of messages outside of requests.
type exchange struct {
	ctx    engine.Context
	p      *peer
	msg    jsonrpc.Message
	turn   *turn // of the goroutine that reads and serves the request; nil: that goroutine does not read
	listen bool

	mu   sync.Mutex  // held while sending, so that the answer comes last
	done atomic.Bool // no more messages
}

// finish ends the exchange and reports whether it was open.
func (x *exchange) finish() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.done.Swap(true)
}

// send sends a frame that belongs to the request, unless the request is over.
func (x *exchange) send(frame []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done.Load() {
		return errCancelled
	}
	return x.p.write(frame)
}

// Notify implements engine.Exchange.
func (x *exchange) Notify(method string, params json.RawMessage) error {
	return x.send(jsonrpc.AppendNotification(nil, method, params))
}

// Request implements engine.Exchange.
func (x *exchange) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if x.turn != nil {
		x.turn.pass() // so that another goroutine reads the answer
	}
	ch := make(chan jsonrpc.Message, 1)
	p := x.p
	p.mu.Lock()
	if len(p.pending) >= p.s.Concurrent {
		p.mu.Unlock()
		return nil, fmt.Errorf("%d questions to the client have no answer yet, which is the limit of a connection (Limits.Concurrent); wait for some", p.s.Concurrent)
	}
	p.nextID++
	id := jsonrpc.IntID(p.nextID)
	p.pending[id] = ch
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		delete(p.pending, id)
		p.mu.Unlock()
	}
	if err := x.send(jsonrpc.AppendRequest(nil, id, method, params)); err != nil {
		forget()
		return nil, err
	}
	select {
	case m := <-ch:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		forget()
		if p.ctx.Err() == nil {
			p.write(jsonrpc.AppendNotification(nil, revision.NoteCancelled, requestID(id)))
		}
		return nil, context.Cause(ctx)
	}
}

// requestID makes the params of notifications/cancelled.
func requestID(id jsonrpc.ID) json.RawMessage {
	return append(id.AppendJSON([]byte(`{"requestId":`)), '}')
}
