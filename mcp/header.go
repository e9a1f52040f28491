package mcp

import (
	"encoding/json"
	"net/http"

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
	s.remote.LearnTool(t.Name, string(t.Execution.TaskSupport))
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
	if s = s.server(); !s.remote.SendsHeaders() {
		return nil
	}
	return s.remote.LearnHeaders(name, inputSchema)
}
