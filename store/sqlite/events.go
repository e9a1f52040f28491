package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Events is a [store.Events]. Set its fields before use.
type Events struct {
	// MaxAge is how long an event is kept. Zero: 1 hour.
	MaxAge time.Duration

	// MaxBytes bounds the size of all events; the oldest are dropped first. Zero: 256 MiB.
	MaxBytes int64

	store *Store

	mu     sync.Mutex
	bytes  int64     // approximate; recomputed by prune; guarded by mu
	pruned time.Time // guarded by mu
}

// eventSize is the approximate overhead of an event.
const eventSize = 100

// pruneEvery is the interval between searches for old events.
const pruneEvery = time.Minute

// Events returns the store of events. Each call returns the same one.
func (s *Store) Events() *Events {
	s.eventsOnce.Do(func() { s.events = &Events{store: s} })
	return s.events
}

func (v *Events) maxAge() time.Duration {
	if v.MaxAge > 0 {
		return v.MaxAge
	}
	return time.Hour
}

func (v *Events) maxBytes() int64 {
	if v.MaxBytes > 0 {
		return v.MaxBytes
	}
	return 256 << 20
}

func (v *Events) fail(doing string, err error) error {
	return fmt.Errorf("%s in store %q: %w", doing, v.store.path, err)
}

// Append implements [store.Events].
func (v *Events) Append(ctx context.Context, stream string, position int64, event []byte) error {
	now := time.Now()
	_, err := v.store.db.ExecContext(ctx, "INSERT INTO events (stream, position, at, event) VALUES (?, ?, ?, ?)",
		stream, position, now.UnixMilli(), event)
	if err != nil {
		return v.fail("keep an event", err)
	}
	v.mu.Lock()
	v.bytes += int64(len(event)) + eventSize
	due := v.bytes > v.maxBytes() || now.Sub(v.pruned) >= pruneEvery
	if due {
		v.pruned, v.bytes = now, 0 // other goroutines go on meanwhile
	}
	v.mu.Unlock()
	if due {
		return v.prune(ctx, now)
	}
	return nil
}

// After implements [store.Events].
func (v *Events) After(ctx context.Context, stream string, position int64) ([][]byte, error) {
	rows, err := v.store.db.QueryContext(ctx, "SELECT event FROM events WHERE stream = ? AND position > ? AND at > ? ORDER BY position",
		stream, position, time.Now().Add(-v.maxAge()).UnixMilli())
	if err != nil {
		return nil, v.fail("read events", err)
	}
	var events [][]byte
	for rows.Next() {
		var event []byte
		if err = rows.Scan(&event); err != nil {
			break
		}
		events = append(events, event)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, v.fail("read events", err)
	}
	return events, nil
}

// Forget implements [store.Events].
func (v *Events) Forget(ctx context.Context, stream string) error {
	if _, err := v.store.db.ExecContext(ctx, "DELETE FROM events WHERE stream = ?", stream); err != nil {
		return v.fail("drop events", err)
	}
	return nil
}

// prune drops events that are too old, and then the oldest ones while there are too many bytes.
func (v *Events) prune(ctx context.Context, now time.Time) error {
	if _, err := v.store.db.ExecContext(ctx, "DELETE FROM events WHERE at <= ?", now.Add(-v.maxAge()).UnixMilli()); err != nil {
		return v.fail("drop old events", err)
	}
	// A tenth less than the bound, so that not every event prunes.
	limit := v.maxBytes() - v.maxBytes()/10
	_, err := v.store.db.ExecContext(ctx, `
		DELETE FROM events WHERE n <= (
			SELECT n FROM (SELECT n, sum(length(event) + ?) OVER (ORDER BY n DESC) AS size FROM events)
			WHERE size > ? ORDER BY n DESC LIMIT 1)`, eventSize, limit)
	if err != nil {
		return v.fail("drop the oldest events", err)
	}
	var left int64
	if err := v.store.db.QueryRowContext(ctx, "SELECT coalesce(sum(length(event) + ?), 0) FROM events", eventSize).Scan(&left); err != nil {
		return v.fail("measure events", err)
	}
	v.mu.Lock()
	v.bytes += left // events that arrived meanwhile may count twice
	v.mu.Unlock()
	return nil
}
