package issuer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const (
	sessionFile    = "sessions.jsonl"
	maxSessionFile = 128 << 20
	maxSessions    = 100_000
	spareLines     = 10_000          // that are written before the file is made anew
	sessionGrace   = 2 * time.Minute // that a session is known after its end, as verifiers have a leeway
	rulesLen       = 6               // characters of a session id that are a digest of Require
)

// sessions has the logins, and those that ended early. In a folder they outlive the process: the file
// has a line for each change, and is made anew when half of its lines are old.
type sessions struct {
	path   string  // empty: memory
	shared *shared // which changes come first to; nil: nothing is shared

	mu    sync.Mutex
	known map[string]session // by id; guarded by mu
	lines int                // of the file; guarded by mu
}

// session is a login. The generation counts its refresh tokens: only the last one is good.
type session struct {
	ID         string `json:"id"`
	Generation int    `json:"generation,omitzero"`
	Ends       int64  `json:"ends"` // in seconds since 1970
	Over       bool   `json:"over,omitzero"`
	about
}

// about says whose login it is. Of the lines of a session, the first ones have it.
type about struct {
	Person string `json:"person,omitempty"` // subject
	Name   string `json:"name,omitempty"`
	Host   string `json:"host,omitempty"`
	Since  int64  `json:"since,omitzero"`
}

// digestOf returns the digest of rules that session ids begin with.
func digestOf(require map[string][]string) (string, error) {
	if len(require) == 0 {
		require = nil
	}
	raw, err := jsonx.Marshal(require) // sorted by name
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:rulesLen], err
}

// newSession returns the id of a login.
func (s *Server) newSession() string { return s.rules + random()[:22] }

// current reports whether a session began under the present Require.
func (s *Server) current(id string) bool { return strings.HasPrefix(id, s.rules) }

// openSessions reads the logins in a folder.
func openSessions(dir string, common *shared) (*sessions, error) {
	s := &sessions{known: map[string]session{}, shared: common}
	if dir == "" {
		return s, nil
	}
	s.path = filepath.Join(dir, sessionFile)
	raw, err := ownfile.ReadNow(s.path, maxSessionFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("logins: %w", err)
	}
	if len(raw) > maxSessionFile {
		return nil, fmt.Errorf("logins: %s has more than %d bytes; remove it, which ends all logins", s.path, maxSessionFile)
	}
	for line := range bytes.Lines(raw) {
		var one session
		if jsonx.Unmarshal(line, &one) != nil || one.ID == "" {
			continue // the last line of a process that was killed
		}
		before := s.known[one.ID]
		one.Over = one.Over || before.Over
		if one.about == (about{}) {
			one.about = before.about
		}
		s.known[one.ID] = one
	}
	return s, s.compact()
}

// compact drops the sessions that are over, and makes the file anew.
func (s *sessions) compact() error {
	s.forget()
	if s.path == "" {
		return nil
	}
	var out []byte
	for _, one := range s.known {
		line, err := jsonx.Marshal(one)
		if err != nil {
			return err
		}
		out = append(append(out, line...), '\n')
	}
	if err := ownfile.Replace(s.path, out); err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	s.lines = len(s.known)
	return nil
}

// forget drops the sessions whose time is over.
func (s *sessions) forget() {
	before := time.Now().Add(-sessionGrace).Unix()
	maps.DeleteFunc(s.known, func(_ string, one session) bool { return one.Ends <= before })
}

// put keeps a session, in the file first. The line tells the person and the host only if they have changed.
func (s *sessions) put(one session) error {
	if s.known[one.ID] == one {
		return nil
	}
	if s.path != "" {
		short := one
		if s.known[one.ID].about == one.about {
			short.about = about{}
		}
		line, err := jsonx.Marshal(short)
		if err != nil {
			return err
		}
		if err := ownfile.AppendLine(s.path, line); err != nil {
			return fmt.Errorf("logins: %w", err)
		}
		s.lines++
	}
	s.known[one.ID] = one
	if s.lines > 2*len(s.known)+spareLines {
		return s.compact()
	}
	return nil
}

