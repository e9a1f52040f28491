package issuer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const (
	sessionFile    = "sessions.jsonl"
	maxSessionFile = 64 << 20
	maxSessions    = 100_000
	spareLines     = 10_000 // that are written before the file is made anew
)

// sessions has the logins that have a refresh token, and those that ended early. In a folder they
// outlive the process: the file has a line for each change, and is made anew when half of its lines
// are old.
type sessions struct {
	path string // empty: memory

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
}

// openSessions reads the logins in a folder.
func openSessions(dir string) (*sessions, error) {
	s := &sessions{known: map[string]session{}}
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
	now := time.Now().Unix()
	for line := range bytes.Lines(raw) {
		var one session
		if jsonx.Unmarshal(line, &one) != nil || one.ID == "" {
			continue // the last line of a process that was killed
		}
		one.Over = one.Over || s.known[one.ID].Over // another process may have written after the end
		if s.known[one.ID] = one; one.Ends <= now {
			delete(s.known, one.ID)
		}
	}
	return s, s.compact()
}

// compact makes the file anew.
func (s *sessions) compact() error {
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

// put keeps a session, in the file first.
func (s *sessions) put(one session) error {
	if s.path != "" {
		line, err := jsonx.Marshal(one)
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

// begin keeps a new session.
func (s *sessions) begin(id string, ends time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSessions {
		now := time.Now().Unix()
		maps.DeleteFunc(s.known, func(_ string, one session) bool { return one.Ends <= now })
	}
	if len(s.known) >= maxSessions {
		return &fault{status: 503, code: unavailable, text: "too many people are logged in"}
	}
	return s.put(session{ID: id, Ends: ends.Unix()})
}

// errReused says that a refresh token was used twice.
var errReused = refuse(invalidGrant, "the refresh token was used before, so the login has ended; log in again")

// advance counts the generation of a session on, from the one of a refresh token. A wrong one ends the
// session.
func (s *sessions) advance(id string, from int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.known[id]
	switch {
	case !ok || one.Over || one.Ends <= time.Now().Unix():
		return refuse(invalidGrant, "the login has ended; log in again")
	case one.Generation != from:
		one.Over = true
		return errors.Join(errReused, s.put(one))
	}
	one.Generation++
	return s.put(one)
}

// end ends a session early.
func (s *sessions) end(id string, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.known[id]
	if !ok {
		one = session{ID: id, Ends: until.Unix()}
	}
	if one.Over {
		return nil
	}
	one.Over = true
	return s.put(one)
}

// over reports whether a session has ended early.
func (s *sessions) over(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[id].Over
}
