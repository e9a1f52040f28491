package everything

import (
	"context"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// New returns a server. Servers share no state.
func New() *mcp.Server {
	srv := &mcp.Server{
		Name:         "everything",
		Title:        "Everything",
		Version:      "0.1.0",
		Instructions: "A server to try clients with. Start with echo or describe_call; nothing here has an effect outside this server.",
	}
	addTools(srv)
	addContent(srv)
	addProgress(srv)
	addQuestions(srv)
	addRounds(srv)
	addTasks(srv)
	addChanges(srv)
	addResources(srv)
	addPrompts(srv)
	addDice(srv)
	addSkills(srv)
	return srv
}

// harmless marks tools without effects that do not reach outside the server.
var harmless = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

// none is the type of empty arguments.
type none struct{}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
