package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// extUI is the extension by which a client declares that it displays the pages of tools.
const extUI = "io.modelcontextprotocol/ui"

// opening describes why a connection is opened for a client.
type opening struct {
	caller context.Context // of the call that needs it
	spoken mcp.Revision    // the revision that the server is known to speak; empty: unknown
	many   bool            // for all sessions of the principal who calls
}

// idKey is the context key for the id of the gateway in Source.Open.
type idKey struct{}

// openingKey is the context key for the opening in Source.Open.
type openingKey struct{}

// Relay prepares a client with which Source.Open connects. Pass it the context of Open.
//
// Questions that a server asks during a call go to the caller, whatever functions c has. Questions
// outside of calls go to the session that the connection serves; if it serves none, they are
// refused, and the list of roots is empty. Relay replaces the functions of c and thereby declares
// what the server may ask. For a connection that serves one client, that is what this client can
// answer, and Relay also copies the client's name. Otherwise the server may ask everything and gets
// an error if a caller cannot answer.
//
// Log messages outside of calls go to the session that the connection serves alone, or else to the
// client's OnEvent.
//
// If the client has no Revisions and the connection is for one client, Relay sets the revision that
// the server is known to speak.
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
		c.Header.Set(hop.Header, id) // before any request is forwarded
	}
	why, _ := ctx.Value(openingKey{}).(opening)
	if why.spoken != "" && c.Revisions == nil { // T-02
		c.Revisions = []mcp.Revision{why.spoken}
	}
	if call != nil { // T-06, T-15
		c.Capabilities = mcp.Capabilities{}
		maps.Copy(c.Capabilities, caps)
		if (session != nil || why.many) && caps.Has("elicitation") {
			// A caller that cannot be sent to a page receives it as text (T-26).
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
				_ = forward.Notify(session, e.Method, e.Params) // an error means that the session has ended
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

// errWhose refuses a question outside of calls over a connection that serves no session.
var errWhose = mcp.Errorf(jsonrpc.CodeInternal, "cannot tell whose question this is: no call is in progress; ask during a call")
