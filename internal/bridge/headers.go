package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Arguments that also travel in headers (x-mcp-header of a tool's input schema; 2026-07-28,
// basic/transports/streamable-http, Custom Headers from Tool Parameters). Only the modern era over
// HTTP has them.

// SendsHeaders reports whether requests repeat names and arguments in headers.
func (r *Remote) SendsHeaders() bool { return r.HTTP && r.Rev.ParamHeaders }

// mustNotCall returns an error for a call of a tool that must not be used.
func (r *Remote) mustNotCall(method string, params json.RawMessage) error {
	if method != revision.MethodCall {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.barred) == 0 || !r.SendsHeaders() {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, _ := jsonx.Unquote(raw)
	if err := r.barred[name]; err != nil {
		return errorf(jsonrpc.CodeInvalidParams, "the tool %q must not be used over HTTP: %v", text.Short(name), err)
	}
	return nil
}

// LearnHeaders records which arguments of a tool travel in headers. It logs an error that is new,
// and bars a tool that must not be used over this transport.
func (r *Remote) LearnHeaders(name string, schema json.RawMessage) error {
	headers, err := streamable.ParamHeaders(schema)
	if err != nil && r.bar(name, err) {
		if r.SendsHeaders() {
			r.Log.Warn("tool left out, it must not be used over HTTP", "tool", text.Short(name), "err", err)
		} else {
			r.Log.Debug("tool with bad x-mcp-header, which is removed", "tool", text.Short(name), "err", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.barred, name)
	}
	if err != nil || len(headers) == 0 {
		delete(r.headers, name)
		return err
	}
	if len(r.headers) >= maxLearnt {
		clear(r.headers) // the server refuses a call without its headers, and they are then learnt again
	}
	r.headers[name] = headers
	return nil
}

// bar records why a tool must not be used; false if that is known.
func (r *Remote) bar(name string, why error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.barred[name]; before != nil && before.Error() == why.Error() {
		return false
	}
	if r.barred == nil || len(r.barred) >= maxLearnt {
		r.barred = map[string]error{}
	}
	r.barred[name] = why
	return true
}

// forwardTools prepares a list of tools for callers in front, which may speak 2026-07-28 over HTTP.
// If the server does so too, a tool whose x-mcp-header annotations break the rules is left out
// (HTTP-26-046). From any other server such annotations mean nothing, so they are removed and the
// tool stays (T-49).
func (r *Remote) forwardTools(raw json.RawMessage) json.RawMessage {
	r.mu.Lock()
	known := len(r.headers)+len(r.barred) > 0
	r.mu.Unlock()
	if !known && !bytes.Contains(raw, []byte(`"x-mcp-header"`)) {
		return raw
	}
	tools, _ := jsonx.Lookup(raw, "tools")
	out := []byte{'['}
	changed := false
	for t := range jsonx.Elements(tools) {
		schema, _ := jsonx.Lookup(t, "inputSchema")
		quoted, _ := jsonx.Lookup(t, "name")
		name, err := jsonx.Unquote(quoted)
		if err == nil {
			err = r.LearnHeaders(name, schema)
		}
		if err != nil {
			changed = true
			if r.SendsHeaders() {
				continue
			}
			t = jsonx.With(nil, t, "inputSchema", streamable.WithoutParamHeaders(jsonx.OrObject(schema)))
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, t...)
	}
	if !changed {
		return raw
	}
	return jsonx.With(nil, raw, "tools", append(out, ']'))
}

// checkForwarded compares the headers of a call in front with its arguments, if the caller got its
// list of tools through this session (T-48). Headers that fit the arguments as the caller sent them
// are right too: middleware may have changed the arguments since.
func (r *Remote) checkForwarded(call *engine.Call, method string, params json.RawMessage) error {
	if method != revision.MethodCall || call.Header == nil || call.Peer.Local || !call.Peer.Revision.ParamHeaders {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	r.mu.Lock()
	var known []streamable.ParamHeader
	if len(r.headers) > 0 {
		name, _ := jsonx.Unquote(raw)
		known = r.headers[name]
	}
	r.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	args, _ := jsonx.Lookup(params, "arguments")
	fault := streamable.CheckParams(call.Header, known, args)
	if fault == nil {
		return nil
	}
	if call.Method == method {
		sent, _ := jsonx.Lookup(call.Params, "arguments")
		if streamable.CheckParams(call.Header, known, sent) == nil {
			return nil
		}
	}
	return fault
}

// maxLearnt bounds the tools that a session records headers for.
const maxLearnt = 10_000

// headersOf returns the headers of a tool call, as far as the tool's schema is known.
func (r *Remote) headersOf(method string, params json.RawMessage) http.Header {
	if !r.SendsHeaders() || method != revision.MethodCall {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	known := r.headers[name]
	r.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	h := http.Header{}
	args, _ := jsonx.Lookup(params, "arguments")
	streamable.SetParams(h, known, args)
	return h
}

// requestHeader adds the caller's headers and the list of forwarders to h, which may be nil.
func (x *Call) requestHeader(h http.Header) http.Header {
	if x.header != nil {
		own := h
		h = x.header.Clone()
		maps.Copy(h, own)
	}
	switch {
	case x.hops == nil || !x.r.HTTP:
		return h
	case h == nil && len(x.hops) == len(x.r.hops.own):
		return x.r.hops.head // it is only read
	case h == nil:
		h = http.Header{}
	}
	h[hop.Header] = []string{hop.HeaderOf(x.hops)}
	return h
}

// relearn lists the tools again after a call was refused for its headers, and reports whether a
// retry can succeed.
func (r *Remote) relearn(ctx context.Context, method string, err error) bool {
	if err == nil {
		return false
	}
	var rpc *jsonrpc.Error
	if !r.HTTP || method != revision.MethodCall || !errors.As(err, &rpc) || rpc.Code != revision.CodeHeaderMismatch {
		return false
	}
	return r.Owner.ListTools(ctx)
}
