package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// states keeps states in memory: each works once, which sealed states that travel with the caller
// do not guarantee.
type states struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *states) Put(_ context.Context, state []byte, ttl time.Duration) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := rand.Text()
	s.kept[ref] = state
	time.AfterFunc(ttl, func() { s.Take(context.Background(), ref) })
	return ref, nil
}

func (s *states) Take(_ context.Context, ref string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.kept[ref]
	if !ok {
		return nil, errors.New("unknown state")
	}
	delete(s.kept, ref)
	return state, nil
}

func ExampleStates() {
	var kept store.States = &states{kept: map[string][]byte{}}
	srv := &mcp.Server{Name: "shop", State: mcp.StateConfig{Store: kept}}
	fmt.Println(srv.Check())
	// Output: <nil>
}
