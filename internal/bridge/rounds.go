package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// object refuses a result that is not an object; every result of the protocol is one.
func object(raw json.RawMessage, err error) (json.RawMessage, error) {
	if err == nil && jsonx.KindOf(raw) != '{' {
		return nil, engine.Unusable("the server's result is not an object")
	}
	return raw, err
}

// keptRound is the state of a forwarded call between two runs: the questions of the server's last
// round and the requestState to return.
type keptRound struct {
	Round     int             `json:"round"`
	State     json.RawMessage `json:"state,omitzero"`
	Questions []keptQuestion  `json:"questions"`
}

type keptQuestion struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
}

const memoRound = "forward:round:" // and a scope

// scope identifies a call to a server among all calls made for the call in front: a gateway may ask
// several servers, and a handler may forward more than once. The state of one call, and the answers
// to its questions, must not reach another. The scope is the same in each run.
func (x *Call) scope() string {
	h := sha256.New()
	server := x.r.ID
	if server == "" {
		server, _ = x.r.Owner.Server()
	}
	fmt.Fprintf(h, "%d %s %d %s ", len(server), server, len(x.method), x.method)
	h.Write(jsonx.Canonical(jsonx.Without(nil, x.params, "_meta")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// rounds makes a call of the modern era: while the server requires input, it answers the questions
// and sends the call again (2026-07-28, basic/patterns/mrtr).
func (x *Call) rounds(ctx context.Context) (json.RawMessage, error) {
	kept, err := x.recall()
	if err != nil {
		return nil, err
	}
	// CACHE-26-004: a retry with answers is neither taken from the cache nor kept.
	caching := x.r.Rev.Cacheable(x.method) && kept.Round == 0 && x.cache != cacheNone
	var t ticket
	if caching {
		t = x.r.cache.ticket(x.method, x.params, x.caps)
		if raw, ok := x.r.cache.get(t, x.cache); ok {
			x.hit = true
			return raw, nil
		}
	}
	for {
		params := x.params
		if kept.Round > 0 {
			x.begun.Store(true)
			if at := x.away(ctx, kept); at != "" {
				return nil, errorf(jsonrpc.CodeInvalidParams, "the node %s, whose server asked, has ended; start the call again", at)
			}
			responses, err := x.answers(ctx, kept)
			if err != nil {
				if x.memo != nil && kept.State != nil && errors.Is(err, engine.ErrSuspended) {
					x.memo.Carry()
				}
				return nil, err
			}
			if responses != nil {
				params = jsonx.With(nil, params, "inputResponses", responses)
			}
			if kept.State != nil {
				params = jsonx.With(nil, params, "requestState", kept.State)
			}
		}
		raw, err := x.send(ctx, params)
		if x.r.relearn(ctx, x.method, err) {
			raw, err = x.send(ctx, params)
		}
		if err != nil {
			return nil, err
		}
		kind, err := resultType(raw)
		if err != nil {
			return nil, err
		}
		switch kind {
		case "complete":
			raw = inner(raw)
			if caching && kept.Round == 0 {
				x.r.cache.put(t, x.cache, raw)
			}
			return raw, nil
		case "input_required":
			x.begun.Store(true)
			x.timer.touch()
			if !revision.Asks(x.method) {
				return nil, engine.Unusable("the server asked for input on %q, which does not allow that", x.method)
			}
			if kept, err = kept.next(raw, x.r.Limits.Rounds); err != nil {
				return nil, err
			}
			if x.memo != nil {
				x.memo.Remember(memoRound+x.scope(), encode(kept))
			}
		case "task":
			x.begun.Store(true)
			switch {
			case x.method != revision.MethodCall: // XTASK-26-003
			case x.onTask != nil:
				return x.onTask(ctx, inner(raw))
			case x.waits:
				return x.finishTask(ctx, inner(raw))
			case x.front != nil:
				x.handle = inner(raw)
				return x.handle, nil
			}
			return nil, engine.Unusable("the server made a task of %q, which does not allow that", x.method)
		default:
			return nil, engine.Unusable("the server's result has the unknown type %q", text.Short(kind)) // BASE-26: invalid
		}
	}
}

// recall returns the state that an earlier run of the call kept.
func (x *Call) recall() (keptRound, error) {
	if x.memo == nil || x.memo.Round() == 0 || !revision.Asks(x.method) {
		return keptRound{}, nil
	}
	raw, ok := x.memo.Recall(memoRound + x.scope())
	if !ok {
		return keptRound{}, nil
	}
	kept := new(keptRound)
	err := jsonx.Unmarshal(raw, kept)
	return *kept, err
}

// away returns the process whose server alone knows the state of a round, if that has ended; else "".
func (x *Call) away(ctx context.Context, kept keptRound) string {
	if x.memo == nil || kept.State == nil {
		return ""
	}
	return x.memo.Away(ctx)
}

// resultType returns the type of the result in an answer.
func resultType(raw json.RawMessage) (string, error) {
	t, ok := jsonx.Lookup(raw, "resultType")
	if !ok || string(t) == `"complete"` {
		return "complete", nil
	}
	kind, err := jsonx.Unquote(t)
	if err != nil {
		return "", engine.Unusable("the server's resultType is not a string")
	}
	return kind, nil
}

// send sends one round.
func (x *Call) send(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	buf := buffer.Get()
	defer buffer.Put(buf)
	*buf = x.r.appendModern(*buf, params, Envelope{x.self, x.caps, x.logLevel, x.token(), x.hops})
	x.out = engine.Outgoing{
		Method: x.method, Params: *buf, Token: x.token(), Inbox: (*callInbox)(x), Logs: x.logLevel != "",
		Header: x.requestHeader(x.r.headersOf(x.method, params)),
	}
	return object(x.r.Send(ctx, &x.out))
}

// next reads an input_required result.
func (k keptRound) next(raw json.RawMessage, limit int) (keptRound, error) {
	round := keptRound{Round: k.Round + 1}
	if round.Round > limit {
		return k, fmt.Errorf("the server asked for input more than %d times (Limits.Rounds)", limit)
	}
	if state, ok := jsonx.Lookup(raw, "requestState"); ok && string(state) != "null" {
		round.State = state
	}
	requests, _ := jsonx.Lookup(raw, "inputRequests")
	for name, q := range jsonx.Members(jsonx.OrObject(requests)) {
		kq := keptQuestion{Key: string(name)}
		if m, ok := jsonx.Lookup(q, "method"); ok {
			kq.Method, _ = jsonx.Unquote(m)
		}
		if kq.Method == "" {
			return k, engine.Unusable("the server's input request %q has no method", text.Short(kq.Key))
		}
		if params, _ := jsonx.Lookup(q, "params"); string(params) != "null" { // which counts as absent
			kq.Params = params
		}
		if err := revision.CheckParams(kq.Method, kq.Params); err != nil {
			return k, engine.Unusable("the server's input request %q: %v", text.Short(kq.Key), err)
		}
		round.Questions = append(round.Questions, kq)
	}
	if round.State == nil && len(round.Questions) == 0 {
		return k, engine.Unusable("the server requires input but names neither questions nor a state")
	}
	return round, nil
}

// answers answers the questions of a round and returns inputResponses, or nil if there were no
// questions.
func (x *Call) answers(ctx context.Context, k keptRound) (json.RawMessage, error) {
	if len(k.Questions) == 0 {
		// Load shedding: the server asks for the call again later.
		t := time.NewTimer(min(time.Duration(k.Round)*100*time.Millisecond, 2*time.Second))
		defer t.Stop()
		select {
		case <-t.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	// A key may occur again in a later round, or at another server, with another meaning.
	prefix := x.scope() + "/" + strconv.Itoa(k.Round) + "/"
	qs := make([]engine.Question, len(k.Questions))
	for i, q := range k.Questions {
		qs[i] = engine.Question{Method: q.Method, Params: q.Params, Key: prefix + q.Key}
	}
	got, err := x.answer(ctx, qs...)
	if err != nil && x.memo != nil && !x.front.Peer.Local { // a caller that waits gets its own error
		got, err = x.excuse(ctx, qs, err)
	}
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for i, a := range got {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, k.Questions[i].Key), ':')
		out = append(out, a...)
	}
	return append(out, '}'), nil
}

// excuse answers the questions from a modern server that a caller in front could not be asked, or
// has answered with an error: in that era an error cannot be the answer to a question. If the
// caller cannot be asked, excuse declines (T-23, T-73); if its user interface failed, excuse
// dismisses (T-24). Without a model's answer or roots the call fails.
func (x *Call) excuse(ctx context.Context, qs []engine.Question, err error) ([]json.RawMessage, error) {
	var rpc *jsonrpc.Error
	var lacks *engine.LacksError
	refused := errors.As(err, &rpc)
	if !refused && (!errors.As(err, &lacks) || x.front == nil || !x.front.Peer.Revision.Sessions) {
		return nil, err
	}
	if len(qs) > 1 && !refused { // one is not supported, so none was asked: ask one by one
		var answers []json.RawMessage
		for _, q := range qs {
			one, err := x.answer(ctx, q)
			if err != nil {
				one, err = x.excuse(ctx, []engine.Question{q}, err)
			}
			if err != nil {
				return nil, err
			}
			answers = append(answers, one...)
		}
		return answers, nil
	}
	switch {
	case len(qs) == 1 && qs[0].Method == revision.MethodElicit && refused:
		return []json.RawMessage{json.RawMessage(`{"action":"cancel"}`)}, nil
	case len(qs) == 1 && qs[0].Method == revision.MethodElicit:
		return []json.RawMessage{json.RawMessage(`{"action":"decline"}`)}, nil
	}
	return nil, &noAnswer{qs[0].Method, err}
}

// noAnswer ends a forwarded call of a modern server whose question gets no answer.
type noAnswer struct {
	method string
	err    error
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("the server asked for %s, and there is no answer: %s", e.method, text.Short(e.err.Error()))
}
