package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

// detachable reports whether the response can be ended while its net/http handler goes on. It
// records the result for letGo.
//
// A call is served on the goroutine of its net/http handler, and net/http ends the response when
// that returns. A call that is detached earlier has to end the response itself, for
// which it hijacks the connection; that works only with HTTP/1.1.
func (p *response) detachable(r *http.Request) bool {
	if p.server.Recorder != nil {
		return false // a recording lasts until the handler returns
	}
	p.chunked = r.ProtoAtLeast(1, 1)
	_, p.detaches = web.As[http.Hijacker](p.w)
	return p.detaches
}

// watch releases the response as soon as its client disconnects. The lock of the stream is held.
func (p *response) watch(st *stream) {
	if p.detaches {
		p.unwatch = context.AfterFunc(p.client, func() { st.leave(p) })
	}
}

// letGo ends the response of a stream that has left it; over means that its handler is about to
// return too. The lock of the stream is held.
func (p *response) letGo(over bool) {
	if p.unwatch != nil {
		p.unwatch()
	}
	switch {
	case p.left != nil:
		p.left()
		p.left = nil
	case p.detaches && !over:
		p.disconnect()
	}
}

// disconnect hijacks the connection of an event stream, ends the stream in order, and closes the
// connection.
func (p *response) disconnect() {
	conn, rw, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		return // it has ended already
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if p.chunked {
		_, _ = rw.WriteString("0\r\n\r\n")
	}
	_ = rw.Flush() // the client may have disconnected
}
