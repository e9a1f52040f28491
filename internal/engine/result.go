package engine

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Result is the result of a handler, in the inner form.
type Result struct {
	JSON json.RawMessage  // an object; unused if Memo is set
	Uses revision.Feature // features of the result that older revisions may lack
	Meta bool             // the object may have a _meta (implied by Uses == Unknown)

	// Typed reports whether JSON is the encoding of a typed result that is not cacheable.
	Typed bool

	// Task reports whether the result is the handle of a task instead of the method's result.
	Task bool

	// Drop is called if the answer does not reach the caller, who then cannot know the task. It
	// must not wait. It may be nil.
	Drop func()

	// Pooled is the pooled buffer of JSON, if the engine may return it once the answer is sent
	// (package buffer).
	Pooled *[]byte

	// Memo holds a result that is answered many times, such as a list. The engine
	// keeps its final form per revision there.
	Memo *Memo
}

// plain reports whether a result is one of ours, in one line and without white space around it,
// that only needs the envelope.
func (r *Result) plain() bool {
	return r.Typed && r.Memo == nil && !r.Task && !r.Meta && r.Uses != revision.Unknown
}

// Memo is a result with its final forms. It belongs to one owner, so that a changed copy of the
// owner does not use it.
type Memo struct {
	owner any
	inner json.RawMessage
	final [revision.Count]atomic.Pointer[final]
	mu    sync.Mutex // held while a final form is made
}

// final is the final form of a result on one hop, which includes the identity of that hop.
type final struct {
	of   *Engine
	json json.RawMessage
}

// NewMemo makes a memo of owner, a pointer, whose inner form is known and in one line.
func NewMemo(owner any, inner json.RawMessage) *Memo { return &Memo{owner: owner, inner: inner} }

// Of returns the memo, or nil if it does not belong to owner.
func (m *Memo) Of(owner any) *Memo {
	if m == nil || m.owner != owner {
		return nil
	}
	return m
}

// Inner returns the result in the inner form.
func (m *Memo) Inner() json.RawMessage { return m.inner }

// finish gives a result the final form of the caller's revision: it converts members that the
// revision lacks, and adds those that it requires.
func (e *Engine) finish(t *revision.Table, method string, r Result) json.RawMessage {
	if r.Memo != nil {
		slot := &r.Memo.final[t.Index()]
		if f := slot.Load(); f != nil && f.of == e {
			return f.json
		}
		r.Memo.mu.Lock() // several callers may need a long one at once
		defer r.Memo.mu.Unlock()
		if f := slot.Load(); f != nil && f.of == e {
			return f.json
		}
		b := e.convert(t, method, r.Memo.inner, revision.Unknown, true)
		if bytes.ContainsAny(b, "\r\n") {
			b = jsonx.AppendLine(nil, b)
		}
		slot.Store(&final{e, b})
		return b
	}
	if r.Task {
		if t.Sessions {
			return append(append([]byte(`{"task":`), revision.CoreTask(r.JSON)...), '}')
		}
		return e.envelope("", "task", r.JSON, false, false)
	}
	return e.convert(t, method, r.JSON, r.Uses, r.Meta || r.Uses == revision.Unknown)
}

func (e *Engine) convert(t *revision.Table, method string, raw json.RawMessage, uses revision.Feature, meta bool) json.RawMessage {
	raw = t.Result(method, raw, uses)
	if t.Sessions {
		if uses == revision.Unknown {
			// Members that only the modern envelope has (T-20).
			raw = jsonx.Without(nil, raw, "resultType", "ttlMs", "cacheScope")
			raw = withoutServerInfo(raw)
		}
		return raw
	}
	return e.envelope(method, "complete", raw, uses == revision.Unknown, meta)
}

// A Hint is the cache lifetime and scope of a result (2026-07-28, server/utilities/caching). The
// zero value forbids caching.
type Hint struct {
	TTL    time.Duration
	Public bool
}

