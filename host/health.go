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

// silence is that of a server that does not answer.
type silence struct {
	since  time.Time
	reason string // empty: it answers
}

// asker is a session that can be asked anything.
type asker interface {
	Raw(ctx context.Context, method string, params any, o ...mcp.CallOption) (json.RawMessage, error)
}

// doubt has a server looked at whose call has failed.
func (s *server) doubt(err error) {
	if !faulty(err) {
		return
	}
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// care has an eye on a session until it ends.
func (s *server) care(session Session) {
	a, ok := session.(asker)
	if !ok {
		return
	}
	defer s.ended(session)
	began, missed := time.Now(), 0
	t := time.NewTimer(checkEvery)
	defer t.Stop()
	for {
		doubted := false
		select {
		case <-session.Done():
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
		err := s.check(session, a)
		select {
		case <-session.Done():
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
		s.fell(session, err)
		if missed >= checkMost && s.stats.quiet(began) > 0 {
			s.h.log().Warn("connection given up", "server", s.Name, "err", err)
			session.Close()
			return
		}
	}
}

// check asks a session whether it answers, be it with an error.
func (s *server) check(session Session, a asker) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	method := "server/discover"
	if session.Revision().Sessions() {
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

// fell notes that a session does not answer, or does, and tells of it if that is news.
func (s *server) fell(session Session, err error) {
	s.mu.Lock()
	was := s.silent.reason != ""
	if s.session != session || was == (err != nil) {
		s.mu.Unlock()
		return
	}
	s.silent = silence{}
	if err != nil {
		s.silent = silence{time.Now(), err.Error()}
	}
	s.mu.Unlock()
	s.tell()
}

// ended forgets what was said of a session.
func (s *server) ended(session Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.silent = silence{}
	}
}
