package streamable

import (
	"context"
	"net/http"
	"time"
)

// detachable tells whether the response can be ended while the handler of net/http that
// has it goes on. The answer is kept for letGo.
//
// A call is served on the goroutine of its handler, which is where net/http ends the
// response. A call that lets go of its connection long before it is done has to end it by
// itself, for which it takes the connection over; that works with HTTP/1.1 alone.
func (p *response) detachable(r *http.Request) bool {
	if p.server.Recorder != nil {
		return false // which records until the handler returns
	}
	p.chunked = r.ProtoAtLeast(1, 1)
	for w := p.w; ; {
		switch v := w.(type) {
		case http.Hijacker:
			p.detaches = true
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// watch lets go of the response as soon as its client goes away. The lock of the stream is
// held.
func (p *response) watch(st *stream) {
	if p.detaches {
		p.unwatch = context.AfterFunc(p.client, func() { st.leave(p) })
	}
}

// letGo ends the response for a stream that has left it; over says that its handler is
// about to return too. The lock of the stream is held.
func (p *response) letGo(over bool) {
	if p.unwatch != nil {
		p.unwatch()
	}
	switch {
	case p.left != nil:
		p.left()
		p.left = nil
	case p.detaches && !over:
		p.hangUp()
	}
}

// hangUp takes the connection of an event stream over from net/http, ends the stream in
// good order, and closes it.
func (p *response) hangUp() {
	conn, rw, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		return // it has ended already
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if p.chunked {
		_, _ = rw.WriteString("0\r\n\r\n")
	}
	_ = rw.Flush() // a client that is gone needs no end
}
