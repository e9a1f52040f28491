package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/store"
)

// stores are what a server keeps in its fields, or else in Shared.
type stores struct {
	sessions store.Sessions           // may be nil
	events   store.Events             // likewise
	tasks    store.Tasks              // likewise
	keys     func() ([][]byte, error) // likewise
}

func (s *Server) stores(user *usercode.Runner) (kept stores, err error) {
	kept = stores{sessions: s.HTTP.Sessions, events: s.HTTP.Events, tasks: s.Tasks.Store}
	shared := s.Shared
	switch {
	case len(s.State.Keys) > 0:
		keys := s.State.Keys
		if err := engine.CheckKeys(keys); err != nil {
			return kept, fmt.Errorf("mcp: Server.State: %w", err)
		}
		kept.keys = func() ([][]byte, error) { return keys, nil }
	case shared != nil:
		kept.keys = func() (keys [][]byte, err error) {
			err = user.Run(context.Background(), "store.Shared.StateKeys", func() error { keys = shared.StateKeys(); return nil })
			if err == nil && len(keys) == 0 {
				err = errors.New("mcp: Server.Shared has no key for requestState yet; a cluster.Node has one when it has joined")
			}
			return keys, err
		}
	}
	if shared == nil {
		return kept, nil
	}
	err = user.Run(context.Background(), "store.Shared", func() error {
		if kept.sessions == nil {
			kept.sessions = shared.Sessions()
		}
		if kept.events == nil {
			kept.events = shared.Events()
		}
		if kept.tasks == nil {
			kept.tasks = shared.Tasks()
		}
		if s.Handler == nil {
			shared.OnTold(s.heard)
		}
		return nil
	})
	if err != nil {
		return kept, fmt.Errorf("mcp: Server.Shared: %w", err)
	}
	return kept, nil
}

// change is what a server tells those of other processes with store.Shared. A newer version may have other members.
//
// Changes of lists are not told. Each process has its own features, so a change of its list says nothing about the lists of the others;
// where all change theirs, each announces that itself. A Handler announces its changes in each process too, as a gateway does, which hears
// its servers on each node.
type change struct {
	Updated string `json:"updated,omitempty"` // the URI of a resource
}

// tell tells the other processes that a resource has changed. It reads fields before serving starts, because clients of the others do not
// wait for the first request to this one.
func (s *Server) tell(uri string) {
	shared := s.Shared
	if shared == nil || s.Handler != nil {
		return
	}
	told, err := json.Marshal(change{Updated: uri})
	if err != nil {
		return // never: it is a string
	}
	user := s.userCode()
	_ = user.Run(context.Background(), "store.Shared.Tell", func() error { shared.Tell(told); return nil }) // a panic is reported
}

// heard notifies subscribers of a change that another process has told. It is not told again.
func (s *Server) heard(told []byte) {
	var c change
	if json.Unmarshal(told, &c) == nil && c.Updated != "" {
		s.feed.updated(c.Updated)
	}
}
