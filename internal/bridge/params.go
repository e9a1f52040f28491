package bridge

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// forwardParams returns a copy of the params of a request without what belongs to the
// hop it came over.
//
// Each server matches names as its language does: encoding/json accepts "Name" for "name", and
// pydantic "task_id" for "taskId". The server must not read the params differently from the checks
// in front of it. So params with a member that could be taken for one of the protocol are refused
// (-32602); in _meta that holds for the members of a hop. Other members pass, and so do the
// arguments: only the server knows which names a tool accepts.
func forwardParams(method string, params json.RawMessage) (json.RawMessage, error) {
	params = jsonx.OrObject(params)
	p := strip{meta: hopMeta, known: revision.ParamNames(method), method: method}
	if revision.Asks(method) {
		p.gone = hopParams
	}
	out := p.append(make([]byte, 0, len(params)), params)
	if p.fault != nil {
		return nil, errorf(jsonrpc.CodeInvalidParams, "%s: %v", text.Short(method), p.fault)
	}
	return out, nil
}

// hopParams are the members of a request that belong to its hop.
var hopParams = revision.Known{"inputResponses", "requestState", "task"}

// hopMeta are the members of _meta that belong to a hop. The list of hops is passed on, one longer.
var hopMeta = revision.Known{hop.Meta, engine.MetaVersion, engine.MetaClientInfo, engine.MetaCapabilities, engine.MetaLogLevel,
	engine.MetaServerInfo, engine.MetaSubscription, "progressToken", "io.modelcontextprotocol/related-task"}
