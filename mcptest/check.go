package mcptest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wirecheck"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// Check returns an OnFrame function that checks the frames of one connection against the
// specification and fails the test for each invalid one. An empty rev means the revision that each
// message or initialize names. Set fromClient for the frames of an [mcp.Client], and not for those
// of an [mcp.Server]. Frames are then passed on to next, which may be nil.
//
// Sessions that this package opens are always checked.
func Check(t testing.TB, rev mcp.Revision, fromClient bool, next func(trace.Frame)) func(trace.Frame) {
	c := &checked{t: t, rev: rev, check: newChecker(rev)}
	t.Cleanup(c.close)
	return func(f trace.Frame) {
		if f.Message() && !refusal(&f) {
			c.frame((f.Dir == trace.Out) == fromClient, f.Msg)
		}
		if next != nil {
			next(f)
		}
	}
}

// refusal reports whether a frame is the body of an HTTP status that refuses a notification or a response, such as one that comes after its
// session was closed: the error has no id then (basic/transports, section "Sending Messages to the Server").
// A frame does not say what it answers, so such an error in answer to a request passes too.
func refusal(f *trace.Frame) bool {
	if f.HTTP == nil || f.HTTP.Status < 400 {
		return false
	}
	_, id := jsonx.Lookup(f.Msg, "id")
	_, failed := jsonx.Lookup(f.Msg, "error")
	return failed && !id
}

// newChecker returns a checker that knows the official extensions too.
func newChecker(rev mcp.Revision) *wirecheck.Checker {
	c := wirecheck.New(string(rev))
	c.Methods = []string{
		"skills/list", "skills/get", "resources/directory/read",
		"tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks",
	}
	c.ResultTypes = []string{"task"}
	return c
}

// checked reports invalid frames for as long as its test runs.
type checked struct {
	rev mcp.Revision

	mu      sync.Mutex
	t       testing.TB         // nil when the test is over; guarded by mu
	check   *wirecheck.Checker // guarded by mu
	opening bool               // initialize was sent and not answered yet; guarded by mu
}

func (c *checked) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = nil
}

func (c *checked) frame(ofClient bool, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.t == nil {
		return
	}
	initialize := ofClient && bytes.Contains(data, []byte(`"method":"initialize"`))
	if initialize && c.opening {
		// No answer: the client tries again on another transport.
		c.check = newChecker(c.rev)
	}
	c.opening = initialize || c.opening && ofClient
	if err := c.check.Frame(ofClient, data); err != nil {
		side := "server"
		if ofClient {
			side = "client"
		}
		c.t.Errorf("the %s sent an invalid frame: %v\n\t%s", side, err, clip(data))
	}
}

// clip bounds a frame for a test log.
func clip(b []byte) string {
	const most = 2000
	if len(b) <= most {
		return string(b)
	}
	return fmt.Sprintf("%s (%d bytes)", text.Clip(b, most), len(b))
}
