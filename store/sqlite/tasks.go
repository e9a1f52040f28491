package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/store"
)

// Tasks is a [store.Tasks]: a later process finds the tasks and their results. A task that was
// at work when its process ended is found as failed. Set the fields of Tasks before use.
type Tasks struct {
	// MaxPerOwner bounds the tasks kept for one owner, including the empty owner; beyond it, the
	// oldest finished ones are dropped. Zero: 10,000.
	MaxPerOwner int

	// MaxBytes bounds the size of all tasks; a task that would exceed it is refused. Zero: 1 GiB.
	MaxBytes int64

	store *Store

	mu     sync.Mutex
	pruned time.Time // guarded by mu
}

// Tasks returns the store of tasks. Each call returns the same one.
func (s *Store) Tasks() *Tasks {
	s.tasksOnce.Do(func() { s.tasks = &Tasks{store: s} })
	return s.tasks
}

func (v *Tasks) maxPerOwner() int {
	if v.MaxPerOwner > 0 {
		return v.MaxPerOwner
	}
	return 10_000
}

func (v *Tasks) maxBytes() int64 {
	if v.MaxBytes > 0 {
		return v.MaxBytes
	}
	return 1 << 30
}

func (v *Tasks) fail(doing string, err error) error {
	return fmt.Errorf("%s in store %q: %w", doing, v.store.path, err)
}

// PutTask implements [store.Tasks].
func (v *Tasks) PutTask(ctx context.Context, t store.Task) error {
	if err := v.prune(ctx); err != nil {
		return err
	}
	kept, err := v.put(ctx, t)
	if err == nil && !kept {
		if err = v.makeRoom(ctx, t.Owner); err == nil {
			kept, err = v.put(ctx, t)
		}
	}
	switch {
	case err != nil:
		return v.fail("keep a task", err)
	case !kept:
		return v.fail("keep a task", fmt.Errorf("there is no room: its owner has %d running tasks (Tasks.MaxPerOwner), or all take %d bytes (Tasks.MaxBytes)", v.maxPerOwner(), v.maxBytes()))
	}
	return nil
}

// put stores a task if there is room for it.
func (v *Tasks) put(ctx context.Context, t store.Task) (kept bool, err error) {
	// One statement, so that of two processes neither fails: one waits for the other. A task that
	// does not grow is stored even if there is no room.
	res, err := v.store.db.ExecContext(ctx, `INSERT INTO tasks (id, owner, expires, over, data)
		SELECT ?1, ?2, ?3, ?7, ?4 FROM (SELECT (SELECT length(data) FROM tasks WHERE id = ?1) AS before) WHERE
			(before IS NOT NULL OR (SELECT count(*) FROM tasks WHERE owner = ?2) < ?5)
			AND (length(?4) <= coalesce(before, 0) OR (SELECT bytes FROM task_size) - coalesce(before, 0) + length(?4) <= ?6)
		ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, expires = excluded.expires, over = excluded.over, data = excluded.data`,
		t.ID, t.Owner, t.Expires.UnixMilli(), []byte(t.Data), v.maxPerOwner(), v.maxBytes(), t.Over)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// makeRoom drops the oldest finished tasks of an owner that has too many: a tenth of them, so that
// not every task does this.
func (v *Tasks) makeRoom(ctx context.Context, owner string) error {
	_, err := v.store.db.ExecContext(ctx, `DELETE FROM tasks WHERE (SELECT count(*) FROM tasks WHERE owner = ?1) >= ?2 AND id IN (
		SELECT id FROM tasks WHERE owner = ?1 AND over ORDER BY expires LIMIT ?2 / 10 + 1)`, owner, v.maxPerOwner())
	return err
}

// GetTask implements [store.Tasks].
func (v *Tasks) GetTask(ctx context.Context, id string) (store.Task, bool, error) {
	row := v.store.db.QueryRowContext(ctx, "SELECT id, owner, expires, over, data FROM tasks WHERE id = ? AND expires > ?", id, time.Now().UnixMilli())
	t, err := scanTask(row.Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.Task{}, false, nil
	case err != nil:
		return store.Task{}, false, v.fail("read a task", err)
	}
	return t, true, nil
}

// ListTasks implements [store.Tasks].
func (v *Tasks) ListTasks(ctx context.Context, owner, after string, limit int) ([]store.Task, error) {
	rows, err := v.store.db.QueryContext(ctx, "SELECT id, owner, expires, over, data FROM tasks WHERE owner = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?",
		owner, after, time.Now().UnixMilli(), limit)
	if err != nil {
		return nil, v.fail("list tasks", err)
	}
	var out []store.Task
	for rows.Next() {
		var t store.Task
		if t, err = scanTask(rows.Scan); err != nil {
			break
		}
		out = append(out, t)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, v.fail("list tasks", err)
	}
	return out, nil
}

func scanTask(scan func(...any) error) (t store.Task, err error) {
	var expires int64
	var data []byte
	err = scan(&t.ID, &t.Owner, &expires, &t.Over, &data)
	t.Expires, t.Data = time.UnixMilli(expires), json.RawMessage(data)
	return t, err
}

// prune drops expired tasks at intervals.
func (v *Tasks) prune(ctx context.Context) error {
	now := time.Now()
	v.mu.Lock()
	due := now.Sub(v.pruned) >= pruneEvery
	if due {
		v.pruned = now
	}
	v.mu.Unlock()
	if !due {
		return nil
	}
	if _, err := v.store.db.ExecContext(ctx, "DELETE FROM tasks WHERE expires <= ?", now.UnixMilli()); err != nil {
		return v.fail("drop expired tasks", err)
	}
	return nil
}
