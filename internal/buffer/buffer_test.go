package buffer

import (
	"bytes"
	"testing"
)

func TestGrow(t *testing.T) {
	for _, n := range []int{0, 1, 100, initial, small - 3, small, small + 1, 1 << 20} {
		b := Grow(append(*Get(), "abc"...), n)
		if string(b) != "abc" || cap(b) < 3+n {
			t.Errorf("Grow by %d: %q with capacity %d", n, b, cap(b))
		}
		b = append(b, bytes.Repeat([]byte("x"), n)...)
		Put(&b)
		if got := Get(); len(*got) != 0 || cap(*got) > small {
			t.Errorf("after a slice of %d bytes Get returns %d of %d", n, len(*got), cap(*got))
		}
	}
}

// A slice that grows step by step is copied a logarithmic number of times.
func TestGrowIsAmortized(t *testing.T) {
	b, moves := []byte(nil), 0
	for len(b) < 8<<20 {
		old := cap(b)
		b = Grow(b, 1000)
		if cap(b) != old {
			moves++
		}
		b = b[:len(b)+1000]
	}
	if moves > 16 {
		t.Errorf("moved %d times", moves)
	}
}
