package follow

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Lines of a log that stands in a watched folder and stays open are not notified. Its end is.
func TestOpenLog(t *testing.T) {
	dir := t.TempDir()
	log, mark := filepath.Join(dir, "log"), filepath.Join(dir, "mark")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		path    string
		written bool
	}
	changes := make(chan change, 100)
	w := newWatcher(func(path string, written bool) { changes <- change{path, written} })
	if w == nil || !w.add(dir) {
		t.Fatal("there are no notifications")
	}
	defer w.close()
	await := func(want ...change) {
		t.Helper()
		for _, want := range want {
			select {
			case got := <-changes:
				if got != want {
					t.Fatalf("the change is %v, want %v", got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("no change has come within 20 s, want %v", want)
			}
		}
	}
	for range 50 {
		if _, err := f.WriteString("line\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(mark, 0o700); err != nil { // notifications come in order
		t.Fatal(err)
	}
	await(change{mark, false})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	await(change{log, true})
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	await(change{log, false})
}
