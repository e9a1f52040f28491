package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Arguments that travel in headers too (x-mcp-header of a tool's input schema;
// 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters).
// They exist in the modern era over HTTP alone.

// checkHeaders compares the headers of a call with its arguments.
func (s *Server) checkHeaders(msg *jsonrpc.Message, h http.Header) *jsonrpc.Error {
	if msg.Method != revision.MethodCall || s.Handler != nil {
		return nil // whoever stands behind another Handler checks what it knows
	}
	raw, _ := msg.Param("name")
	t, ok := s.tools.snapshot().named(raw)
	if !ok || len(t.headers) == 0 {
		return nil
	}
	args, _ := msg.Param("arguments")
	return streamable.CheckParams(h, t.headers, args)
}

// learn keeps what calls of a tool need to know: which arguments travel in headers, what
// it returns, and whether it must be a task. A tool whose annotations break the rules must not be used
// over HTTP (HTTP-26-046), which the error says.
func (s *Session) learn(t *Tool) error {
	s.learnOutput(t)
	if s.rev.CoreTasks {
		s.mu.Lock()
		if len(s.support) >= maxLearnt {
			clear(s.support)
		}
		s.support[t.Name] = t.Execution.TaskSupport
		s.mu.Unlock()
	}
	return s.CheckTool(t.Name, t.InputSchema)
}

// CheckTool tells why a tool that the server lists, with this input schema, must not be used in
// this session; nil if it may. Over HTTP, since 2026-07-28, that is one whose x-mcp-header
// annotations break the rules; it is logged once, and calls of it are refused from then on. A tool
// that may be used has its annotated arguments sent in headers from then on.
//
// [Session.Tools] does this by itself. It is for those who read the list by [Session.Raw].
//
// Specification: 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters.
func (s *Session) CheckTool(name string, inputSchema json.RawMessage) error {
	if s = s.server(); !s.sendsHeaders() {
		return nil
	}
	return s.learnHeaders(name, inputSchema)
}

// sendsHeaders tells whether requests repeat names and arguments in headers.
func (s *Session) sendsHeaders() bool { return s.overHTTP && s.rev.ParamHeaders }

// mustNotCall returns the fault of a call of a tool that must not be used.
func (s *Session) mustNotCall(method string, params json.RawMessage) error {
	if method != revision.MethodCall {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.barred) == 0 || !s.sendsHeaders() {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, _ := jsonx.Unquote(raw)
	if err := s.barred[name]; err != nil {
		return Errorf(CodeInvalidParams, "the tool %q must not be used over HTTP: %v", clip(name), err)
	}
	return nil
}

// learnHeaders keeps which arguments of a tool travel in headers. With an error that is new it is
// logged, and a tool that must not be used over this transport is barred.
func (s *Session) learnHeaders(name string, schema json.RawMessage) error {
	headers, err := streamable.ParamHeaders(schema)
	if err != nil && s.bar(name, err) {
		if s.sendsHeaders() {
			s.log.Warn("tool left out, it must not be used over HTTP", "tool", clip(name), "err", err)
		} else {
			s.log.Debug("tool with bad x-mcp-header, which is removed", "tool", clip(name), "err", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.barred, name)
	}
	if err != nil || len(headers) == 0 {
		delete(s.headers, name)
		return err
	}
	if len(s.headers) >= maxLearnt {
		clear(s.headers) // a call without its headers is refused, and they are learnt again
	}
	s.headers[name] = headers
	return nil
}

// bar notes why a tool must not be used; false if that is known.
func (s *Session) bar(name string, why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.barred[name]; before != nil && before.Error() == why.Error() {
		return false
	}
	if s.barred == nil || len(s.barred) >= maxLearnt {
		s.barred = map[string]error{}
	}
	s.barred[name] = why
	return true
}

// forwardTools prepares a list of tools for callers in front, who may use them over HTTP in the
// modern era. A server over HTTP of that era must not offer a tool whose annotations break the
// rules, so that is left out (HTTP-26-046). For all others they mean nothing, and they are
// removed in place of the tool (T-49).
func (s *Session) forwardTools(raw json.RawMessage) json.RawMessage {
	s.mu.Lock()
	known := len(s.headers)+len(s.barred) > 0
	s.mu.Unlock()
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
			err = s.learnHeaders(name, schema)
		}
		if err != nil {
			changed = true
			if s.sendsHeaders() {
				continue
			}
			t = jsonx.With(nil, t, "inputSchema", streamable.WithoutParamHeaders(orObject(schema)))
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

// checkForwarded compares the headers of a call in front with its arguments, as far as the
// list of tools that it goes by has passed here (T-48).
func (s *Session) checkForwarded(call *engine.Call, method string, params json.RawMessage) error {
	if method != revision.MethodCall || call.Header == nil || !call.Peer.Revision.ParamHeaders {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	s.mu.Lock()
	var known []streamable.ParamHeader
	if len(s.headers) > 0 {
		name, _ := jsonx.Unquote(raw)
		known = s.headers[name]
	}
	s.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	args, _ := jsonx.Lookup(params, "arguments")
	if fault := streamable.CheckParams(call.Header, known, args); fault != nil {
		return fault
	}
	return nil
}

// maxLearnt bounds the tools that a session knows such things of.
const maxLearnt = 10_000

// headersOf makes the headers of a call of a tool as far as its schema is known.
func (s *Session) headersOf(method string, params json.RawMessage) http.Header {
	if !s.sendsHeaders() || method != revision.MethodCall {
		return nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	known := s.headers[name]
	s.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	h := http.Header{}
	args, _ := jsonx.Lookup(params, "arguments")
	streamable.SetParams(h, known, args)
	return h
}

// hopHeader adds to the headers of a call who has forwarded it. h may be nil.
func (x *outgoingCall) hopHeader(h http.Header) http.Header {
	switch {
	case x.hops == nil || !x.s.overHTTP:
		return h
	case h == nil && len(x.hops) == len(x.s.hops.own):
		return x.s.hops.head // it is only read
	case h == nil:
		h = http.Header{}
	}
	h[hop.Header] = []string{hop.HeaderOf(x.hops)}
	return h
}

// relearn lists the tools again after a call was refused for its headers; it tells
// whether that is worth another try.
func (s *Session) relearn(ctx context.Context, method string, err error) bool {
	if err == nil {
		return false
	}
	var rpc *Error
	if !s.overHTTP || method != revision.MethodCall || !errors.As(err, &rpc) || rpc.Code != CodeHeaderMismatch {
		return false
	}
	return s.relist(ctx)
}
