package launch

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/guard"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

func (e *Env) start(ctx context.Context, s config.Server, client *mcp.Client, stderr io.Writer) (*Session, error) {
	if err := e.Check(s); err != nil {
		return nil, err
	}
	cmd, leash, err := guard.Command(s.Command, s.Args, append(environment(s), e.origins().env(s)))
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Stderr = s.Dir, stderr
	if on := client.OnFrame; on != nil {
		client.OnFrame = func(f trace.Frame) {
			if f.Kind == trace.KindStart { // the command as a person wrote it, without its guard
				f.Args = append([]string{s.Command}, s.Args...)
			}
			on(f)
		}
	}
	session, err := client.Start(ctx, cmd)
	if err != nil {
		leash.Release()
		return nil, aboutCommand(err, s.Command)
	}
	return &Session{session, leash.Release, leash.HandOver, s.Command, cmd.Process.Pid}, nil
}

// aboutCommand names the command as a person wrote it in an error of its process.
func aboutCommand(err error, command string) error {
	var exit *mcp.ExitError
	if command != "" && errors.As(err, &exit) {
		exit.Command = command
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

// environment returns the environment of a command: the variables that its configuration declares
// and, of this program's environment, all if the entry inherits it, else those that
// [process.Passes] allows. Answers to the inputs of one server are not given to another, and the
// passphrase of the vault is given to none.
func environment(s config.Server) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		if s.InheritEnv {
			return strings.HasPrefix(name, config.InputEnvPrefix) || name == "PATCHBAY_PASSPHRASE" || name == parentName
		}
		return !process.Passes(name, value, runtime.GOOS)
	})
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}
