package main

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chat"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
)

// remembering keeps conversations in the file of the user. It is opened when it is needed first.
type remembering struct {
	mu    sync.Mutex
	store *memory.Store // nil: it was not needed yet; guarded by mu
}

func (r *remembering) open() (*memory.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		return r.store, nil
	}
	var err error
	r.store, err = memory.Open("")
	return r.store, err
}

// Keep implements chat.Memory. A conversation in which nothing was said is not kept.
func (r *remembering) Keep(c *host.Conversation) {
	begun := len(c.Entries) > 0
	c.Keep = func(ctx context.Context, at int, e *host.Entry) error {
		s, err := r.open()
		if err != nil {
			return err
		}
		if !begun {
			if e == nil {
				return nil
			}
			folder, _ := os.Getwd() // empty: not known
			if _, err := s.Create(ctx, memory.Conversation{ID: c.ID, Title: titleOf(e), Folder: folder}); err != nil {
				return err
			}
			begun = true
		}
		if e == nil {
			return s.Truncate(ctx, c.ID, at)
		}
		if err := s.Truncate(ctx, c.ID, at); err != nil {
			return err
		}
		return s.Append(ctx, c.ID, memory.Entry{At: e.Time, Turn: e.Turn, Model: e.Model, Usage: e.Usage, Cost: e.Cost, Message: e.Message})
	}
}

// titleOf is what a conversation is called: the beginning of what was said first.
func titleOf(e *host.Entry) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Said()), "\n")
	return cut(strings.TrimSpace(first), 80)
}

// List implements chat.Memory.
func (r *remembering) List(ctx context.Context, words string) ([]chat.Past, error) {
	s, err := r.open()
	if err != nil {
		return nil, err
	}
	const most = 20
	var list []memory.Conversation
	if words == "" {
		list, err = s.List(ctx, memory.ListOptions{Limit: most})
	} else {
		var hits []memory.Hit
		hits, err = s.Search(ctx, words, 4*most)
		seen := map[string]bool{}
		for _, h := range hits {
			if !seen[h.Conversation.ID] && len(list) < most {
				list = append(list, h.Conversation)
			}
			seen[h.Conversation.ID] = true
		}
	}
	past := make([]chat.Past, len(list))
	for i, c := range list {
		past[i] = chat.Past{ID: c.ID, Title: cmp.Or(c.Title, "(no title)"), Updated: c.Updated, Entries: c.Entries}
	}
	return past, err
}

// Resume implements chat.Memory.
func (r *remembering) Resume(ctx context.Context, h *host.Host, id string) (*host.Conversation, error) {
	s, err := r.open()
	if err != nil {
		return nil, err
	}
	found, entries, err := s.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	c := h.NewConversation()
	c.ID = found.ID
	for _, e := range entries {
		c.Entries = append(c.Entries, host.Entry{Message: e.Message, Time: e.At, Turn: e.Turn, Model: e.Model, Usage: e.Usage, Cost: e.Cost})
	}
	return c, nil
}

// close closes the file if it was opened.
func (r *remembering) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		r.store.Close()
	}
}

var _ chat.Memory = (*remembering)(nil)
