package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// extUI is the extension that says that a client shows the pages of tools.
const extUI = "io.modelcontextprotocol/ui"

// opening is why a connection is opened for a client.
type opening struct {
	caller context.Context // of the call that needs it
	spoken mcp.Revision    // known to be spoken with the server, empty if none is
	many   bool            // it is for all sessions of the principal who calls
}

// idKey is where the context of Source.Open has the id of the gateway.
type idKey struct{}

// openingKey is where the context of Source.Open has it.
type openingKey struct{}

// Relay prepares a client that Source.Open connects with. Ctx is that of Open.
//
// Questions that a server asks during a call go to the caller, whatever the client has to answer
// them. Those that belong to no call go to the session that the connection is for; where it is for
// none, they are refused, and the list of roots is empty. The functions that the client is given
// also declare what the server may ask: what the caller can answer, where the connection is for
// one client, and else everything; a caller who cannot answer is told so when it is asked. For one
// client, the client takes its name too.
//
// Log messages that belong to no call go to the session that the connection is for, if it is
// for one alone, and else to the client's OnEvent.
//
// A client with no Revisions of its own is given the one that is known to be spoken with the
// server, if the connection is for a client.
func Relay(ctx context.Context, c *mcp.Client) {
	var caps mcp.Capabilities
	var session context.Context
	call := mcp.CallFrom(ctx)
	if call != nil {
		caps, session = call.Capabilities, call.Session()
	}
	if call != nil && call.Client.Name != "" { // T-11
		c.Name, c.Title, c.Version = call.Client.Name, call.Client.Title, call.Client.Version
	}
	if c.Header == nil {
		c.Header = http.Header{}
	}
	if id, ok := ctx.Value(idKey{}).(string); ok {
		c.Header.Set(hop.Header, id) // known before a request is forwarded
	}
	why, _ := ctx.Value(openingKey{}).(opening)
	if why.spoken != "" && c.Revisions == nil { // T-02
		c.Revisions = []mcp.Revision{why.spoken}
	}
	if call != nil { // T-06, T-15
		c.Capabilities = mcp.Capabilities{}
		maps.Copy(c.Capabilities, caps)
		if (session != nil || why.many) && caps.Has("elicitation") {
			// Who cannot be sent to a page is given it as text (T-26).
			c.Capabilities["elicitation"] = json.RawMessage(`{"form":{},"url":{}}`)
		}
	}
	c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errWhose }
	c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return nil, errWhose }
	c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	if c.Front = ctx; why.caller != nil {
		c.Front = why.caller
	}
	if others := c.OnEvent; session != nil && !why.many {
		c.OnEvent = func(s *mcp.Session, e mcp.Event) {
			switch {
			case e.Log != nil: // T-91
				_ = mcp.Notify(session, e.Method, e.Params) // one that is over wants no more
			case others != nil:
				others(s, e)
			}
		}
	}
	var declared map[string]json.RawMessage
	if json.Unmarshal(caps["extensions"], &declared) == nil && declared[extUI] != nil {
		c.Extensions = map[string]json.RawMessage{extUI: declared[extUI]}
	}
}

// errWhose refuses a question of no call, over a connection that is for no session.
var errWhose = mcp.Errorf(jsonrpc.CodeInternal, "cannot tell whose question this is: no call is in progress that it can belong to; ask while a call is")
