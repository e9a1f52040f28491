package gateway

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// LoginError says that a server can be used when somebody has logged in: [Source.Open] may
// return it, and so may the requests of what that opens. The server's state is then
// [NeedsLogin], and callers are told what to do.
type LoginError struct {
	Do  string // what a person does, such as a command to run
	Err error  // what the server has said
}

func (e *LoginError) Error() string { return string(NeedsLogin) + ": " + e.Do }

func (e *LoginError) Unwrap() error { return e.Err }

// Retry says that somebody may have logged in at a server of Run: if it waits for its next
// attempt, that is made now, and of one that is connected the next request tells.
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

// failed is the state of a server that could not be opened, and why.
func failed(err error) (State, string) {
	var login *LoginError
	if errors.As(err, &login) {
		return NeedsLogin, login.Do
	}
	return Failing, err.Error()
}

// refusal is that of a request, as nobody is logged in any more.
type refusal struct {
	since time.Time
	do    string
}

// heard takes in what became of a request, and returns what its caller is told: a login may end
// while the connection lasts, and come back.
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
	return p.needsLogin(login.Do).Err // it has reached the server
}

func (p *pool) needsLogin(do string) *UnavailableError {
	return &UnavailableError{NeedsLogin, mcp.Errorf(jsonrpc.CodeInternal, "server %q needs login: %s", p.src.Name, do)}
}

// unopened is what the caller is told whose connection could not be opened.
func (p *pool) unopened(err error) error {
	var login *LoginError
	if errors.As(err, &login) {
		return p.needsLogin(login.Do)
	}
	return &UnavailableError{Failing, mcp.Errorf(jsonrpc.CodeInternal, "server %q is failing: %v", p.src.Name, err)}
}

// rest waits between two attempts as the function rest does, unless it is told to try now.
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
