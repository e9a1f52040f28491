package audit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file is synced by the kernel's answer, and where the kernel refuses. A closed file is an error.
func TestDisk(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, d := range map[string]*disk{"the kernel answers": {}, "a thread waits": {blocked: true}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				for range 2 {
					if err := d.close(); err != nil {
						t.Error(err)
					}
				}
			}()
			for range 3 {
				if _, err := f.WriteString("line\n"); err != nil {
					t.Fatal(err)
				}
				if err := d.sync(f); err != nil {
					t.Fatal(err)
				}
			}
			if d.events == nil && !d.blocked {
				t.Error("nothing was asked")
			}
			full, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			if err := d.sync(full); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("a device that has no disk: %v", err)
			}
			if err := d.sync(f); err != nil {
				t.Errorf("after an error: %v", err)
			}
		})
	}
}
