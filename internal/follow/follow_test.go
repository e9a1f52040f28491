package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Another folder can be watched while more notifications wait than a watcher keeps.
func TestManyNotifications(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	w := Start(filepath.Join(dir, "x"))
	defer w.Close()
	w.Also()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	added := make(chan struct{})
	go func() {
		w.Also(filepath.Join(other, "x"))
		close(added)
	}()
	select {
	case <-added:
	case <-time.After(20 * time.Second):
		t.Fatal("Also has not returned within 20 s")
	}
	if !w.Wait(t.Context(), 20*time.Second) {
		t.Error("Wait noticed none of the notifications")
	}
}
