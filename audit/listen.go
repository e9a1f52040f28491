package audit

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/taskend"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/middleware"
)

// listening is a subscriptions/listen, which a resources/subscribe of older clients becomes too.
type listening struct {
	server  *Server // that listens for the caller; guarded by mu of the record
	several bool    // more than one does; guarded by mu of the record
	begun   bool    // it has a line; guarded by mu of the record
}

// listening returns the context of a subscriptions/listen. When the server has accepted a subscription
// to resources, a line says so, before the caller learns it; the ends of tasks that the caller is
// notified of have lines too.
func (t *Trail) listening(ctx context.Context, r *record, req *mcp.Request) context.Context {
	ctx = taskend.Listening(ctx, req, t.taskSeen)
	if uris, _ := jsonx.LookupPath(req.Params, "notifications", "resourceSubscriptions"); jsonx.KindOf(uris) != '[' {
		return ctx
	}
	return forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
		if method == "notifications/subscriptions/acknowledged" {
			uris, _ := jsonx.LookupPath(params, "notifications", "resourceSubscriptions")
			t.subscribed(r, uris)
		}
		return forward.Notify(ctx, method, params)
	})
}

// subscribed writes the line of a subscription to resources.
func (t *Trail) subscribed(r *record, uris json.RawMessage) {
	var all []json.RawMessage
	for uri := range jsonx.Elements(uris) {
		all = append(all, uri)
	}
	if len(all) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listen.begun {
		return
	}
	r.listen.begun = true
	e := &r.entry
	if !r.listen.several {
		e.Server = r.listen.server
	}
	if len(all) == 1 {
		e.Name = t.uri(stringOf(all[0]))
		e.Arguments = &Arguments{Digest: Digest(jsonx.With(nil, nil, "uri", all[0]))}
	} else {
		e.Detail = t.resources(all)
		e.Arguments = &Arguments{Digest: Digest(jsonx.With(nil, nil, "uris", uris))}
	}
	line := *e
	line.Kind = Subscribe
	t.Log.Add(line)
}

// resources returns an object with as many URIs as a line has room for, and the number of the others.
func (t *Trail) resources(all []json.RawMessage) json.RawMessage {
	const room = maxDetail - 100 // for the names of the members
	list := []byte{'['}
	n := 0
	for ; n < len(all); n++ {
		uri := jsonx.AppendString(nil, clipped(t.uri(stringOf(all[n])), maxText))
		if len(list)+len(uri) > room {
			break
		}
		if n > 0 {
			list = append(list, ',')
		}
		list = append(list, uri...)
	}
	out := jsonx.With(nil, nil, "uris", append(list, ']'))
	if n < len(all) {
		out = jsonx.With(nil, out, "more", strconv.AppendInt(nil, int64(len(all)-n), 10))
	}
	return out
}

// at notes a server that listens for the caller, to the resources of a part of the subscription. Other
// servers get a part without any.
func (r *record) at(server *Server, part *mcp.Request) {
	uris, _ := jsonx.LookupPath(part.Params, "notifications", "resourceSubscriptions")
	for range jsonx.Elements(uris) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listen.several = r.listen.several || r.listen.server != nil && r.listen.server.Name != server.Name
		r.listen.server = server
		return
	}
}

// unsubscribed makes e the line of the end of a subscription. It is false if there was none. The
// duration is that between the lines, so that a long subscription is not a slow call.
func (r *record) unsubscribed(e *Entry, o middleware.Outcome) bool {
	if r.mu.Lock(); !r.listen.begun {
		r.mu.Unlock()
		return false
	}
	r.mu.Unlock()
	e.Kind, e.Outcome, e.Code = Unsubscribe, "", 0
	if o == middleware.Failed || o == middleware.Denied {
		e.Outcome = string(o)
	}
	return true
}
