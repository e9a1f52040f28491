package steer

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Session is a session of a client before 2026-07-28; later clients have none.
type Session struct {
	ID        string    `json:"id"` // a number, also in [Call]; not the id that the client sends
	Client    string    `json:"client,omitempty"`
	Version   string    `json:"version,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Revision  string    `json:"revision"`
	Since     time.Time `json:"since"`

	n int
}

// Sessions are the open sessions. The zero value has none. It may be used by several goroutines.
type Sessions struct {
	mu   sync.Mutex
	n    int                          // sessions so far; guarded by mu
	open map[context.Context]*Session // guarded by mu
}

// Add keeps a session until it ends. It is for [mcp.Server.OnSession].
func (s *Sessions) Add(session context.Context) {
	out := &Session{Since: time.Now()}
	key := session
	if from := mcp.CallFrom(session); from != nil {
		out.Client, out.Version, out.Principal, out.Revision = text.Short(from.Client.Name), text.Short(from.Client.Version), from.Principal, string(from.Revision)
		key = from.Session()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	out.n, out.ID = s.n, strconv.Itoa(s.n)
	if s.open == nil {
		s.open = map[context.Context]*Session{}
	}
	s.open[key] = out
	context.AfterFunc(session, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, key)
	})
}

// id returns the ID of a session; empty: there is none.
func (s *Sessions) id(session context.Context) string {
	if s == nil || session == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.open[session]; of != nil {
		return of.ID
	}
	return ""
}

// List returns the oldest sessions, at most 1000, and the number of all.
func (s *Sessions) List() (list []Session, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list = []Session{}
	for _, of := range s.open {
		list = append(list, *of)
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Compare(a.n, b.n) })
	return list[:min(len(list), maxShown)], len(list)
}
