package cluster

import (
	"context"
	"iter"
	"time"
)

// A State keeps small values that all nodes see.
type State interface {
	// Get returns the newest entry of a key. Without one, the error is [ErrNotFound], and never because something failed: a node that has no
	// entry is dead to the others, which then take its sessions.
	Get(ctx context.Context, key string) (Entry, error)

	// Put sets the value of a key that still has the given version, and returns its new one. Version 0 is for a key
	// without an entry. If the key has another version by now, the error is [ErrConflict].
	//
	// The entry expires after ttl, which is rounded up to seconds. Zero: it stays. Values have at most [MaxValue] bytes.
	Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error)

	// Delete removes an entry that still has the given version. Otherwise, also if it is gone, the error is [ErrConflict].
	Delete(ctx context.Context, key string, version uint64) error

	// Watch yields the entries whose keys begin with prefix and a dot, then a Change without a key, then each change as it
	// comes, in the order of their versions. It may skip states between two of the same key. It ends with ctx, or after an error; the
	// caller then begins anew.
	Watch(ctx context.Context, prefix string) iter.Seq2[Change, error]
}

// An Entry of a State.
type Entry struct {
	Key     string
	Value   []byte
	Version uint64 // greater with each change
}

// A Change is what Watch tells.
type Change struct {
	Entry
	Deleted bool // also if it has expired; Value is empty then
}
