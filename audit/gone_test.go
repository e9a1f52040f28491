package audit

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A file that somebody removes, renames or empties while the log is open is noticed: the log goes on
// in another file, with the next number, and Verify finds that lines are missing.
func TestGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed on Windows")
	}
	for name, lose := range map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		for _, shared := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			var told bytes.Buffer
			l, err := Open(path, &Options{Shared: shared, Logger: slog.New(slog.NewTextHandler(&told, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "a"}); err != nil {
				t.Fatal(err)
			}
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lookTime + 50*time.Millisecond)
			if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "b"}); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var seen []string
			for e, err := range Read(path) {
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, e.Event+e.Call)
				if len(seen) == 1 && (e.Seq != 3 || !strings.Contains(string(e.Detail), `"seq":2`)) {
					t.Errorf("%s: the first line of the new file is %s", name, e.Line())
				}
			}
			if got := strings.Join(seen, ","); !strings.HasPrefix(got, "gone,b") {
				t.Errorf("%s: the new file has the lines %s", name, got)
			}
			if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, path) {
				t.Errorf("%s: the Logger has %q, want one error", name, got)
			}
			r, err := Verify([]string{path}, nil)
			if err != nil || len(r.Faults) != 1 || r.Faults[0].Kind != Missing || !strings.Contains(r.Faults[0].Text, "up to 2 ") {
				t.Errorf("%s: Verify = %+v, %v", name, r, err)
			}
			if name == "renamed" {
				if r, err := Verify([]string{path + ".old", path}, nil); err != nil || !r.Whole() {
					t.Errorf("both files: %+v, %v", r, err)
				}
			}
		}
	}
}

// Without calls too, a file that was removed is noticed.
func TestGoneIdle(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed on Windows")
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(path, &Options{Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if raw, _ := os.ReadFile(path); bytes.Contains(raw, []byte(`"event":"gone"`)) {
			return
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the log does not go on")
		}
	}
}

// While there is no place for another file, Write is an error, and lines of Add wait.
func TestGoneFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed on Windows")
	}
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "audit.jsonl")
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lookTime + 50*time.Millisecond)
	for range 2 {
		if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "a"}); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("Write without a folder: %v", err)
		}
	}
	l.Add(Entry{Kind: CallEnd, Call: "b"})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(t.Context(), Entry{Kind: CallBegin, Call: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for e := range Read(path) {
		seen = append(seen, e.Event+e.Call)
	}
	if got := strings.Join(seen, ","); got != "gone,b,c,stop" {
		t.Errorf("the new file has the lines %s", got)
	}
	if r, err := Verify([]string{dir + ".old/audit.jsonl", path}, nil); err != nil || !r.Whole() {
		t.Errorf("both files: %+v, %v", r, err)
	}
}
