package issuer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	stateTime = 4 * time.Second // for which a request waits for State
	openTime  = 20 * time.Second
)

// shared is the part of a State that the Servers of one URL have in common.
type shared struct {
	cluster.State
	prefix string
}

// errState says that State does not answer.
var errState = &fault{status: http.StatusServiceUnavailable, code: unavailable, text: "the cluster does not answer; try again"}

// newShared returns what Servers with a URL have in common; nil without a State.
func newShared(state cluster.State, url string) *shared {
	if state == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(url))
	return &shared{state, "login." + hex.EncodeToString(sum[:6])}
}

// Keys below the prefix.
const (
	ofKeys    = ".keys"
	ofSession = ".session." // and an id
	ofCode    = ".code."    // and the digest of a code
)

// stateFormat is the version of stateValue. A Server does not touch what a newer one has written.
const stateFormat = 1

// stateValue is a value in a State.
type stateValue struct {
	Format int             `json:"v"`
	By     string          `json:"by"` // differs from change to change
	Value  json.RawMessage `json:"value"`
}

func readValue(key string, raw []byte) (json.RawMessage, error) {
	var v stateValue
	if err := jsonx.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if v.Format > stateFormat {
		return nil, fmt.Errorf("%s has format %d, and this node knows %d; update it", key, v.Format, stateFormat)
	}
	return v.Value, nil
}

// change changes a value. The function f gets the present one, nil if there is none, and returns the next one, nil for no
// change, and the time that it is kept. It may be called several times.
func (s *shared) change(key string, f func(now []byte) (next []byte, ttl time.Duration)) error {
	ctx, stop := context.WithTimeout(context.Background(), stateTime)
	defer stop()
	key = s.prefix + key
	var tried []byte // that may have been put
	for {
		e, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return errors.Join(errState, err)
		}
		if tried != nil && bytes.Equal(e.Value, tried) {
			return nil
		}
		var now json.RawMessage
		if err == nil {
			if now, err = readValue(key, e.Value); err != nil {
				return err
			}
		}
		next, ttl := f(now)
		if next == nil {
			return nil
		}
		raw, err := jsonx.Marshal(stateValue{stateFormat, random(), next})
		if err != nil {
			return err
		}
		if _, err = s.Put(ctx, key, raw, e.Version, ttl); err == nil {
			return nil
		}
		if tried = nil; errors.Is(err, cluster.ErrConflict) {
			continue
		}
		tried = raw
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(errState, err)
		}
	}
}

// follow applies what the other Servers change, until the function that it returns is called. It returns when what they have now
// is applied, and mostly when they know what this one has kept.
func (s *Server) follow() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	seen, told := make(chan struct{}), make(chan struct{})
	seenOnce, toldOnce := sync.OnceFunc(func() { close(seen) }), sync.OnceFunc(func() { close(told) })
	var last error // of watch; read when it has ended
	ended.Go(func() {
		for ctx.Err() == nil {
			if err := s.watch(ctx, seenOnce, toldOnce); ctx.Err() == nil {
				last = err
				s.failed("what other nodes change about logins is not seen for a moment", err)
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	stop = func() { cancel(); ended.Wait() }
	select {
	case <-seen:
	case <-time.After(openTime):
		stop()
		if last == nil {
			last = errState
		}
		return nil, fmt.Errorf("the logins of the cluster: %w", last)
	}
	select {
	case <-told:
	case <-time.After(stateTime): // it goes on
	}
	return stop, nil
}

// lossTime is the time between two looks whether the State has lost what it had.
const lossTime = 10 * time.Second

var errLost = errors.New("the cluster has lost what its nodes share; it gets the logins again")

// watch applies changes until an error, or until the State has lost what it had.
func (s *Server) watch(ctx context.Context, seen, told func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { // which ends with ctx
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lossTime):
			}
			if _, err := s.shared.Get(ctx, s.shared.prefix+ofKeys); errors.Is(err, cluster.ErrNotFound) {
				stop(errLost)
			}
		}
	}()
	sessions, keys := map[string]session{}, false // until all of the present is seen
	for c, err := range s.shared.Watch(ctx, s.shared.prefix) {
		if err != nil {
			return err
		}
		key, value := strings.TrimPrefix(c.Key, s.shared.prefix), json.RawMessage(nil)
		if !c.Deleted && (key == ofKeys || strings.HasPrefix(key, ofSession)) {
			if value, err = readValue(c.Key, c.Value); err != nil {
				return err
			}
		}
		switch {
		case c.Key == "":
			seen()
			if err := s.tellAgain(sessions, keys); err != nil {
				return err
			}
			told()
			sessions = nil
		case c.Deleted: // it is over
		case key == ofKeys:
			keys = true
			if err := s.keys.adopt(value); err != nil {
				s.failed("keys of another node are not used", err)
			}
		case strings.HasPrefix(key, ofSession):
			one, err := s.sessions.apply(value)
			if err != nil {
				s.failed("a login of another node is not known", err)
			}
			if sessions != nil {
				sessions[one.ID] = one
			}
		}
	}
	return context.Cause(ctx)
}

// tellAgain shares what this Server knows and the State does not: it was in Dir, or the State was lost.
func (s *Server) tellAgain(sessions map[string]session, keys bool) error {
	if !keys {
		if err := s.keys.share(); err != nil {
			return err
		}
	}
	for _, own := range s.sessions.all() {
		if sessions[own.ID] == own {
			continue
		}
		err := s.sessions.change(own.ID, func(now session, _ bool) (*session, error) {
			if next := now.merge(own); next != now {
				return &next, nil
			}
			return nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
