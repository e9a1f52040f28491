package mcp

import (
	"encoding/json"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Arguments that also travel in headers (x-mcp-header of a tool's input schema; 2026-07-28,
// basic/transports/streamable-http, Custom Headers from Tool Parameters). Only the modern era over
// HTTP has them.

// checkHeaders compares the headers of a call with its arguments.
func (s *Server) checkHeaders(msg *jsonrpc.Message, h http.Header) *jsonrpc.Error {
	if msg.Method != revision.MethodCall || s.Handler != nil {
		return nil // a handler behind another Handler checks the tools it knows
	}
	raw, _ := msg.Param("name")
	t, ok := s.tools.snapshot().named(raw)
	if !ok || len(t.headers) == 0 {
		return nil
	}
	args, _ := msg.Param("arguments")
	return streamable.CheckParams(h, t.headers, args)
}

// learn records what calls of a tool need: which arguments travel in headers, its output schema,
// and whether it must be a task. If the annotations break the rules, the tool must not be used over
// HTTP (HTTP-26-046), and learn returns an error.
func (s *Session) learn(t *Tool) error {
	s.learnOutput(t)
	s.remote.LearnTool(t.Name, string(t.Execution.TaskSupport))
	return s.CheckTool(t.Name, t.InputSchema)
}

// CheckTool returns an error if a listed tool with this input schema must not be used in this
// session. In 2026-07-28 over HTTP, that is a tool whose x-mcp-header annotations break
// the rules. The error is logged once, and later calls of the tool are refused. For any other tool,
// later calls send the annotated arguments in headers.
//
// [Session.Tools] calls CheckTool by itself. Programs that read the list with [Session.Raw] must
// call it.
//
// Specification: 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters.
func (s *Session) CheckTool(name string, inputSchema json.RawMessage) error {
	if s = s.server(); !s.remote.SendsHeaders() {
		return nil
	}
	return s.remote.LearnHeaders(name, inputSchema)
}
