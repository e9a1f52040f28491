package inspector

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/trace"
)

// This file leaves out calls while more frames come than a person has time for:
//
//   - A call is left out whole, with its frames on both hops, and these are counted. No frame is left out that belongs to no call.
//   - A call that may be left out waits, with the frames that it has so far, until it has succeeded. It is taken with all of its
//     frames if it fails, asks something, takes long, or if anything else happens that a plain call does not have.
//   - Calls of a kind that is rare, a tool for a client, are taken. So are all calls while somebody looks for something.

const (
	usualRate  = 1_000  // frames of a second for calls of any kind
	usualBurst = 8_000  // the same after a quiet time
	fullRate   = 12_000 // the same while somebody looks for something; and frames of a second for calls that are not left out

	rareRate  = 250              // calls of a second, for kinds that are rare
	kindRate  = 10               // of these for a kind, if there are few
	maxKinds  = 1024             // that are told apart
	kindTime  = 10 * time.Second // without a call, after which a kind is forgotten
	callParts = 4                // frames of a plain call

	slowTime  = time.Second // a call that takes longer does not wait for its end
	maxHeld   = 8 << 10     // calls that wait
	heldBytes = 16 << 20
	maxCalls  = 100_000 // that are known

	maxSpare, spareBytes = 64, 16 << 10
)

// share takes a part of the frames of a Tee. It looks at each before it is copied, so that a page that somebody has open does
// not slow down a busy gateway.
type share struct {
	wide  *atomic.Int32 // readers that look for something
	left  *atomic.Int64 // frames that were left out
	seed  maphash.Seed
	timer *time.Timer // for calls that take long

	mu      sync.Mutex
	take    func(trace.Frame)         // guarded by mu
	any     budget                    // of frames; guarded by mu
	rare    budget                    // of calls; guarded by mu
	must    budget                    // of frames; guarded by mu
	kinds   map[uint64]*budget        // of calls, by kind; guarded by mu
	swept   time.Time                 // when kinds without calls were forgotten; guarded by mu
	calls   map[trace.Cause]*heldCall // that may be left out, or are, by their requests; guarded by mu
	streams map[int]*heldCall         // the same by their HTTP exchanges; guarded by mu
	waiting heldCall                  // the ends of the list of calls that wait; guarded by mu
	held    int                       // calls in the list; guarded by mu
	bytes   int                       // that they keep; guarded by mu
	spare   []*heldCall               // for their memory; guarded by mu
	armed   bool                      // the timer runs; guarded by mu
}

func newShare(wide *atomic.Int32, left *atomic.Int64) *share {
	s := &share{wide: wide, left: left, seed: maphash.MakeSeed(), kinds: map[uint64]*budget{}, calls: map[trace.Cause]*heldCall{}, streams: map[int]*heldCall{}}
	s.waiting.next, s.waiting.before = &s.waiting, &s.waiting
	s.timer = time.AfterFunc(slowTime, s.slow)
	s.timer.Stop()
	return s
}

// end leaves out the calls that wait. It is called after the last frame.
func (s *share) end() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting.next != &s.waiting {
		s.leave(s.waiting.next)
	}
}

// budget is what can be spent, and grows with time. The zero value is a full one.
type budget struct {
	left float64
	at   time.Time
}

// has returns what there is of a budget that grows by rate in a second, up to most.
func (b *budget) has(now time.Time, rate, most float64) float64 {
	if b.at.IsZero() {
		b.left, b.at = most, now
	} else if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(b.left+rate*passed.Seconds(), most), now
	}
	return b.left
}

// heldCall is a call that waits, or that is left out.
type heldCall struct {
	request     trace.Cause
	exchange    int // zero: not HTTP
	began       time.Time
	front, back int  // HTTP exchanges that are open
	replied     bool // the server has answered
	answered    bool // so has the gateway
	out         bool // it is left out: it does not wait any more

	frames []int       // the ends of the frames that it has
	packed packedFrame // all of them

	next, before *heldCall // of those that wait
}

// over reports whether no further frames of a call are to come.
func (c *heldCall) over() bool { return c.answered && c.front <= 0 && c.back <= 0 }

// choose takes a frame, or lets it wait, or leaves it out.
func (s *share) choose(frame trace.Frame, take func(trace.Frame)) {
	f := &frame
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = take
	if c := s.callOf(f); c != nil {
		s.goOn(c, f)
		return
	}
	rate, most := float64(usualRate), float64(usualBurst)
	if s.wide.Load() > 0 {
		rate, most = fullRate, fullRate
	}
	if s.any.has(f.Time, rate, most) < callParts && f.Dir == trace.In && f.For == (trace.Cause{}) && f.Kind == trace.KindMessage && f.Server() == "" && s.waits(f) {
		return
	}
	s.any.left = max(s.any.left-1, -rate)
	s.take(*f)
}

