package gateway

import (
	"errors"
	"testing"
)

// A call that finds its server stopped, after the calls in progress have finished, is refused: it does not use a
// connection that is about to be closed.
func TestNoCallAfterDrain(t *testing.T) {
	p := newPool(t.Context(), new(Gateway), Source{Name: "s", Share: PerPrincipal})
	tried := make(chan struct{})
	close(tried)
	p.mu.Lock()
	p.state = Stopped
	p.clients[client{}] = &conn{own: true, tried: tried, up: struct{ Upstream }{}, actors: map[client]struct{}{}}
	p.mu.Unlock()
	p.drain()
	var away *UnavailableError
	if c, err := p.take(t.Context(), "tools/call"); !errors.As(err, &away) || away.State != Stopped {
		t.Errorf("take = %v, %v, want an error that says that the server is stopped", c, err)
	}
}
