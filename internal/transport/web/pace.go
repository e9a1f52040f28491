package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// The minimum rate of a body.
const (
	bodyGrace = 20 * time.Second // for any body
	bodyRate  = 1 << 10          // bytes for each second beyond that
)

// ErrSlow reports a request body that came too slowly.
var ErrSlow = errors.New("body comes too slowly")

// TooSlow is the text of the answer to a slow body.
const TooSlow = "the body came too slowly: it may take 20 seconds, and one more for each KiB"

// A Pacer bounds the time for the bodies of the requests to one server. A deadline for each would
// cost as much as everything else about a small request, so the Pacer checks the bodies being
// read once a second, and sets deadlines for those that have been read for a second. The zero
// value is ready for use. A Pacer is safe for concurrent use.
//
// It owns a timer while there are requests, and for up to a second afterwards.
type Pacer struct {
	mu     sync.Mutex
	newest *Pace       // links to the others; guarded by mu
	looks  uint        // checks so far; guarded by mu
	timer  *time.Timer // nil before the first request; guarded by mu
	ticks  bool        // the timer runs; guarded by mu
	used   bool        // used since the last check; guarded by mu
}

// pacerLook is the time between two checks of a [Pacer].
const pacerLook = time.Second

// Pace is the time left for one body. A nil Pace bounds nothing.
type Pace struct {
	of           *Pacer
	older, newer *Pace // guarded by of.mu
	since        uint  // value of looks when it began; guarded by of.mu
	watched      bool  // it is in the list of the Pacer; changed only by its owner

	mu    sync.Mutex
	w     http.ResponseWriter // guarded by mu; nil: it is over
	on    deadliner           // guarded by mu; nil: there is no deadline
	begin time.Time           // of a body with a deadline; guarded by mu
	size  int                 // bytes that have come; guarded by mu
}

var paces = sync.Pool{New: func() any { return new(Pace) }}

// Begin bounds the reading of the body of a request by the handler, and by net/http, which reads
// the rest before it sends the answer. Without a body it returns nil. End must follow.
func (p *Pacer) Begin(w http.ResponseWriter, r *http.Request) *Pace {
	if r.ContentLength == 0 {
		return nil
	}
	b := paces.Get().(*Pace)
	b.mu.Lock()
	b.of, b.w, b.size = p, w, 0
	b.mu.Unlock()
	b.watched = true
	p.mu.Lock()
	defer p.mu.Unlock()
	b.since = p.looks
	if b.older = p.newest; b.older != nil {
		b.older.newer = b
	}
	p.newest, p.used = b, true
	if !p.ticks {
		p.ticks = true
		if p.timer == nil {
			p.timer = time.AfterFunc(pacerLook, p.look)
		} else {
			p.timer.Reset(pacerLook)
		}
	}
	return b
}

// look bounds the bodies that have been read since before the previous check. It runs on the
// timer.
func (p *Pacer) look() {
	var slow []*Pace
	p.mu.Lock()
	p.looks++
	for b := p.newest; b != nil; b = b.older {
		if p.looks-b.since == 2 {
			slow = append(slow, b)
		}
	}
	if p.ticks = p.used || p.newest != nil; p.ticks {
		p.timer.Reset(pacerLook)
	}
	p.used = false
	p.mu.Unlock()
	for _, b := range slow {
		// If b has been reused for another body by now, that body is bounded early.
		b.bound(time.Now().Add(-pacerLook))
	}
}

// bound sets the deadline of a body that began at begin, unless it is over.
func (b *Pace) bound(begin time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w == nil || b.on != nil {
		return
	}
	if on, ok := As[deadliner](b.w); ok {
		b.on = on
		b.begin = begin
		b.extend()
	}
}

// extend sets the deadline according to the bytes received; mu is held.
func (b *Pace) extend() {
	_ = b.on.SetReadDeadline(b.begin.Add(bodyGrace + time.Duration(b.size)*time.Second/bodyRate))
}

// got extends the time according to n, the bytes received so far.
func (b *Pace) got(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size = n; b.on != nil {
		b.extend()
	}
}

// whole ends the bound: from now on net/http reads only to detect a disconnect.
func (b *Pace) whole() {
	if b == nil {
		return
	}
	b.unwatch()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on != nil {
		_ = b.on.SetReadDeadline(time.Time{})
	}
	b.w, b.on = nil, nil
}

// unwatch removes the body from the list of its Pacer.
func (b *Pace) unwatch() {
	p := b.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.older != nil {
		b.older.newer = b.newer
	}
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		p.newest = b.older
	}
	b.older, b.newer, b.watched = nil, nil, false
}

// Body returns a reader of the body, for a handler that passes it on. Its errors are those of [ReadBody].
func (b *Pace) Body(body io.Reader) io.Reader { return &pacedBody{Reader: body, pace: b} }

// pacedBody tells a pace what has come.
type pacedBody struct {
	io.Reader
	pace *Pace
	size int
}

func (r *pacedBody) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.size += n
	switch err {
	case nil:
		r.pace.got(r.size)
	case io.EOF:
		r.pace.whole()
	default:
		err = slow(err)
	}
	return n, err
}

// End is called when the handler returns. A body that was not read to its end has a deadline from
// now on.
func (b *Pace) End() {
	if b == nil {
		return
	}
	if b.watched {
		b.unwatch()
		b.bound(time.Now())
		b.mu.Lock()
		b.w, b.on = nil, nil
		b.mu.Unlock()
	}
	paces.Put(b)
}

// deadliner is a connection, as its http.ResponseWriter shows it.
type deadliner interface{ SetReadDeadline(time.Time) error }

// BoundBody bounds a body that only net/http reads, if the request has one.
func BoundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	if on, ok := As[deadliner](w); ok {
		_ = on.SetReadDeadline(time.Now().Add(bodyGrace))
	}
}

// slow replaces the error of a read past its deadline with [ErrSlow].
func slow(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSlow
	}
	return err
}
