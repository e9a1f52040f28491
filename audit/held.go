package audit

import (
	"cmp"
	"context"

	"github.com/patchbay-dev/patchbay/mcp"
)

// heldKey is the context key of the record of a call that Begin has begun.
type heldKey struct{}

// Begin returns the context of a call that a program decides about before it makes the call, such as
// a host that asks a person. The requests of one method in that context, such as the attempts of a
// call that is retried, are that call: their lines have what e says and one id, and [Trail.End] alone
// writes the end. Begin writes no line: [Trail.Around] does when the call leaves.
func (t *Trail) Begin(ctx context.Context, e Entry) context.Context {
	r := t.record(ctx, &mcp.Request{Method: "tools/call"})
	own := r.entry
	e.Call, e.Client, e.Principal, e.Team, e.Trace = own.Call, own.Client, own.Principal, own.Team, own.Trace
	r.entry, r.held = e, true
	return context.WithValue(ctx, heldKey{}, r)
}

// End writes the line of the end of a call that [Trail.Begin] has made ctx for, or without one the line
// of a call that e describes and that was not made: of kind [Denied] if it was refused before it left,
// else [CallEnd]. The line has Outcome, Cached, Millis and Reason of e. If both that outcome and the
// one of the last request are failures, it has those of the request, with its code and its reason.
// End does not wait for the disk.
func (t *Trail) End(ctx context.Context, e Entry) {
	r, _ := ctx.Value(heldKey{}).(*record)
	if r == nil {
		r, _ = t.Begin(ctx, e).Value(heldKey{}).(*record)
	}
	r.mu.Lock()
	line, begun := r.entry, r.begins > 0
	if r.last != nil {
		line = *r.last
	}
	r.mu.Unlock()
	switch failures := map[string]bool{"denied": true, "error": true, "tool error": true}; {
	case !failures[e.Outcome]:
		line.Outcome, line.Code, line.Fault, line.Reason = e.Outcome, 0, "", e.Reason
	case !failures[line.Outcome]:
		line.Outcome = e.Outcome
	}
	if line.Kind = CallEnd; line.Outcome == "denied" && !begun {
		line.Kind = Denied
	}
	line.Cached, line.Millis, line.Reason = line.Cached || e.Cached, e.Millis, cmp.Or(line.Reason, e.Reason)
	t.Log.Add(line)
}

// recordFor returns the record of a request: that of the call that it belongs to, or a new one.
func (t *Trail) recordFor(ctx context.Context, req *mcp.Request) *record {
	r, _ := ctx.Value(heldKey{}).(*record)
	_, call := callMethods[req.Method]
	if r == nil || r.trail != t || !call {
		return t.record(ctx, req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begins > 0 && req.Method != cmp.Or(r.entry.Method, "tools/call") {
		return t.record(ctx, req)
	}
	if r.entry.Client == nil {
		r.entry.Client = clientOf(ctx)
	}
	r.names(req)
	return r
}
