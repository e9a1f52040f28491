package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// introducing answers server/discover, and with it initialize, for a [Server.Handler] that does not
// know the method: with the fields of the server, and a capability for each kind of feature whose
// list the Handler answers.
func (s *Server) introducing(next Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
		res, err := next.Handle(ctx, req)
		if req.Method == revision.MethodDiscover && unknownMethod(err) {
			return s.introduce(ctx, next)
		}
		return res, err
	})
}

func (s *Server) introduce(ctx context.Context, h Handler) (*ServerInfo, error) {
	caps := Capabilities{"logging": json.RawMessage(`{}`)}
	for _, list := range feature.All {
		_, err := h.Handle(ctx, &Request{Method: list.Method, Params: json.RawMessage(`{}`)})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !unknownMethod(err):
			caps[list.Capability] = json.RawMessage(`{}`)
		}
	}
	return s.describe(caps), nil
}

// unknownMethod reports whether a Handler does not know a method.
func unknownMethod(err error) bool {
	var rpc *Error
	return errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound
}

// describe returns the ServerInfo with capabilities, to which it adds the extensions.
func (s *Server) describe(caps Capabilities) *ServerInfo {
	s.declareExtensions(caps)
	info := &ServerInfo{Implementation: s.implementation(), Capabilities: caps, Instructions: s.Instructions}
	for _, name := range revision.Names(s.eng.Revisions) {
		info.Revisions = append(info.Revisions, Revision(name))
	}
	return info
}
