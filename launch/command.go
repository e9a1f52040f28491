package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/bounds"
	"github.com/patchbay-dev/patchbay/internal/guard"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// start starts a command. If the system refuses to start it in a control group, it starts without one, and
// its processes are measured.
func (e *Env) start(ctx context.Context, s config.Server, client *mcp.Client, stderr io.Writer) (*Session, error) {
	if err := e.Check(s); err != nil {
		return nil, err
	}
	limits := bounds.Limits{Memory: s.Memory, Processes: s.Processes}
	if limits != (bounds.Limits{}) && !bounds.Supported {
		e.noteOnce(s.Name, fmt.Sprintf("%s: memory and processes are not limited on this system (%s)", s.Name, s.Source))
	}
	on := client.OnFrame
	bound := bounds.New(limits, true)
	open, started, err := e.startBound(ctx, s, client, stderr, bound)
	if err != nil && !started && bound.Grouped() && ctx.Err() == nil {
		client.OnFrame = on
		open, _, err = e.startBound(ctx, s, client, stderr, bounds.New(limits, false))
	}
	return open, err
}

// startBound starts a command within a bound, which it closes if it returns an error. It reports whether a
// process was started.
func (e *Env) startBound(ctx context.Context, s config.Server, client *mcp.Client, stderr io.Writer, bound *bounds.Bound) (open *Session, started bool, err error) {
	cmd, leash, err := guard.Command(s.Command, s.Args, append(environment(s), e.origins().env(s)))
	if err != nil {
		bound.Close()
		return nil, false, err
	}
	cmd.Dir, cmd.Stderr = s.Dir, stderr
	bound.Prepare(cmd)
	if on := client.OnFrame; on != nil || bound != nil {
		client.OnFrame = func(f trace.Frame) {
			if f.Kind == trace.KindStart { // the command as a person wrote it, without its guard
				f.Args = append([]string{s.Command}, s.Args...)
				if pid, err := strconv.Atoi(strings.TrimPrefix(f.Note, "pid ")); err == nil {
					bound.Started(pid) // before the server answers, which it may never do
				}
			}
			if on != nil {
				on(f)
			}
		}
	}
	if bound != nil {
		go bound.Watch(leash.Release) // the guard then ends the command
	}
	session, err := client.Start(ctx, cmd)
	if err != nil {
		leash.Release()
		err = aboutCommand(err, s.Command, bound)
		bound.Close()
		return nil, cmd.Process != nil, err
	}
	return &Session{session, func() { leash.Release(); bound.Close() }, leash.HandOver, s.Command, cmd.Process.Pid, bound}, true, nil
}

// noteOnce calls Note the first time that it is called with a key.
func (e *Env) noteOnce(key, text string) {
	e.mu.Lock()
	said := e.noted[key]
	if e.noted == nil {
		e.noted = map[string]bool{}
	}
	e.noted[key] = true
	e.mu.Unlock()
	if e.Note != nil && !said {
		e.Note(text)
	}
}

// aboutCommand names the command as a person wrote it in an error of its process. If the bound has ended the
// command, the error says why, also if the process ended too slowly to be in the error.
func aboutCommand(err error, command string, bound *bounds.Bound) error {
	if err == nil || command == "" {
		return err
	}
	why := bound.Reason()
	exit := (*mcp.ExitError)(nil)
	switch {
	case errors.As(err, &exit):
		exit.Command = command
		if why != "" {
			exit.State = why
		}
	case why != "" && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return &mcp.ExitError{Command: command, State: why}
	}
	return err
}

// Check returns an error if the command of an entry can never be started as written: it leads back
// to this program, the command or its folder does not exist, or it would not speak over stdio. For
// an entry without a command Check returns nil.
func (e *Env) Check(s config.Server) error {
	if s.Command == "" {
		return nil
	}
	if err := e.origins().refuse(s); err != nil {
		return err
	}
	return process.Check(s)
}

// environment returns the environment of a command.
func environment(s config.Server) []string {
	return process.Environment(s.Env, s.InheritEnv, parentName)
}
