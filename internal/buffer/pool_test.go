package buffer

import (
	"runtime"
	"testing"
	"time"
)

func TestShelf(t *testing.T) {
	var s pool
	if s.get(1) != nil {
		t.Error("an empty pool has a slice")
	}
	for _, n := range []int{1 << 20, 4 << 20, 2 << 20} {
		s.put(make([]byte, 7, n))
	}
	for _, tt := range []struct{ need, cap int }{{1<<20 + 1, 2 << 20}, {1, 1 << 20}, {5 << 20, 0}, {1, 4 << 20}, {1, 0}} {
		if b := s.get(tt.need); cap(b) != tt.cap || len(b) != 0 {
			t.Errorf("for %d bytes there are %d of %d, want none of %d", tt.need, len(b), cap(b), tt.cap)
		}
	}
	if s.put(make([]byte, poolBytes+1)); len(s.kept) != 0 {
		t.Error("a slice that is larger than the pool is kept")
	}
	for range 40 {
		s.put(make([]byte, 3<<20))
	}
	if n := len(s.kept); n != 5 || s.bytes != 15<<20 {
		t.Errorf("%d slices of %d bytes are kept, want 5 of %d", n, s.bytes, 15<<20)
	}
}

// Unused slices are dropped, whether or not get is called again.
func TestShelfIsCleared(t *testing.T) {
	var s pool
	s.get(1)
	s.put(make([]byte, 1<<20))
	s.collected(s.asked.Add(poolTime - 1))
	if len(s.kept) != 1 || !s.watched {
		t.Error("a slice that was just asked for is not kept")
	}
	s.collected(s.asked.Add(poolTime))
	if len(s.kept) != 0 || s.bytes != 0 || s.watched {
		t.Errorf("%d slices of %d bytes are kept", len(s.kept), s.bytes)
	}

	s.mu.Lock()
	s.asked = time.Now().Add(-time.Hour)
	s.mu.Unlock()
	s.put(make([]byte, 1<<20))
	for end := time.Now().Add(time.Minute); ; {
		runtime.GC()
		s.mu.Lock()
		n := len(s.kept)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no garbage collection clears the pool")
		}
		runtime.Gosched()
	}
}
