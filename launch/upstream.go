package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// Upstream is a session for others than the person who runs the program: callers of a gateway, or a
// language model. None of its errors contains a secret, and an error that a login would fix is a
// [gateway.LoginError].
type Upstream struct {
	*Session
	env   *Env
	entry config.Server // as written in the file
}

// Upstream opens a session on behalf of others. The client is used for this session only, as with
// Open. Its frames are recorded under the name of the server, with a number for each connection but
// the first.
func (e *Env) Upstream(ctx context.Context, s config.Server, client *mcp.Client, log *Log) (*Upstream, error) {
	if on := client.OnFrame; on != nil {
		name := s.Name
		if n := log.opened.Add(1); n > 1 { // another client's connection, or one after a loss
			name = fmt.Sprintf("%s#%d", s.Name, n)
		}
		client.OnFrame = func(f trace.Frame) {
			f.Conn = name + "/" + f.Conn
			on(f)
		}
	}
	if s.Command != "" {
		ctx = stray.With(ctx, log.stray)
	}
	open, err := e.Open(ctx, s, client, log)
	if err == nil {
		return &Upstream{open, e, s}, nil
	}
	if wants, _ := e.loginError(s, err); wants != nil {
		return nil, e.public(wants)
	}
	var unopened *Error
	if errors.As(err, &unopened) {
		err = nameless{unopened}
	}
	return nil, e.public(err)
}

// Handle calls Handle of the session.
func (u *Upstream) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := u.Session.Handle(ctx, req)
	return res, u.told(err)
}

// told returns an error of the session in the form for others. An error from the server itself is
// data and passes unchanged.
func (u *Upstream) told(err error) error {
	if err == nil {
		return nil
	}
	var rpc *mcp.Error
	if errors.As(err, &rpc) {
		return err
	}
	if wants, reopen := u.env.loginError(u.entry, err); wants != nil {
		if reopen {
			go u.Close() // bounded in time; a new answer needs a new connection
		}
		err = wants
	}
	return u.env.public(aboutCommand(err, u.command, u.bound))
}

// Err returns the session's error, without secrets.
func (u *Upstream) Err() error {
	if err := u.Session.Err(); err != nil {
		return u.env.public(err)
	}
	return nil
}

// loginError returns the error that asks for a login, or nil if a login would not fix err.
func (e *Env) loginError(s config.Server, err error) (wants error, reopen bool) {
	if e.Login == nil {
		return nil, false
	}
	do, reopen := e.Login(s, err)
	if do == "" {
		return nil, false
	}
	return &gateway.LoginError{Do: do, Err: err}, reopen
}

// nameless is an Error for a text that already has the name of the server.
type nameless struct{ of *Error }

func (e nameless) Error() string { return e.of.Reason() }

func (e nameless) Unwrap() error { return e.of.Err }