// none are the members of the zero Hint.
var none = Hint{}.append(nil)

// append appends the members of a hint, each after a comma. A negative TTL counts as zero
// (CACHE-26-009).
func (h Hint) append(dst []byte) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, max(h.TTL.Milliseconds(), 0), 10)
	if h.Public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}

// AppendTo returns an object with the members of the hint.
func (h Hint) AppendTo(obj json.RawMessage) json.RawMessage {
	out := append([]byte(nil), obj[:len(obj)-1]...)
	if members := h.append(nil); len(out) > 1 {
		out = append(out, members...)
	} else {
		out = append(out, members[1:]...)
	}
	return append(out, '}')
}

// soundHints leaves both hints in a handler's result, or none: its own if they are valid, else
// safe ones.
func soundHints(raw json.RawMessage) json.RawMessage {
	ttl, timed := jsonx.Lookup(raw, "ttlMs")
	scope, scoped := jsonx.Lookup(raw, "cacheScope")
	if !timed && !scoped {
		return raw
	}
	ms, err := strconv.ParseFloat(string(ttl), 64)
	sound := err == nil && ms >= 0 && ms == math.Trunc(ms)
	public := string(scope) == `"public"`
	if sound && (public || string(scope) == `"private"`) {
		return raw
	}
	if !sound {
		raw = jsonx.With(nil, raw, "ttlMs", []byte("0"))
	}
	if !public {
		raw = jsonx.With(nil, raw, "cacheScope", []byte(`"private"`))
	}
	return raw
}

// envelope adds what every result of 2026-07-28 has: resultType, the server's identity, and on
// cacheable results the cache hints.
func (e *Engine) envelope(method, kind string, raw json.RawMessage, foreign, meta bool) json.RawMessage {
	out := make([]byte, 0, len(raw)+len(e.tail)+64)
	out = append(append(append(out, `{"resultType":"`...), kind...), '"')
	if foreign {
		typed, tagged := false, false
		for name := range jsonx.Members(raw) {
			switch string(name) {
			case "resultType":
				typed = true
			case "_meta":
				tagged = true
			}
		}
		if meta = meta && tagged; typed {
			raw = jsonx.Without(nil, raw, "resultType")
		}
	}
	// A foreign object may have white space around it and in it.
	raw = bytes.TrimSpace(raw)
	if foreign && revision.Cacheable(method) {
		raw = soundHints(raw)
	}
	if rest := bytes.TrimLeft(raw[1:], " \t\r\n"); rest[0] != '}' {
		out = append(out, ',')
	}
	out = append(out, raw[1:len(raw)-1]...)
	if revision.Cacheable(method) {
		hint := e.lists
		if method == revision.MethodRead {
			hint = none
		}
		if _, ok := jsonx.Lookup(raw, "ttlMs"); foreign && ok {
			hint = nil
		}
		out = append(out, hint...)
	}
	if !meta {
		out = append(out, e.tail...)
		return append(out, '}')
	}
	out = append(out, '}')
	m, ok := jsonx.Lookup(out, "_meta")
	if !ok {
		m = json.RawMessage(`{}`)
	}
	if _, ok := jsonx.Lookup(m, MetaServerInfo); ok {
		return out
	}
	return jsonx.With(nil, out, "_meta", jsonx.With(nil, m, MetaServerInfo, e.Info))
}

// withoutServerInfo removes the identity that results of 2026-07-28 carry.
func withoutServerInfo(raw json.RawMessage) json.RawMessage {
	m, ok := jsonx.Lookup(raw, "_meta")
	if !ok {
		return raw
	}
	if _, ok := jsonx.Lookup(m, MetaServerInfo); !ok {
		return raw
	}
	m = jsonx.Without(nil, m, MetaServerInfo)
	if len(m) == 2 {
		return jsonx.Without(nil, raw, "_meta")
	}
	return jsonx.With(nil, raw, "_meta", m)
}
