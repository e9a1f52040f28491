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

// The answer to a lone caller comes to its thread, or else to the one that waits next.
func TestDiskAlone(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := new(disk)
	defer d.close()
	if !d.open() {
		t.Skip("the kernel does not take requests")
	}
	if there, err := d.hold(); there || err != nil {
		t.Errorf("without a request: %v, %v", there, err)
	}
	held := 0
	for range 100 {
		if _, err := f.WriteString("line\n"); err != nil {
			t.Fatal(err)
		}
		if !d.start(f, true) {
			t.Fatal("the kernel refuses")
		}
		there, err := d.hold()
		if there {
			held++
		} else {
			there, err = d.wait()
		}
		if !there || err != nil {
			t.Fatalf("the answer is there: %v, %v", there, err)
		}
	}
	if held == 0 {
		t.Log("the disk was slow each time")
	}
	if !d.start(f, true) {
		t.Fatal("the kernel refuses")
	}
	if there, err := d.wait(); !there || err != nil {
		t.Errorf("in a thread: %v, %v", there, err)
	}
	if err := d.sync(f); err != nil {
		t.Errorf("after lone callers: %v", err)
	}
}
