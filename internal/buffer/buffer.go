// Package buffer lends byte slices to messages on their way.
//
// Small and large slices are kept apart, so that a large one is never bound by small
// messages. Large ones are in a [pool], which is cleared once no large messages come any
// more.
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

// Put gives a slice back, which must not be used any more, wherever it came from.
func Put(b *[]byte) {
	if *b = Small(*b); *b != nil {
		smalls.Put(b)
	}
}

// Small returns b, empty, for its owner to go on with if it is small; a large one is given back.
func Small(b []byte) []byte {
	if cap(b) <= small {
		return b[:0]
	}
	larges.put(b[:0])
	return nil
}

// Grow returns b with room for n more bytes. What is large already grows at least twofold.
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
