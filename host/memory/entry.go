package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Entry is one message of a conversation, with its time, model, usage and cost.
type Entry struct {
	At      time.Time     `json:"at"`             // zero: the time of Write
	Turn    int           `json:"turn,omitempty"` // turn of the conversation, from 1; 0: not known
	Model   string        `json:"model,omitempty"`
	Usage   model.Usage   `json:"usage,omitzero"` // of an answer
	Cost    float64       `json:"cost,omitempty"`
	Message model.Message `json:"message"`
}

// maxMessage bounds a message in bytes of JSON. SQLite's own limit is 1 GB.
const maxMessage = 256 << 20

// Write replaces the entries from a position on, all or none, and returns the updated conversation.
// Pass the conversation c as Create, Load or Write last returned it: if it has changed since, the
// error wraps [ErrElsewhere] and nothing is changed. The Parameters, Mode, Usage and Cost of c
// are stored too.
//
// Models sometimes write arguments that are not JSON. Those are stored as a JSON string.
func (s *Store) Write(ctx context.Context, c Conversation, from int, entries ...Entry) (Conversation, error) {
	var after Conversation
	err := s.change(ctx, "keep messages", func(tx *sql.Tx) error {
		n, now, err := get(ctx, tx, c.ID)
		switch {
		case err != nil:
			return err
		case !now.Updated.Equal(c.Updated):
			return fmt.Errorf("%w: it had %d messages here, and now has %d", ErrElsewhere, c.Entries, now.Entries)
		case from < 0 || from > c.Entries:
			return fmt.Errorf("there are %d messages, so %d cannot stay", c.Entries, from)
		}
		if err := cut(ctx, tx, n, from); err != nil {
			return err
		}
		now.Entries, now.Parameters, now.Mode, now.Usage, now.Cost = from, c.Parameters, c.Mode, c.Usage, c.Cost
		now.Updated = now.Updated.Add(time.Millisecond) // so that Updated differs after each change
		after, err = insert(ctx, tx, n, now, entries)
		return err
	})
	if err != nil {
		return c, err
	}
	return after, nil
}

// cut removes the entries from a position on.
func cut(ctx context.Context, tx *sql.Tx, conversation int64, from int) error {
	for _, q := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT n FROM entries WHERE conversation = ? AND position >= ?)",
		"DELETE FROM entries WHERE conversation = ? AND position >= ?",
	} {
		if _, err := tx.ExecContext(ctx, q, conversation, from); err != nil {
			return err
		}
	}
	return nil
}

// insert appends entries to a conversation and returns its new state.
func insert(ctx context.Context, tx *sql.Tx, conversation int64, c Conversation, entries []Entry) (Conversation, error) {
	now := time.Now()
	for _, e := range entries {
		if e.At.IsZero() {
			e.At = now
		}
		raw, err := marshal(keepable(e.Message))
		if err != nil {
			return c, fmt.Errorf("a message cannot be stored: %w", err)
		}
		if len(raw) > maxMessage {
			return c, fmt.Errorf("a message of %d bytes is over the bound of %d", len(raw), maxMessage)
		}
		name := bound(e.Model, maxText)
		res, err := tx.ExecContext(ctx, `INSERT INTO entries (conversation, position, at, turn, role, model, input, output, cached, stored, cost, message)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, conversation, c.Entries, e.At.UnixMilli(), e.Turn, string(e.Message.Role), name,
			e.Usage.Input, e.Usage.Output, e.Usage.Cached, e.Usage.Stored, e.Cost, raw)
		if err != nil {
			return c, err
		}
		n, err := res.LastInsertId()
		if err != nil {
			return c, err
		}
		if err := index(ctx, tx, n, words(&e.Message)); err != nil {
			return c, err
		}
		if name != "" {
			c.Model = name
		}
		if at := whole(e.At); at.After(c.Updated) {
			c.Updated = at
		}
		c.Entries++
	}
	parameters, err := marshal(c.Parameters)
	if err != nil {
		return c, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE conversations SET entries = ?, updated = ?, model = ?, parameters = ?, mode = ?, input = ?, output = ?, cached = ?, stored = ?, cost = ? WHERE n = ?",
		c.Entries, c.Updated.UnixMilli(), c.Model, string(parameters), c.Mode, c.Usage.Input, c.Usage.Output, c.Usage.Cached, c.Usage.Stored, c.Cost, conversation)
	return c, err
}

// keepable returns a copy of a message in which arguments and opaque data that are not JSON are JSON
// strings.
func keepable(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if p.Call != nil {
			call := *p.Call
			call.Arguments, call.Opaque = asJSON(call.Arguments), opaqueJSON(call.Opaque)
			m.Parts[i].Call = &call
		}
		m.Parts[i].Opaque = opaqueJSON(p.Opaque)
	}
	return m
}

func opaqueJSON(o *model.Opaque) *model.Opaque {
	if o == nil {
		return nil
	}
	kept := *o
	kept.Data = asJSON(kept.Data)
	return &kept
}

func asJSON(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || json.Valid(text) {
		return text
	}
	raw, _ := json.Marshal(string(text)) // does not fail
	return raw
}

// Load returns a conversation and all its messages.
func (s *Store) Load(ctx context.Context, id string) (Conversation, []Entry, error) {
	c, entries, err := s.load(ctx, id)
	if err != nil {
		return Conversation{}, nil, s.fail("load a conversation", err)
	}
	return c, entries, nil
}

func (s *Store) load(ctx context.Context, id string) (Conversation, []Entry, error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // a consistent snapshot of both
	if err != nil {
		return Conversation{}, nil, err
	}
	defer tx.Rollback()
	n, c, err := get(ctx, tx, id)
	if err != nil {
		return c, nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT at, turn, model, input, output, cached, stored, cost, message FROM entries WHERE conversation = ? ORDER BY position", n)
	if err != nil {
		return c, nil, err
	}
	defer rows.Close()
	entries := make([]Entry, 0, c.Entries)
	for rows.Next() {
		var e Entry
		var at int64
		var raw sql.RawBytes // saves a copy of up to ten megabytes
		if err := rows.Scan(&at, &e.Turn, &e.Model, &e.Usage.Input, &e.Usage.Output, &e.Usage.Cached, &e.Usage.Stored, &e.Cost, &raw); err != nil {
			return c, nil, err
		}
		e.At = time.UnixMilli(at).UTC()
		if err := json.Unmarshal(raw, &e.Message); err != nil {
			return c, nil, fmt.Errorf("message %d of %s is damaged: %w", len(entries)+1, c.ID, err)
		}
		entries = append(entries, e)
	}
	return c, entries, rows.Err()
}
