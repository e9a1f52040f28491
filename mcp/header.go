package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

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
	if !s.overHTTP || !s.rev.Modern {
		return nil
	}
	name := t.Name
	headers, err := streamable.ParamHeaders(t.InputSchema)
	s.mu.Lock()
	defer s.mu.Unlock()
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

// maxLearnt bounds the tools that a session knows such things of.
const maxLearnt = 10_000

// headersOf makes the headers of a call of a tool as far as its schema is known.
func (s *Session) headersOf(method string, params json.RawMessage) http.Header {
	if !s.overHTTP || method != revision.MethodCall {
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
