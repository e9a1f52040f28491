// Package chatmemory keeps the conversations of chat in the user's file.
package chatmemory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chat"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
)

// Memory keeps conversations in the user's file. It opens the file when it is first needed. The
// zero value is ready for use.
type Memory struct {
	mu      sync.Mutex
	store   *memory.Store // nil: not needed yet; guarded by mu
	current string        // the id of the current conversation; guarded by mu
}

// Flags name the conversation to continue.
type Flags struct {
	Resume   string `placeholder:"ID" bare:"?" help:"Continue an earlier conversation, or choose one."`
	Continue bool   `short:"c" help:"Continue the last conversation of this folder."`
}

// Choose reports whether the person is to choose the conversation: --resume has no ID.
func (f *Flags) Choose() bool { return f.Resume == "?" }

// ID returns the id of the conversation that the flags name, or a prefix of it; "": they name none.
func (r *Memory) ID(ctx context.Context, f Flags) (string, error) {
	switch {
	case f.Resume != "" && f.Continue:
		return "", advice.Usagef("--resume and --continue exclude each other")
	case f.Choose():
		return "", advice.Usagef("--resume needs an ID where nobody can choose: --resume ID, or --continue")
	case !f.Continue:
		return f.Resume, nil
	}
	s, err := r.open()
	if err != nil {
		return "", err
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("--continue: %w", err)
	}
	list, err := s.List(ctx, memory.ListOptions{Folder: folder, Limit: 1})
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", advice.Usagef("--continue: no conversation of this folder is stored")
	}
	return list[0].ID, nil
}

// Chosen returns the conversation that the flags name, which is kept from now on, or a new one, which
// is kept if keep is set.
func (r *Memory) Chosen(ctx context.Context, h *host.Host, f Flags, keep bool) (*host.Conversation, error) {
	id, err := r.ID(ctx, f)
	if err != nil {
		return nil, err
	}
	c := h.NewConversation()
	if id != "" {
		if c, err = r.Resume(ctx, h, id); errors.Is(err, memory.ErrNone) || errors.Is(err, memory.ErrMany) {
			return nil, advice.Usagef("%w", err)
		} else if err != nil {
			return nil, err
		}
	}
	if id != "" || keep {
		r.Keep(c)
	}
	return c, nil
}

// Current returns the id under which the current conversation is kept; "": it is not.
func (r *Memory) Current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *Memory) open() (*memory.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		return r.store, nil
	}
	var err error
	r.store, err = memory.Open("")
	return r.store, err
}

// Keep implements chat.Memory. A conversation without entries is not kept.
func (r *Memory) Keep(c *host.Conversation) {
	r.begin(c.ID)
	if c.Keep == nil { // a resumed one is kept already
		r.keep(c, memory.Conversation{})
	}
}

// begin sets the id of the current conversation.
func (r *Memory) begin(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = id
}

// keep writes the entries of a conversation from now on; known is its state in the file, and
// without an id there is none. Entries that could not be written are written the next time. If
// another process has continued the conversation, its version stays, and this one becomes a new
// conversation.
func (r *Memory) keep(c *host.Conversation, known memory.Conversation) {
	id := c.ID
	same := known.Entries // the number of entries in the file that are those of c
	write := func(ctx context.Context, s *memory.Store, entries []host.Entry) (err error) {
		if known.ID == "" {
			if len(entries) == 0 {
				return nil
			}
			folder, _ := os.Getwd() // empty: not known
			if known, err = s.Create(ctx, memory.Conversation{ID: id, Title: titleOf(&entries[0]), Folder: folder}); err != nil {
				known.ID = ""
				return err
			}
		}
		var more []memory.Entry
		for _, e := range entries[same:] {
			more = append(more, memory.Entry{At: e.Time, Turn: e.Turn, Model: e.Model, Usage: e.Usage, Cost: e.Cost, Message: e.Message})
		}
		known.Usage, known.Cost = c.Used()
		known.Parameters, known.Mode = c.Parameters, string(c.Mode)
		if known, err = s.Write(ctx, known, same, more...); err == nil {
			same = len(entries)
		}
		return err
	}
	c.Keep = func(ctx context.Context, at int, _ *host.Entry) error {
		same = min(same, at)
		s, err := r.open()
		if err != nil {
			return err
		}
		entries := c.Snapshot()
		err = write(ctx, s, entries)
		if !errors.Is(err, memory.ErrElsewhere) {
			return err
		}
		before := known.ID
		id, known, same = "", memory.Conversation{}, 0
		if err := write(ctx, s, entries); err != nil || known.ID == "" {
			return err
		}
		r.begin(known.ID)
		return fmt.Errorf("%s was continued by another process; this conversation is now %s", before, known.ID)
	}
}

// titleOf returns the title of a conversation: the beginning of its first entry.
func titleOf(e *host.Entry) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Said()), "\n")
	return screen.Cut(strings.TrimSpace(first), 80)
}

// History returns the file with the input history of chat, beside the conversations; "": there is none.
func History() string {
	path, err := memory.DefaultPath()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "history.jsonl")
}

// List implements chat.Memory.
func (r *Memory) List(ctx context.Context, words string) ([]chat.Past, error) {
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
func (r *Memory) Resume(ctx context.Context, h *host.Host, id string) (*host.Conversation, error) {
	s, err := r.open()
	if err != nil {
		return nil, err
	}
	found, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	found, entries, err := s.Load(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	c := h.NewConversation()
	c.ID, c.Usage, c.Cost = found.ID, found.Usage, found.Cost
	c.Parameters = found.Parameters
	if c.Mode, err = host.ParseMode(found.Mode); err != nil { // of a later version
		c.Mode = host.ModeReadOnly
	}
	for _, e := range entries {
		c.Entries = append(c.Entries, host.Entry{Message: e.Message, Time: e.At, Turn: e.Turn, Model: e.Model, Usage: e.Usage, Cost: e.Cost})
	}
	r.keep(c, found)
	return c, nil
}

// Forget implements chat.Memory.
func (r *Memory) Forget(ctx context.Context, id string) error {
	s, err := r.open()
	if err != nil {
		return err
	}
	if id == r.Current() {
		return fmt.Errorf("%s is this conversation; start another with /new, then delete it", id)
	}
	err = s.Delete(ctx, id)
	if errors.Is(err, memory.ErrNone) {
		return fmt.Errorf("%w; give the whole ID, as /resume lists it", err)
	}
	return err
}

// Close closes the file if it is open.
func (r *Memory) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		r.store.Close()
	}
}

var _ chat.Memory = (*Memory)(nil)
