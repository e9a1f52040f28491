package fetch

import (
	"slices"
	"sync"
	"time"
)

const (
	maxPages = 4 // pages
	pageTime = 5 * time.Minute
)

// place is what a page is kept under. Callers do not see what others fetched.
type place struct {
	principal string
	url       string
	format    format
}

// pageCache keeps the last pages that were read in part, so that reading on neither loads
// them again nor finds them changed. The zero value is empty.
type pageCache struct {
	mu    sync.Mutex
	pages []cachedPage // the oldest first; guarded by mu
}

type cachedPage struct {
	place place
	page  *page
}

// get returns a page, or nil.
func (s *pageCache) get(at place) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(p cachedPage) bool { return time.Since(p.page.loaded) > pageTime })
	for _, p := range s.pages {
		if p.place == at {
			return p.page
		}
	}
	return nil
}

// put keeps a page in place of what was there.
func (s *pageCache) put(at place, p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(p cachedPage) bool { return p.place == at || time.Since(p.page.loaded) > pageTime })
	if len(s.pages) == maxPages {
		s.pages = slices.Delete(s.pages, 0, 1)
	}
	s.pages = append(s.pages, cachedPage{at, p})
}

// drop forgets pages. The caller holds mu.
func (s *pageCache) drop(which func(cachedPage) bool) { s.pages = slices.DeleteFunc(s.pages, which) }
