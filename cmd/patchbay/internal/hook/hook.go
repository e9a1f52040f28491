// Package hook runs the hooks of mcp.json: commands before and after the calls of a language model.
//
// [Find] finds them in the file that was found or named and in the person's own, and [Host] makes
// those that may run hooks of a host.
//
// # Guarantees
//
//   - A command gets a line of JSON on its standard input ([Input]), the environment that servers
//     get, and no shell. It has a process group of its own, which ends with it, with the call and
//     with this program.
//   - Exit code 0 lets a call go on, to everything else that decides about it. Before a call,
//     anything else refuses it: code 2 with standard error as the reason, another code, a timeout or
//     a command that cannot be started as a failure.
//   - After a call, code 2 gives standard error to the model, beside the result; another failure is
//     noted.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/guard"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/internal/transport/stdio"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	timeout = 30 * time.Second // without one in the file
	maxSaid = 4 << 10          // bytes of standard error that are kept
	refuses = 2                // the exit code
	atOnce  = 8                // commands that run at the same time
)

// Input is the line that a command reads.
type Input struct {
	Hook         string               `json:"hook"`
	When         string               `json:"when"` // "before" or "after"
	Conversation string               `json:"conversation"`
	Call         host.CallEvent       `json:"call"` // as in docs/events.schema.json
	Hints        *mcp.ToolAnnotations `json:"hints,omitempty"`
}

// Host makes hooks of a host.
func Host(list []config.Hook) (out []host.Hook) {
	slots := make(chan struct{}, atOnce)
	for _, h := range list {
		c := &command{Hook: h, slots: slots}
		if h.After {
			out = append(out, host.Hook{Tools: h.Tools, After: c.after})
		} else {
			out = append(out, host.Hook{Tools: h.Tools, Before: c.before})
		}
	}
	return out
}

// command is a hook as it runs.
type command struct {
	config.Hook
	slots chan struct{} // held while a command runs
}

// failure is an error of a command that did not end with 0.
type failure struct {
	text string
	code int
	said string
}

func (f *failure) Error() string { return f.text }

func (c *command) before(ctx context.Context, call *host.HookedCall) error {
	err := c.run(ctx, "before", call)
	var f *failure
	if errors.As(err, &f) && f.code == refuses {
		return fmt.Errorf("hook %q: %s", c.Name, cmp.Or(f.said, "it gave no reason"))
	}
	return err
}

func (c *command) after(ctx context.Context, call *host.HookedCall) (string, error) {
	err := c.run(ctx, "after", call)
	var f *failure
	if errors.As(err, &f) && f.code == refuses {
		return f.said, nil
	}
	return "", err
}

func (c *command) run(ctx context.Context, when string, call *host.HookedCall) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	if err := out.Encode(Input{c.Name, when, call.Conversation, call.CallEvent, call.Hints}); err != nil {
		return err
	}
	cmd, leash, err := guard.Command(c.Command, c.Args, process.Environment(c.Env, false))
	if err != nil {
		return fmt.Errorf("hook %q cannot be started: %w", c.Name, err)
	}
	defer leash.Release()
	var said head
	cmd.Dir, cmd.Stdin, cmd.Stderr = c.Dir, &line, &said
	bound := cmp.Or(c.Timeout, timeout)
	late := fmt.Errorf("hook %q has not ended within %v", c.Name, bound)
	ctx, cancel := context.WithTimeoutCause(ctx, bound, late)
	defer cancel()
	err = stdio.Run(ctx, cmd)
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil, errors.Is(err, late):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		text := fmt.Sprintf("hook %q failed: %v", c.Name, exit)
		if words := said.String(); words != "" {
			text += ": " + words
		}
		return &failure{text, exit.ExitCode(), said.String()}
	}
	return fmt.Errorf("hook %q failed: %w", c.Name, err)
}

// head keeps the beginning of what is written to it.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxSaid-len(h.kept))]...)
	return len(p), nil
}

func (h *head) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(h.kept), "�"))
}
