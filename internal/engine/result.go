package engine

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Result is what a handler answers, in the inner form.
type Result struct {
	JSON json.RawMessage  // an object; unused if Memo is set
	Uses revision.Feature // what the result uses that older revisions may lack
	Meta bool             // the object may have a _meta (implied by Uses == Unknown)

	// Task says that the result is the handle of a task and not what the method
	// promises.
	Task bool

	// Memo holds a result that is answered many times, such as a list. The engine
	// keeps its final form per revision there.
	Memo *Memo
}

// Memo is a result with its final forms. It belongs to one owner, so that a copy of
// the owner that was changed does not use it.
type Memo struct {
	owner any
	inner json.RawMessage
	final [revision.Count]atomic.Pointer[[]byte]
}

// NewMemo makes a memo of owner, a pointer, whose inner form is known.
func NewMemo(owner any, inner json.RawMessage) *Memo { return &Memo{owner: owner, inner: inner} }

// Of returns the memo if it belongs to owner, else nil.
func (m *Memo) Of(owner any) *Memo {
	if m == nil || m.owner != owner {
		return nil
	}
	return m
}

// Inner returns the result in the inner form.
func (m *Memo) Inner() json.RawMessage { return m.inner }

// finish gives a result the final form of the caller's revision: what it lacks is
// converted, what it requires is added.
func (e *Engine) finish(t *revision.Table, method string, r Result) json.RawMessage {
	if r.Memo != nil {
		slot := &r.Memo.final[t.Index()]
		if b := slot.Load(); b != nil {
			return *b
		}
		b := []byte(e.convert(t, method, r.Memo.inner, revision.Unknown, true))
		slot.Store(&b)
		return b
	}
	if r.Task {
		if !t.Modern {
			return append(append([]byte(`{"task":`), revision.CoreTask(r.JSON)...), '}')
		}
		return e.envelope("", "task", r.JSON, false, false)
	}
	return e.convert(t, method, r.JSON, r.Uses, r.Meta || r.Uses == revision.Unknown)
}

func (e *Engine) convert(t *revision.Table, method string, raw json.RawMessage, uses revision.Feature, meta bool) json.RawMessage {
	raw = t.Result(method, raw, uses)
	if !t.Modern {
		if uses == revision.Unknown {
			// What only the modern envelope has (T-20).
			raw = jsonx.Without(nil, raw, "resultType", "ttlMs", "cacheScope")
			raw = withoutServerInfo(raw)
		}
		return raw
	}
	return e.envelope(method, "complete", raw, uses == revision.Unknown, meta)
}

// envelope adds what every result of 2026-07-28 has: resultType, the server's
// identity, and on cacheable results how long and for whom they are good.
func (e *Engine) envelope(method, kind string, raw json.RawMessage, foreign, meta bool) json.RawMessage {
	out := make([]byte, 0, len(raw)+len(e.tail)+64)
	out = append(append(append(out, `{"resultType":"`...), kind...), '"')
	if foreign {
		raw = jsonx.Without(nil, raw, "resultType")
	}
	// A foreign object may have white space around it and in it.
	raw = bytes.TrimSpace(raw)
	if rest := bytes.TrimLeft(raw[1:], " \t\r\n"); rest[0] != '}' {
		out = append(out, ',')
	}
	out = append(out, raw[1:len(raw)-1]...)
	if revision.V20260728.Cacheable(method) {
		if _, ok := jsonx.Lookup(raw, "ttlMs"); !foreign || !ok {
			out = append(out, `,"ttlMs":0`...)
		}
		if _, ok := jsonx.Lookup(raw, "cacheScope"); !foreign || !ok {
			out = append(out, `,"cacheScope":"private"`...)
		}
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
