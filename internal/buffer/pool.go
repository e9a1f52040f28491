package buffer

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	poolBytes = 16 << 20        // kept in a pool at most
	poolTime  = 5 * time.Second // after which what nobody has asked for is not kept
)

// pool keeps slices for those who need large ones. A [sync.Pool] would not: large messages
// bring about the garbage collections that empty it. The first collection that finds that
// nothing was asked for in poolTime clears the pool; there is one every two minutes at
// least. The zero value is ready for use.
type pool struct {
	mu      sync.Mutex
	kept    [][]byte  // guarded by mu; empty, the one put last at the end
	bytes   int       // capacity of kept; guarded by mu
	asked   time.Time // when a slice was asked for last; guarded by mu
	watched bool      // a collection will call collected; guarded by mu
}

// get returns an empty slice with room for need bytes, the one with the least capacity that
// has it, or nil.
func (s *pool) get(need int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
	best := -1
	for i, b := range s.kept {
		if cap(b) >= need && (best < 0 || cap(b) < cap(s.kept[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b := s.kept[best]
	s.kept = slices.Delete(s.kept, best, best+1)
	s.bytes -= cap(b)
	return b
}

// put keeps a slice. Those that were put longest ago make room for it.
func (s *pool) put(b []byte) {
	if cap(b) > poolBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes+cap(b) > poolBytes {
		s.bytes -= cap(s.kept[0])
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, b[:0])
	s.bytes += cap(b)
	if !s.watched {
		s.watched = true
		s.watch()
	}
}

// watch has the next garbage collection call collected.
func (s *pool) watch() {
	runtime.SetFinalizer(&struct{ _ [16]byte }{}, func(*struct{ _ [16]byte }) { s.collected(time.Now()) })
}

func (s *pool) collected(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.asked) >= poolTime {
		s.kept, s.bytes = nil, 0
	}
	if s.watched = len(s.kept) > 0; s.watched {
		s.watch()
	}
}
