package bridge

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// forwardParams returns a copy of the params of a request without what belongs to the
// hop it came over.
//
// The server reads a name as its language likes: with encoding/json it takes "Name" for "name",
// with pydantic "task_id" for "taskId". So that it sees what was decided on before it, params
// with a member that it could take for one of the protocol are refused (-32602), in _meta for
// what belongs to a hop. Other members pass, and so do arguments as they are: which names a tool
// knows, and how it reads them, is known to the server alone.
func forwardParams(method string, params json.RawMessage) (json.RawMessage, error) {
	params = jsonx.OrObject(params)
	p := strip{meta: hopMeta, known: revision.ParamNames(method), method: method}
	if revision.Asks(method) {
		p.gone = hopParams
	}
	out := p.append(make([]byte, 0, len(params)), params)
	if p.fault != nil {
		return nil, errorf(jsonrpc.CodeInvalidParams, "%s: %v", clip(method), p.fault)
	}
	return out, nil
}

// hopParams are the members of a request that may be answered by questions that belong to its
// hop.
var hopParams = revision.Known{"inputResponses", "requestState", "task"}

// hopMeta is what _meta says about a hop. The list of hops goes on, one longer.
var hopMeta = revision.Known{hop.Meta, engine.MetaVersion, engine.MetaClientInfo, engine.MetaCapabilities, engine.MetaLogLevel,
	engine.MetaServerInfo, engine.MetaSubscription, "progressToken", "io.modelcontextprotocol/related-task"}
