package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The host checks a connection that has been quiet for a while and has no calls in progress, and
// one on which a call has failed. A server that does not answer the check is failing; after several
// checks the host closes the connection, and the gateway opens a new one.
const (
	checkEvery = time.Minute      // interval for a quiet connection
	checkSoon  = 10 * time.Second // interval after a check that was not answered
	checkTime  = 10 * time.Second // timeout of a check
	checkMost  = 4                // failed checks in a row after which the connection is closed
)

// health says since when and why a server counts as failing: its connection does not answer checks.
// The gateway has another measure, a server that is late with a list: it leaves that server out of
// lists and calls it all the same.
type health struct {
	since  time.Time
	reason string // empty: it answers
}

// asker is an upstream with the methods of a [*mcp.Session] that a check needs.
type asker interface {
	Revision() mcp.Revision
	Raw(ctx context.Context, method string, params any, o ...mcp.CallOption) (json.RawMessage, error)
}

// suspect requests a check of the connection after a call that failed.
func (s *server) suspect(err error) {
	if !faulty(err) {
		return
	}
	select {
	case s.suspected <- struct{}{}:
	default:
	}
}

// watch checks a connection until it ends.
func (s *server) watch(up gateway.Upstream) {
	a, ok := up.(asker)
	if !ok {
		return
	}
	defer s.ended(up)
	began, missed := time.Now(), 0
	t := time.NewTimer(checkEvery)
	defer t.Stop()
	for {
		doubted := false
		select {
		case <-up.Done():
			return
		case <-s.suspected:
			doubted = true
		case <-t.C:
		}
		quiet := s.stats.quiet(began)
		if quiet == 0 || missed == 0 && !doubted && quiet < checkEvery {
			t.Reset(max(checkSoon, checkEvery-quiet))
			continue
		}
		err := probe(a)
		select {
		case <-up.Done():
			return
		default:
		}
		if err == nil {
			s.stats.heard()
			missed = 0
			t.Reset(checkEvery)
		} else {
			missed++
			t.Reset(checkSoon)
		}
		s.fell(up, err)
		if missed >= checkMost && s.stats.quiet(began) > 0 {
			s.h.log().Warn("connection given up", "server", s.Name, "err", err)
			up.Close()
			return
		}
	}
}

// probe checks whether a server answers; an error response is an answer.
func probe(a asker) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	method := "server/discover"
	if a.Revision().Sessions() {
		method = "ping"
	}
	_, err := a.Raw(ctx, method, nil, mcp.WithoutCache())
	var rpc *mcp.Error
	var login *gateway.LoginError
	var refused *mcp.HTTPError
	switch {
	case errors.As(err, &rpc), errors.As(err, &login), errors.As(err, &refused) && refused.Status < 500:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("no answer to %s within %v", method, checkTime)
	}
	return err
}

// fell records the result of a check, and reports the status if it changed.
func (s *server) fell(up gateway.Upstream, err error) {
	s.mu.Lock()
	was := s.silent.reason != ""
	if s.up.Done() != up.Done() || was == (err != nil) {
		s.mu.Unlock()
		return
	}
	s.silent = health{}
	if err != nil {
		s.silent = health{time.Now(), err.Error()}
	}
	s.mu.Unlock()
	s.tell()
}

// ended clears the health of a connection that has ended.
func (s *server) ended(up gateway.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up.Done() == up.Done() {
		s.silent = health{}
	}
}
