package chatmemory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/host/model"
)

// remembers opens a memory of conversations, as a new process does.
func remembers(t *testing.T, path string) *Memory {
	t.Helper()
	s, err := memory.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &Memory{store: s}
	t.Cleanup(r.Close)
	return r
}

// said adds a message of the person and keeps it.
func said(ctx context.Context, c *host.Conversation, text string) error {
	at := len(c.Entries)
	c.Entries = append(c.Entries, host.Entry{Message: model.UserText(text), Time: time.Now(), Turn: at + 1})
	c.Usage.Input++
	return c.Keep(ctx, at, &c.Entries[at])
}

// texts returns the kept texts of a conversation.
func texts(t *testing.T, r *Memory, id string) string {
	t.Helper()
	_, entries, err := r.store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Message.Text())
	}
	return strings.Join(all, " ")
}

// When two processes continue one conversation, neither loses anything.
func TestTwoGoOnWithOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	r1, r2 := remembers(t, path), remembers(t, path)
	ctx, h := t.Context(), &host.Host{}
	a := h.NewConversation()
	r1.Keep(a)
	for _, text := range []string{"one", "two"} {
		if err := said(ctx, a, text); err != nil {
			t.Fatal(err)
		}
	}
	b, err := r2.Resume(ctx, h, a.ID[:6])
	if err != nil {
		t.Fatal(err)
	}
	r2.Keep(b)
	for _, text := range []string{"three", "four"} {
		if err := said(ctx, a, text); err != nil {
			t.Fatal(err)
		}
	}
	err = said(ctx, b, "drei")
	if err == nil || !strings.Contains(err.Error(), a.ID+" was continued by another process") {
		t.Fatalf("the second one is told %v", err)
	}
	other := r2.current
	for _, c := range []*host.Conversation{a, b} {
		if err := said(ctx, c, "last"); err != nil {
			t.Error(err)
		}
	}
	if got := texts(t, r1, a.ID); got != "one two three four last" {
		t.Errorf("%s has %s", a.ID, got)
	}
	if got := texts(t, r1, other); got != "one two drei last" {
		t.Errorf("%s has %s", other, got)
	}
	if list, err := r1.List(ctx, ""); len(list) != 2 || list[1].Title != "one" || err != nil {
		t.Errorf("List = %v, %v; want both", list, err)
	}
	if err := r2.Forget(ctx, other); err == nil {
		t.Error("the conversation that goes on can be deleted")
	}
}

// Entries that could not be kept are kept the next time, from the first on.
func TestKeepFails(t *testing.T) {
	never, cancel := context.WithCancel(t.Context())
	cancel()
	for _, failing := range []string{"0", "1", "0 1", "2 3", "1 4"} {
		r := remembers(t, filepath.Join(t.TempDir(), "c.db"))
		c := (&host.Host{}).NewConversation()
		r.Keep(c)
		for i, text := range []string{"one", "two", "three", "four", "five"} {
			ctx, fails := t.Context(), strings.Contains(failing, fmt.Sprint(i))
			if fails {
				ctx = never
			}
			if i == 3 { // one is removed, perhaps unnoticed
				c.Entries = c.Entries[:2]
				if err := c.Keep(ctx, 2, nil); (err != nil) != fails {
					t.Errorf("with %s failing: Undo is kept: %v", failing, err)
				}
			}
			if err := said(ctx, c, text); (err != nil) != fails {
				t.Errorf("with %s failing: %s: %v", failing, text, err)
			}
		}
		if err := c.Keep(t.Context(), len(c.Entries), nil); err != nil { // the end of the turn
			t.Error(err)
		}
		if got := texts(t, r, c.ID); got != "one two four five" {
			t.Errorf("with %s failing: %s", failing, got)
		}
		past, err := r.Resume(t.Context(), &host.Host{}, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if used, _ := past.Used(); used.Input != 5 {
			t.Errorf("with %s failing: %d tokens are counted, want 5, as one was taken back", failing, used.Input)
		}
		if list, err := r.List(t.Context(), ""); len(list) != 1 || list[0].Title != "one" || err != nil {
			t.Errorf("with %s failing: %v, %v", failing, list, err)
		}
	}
}

// The settings of a conversation are kept, also when they change without a turn, and a mode of a later version is not wider
// than read-only.
func TestSettingsAreKept(t *testing.T) {
	r := remembers(t, filepath.Join(t.TempDir(), "c.db"))
	c := (&host.Host{}).NewConversation()
	r.Keep(c)
	if err := said(t.Context(), c, "one"); err != nil {
		t.Fatal(err)
	}
	for kept, want := range map[host.Mode]host.Mode{host.ModeReadOnly: host.ModeReadOnly, host.ModeAsk: host.ModeAsk, "plan": host.ModeReadOnly} {
		c.Mode, c.Parameters = kept, model.Parameters{Effort: model.HighEffort}
		if err := c.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := r.Resume(t.Context(), &host.Host{}, c.ID)
		if err != nil || again.Mode != want || again.Parameters.Effort != model.HighEffort {
			t.Errorf("kept in mode %q: resumed in %q with %v, %v", kept, again.Mode, again.Parameters.List(), err)
		}
	}
}

// A conversation is found by a prefix of its id, and deleted by the full id.
func TestResumeAndForget(t *testing.T) {
	r := remembers(t, filepath.Join(t.TempDir(), "c.db"))
	for _, id := range []string{"abcd1111", "abcd2222"} {
		if _, err := r.store.Create(t.Context(), memory.Conversation{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]error{"abcd1": nil, "abcd": memory.ErrMany, "nono": memory.ErrNone} {
		if _, err := r.Resume(t.Context(), &host.Host{}, id); !errors.Is(err, want) {
			t.Errorf("Resume(%s): %v, want %v", id, err, want)
		}
	}
	if err := r.Forget(t.Context(), "abcd1"); !errors.Is(err, memory.ErrNone) || !strings.Contains(err.Error(), "whole ID") {
		t.Errorf("by the beginning of its id: %v", err)
	}
	if err := r.Forget(t.Context(), "abcd1111"); err != nil {
		t.Error(err)
	}
	if list, err := r.List(t.Context(), ""); len(list) != 1 || err != nil {
		t.Errorf("List = %v, %v; want one", list, err)
	}
}