// callOf returns the call that a frame belongs to, if it waits or is left out.
func (s *share) callOf(f *trace.Frame) *heldCall {
	switch {
	case len(s.calls) == 0:
		return nil
	case f.For != (trace.Cause{}):
		return s.calls[f.For]
	case f.Server() != "":
		return nil
	}
	if f.HTTP != nil && f.HTTP.Exchange > 0 {
		if c := s.streams[f.HTTP.Exchange]; c != nil {
			return c
		}
		if f.HTTP.Status != 0 || f.Dir == trace.In { // only on a stream of before 2025-03-26 the answer comes in another exchange
			return nil
		}
	}
	if f.Dir == trace.Out && f.Kind == trace.KindMessage {
		if m := headOf(f.Msg); m.method == "" && m.id != "" {
			return s.calls[trace.Cause{Conn: f.Conn, ID: m.id}]
		}
	}
	return nil
}

// waits begins a call that waits, if a frame from a client is the request of one that may be left out.
func (s *share) waits(f *trace.Frame) bool {
	m := headOf(f.Msg)
	switch {
	case m.method == revision.NoteCancelled:
		id, _ := jsonx.LookupPath(f.Msg, "params", "requestId")
		if c := s.calls[trace.Cause{Conn: f.Conn, ID: string(id)}]; c != nil && !c.out {
			s.release(c, f.Time)
		}
		return false
	case m.method == "", m.id == "", m.method == revision.MethodInitialize, m.method == revision.MethodListen:
		return false
	}
	if k := s.kindOf(f, m); k.has(f.Time, min(kindRate, rareRate/2/float64(len(s.kinds))), kindRate) >= 1 && s.rare.has(f.Time, rareRate, rareRate) >= 1 {
		k.left--
		s.rare.left--
		return false
	}
	request := trace.Cause{Conn: f.Conn, ID: m.id}
	if before := s.calls[request]; before != nil { // it had no answer
		if !before.out {
			s.release(before, f.Time)
		}
		if before.out {
			s.forget(before)
		}
	}
	if len(s.calls) > maxCalls {
		for _, c := range s.calls {
			if c.out {
				s.forget(c)
			}
		}
	}
	var c *heldCall
	if n := len(s.spare); n > 0 {
		c, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		c = new(heldCall)
	}
	c.began, c.request = f.Time, request
	s.calls[request] = c
	if f.HTTP != nil && f.HTTP.Exchange > 0 {
		c.front, c.exchange = 1, f.HTTP.Exchange
		s.streams[c.exchange] = c
	}
	if !s.armed {
		s.armed = true
		s.timer.Reset(slowTime)
	}
	last := s.waiting.before
	c.before, c.next, last.next, s.waiting.before = last, &s.waiting, c, c
	s.held++
	s.keep(c, f)
	return true
}

var clientInfo = []byte(`"io.modelcontextprotocol/clientInfo":`)

// kindOf returns the budget of the kind of a call: its method and tool, and the client.
func (s *share) kindOf(f *trace.Frame, m head) *budget {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(m.method)
	var named []string // the gateway refuses a request whose header is wrong
	if f.HTTP != nil {
		named = f.HTTP.Headers["Mcp-Name"]
	}
	if len(named) == 1 {
		h.WriteString(named[0])
	} else if m.method == revision.MethodCall || m.method == revision.MethodPrompt {
		name, _ := jsonx.LookupPath(f.Msg, "params", "name")
		h.Write(name)
	}
	// A client that writes its name in another way, or twice, is another kind.
	if _, client, ok := bytes.Cut(f.Msg, clientInfo); ok {
		client, _, _ = bytes.Cut(client, []byte("}"))
		h.Write(client)
	} else if f.HTTP == nil || !strings.HasPrefix(f.Conn, "http-") { // whose number is that of the exchange
		h.WriteString(f.Conn)
	}
	k := h.Sum64()
	b := s.kinds[k]
	if b != nil {
		return b
	}
	if f.Time.Sub(s.swept) > kindTime {
		s.swept = f.Time
		maps.DeleteFunc(s.kinds, func(_ uint64, b *budget) bool { return f.Time.Sub(b.at) > kindTime })
	}
	if len(s.kinds) >= maxKinds {
		k = 0 // all others
		if b := s.kinds[k]; b != nil {
			return b
		}
	}
	b = new(budget)
	s.kinds[k] = b
	return b
}

// goOn goes on with a call that waits or is left out.
func (s *share) goOn(c *heldCall, f *trace.Frame) {
	plain := c.follow(f)
	switch {
	case !plain && c.out:
		s.pass(f)
	case !plain:
		s.release(c, f.Time)
		s.pass(f)
	case c.answered && !c.out:
		s.leave(c)
		fallthrough
	case c.out:
		s.left.Add(1)
	default:
		s.keep(c, f)
	}
	if c.out && c.over() {
		s.forget(c)
	}
}

