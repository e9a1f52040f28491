package gateway

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/mcp"
)

// extUI is the extension that says that a client shows the pages of tools.
const extUI = "io.modelcontextprotocol/ui"

// opening is why a connection is opened for a client.
type opening struct {
	caller context.Context // of the call that needs it
	spoken mcp.Revision    // known to be spoken with the server, empty if none is
}

// openingKey is where the context of Source.Open has it.
type openingKey struct{}

// Relay prepares a client that Source.Open connects with. Ctx is that of Open.
//
// Questions that a server asks during a call go to who has called, whatever the client has
// to answer them. So the client is given functions that answer the others, which belong to no
// call: by a refusal, but for the roots of a session, which servers like to ask for when they
// start. The functions also declare what the server may ask. Where the connection is for one
// session, that is what the session can answer, and the client takes its name. Else it is
// everything, and a caller who cannot answer is told so when it is asked.
//
// A client with no Revisions of its own is given the one that is known to be spoken with the
// server, if the connection is for a client.
func Relay(ctx context.Context, c *mcp.Client) {
	var caps mcp.Capabilities
	session := false
	if call := mcp.CallFrom(ctx); call != nil {
		if call.Client.Name != "" {
			c.Name, c.Title, c.Version = call.Client.Name, call.Client.Title, call.Client.Version
		}
		caps, session = call.Capabilities, call.Session() != nil
	}
	why, _ := ctx.Value(openingKey{}).(opening)
	if why.spoken != "" && c.Revisions == nil { // T-02
		c.Revisions = []mcp.Revision{why.spoken}
	}
	c.OnElicit, c.OnSample, c.Roots = nil, nil, nil
	if !session || caps.Has("elicitation") {
		c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
	}
	if !session || caps.Has("sampling") {
		c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return nil, mcp.Errorf(-1, "there is nobody to ask outside of a call")
		}
	}
	if !session || caps.Has("roots") {
		c.Roots = func(context.Context) ([]mcp.Root, error) {
			if session && why.caller != nil && why.caller.Err() == nil {
				if roots, err := mcp.Roots(why.caller); err == nil {
					return roots, nil
				}
			}
			return nil, nil
		}
	}
	var declared map[string]json.RawMessage
	if json.Unmarshal(caps["extensions"], &declared) == nil && declared[extUI] != nil {
		c.Extensions = map[string]json.RawMessage{extUI: declared[extUI]}
	}
}
