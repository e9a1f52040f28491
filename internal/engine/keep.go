package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Keeping is what a session has beside, if another process may continue it.
type Keeping struct {
	changed func()                    // what State returns has changed; must not block
	kept    func(ctx context.Context) // waits until the last change is kept, or for a while
	pending atomic.Bool               // Used has taken note of something, and Noted has not waited for it

	mu   sync.Mutex
	used map[string]struct{} // servers behind the handler with state for the session; guarded by mu
	lost []string            // such servers of the process that had the session before
}

// Used implements [note.Continuable].
func (k *Keeping) Used(server string) {
	k.mu.Lock()
	_, before := k.used[server]
	if k.used == nil {
		k.used = map[string]struct{}{}
	}
	k.used[server] = struct{}{}
	k.mu.Unlock()
	if !before {
		k.changed()
		k.pending.Store(true)
	}
}

// Noted implements [note.Continuable].
func (k *Keeping) Noted(ctx context.Context) {
	if k.pending.Load() {
		k.kept(ctx)
		k.pending.Store(false)
	}
}

// Lost implements [note.Continuable].
func (k *Keeping) Lost() []string { return k.lost }

// stateFormat is the version of sessionState. An older program refuses a newer one. The format of the record around it (package cluster) grows
// with it.
const stateFormat = 1

// sessionState is what another process needs to continue a session.
type sessionState struct {
	Format       int             `json:"v"`
	Revision     string          `json:"revision"`
	Info         json.RawMessage `json:"clientInfo,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Level        string          `json:"level,omitempty"`     // of log messages; empty: the client has not set one
	Resources    []string        `json:"resources,omitempty"` // that it is subscribed to
	Servers      []string        `json:"servers,omitempty"`   // behind the handler that keep state for it
}

// Keep makes changed be called when what State returns has changed, and kept where that has to be kept before something
// happens. It is called before the first request is served.
func (s *Session) Keep(changed func(), kept func(ctx context.Context)) {
	if s.keeping == nil {
		s.keeping = new(Keeping)
	}
	s.keeping.changed, s.keeping.kept = changed, kept
}

// State returns what [Engine.Restore] makes a session of.
func (s *Session) State() json.RawMessage {
	state := sessionState{Format: stateFormat, Revision: s.Peer.Revision.Name, Info: s.Peer.Info, Capabilities: s.Peer.Capabilities}
	if l := s.level.Load(); l != nil {
		state.Level = *l
	}
	s.mu.Lock()
	state.Resources = slices.Sorted(maps.Keys(s.watches))
	s.mu.Unlock()
	if k := s.keeping; k != nil {
		k.mu.Lock()
		state.Servers = slices.Sorted(maps.Keys(k.used))
		k.mu.Unlock()
	}
	data, _ := json.Marshal(state) // of strings, and of JSON that was parsed before
	return data
}

// Restore makes a session that another process has opened for a caller. The transport then sets Events and calls
// Resubscribe.
func (e *Engine) Restore(ctx context.Context, data json.RawMessage, who Caller) (*Session, error) {
	var state sessionState
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, errors.New("the state of the session is damaged") // its client reads this
	}
	t := revision.Find(e.Revisions, state.Revision)
	switch {
	case state.Format > stateFormat:
		return nil, fmt.Errorf("the state of the session has format %d, which a newer version of this program has written; this one knows %d", state.Format, stateFormat)
	case t == nil || !t.Sessions:
		return nil, fmt.Errorf("the session has revision %q, which this server does not serve", state.Revision)
	}
	object := func(raw json.RawMessage) json.RawMessage {
		if jsonx.KindOf(raw) == '{' {
			return raw
		}
		return nil
	}
	s := &Session{Peer: e.shared.of(t, who, object(state.Info), object(state.Capabilities)), opened: ctx, keeping: &Keeping{lost: state.Servers}}
	if LevelIndex(state.Level) >= 0 {
		s.level.Store(&state.Level)
	}
	s.watches = map[string]*watch{}
	for _, uri := range state.Resources {
		s.watches[uri] = nil // until Resubscribe
	}
	return s, nil
}

// Resubscribe subscribes a restored session to the resources that it was subscribed to. A server that refuses one is
// not asked again.
func (s *Session) Resubscribe(e *Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uri := range slices.Collect(maps.Keys(s.watches)) {
		s.watch(e, uri, jsonx.AppendString(nil, uri))
	}
}

// TellMissed tells the client of a restored session what it may have missed: changes of each list whose changes the handler announces, and of
// each resource that the session is subscribed to. It does not wait.
func (s *Session) TellMissed(e *Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return
	}
	ctx := s.context()
	uris := slices.Sorted(maps.Keys(s.watches))
	s.wg.Go(func() { // it ends when the handler returns, whose context ends with the session
		for _, uri := range uris {
			_ = s.tell(revision.NoteResourceUpdated, append(jsonx.AppendString([]byte(`{"uri":`), uri), '}')) // a session that has ended misses nothing
		}
		answer, refused := e.introduction(ctx, jsonrpc.ID{}, s.Peer, nil, false)
		if refused != nil {
			return
		}
		for member, note := range map[string]string{"tools": revision.NoteToolsChanged, "prompts": revision.NotePromptsChanged, "resources": revision.NoteResourcesChanged} {
			if changes, ok := jsonx.LookupPath(answer, "capabilities", member, "listChanged"); ok && string(changes) == "true" {
				_ = s.tell(note, nil) // likewise
			}
		}
	})
}

// stateChanged is called when what State returns has changed, before the client gets the answer to the request that did it: what
// was answered is known to the process that continues the session, if the store answers in time.
func (s *Session) stateChanged(ctx context.Context) {
	if s.keeping != nil {
		s.keeping.changed()
		s.keeping.kept(ctx)
	}
}

// continuable returns what the session keeps for another process, nil if none may continue it.
func (s *Session) continuable() note.Continuable {
	if s.keeping == nil {
		return nil
	}
	return s.keeping
}
