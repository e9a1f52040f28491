package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

func frame(n int) trace.Frame {
	return trace.Frame{Dir: trace.In, Conn: "c", Msg: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"token":"s3cr3t-value"}}`, n)}
}

// files returns the names of a folder's files, and the frames in them, in order.
func files(t *testing.T, dir string) (names []string, frames []trace.Frame) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for fr, err := range trace.Read(f) {
			if err != nil {
				t.Errorf("%s: %v", e.Name(), err)
			}
			frames = append(frames, fr)
		}
		f.Close()
	}
	return names, frames
}

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		f.Record(frame(n))
	}
	if err := f.Flush(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	f.Record(frame(4)) // does nothing
	names, frames := files(t, dir)
	if len(names) != 1 || !ours().MatchString(names[0]) || len(frames) != 3 {
		t.Fatalf("files %q with %d frames, want one with 3", names, len(frames))
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, names[0])); strings.Contains(string(raw), "s3cr3t") {
		t.Errorf("a secret is in the file: %s", raw)
	}
	if info, _ := os.Stat(filepath.Join(dir, names[0])); info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
}

// TestSeveralRuns: programs that record into one folder at the same time have files of their own.
func TestSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for run := range 4 {
		wg.Go(func() {
			f, err := Open(dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 100 {
				f.Record(frame(run*100 + n))
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	names, frames := files(t, dir)
	seen := map[string]bool{}
	for _, f := range frames {
		seen[string(f.Msg)] = true
	}
	if len(names) != 4 || len(seen) != 400 {
		t.Errorf("%d files with %d different frames, want 4 and 400", len(names), len(seen))
	}
}

// newSink returns a sink whose clock and files the test controls.
func newSink(t *testing.T, o Options) (*sink, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)
	s := &sink{Options: o, dir: t.TempDir(), run: "090000-abcdef", now: func() time.Time { return now }}
	t.Cleanup(func() { s.end() })
	return s, &now
}

func line(n int) []byte { return append(frame(n).Append(nil), '\n') }

func TestRotation(t *testing.T) {
	one := int64(len(line(0)))
	s, now := newSink(t, Options{MaxFile: 2 * one, MaxBytes: 100 * one, MaxAge: 1 << 62})
	for n := range 5 {
		s.Write(line(n))
	}
	*now = now.Add(2 * time.Minute) // the next day
	s.Write(line(5))
	names, frames := files(t, s.dir)
	want := []string{"trace-2026-11-23-090000-abcdef-0001.jsonl", "trace-2026-11-23-090000-abcdef-0002.jsonl", "trace-2026-11-23-090000-abcdef-0003.jsonl", "trace-2026-11-24-090000-abcdef-0004.jsonl"}
	if strings.Join(names, " ") != strings.Join(want, " ") || len(frames) != 6 {
		t.Errorf("files %q with %d frames, want %q with 6", names, len(frames), want)
	}
}

// TestBounds: old files go, by age and by bytes, and files with other names stay.
func TestBounds(t *testing.T) {
	one := int64(len(line(0)))
	s, now := newSink(t, Options{MaxFile: one, MaxBytes: 4 * one, MaxAge: time.Hour})
	old := "trace-2026-11-20-090000-zzzzzz-0001.jsonl"
	for _, name := range []string{old, "notes.jsonl", "trace-.jsonl"} {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, line(0), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-2*time.Hour), now.Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 9 {
		s.Write(line(n))
		if s.file != nil { // order by the test's clock, as files of one instant have no other
			path := filepath.Join(s.dir, fmt.Sprintf("trace-2026-11-23-090000-abcdef-%04d.jsonl", s.number))
			os.Chtimes(path, now.Add(time.Duration(n)*time.Second), now.Add(time.Duration(n)*time.Second))
		}
		names, _ := files(t, s.dir)
		if len(names) > 6 { // four of one line, and the two with other names
			t.Fatalf("after line %d: %q", n, names)
		}
	}
	names, frames := files(t, s.dir)
	want := "notes.jsonl trace-.jsonl trace-2026-11-23-090000-abcdef-0006.jsonl trace-2026-11-23-090000-abcdef-0007.jsonl trace-2026-11-23-090000-abcdef-0008.jsonl trace-2026-11-23-090000-abcdef-0009.jsonl"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files %s, want %s (%d frames)", got, want, len(frames))
	}
}

// TestRemoved: a file that is removed or renamed is noticed a second later, and another one begins.
func TestRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed on Windows")
	}
	s, now := newSink(t, Options{MaxFile: 1 << 20, MaxBytes: 1 << 30, MaxAge: 1 << 62, OnFault: func(err error) { t.Error(err) }})
	s.Write(line(0))
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(lookTime / 2)
	s.Write(line(1)) // into the file that is removed
	*now = now.Add(lookTime / 2)
	s.Write(line(2))
	if err := os.Rename(s.path, filepath.Join(s.dir, "kept.jsonl")); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(lookTime)
	s.Write(line(3))
	names, frames := files(t, s.dir)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(lookTime)
	s.Write(line(4)) // the folder is made again
	if again, frames := files(t, s.dir); len(again) != 1 || len(frames) != 1 {
		t.Errorf("after the folder was removed: files %q with %d frames", again, len(frames))
	}
	if got := strings.Join(names, " "); got != "kept.jsonl trace-2026-11-23-090000-abcdef-0003.jsonl" || len(frames) != 2 {
		t.Errorf("files %s with %d frames, want 2 with one frame each", got, len(frames))
	}
}

// fullFile is a file on a disk that gets full.
type fullFile struct {
	*os.File
	room *int
}

func (f fullFile) WriteAt(p []byte, off int64) (int, error) {
	n := min(len(p), *f.room)
	*f.room -= n
	f.File.WriteAt(p[:n], off)
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

// TestFullDisk: a full disk is reported once, loses whole frames, and is used again when there is
// room; the file says how many frames are missing.
func TestFullDisk(t *testing.T) {
	var faults []error
	var right []int
	s, now := newSink(t, Options{MaxFile: 1 << 20, MaxBytes: 1 << 30, MaxAge: 1 << 62, OnFault: func(err error) { faults = append(faults, err) }, OnRight: func(lost int) { right = append(right, lost) }})
	room := len(line(0)) * 5 / 2
	s.create = func(path string) (sinkFile, error) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return fullFile{f, &room}, err
	}
	for n := range 6 {
		s.Write(line(n)) // 2 fit
	}
	*now = now.Add(2 * retryTime)
	s.Write(line(6)) // still full
	f := &Folder{s: s, w: trace.NewWriter(s, nil)}
	if st := f.State(); st.Lost != 5 || st.Fault == nil {
		t.Errorf("the state of a full disk is %+v, want 5 lost frames and a fault", st)
	}
	if len(faults) != 1 || !errors.Is(s.missing(), trace.ErrDropped) || !strings.HasPrefix(s.missing().Error(), "trace: frames dropped: 5: ") {
		t.Errorf("faults %v, missing %v, want one fault", faults, s.missing())
	}
	room = 1 << 20
	*now = now.Add(2 * retryTime)
	s.Write(line(7))
	s.Write(line(8))
	_, frames := files(t, s.dir)
	if len(frames) != 4 || frames[2].Lost != 5 || frames[3].Lost != 0 {
		t.Errorf("%d frames, want 4, the third with 5 lost: %+v", len(frames), frames)
	}
	if !slices.Equal(right, []int{5}) {
		t.Errorf("OnRight got %v, want 5 lost frames once", right)
	}
	if st := f.State(); st.Lost != 5 || st.Fault != nil {
		t.Errorf("the state of a disk that has room again is %+v, want 5 lost frames and no fault", st)
	}
	room = 0
	s.Write(line(9))
	if len(faults) != 2 {
		t.Errorf("%d faults after the disk got full again, want 2", len(faults))
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir  string
		o    *Options
		want string
	}{
		{file, nil, "file"},
		{filepath.Join(file, "sub"), nil, "file"},
		{t.TempDir(), &Options{MaxBytes: -1}, "negative"},
	} {
		if _, err := Open(test.dir, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Open(%s, %+v): %v, want an error about %q", test.dir, test.o, err, test.want)
		}
	}
}

// A file that may be larger than all files together is an error.
func TestOpenMaxFile(t *testing.T) {
	for _, o := range []Options{{MaxFile: 2 << 20, MaxBytes: 1 << 20}, {MaxFile: 2 << 30}} {
		f, err := Open(t.TempDir(), &o)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "MaxFile") {
			t.Errorf("Open with %d of %d bytes = %v, want an error that names MaxFile", o.MaxFile, o.MaxBytes, err)
		}
	}
}