// change changes a session, first where it is shared. The function f gets it, known or not, and returns the next one, nil for no
// change, and the error that change returns; it may be called several times.
func (s *sessions) change(id string, f func(now session, known bool) (next *session, err error)) (err error) {
	if s.shared == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		now, known := s.known[id]
		next, err := f(now, known)
		if next == nil {
			return err
		}
		return errors.Join(err, s.put(*next))
	}
	var next *session
	shareErr := s.shared.change(ofSession+id, func(raw []byte) ([]byte, time.Duration) {
		var now session
		shared := raw != nil && jsonx.Unmarshal(raw, &now) == nil
		known := shared
		if !shared {
			s.mu.Lock()
			now, known = s.known[id] // the State has lost it, and gets it again
			s.mu.Unlock()
		}
		if next, err = f(now, known); next == nil && known && !shared {
			next = &now
		}
		if next == nil {
			return nil, 0
		}
		raw, _ = jsonx.Marshal(next) // of texts and numbers
		return raw, max(time.Second, time.Until(time.Unix(next.Ends, 0))+sessionGrace)
	})
	if next == nil || shareErr != nil {
		return errors.Join(err, shareErr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.put(s.known[id].merge(*next)))
}

// apply takes a session as another Server has changed it, and returns it.
func (s *sessions) apply(raw []byte) (one session, err error) {
	if err := jsonx.Unmarshal(raw, &one); err != nil {
		return one, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.known[one.ID]; now.merge(one) != now {
		err = s.put(now.merge(one))
	}
	return one, err
}

// merge returns what two states of a session say together.
func (one session) merge(other session) session {
	if other.Ends > one.Ends || other.Ends == one.Ends && one.Host == "" { // it knows more about whose login it is
		one, other = other, one
	}
	one.Generation, one.Over = max(one.Generation, other.Generation), one.Over || other.Over
	return one
}

// all returns the sessions.
func (s *sessions) all() []session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.known))
}

// room returns an error if there are too many sessions for another one.
func (s *sessions) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSessions {
		s.forget()
	}
	if len(s.known) >= maxSessions {
		return &fault{status: 503, code: unavailable, text: "too many people are logged in"}
	}
	return nil
}

// begin keeps the session of a person who has logged in. It ends with the code, unless that is exchanged.
func (s *sessions) begin(id string, who *person) error {
	if err := s.room(); err != nil {
		return err
	}
	now := time.Now()
	return s.change(id, func(session, bool) (*session, error) {
		return &session{ID: id, Ends: now.Add(codeLife).Unix(), about: about{Person: who.Subject, Name: who.Name, Since: now.Unix()}}, nil
	})
}

// errEnded says that a login is over.
var errEnded = refuse(invalidGrant, "the login has ended; log in again")

// extend keeps a session whose code was exchanged by a host until a time.
func (s *sessions) extend(id, host string, until time.Time) error {
	return s.change(id, func(one session, known bool) (*session, error) {
		if !known || one.Over {
			return nil, errEnded
		}
		one.Host, one.Ends = host, until.Unix()
		return &one, nil
	})
}

// errReused says that a refresh token was used twice.
var errReused = refuse(invalidGrant, "the refresh token was used before, so the login has ended; log in again")

// advance counts the generation of a session on, from the one of a refresh token. A wrong one ends the
// session, which is returned then.
func (s *sessions) advance(id string, from int) (ended *session, err error) {
	err = s.change(id, func(one session, known bool) (*session, error) {
		ended = nil
		switch {
		case !known || one.Over || one.Ends <= time.Now().Unix():
			return nil, errEnded
		case one.Generation != from:
			one.Over = true
			ended = &one
			return &one, errReused
		}
		one.Generation++
		return &one, nil
	})
	return ended, err
}

// end ends a session early, and returns it; nil: it had ended.
func (s *sessions) end(id string, until time.Time) (ended *session, err error) {
	err = s.change(id, func(one session, known bool) (*session, error) {
		if ended = nil; one.Over {
			return nil, nil
		}
		one.ID, one.Over, one.Ends = id, true, max(one.Ends, until.Unix())
		ended = &one
		return &one, nil
	})
	return ended, err
}

// login returns the session for a program.
func (one *session) login() Login {
	return Login{one.Person, one.Name, one.Host, time.Unix(one.Since, 0), time.Unix(one.Ends, 0)}
}

// endAll ends the sessions that are selected, and returns those that it has ended.
func (s *sessions) endAll(selected func(session) bool) (ended []session, err error) {
	now := time.Now().Unix()
	for _, one := range s.all() {
		if one.Over || one.Ends <= now || !selected(one) {
			continue
		}
		last, err := s.end(one.ID, time.Unix(one.Ends, 0))
		if err != nil {
			return ended, err
		}
		if last != nil {
			ended = append(ended, *last)
		}
	}
	return ended, nil
}

// over reports whether a session has ended early.
func (s *sessions) over(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[id].Over
}
