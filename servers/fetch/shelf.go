package fetch

import (
	"slices"
	"sync"
	"time"
)

const (
	maxShelf  = 4 // pages
	shelfTime = 5 * time.Minute
)

// place is what a page is kept under. Callers do not see what others fetched.
type place struct {
	principal string
	url       string
	format    format
}

// shelf keeps the last pages that were read in part, so that reading on neither loads
// them again nor finds them changed. The zero value is empty.
type shelf struct {
	mu    sync.Mutex
	pages []shelved // the oldest first; guarded by mu
}

type shelved struct {
	place place
	page  *page
}

// get returns a page, or nil.
func (s *shelf) get(at place) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(p shelved) bool { return time.Since(p.page.loaded) > shelfTime })
	for _, p := range s.pages {
		if p.place == at {
			return p.page
		}
	}
	return nil
}

// put keeps a page in place of what was there.
func (s *shelf) put(at place, p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(p shelved) bool { return p.place == at || time.Since(p.page.loaded) > shelfTime })
	if len(s.pages) == maxShelf {
		s.pages = slices.Delete(s.pages, 0, 1)
	}
	s.pages = append(s.pages, shelved{at, p})
}

// drop forgets pages. The caller holds mu.
func (s *shelf) drop(which func(shelved) bool) { s.pages = slices.DeleteFunc(s.pages, which) }
