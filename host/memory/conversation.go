package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Conversation describes a conversation, without its messages.
type Conversation struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`          // time of the last message; each Write advances it
	Model   string    `json:"model,omitempty"`  // the model that answered last, or will answer
	Folder  string    `json:"folder,omitempty"` // working folder of the person, absolute
	Entries int       `json:"entries"`          // number of messages

	// Parameters and Mode are those of the next turn. The host knows the modes; empty: not set.
	Parameters model.Parameters `json:"parameters,omitzero"`
	Mode       string           `json:"mode,omitempty"`

	// Usage and Cost are totals, including messages that were removed since.
	Usage model.Usage `json:"usage"`
	Cost  float64     `json:"cost,omitempty"`
}

// idEncoding has no letters that look like digits.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const (
	idBytes = 5       // 8 characters
	maxText = 1 << 10 // bytes of titles, names of models
	maxPath = 32 << 10
)

// newID makes an id of 8 characters, 40 random bits.
func newID() string {
	b := make([]byte, idBytes)
	rand.Read(b) // does not fail
	return idEncoding.EncodeToString(b)
}

// Create stores a new conversation and returns it, with an ID if it had none, and the times. It
// stores ID, Title, Created, Updated, Model, Folder, Parameters, Mode, Usage and Cost of c. An ID that is in use is
// an error.
func (s *Store) Create(ctx context.Context, c Conversation) (Conversation, error) {
	given := c.ID
	if given != "" && !validID(given) {
		return c, s.fail("create a conversation", fmt.Errorf("the id %q is not 4 to 64 lower-case letters and digits", text.Short(given)))
	}
	now := time.Now()
	if c.Created.IsZero() {
		c.Created = now
	}
	if c.Updated.IsZero() {
		c.Updated = c.Created
	}
	c.Created, c.Updated = whole(c.Created), whole(c.Updated)
	c.Title, c.Model, c.Folder, c.Entries = bound(oneLine(c.Title), maxText), bound(c.Model, maxText), bound(c.Folder, maxPath), 0
	parameters, err := marshal(c.Parameters)
	if err != nil {
		return c, s.fail("create a conversation", err)
	}
	err = s.change(ctx, "create a conversation", func(tx *sql.Tx) error {
		for range 20 { // ids of 40 bits rarely collide
			c.ID = cmp.Or(given, newID())
			res, err := tx.ExecContext(ctx, `INSERT INTO conversations (id, title, created, updated, model, folder, parameters, mode, input, output, cached, stored, cost)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
				c.ID, c.Title, c.Created.UnixMilli(), c.Updated.UnixMilli(), c.Model, c.Folder, string(parameters), c.Mode,
				c.Usage.Input, c.Usage.Output, c.Usage.Cached, c.Usage.Stored, c.Cost)
			if err != nil {
				return err
			}
			if added, err := res.RowsAffected(); err != nil {
				return err
			} else if added == 0 {
				if given != "" {
					break
				}
				continue
			}
			n, err := res.LastInsertId()
			if err != nil {
				return err
			}
			return index(ctx, tx, -n, noMarks.Replace(c.Title))
		}
		return fmt.Errorf("conversation %s exists already", c.ID)
	})
	return c, err
}

// whole returns a time in the stored precision, milliseconds.
func whole(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

func validID(id string) bool {
	return len(id) >= 4 && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

const columns = "n, id, title, created, updated, model, folder, parameters, mode, entries, input, output, cached, stored, cost"

func scanConversation(scan func(...any) error, more ...any) (n int64, c Conversation, err error) {
	var created, updated int64
	var parameters []byte
	err = scan(append([]any{&n, &c.ID, &c.Title, &created, &updated, &c.Model, &c.Folder, &parameters, &c.Mode, &c.Entries,
		&c.Usage.Input, &c.Usage.Output, &c.Usage.Cached, &c.Usage.Stored, &c.Cost}, more...)...)
	if err == nil {
		err = json.Unmarshal(parameters, &c.Parameters)
	}
	c.Created, c.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return n, c, err
}

// queryer is a database or a transaction.
type queryer interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// get reads a conversation by its whole id.
func get(ctx context.Context, q queryer, id string) (int64, Conversation, error) {
	n, c, err := scanConversation(q.QueryRowContext(ctx, "SELECT "+columns+" FROM conversations WHERE id = ?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %q", ErrNone, text.Short(id))
	}
	return n, c, err
}

// Find returns the conversation with an id, or with an id that begins so if there is only one.
// The error wraps [ErrNone] or [ErrMany].
func (s *Store) Find(ctx context.Context, id string) (Conversation, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	_, c, err := get(ctx, s.db, id)
	if err == nil || !errors.Is(err, ErrNone) {
		if err != nil {
			err = s.fail("find a conversation", err)
		}
		return c, err
	}
	const most = 5
	var found []Conversation
	if id != "" && !strings.ContainsFunc(id, func(r rune) bool { return r >= 0x80 }) {
		var listErr error
		found, listErr = s.list(ctx, "WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT ?2", id, most) // { is behind z
		if listErr != nil {
			return Conversation{}, s.fail("find a conversation", listErr)
		}
	}
	switch len(found) {
	case 0:
		return Conversation{}, err
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	if len(ids) == most {
		ids[most-1] = "..."
	}
	return Conversation{}, s.fail("find a conversation", fmt.Errorf("%w: %q: %s; write one more character", ErrMany, text.Short(id), strings.Join(ids, ", ")))
}

// ListOptions select conversations. The zero value selects the newest 50.
type ListOptions struct {
	Folder string // only conversations of this folder; empty: all
	Limit  int    // 0: 50; negative: no bound
	Offset int    // number of the newest to skip
}

// List returns conversations, the most recently updated first.
func (s *Store) List(ctx context.Context, o ListOptions) ([]Conversation, error) {
	where, args := "", []any{cmp.Or(o.Limit, 50), max(0, o.Offset)}
	if o.Folder != "" {
		where, args = "WHERE folder = ?3 ", append(args, o.Folder)
	}
	out, err := s.list(ctx, where+"ORDER BY updated DESC, n DESC LIMIT ?1 OFFSET ?2", args...)
	if err != nil {
		return nil, s.fail("list conversations", err)
	}
	return out, nil
}

func (s *Store) list(ctx context.Context, how string, args ...any) (out []Conversation, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT "+columns+" FROM conversations "+how, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		_, c, err := scanConversation(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// Delete deletes a conversation. Its text is overwritten in the file; if another process is
// reading at that moment, the -wal file keeps some of it until the next checkpoint.
func (s *Store) Delete(ctx context.Context, id string) error {
	err := s.change(ctx, "delete a conversation", func(tx *sql.Tx) error {
		n, _, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := cut(ctx, tx, n, 0); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM words WHERE rowid = ?", -n); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM conversations WHERE n = ?", n)
		return err
	})
	if err == nil {
		s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // an error does not matter: it is deleted
	}
	return err
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// bound clips a text to a number of bytes.
func bound(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "�")
	}
	return strings.ToValidUTF8(s[:most], "")
}
