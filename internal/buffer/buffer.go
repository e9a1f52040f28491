// Package buffer provides reusable byte slices for messages.
//
// Small and large slices are kept apart, so that small messages never hold large slices. Large ones
// are in a [pool], which is cleared when no more large messages arrive.
package buffer

import "sync"

const (
	small   = 64 << 10 // capacity up to which a slice is small
	initial = 1 << 10  // capacity of a new one
)

var (
	smalls = sync.Pool{New: func() any { b := make([]byte, 0, initial); return &b }}
	larges pool
)

// Get returns an empty slice.
func Get() *[]byte { return smalls.Get().(*[]byte) }

// Put returns a slice for reuse, from Get or not. The caller must not use it afterwards.
func Put(b *[]byte) {
	if *b = Small(*b); *b != nil {
		smalls.Put(b)
	}
}

// Small returns b, emptied, for its owner to reuse if b is small; it puts a large one back.
func Small(b []byte) []byte {
	if cap(b) <= small {
		return b[:0]
	}
	larges.put(b[:0])
	return nil
}

// Grow returns b with room for n more bytes. A large slice at least doubles.
func Grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	if need <= small {
		grown := make([]byte, len(b), min(max(need, 2*cap(b)), small))
		copy(grown, b)
		return grown
	}
	if kept := larges.get(need); kept != nil {
		return append(kept, b...)
	}
	grown := make([]byte, len(b), max(need, 2*cap(b), 4*small))
	copy(grown, b)
	return grown
}
