package buffer

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	poolBytes = 16 << 20        // maximum kept in a pool
	poolTime  = 5 * time.Second // without a request for a slice, after which none is kept
)

// pool keeps large slices for reuse. A [sync.Pool] would lose them: large messages cause the
// garbage collections that empty it. The first collection that finds no request for a slice in the
// last poolTime clears the pool; a collection runs at least every two minutes. The zero value is
// ready for use.
type pool struct {
	mu      sync.Mutex
	kept    [][]byte  // empty, the most recent last; guarded by mu
	bytes   int       // capacity of kept; guarded by mu
	asked   time.Time // time of the last request for a slice; guarded by mu
	watched bool      // the next collection will call collected; guarded by mu
}

// get returns an empty slice with room for need bytes, the smallest that has it, or nil.
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

// put keeps a slice. The slices that were put longest ago make room for it.
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

// watch makes the next garbage collection call collected.
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
