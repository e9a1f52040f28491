package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/store/sqlite"
)

// Several processes may open a new file at once: one makes the tables, the others wait.
func TestOpenAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "new.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := sqlite.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
