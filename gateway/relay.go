package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/internal/hop"
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

// openingKey is where the context of Source.Open has it.
type openingKey struct{}

// Relay prepares a client that Source.Open connects with. Ctx is that of Open.
//
// Questions that a server asks during a call go to who has called, whatever the client has
// to answer them. So the client is given functions that answer the others, which belong to no
// call: by a refusal, but for the roots of a session, which are asked for there if it can be
// reached. The functions also declare what the server may ask. Where the connection is for
// one client, that is what it can answer, and the client takes its name. Else it is
// everything, and a caller who cannot answer is told so when it is asked.
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
	c.Header.Set(hop.Header, hop.Self) // an endpoint of this process knows itself, before a request is forwarded
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
	c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return nil, mcp.Errorf(-1, "there is nobody to ask outside of a call")
	}
	c.Roots = func(ctx context.Context) ([]mcp.Root, error) { return rootsOf(ctx, why.caller, session) }
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

// rootsTime bounds how long a server waits for roots that it asks for outside of calls.
const rootsTime = 10 * time.Second

// rootsOf asks a session for its roots, for a server that asks in no call: over the call that
// has opened the connection, as long as that lasts, or else outside of calls. Who has no
// session has no roots outside of calls.
func rootsOf(ctx, caller, session context.Context) ([]mcp.Root, error) {
	if session == nil {
		return nil, nil
	}
	for _, at := range []context.Context{caller, session} {
		if at == nil || at.Err() != nil {
			continue
		}
		at, cancel := context.WithTimeout(at, rootsTime)
		stop := context.AfterFunc(ctx, cancel)
		roots, err := mcp.Roots(at)
		stop()
		cancel()
		if err == nil {
			return roots, nil
		}
	}
	return nil, errors.New("the client cannot be reached outside of calls; ask for its roots in one")
}
