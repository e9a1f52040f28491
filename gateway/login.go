package gateway

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// LoginError says that a server needs a login. [Source.Open] may return it, and so may requests
// over the connection that Open opened. The state of the server is then [NeedsLogin], and callers
// are told what to do.
type LoginError struct {
	Do  string // what a person must do, such as a command to run
	Err error  // the server's error
}

func (e *LoginError) Error() string { return string(NeedsLogin) + ": " + e.Do }

func (e *LoginError) Unwrap() error { return e.Err }

// Retry makes the gateway try a server again because somebody may have logged in there. If the
// server waits for its next connection attempt, the attempt is made now. If the server is
// connected, it counts as ready again until a request fails.
func (g *Gateway) Retry(name string) {
	for _, up := range g.upstreams() {
		p := up.pool
		if up.name != name || p == nil {
			continue
		}
		if p.refused.Swap(nil) != nil {
			p.tell()
			continue
		}
		select {
		case p.again <- struct{}{}:
		default:
		}
	}
}

// failed returns the state and reason for a server that could not be opened.
func failed(err error) (State, string) {
	var login *LoginError
	if errors.As(err, &login) {
		return NeedsLogin, login.Do
	}
	return Failing, err.Error()
}

// refusal records a request that failed because a login has ended.
type refusal struct {
	since time.Time
	do    string
}

// heard processes the error of a request and returns the error for its caller. A login may expire,
// and be renewed, while the connection lasts.
func (p *pool) heard(err error) error {
	if err == nil {
		if p.refused.Load() != nil && p.refused.Swap(nil) != nil {
			p.tell()
		}
		return nil
	}
	var login *LoginError
	if !errors.As(err, &login) {
		return err
	}
	if p.refused.Swap(&refusal{time.Now(), login.Do}) == nil {
		p.tell()
	}
	return p.needsLogin(login.Do).Err // the request reached the server
}

func (p *pool) needsLogin(do string) *UnavailableError {
	return &UnavailableError{NeedsLogin, mcp.Errorf(jsonrpc.CodeInternal, "server %q needs login: %s", p.src.Name, do)}
}

// unopened returns the error for a caller whose connection could not be opened.
func (p *pool) unopened(err error) error {
	var login *LoginError
	if errors.As(err, &login) {
		return p.needsLogin(login.Do)
	}
	return &UnavailableError{Failing, mcp.Errorf(jsonrpc.CodeInternal, "server %q is failing: %v", p.src.Name, err)}
}

// rest waits between two attempts, like the function rest, but ends early on Retry.
func (p *pool) rest(pause *time.Duration) {
	t := time.NewTimer(*pause/2 + rand.N(*pause/2))
	defer t.Stop()
	select {
	case <-t.C:
		*pause = min(2**pause, longPause)
	case <-p.again:
		*pause = firstPause
	case <-p.ctx.Done():
	}
}
