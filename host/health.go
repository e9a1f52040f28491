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

// How the health of a server is checked: one of which nothing was heard for a while, and that
// has nothing to do, is asked something that costs it nothing. As long as it does not answer
// it is failing; after some time its connection is given up, and the gateway opens another.
const (
	checkEvery = time.Minute      // of a connection that is quiet
	checkSoon  = 10 * time.Second // of one that did not answer
	checkTime  = 10 * time.Second // that it has for an answer
	checkMost  = 4                // without an answer in a row, and the connection is given up
)

// health is that of a server that does not answer.
type health struct {
	since  time.Time
	reason string // empty: it answers
}

// asker is an upstream that can be asked anything, as a [*mcp.Session] can.
type asker interface {
	Revision() mcp.Revision
	Raw(ctx context.Context, method string, params any, o ...mcp.CallOption) (json.RawMessage, error)
}

// suspect has a server looked at whose call has failed.
func (s *server) suspect(err error) {
	if !faulty(err) {
		return
	}
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// watch looks at a connection until it ends.
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
		case <-s.doubts:
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

// probe asks a server whether it answers, be it with an error.
func probe(a asker) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	method := "server/discover"
	if a.Revision().Sessions() {
		method = "ping"
	}
	_, err := a.Raw(ctx, method, nil, mcp.Fresh())
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

// fell notes that a connection does not answer, or does, and tells of it if that is news.
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

// ended forgets what was said of a connection.
func (s *server) ended(up gateway.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up.Done() == up.Done() {
		s.silent = health{}
	}
}