// pass takes a frame of a call that cannot be left out, unless these are too many.
func (s *share) pass(f *trace.Frame) {
	if s.must.has(f.Time, fullRate, fullRate) < 1 {
		s.left.Add(1)
		return
	}
	s.must.left--
	s.take(*f)
}

// follow takes a frame into account, and reports whether it is one of a plain call that succeeds.
func (c *heldCall) follow(f *trace.Frame) (plain bool) {
	back := f.For != (trace.Cause{})
	open, stream := &c.front, false
	if back {
		open = &c.back
	}
	if h := f.HTTP; h != nil {
		stream = h.Status > 0 && len(f.Msg) == 0 && isStream(h)
		switch {
		case h.Method != "":
			*open++
		case f.Kind == trace.KindClose, h.Status > 0 && !stream:
			*open--
		}
		if h.Status >= 300 {
			return false
		}
	}
	switch {
	case f.Kind == trace.KindClose:
		return c.replied && back || c.answered
	case f.Kind == trace.KindEvent, f.Kind == trace.KindComment:
		return true
	case f.Kind != trace.KindMessage:
		return false
	case len(f.Raw) > 0:
		return false
	case len(f.Msg) == 0:
		return stream || f.HTTP != nil && f.HTTP.Status == 202
	case jsonx.KindOf(f.Msg) != '{':
		return false
	}
	switch m := headOf(f.Msg); {
	case m.method != "" && m.id != "":
		return back && f.Dir == trace.Out
	case m.method != "":
		return m.method == revision.NoteProgress || m.method == revision.NoteMessage
	case back == (f.Dir == trace.Out) || m.id == "" || m.status() != statusOK || m.more:
		return false
	case back:
		c.replied = true
	default:
		c.answered = true
	}
	return true
}

// isStream reports whether an answer is a stream of events.
func isStream(h *trace.HTTP) bool {
	for _, kind := range h.Headers["Content-Type"] {
		if strings.HasPrefix(kind, "text/event-stream") {
			return true
		}
	}
	return false
}

// keep keeps a frame with its call. If there is no room, it ends the wait.
func (s *share) keep(c *heldCall, f *trace.Frame) {
	if s.bytes+len(f.Msg) > heldBytes || s.held > maxHeld {
		s.release(c, f.Time)
		if c.out {
			s.left.Add(1)
		} else {
			s.pass(f)
		}
		return
	}
	before := len(c.packed)
	c.packed = appendFrame(c.packed, f)
	c.frames = append(c.frames, len(c.packed))
	s.bytes += len(c.packed) - before
}

// release takes a call that waits, with the frames that it has so far, or leaves it out if too many of these come.
func (s *share) release(c *heldCall, now time.Time) {
	n := float64(len(c.frames))
	if s.must.has(now, fullRate, fullRate) < n {
		s.leave(c)
		return
	}
	s.must.left -= n
	begin := 0
	for _, end := range c.frames {
		s.take(*c.packed[begin:end].frame())
		begin = end
	}
	s.unlist(c)
	s.forget(c)
}

// leave leaves out a call that waits.
func (s *share) leave(c *heldCall) {
	s.left.Add(int64(len(c.frames)))
	c.out = true
	s.unlist(c)
}

// unlist ends the wait of a call.
func (s *share) unlist(c *heldCall) {
	c.before.next, c.next.before = c.next, c.before
	c.before, c.next = nil, nil
	s.held--
	s.bytes -= len(c.packed)
	c.frames, c.packed = c.frames[:0], c.packed[:0]
}

// forget forgets a call that does not wait.
func (s *share) forget(c *heldCall) {
	delete(s.calls, c.request)
	if c.exchange > 0 {
		delete(s.streams, c.exchange)
	}
	if len(s.spare) < maxSpare && cap(c.packed) <= spareBytes {
		*c = heldCall{frames: c.frames, packed: c.packed}
		s.spare = append(s.spare, c)
	}
}

// slow ends the wait of calls that take long.
func (s *share) slow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for c := s.waiting.next; c != &s.waiting; c = s.waiting.next {
		if rest := c.began.Add(slowTime).Sub(now); rest > 0 {
			s.timer.Reset(rest)
			return
		}
		s.release(c, now)
	}
	s.armed = false
}

// search lets all calls be taken, as somebody looks for something, until the function it returns is called.
func (f *Frames) search() (done func()) {
	f.wide.Add(1)
	return func() { f.wide.Add(-1) }
}

// note says how many frames were left out; empty: none were.
func (f *Frames) note() string {
	n := f.left.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d frames of calls that succeeded were left out, while more than %d came in a second", n, usualRate)
}
