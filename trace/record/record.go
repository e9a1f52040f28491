package record

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

const (
	defaultBytes = 1 << 30
	defaultAge   = 7 * 24 * time.Hour
	defaultFile  = 64 << 20
	filesOfAll   = 8           // a file has at most this part of all bytes
	retryTime    = time.Second // between attempts to write after a failure
	lookTime     = time.Second // between looks whether the file is still there
	day          = "2006-01-02"
)

// Options configure a [Folder]. Nil and the zero value mean defaults.
type Options struct {
	MaxBytes int64         // of all files of the folder; zero: 1 GiB
	MaxAge   time.Duration // since the last write to a file; zero: 7 days
	MaxFile  int64         // bytes of one file; zero: 64 MiB, and at most an eighth of MaxBytes
	MaxFrame int           // bytes of a message, as in [trace.WriterOptions]

	// Redactor replaces secrets. Nil means trace.NewRedactor(nil).
	Redactor *trace.Redactor

	// OnFault is called when frames begin to be lost: with the first write that fails after one
	// that did not, and with the first frame that the disk is too slow for. It must not call the
	// Folder. It may be nil; see [Folder.Err].
	OnFault func(error)

	// OnRight is called with the first write that succeeds after some that did not. lost is the
	// number of frames that were lost meanwhile. It must not call the Folder. It may be nil.
	OnRight func(lost int)
}

// Folder records frames into the files of a folder. It owns one goroutine, which ends with Close.
type Folder struct {
	w *trace.Writer
	s *sink
}

// Open makes the folder, if it does not exist, and begins a file in it; opts may be nil.
func Open(dir string, opts *Options) (*Folder, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxBytes < 0 || o.MaxAge < 0 || o.MaxFile < 0 {
		return nil, errors.New("record frames: a limit is negative; use 0 for the default")
	}
	o.MaxBytes, o.MaxAge = cmp.Or(o.MaxBytes, defaultBytes), cmp.Or(o.MaxAge, defaultAge)
	if o.MaxFile > o.MaxBytes {
		return nil, fmt.Errorf("record frames: MaxFile is %d bytes and MaxBytes, of all files, %d; give a MaxFile of an eighth of MaxBytes at most, or 0", o.MaxFile, o.MaxBytes)
	}
	o.MaxFile = min(cmp.Or(o.MaxFile, defaultFile), max(o.MaxBytes/filesOfAll, 1))
	s := &sink{Options: o, dir: dir, now: time.Now}
	s.run = s.now().UTC().Format("150405") + "-" + strings.ToLower(rand.Text()[:6])
	if err := s.begin(s.now().UTC()); err != nil {
		return nil, fmt.Errorf("record frames: %w", err)
	}
	return &Folder{s: s, w: trace.NewWriter(s, &trace.WriterOptions{
		Redactor: o.Redactor, MaxFrame: o.MaxFrame, MaxWait: -1, OnFault: o.OnFault,
	})}, nil
}

// Record queues a frame to be written, without waiting. It keeps no reference to the frame's data,
// and does nothing after Close. It is a function for OnFrame of package mcp.
func (f *Folder) Record(frame trace.Frame) { f.w.Record(frame) }

// Flush waits until the frames recorded before the call are written, at most five seconds.
func (f *Folder) Flush() error { return errors.Join(f.w.Flush(), f.s.missing()) }

// Err returns an error that wraps [trace.ErrDropped] if frames are missing, with their number; nil
// if none are.
func (f *Folder) Err() error { return errors.Join(f.w.Err(), f.s.missing()) }

// State is the state of a recording.
type State struct {
	Lost  int64 // frames that are missing since Open
	Fault error // of the last write; nil: it succeeded
}

// State returns the state of the recording now.
func (f *Folder) State() State {
	s := State{Lost: f.s.missed.Load() + int64(f.w.Dropped())}
	if fault := f.s.fault.Load(); fault != nil {
		s.Fault = *fault
	}
	return s
}

// Close writes what is queued, at most for five seconds, ends the file, and returns [Folder.Err].
func (f *Folder) Close() error {
	err := f.w.Close()
	return errors.Join(err, f.s.missing(), f.s.end())
}

// sink is the destination of a trace.Writer, which gives it a line at a time. Its Write never
// fails, because a Writer gives up after a failure.
type sink struct {
	Options
	dir string
	run string           // names the files of this run
	now func() time.Time // tests change it

	number int      // of the last file
	file   sinkFile // nil: none is open
	path   string   // of file
	size   int64
	day    string
	looked time.Time // when file was last seen at path

	lost    int          // lines lost since the last that was written
	missed  atomic.Int64 // lines lost in all
	retryAt time.Time
	fault   atomic.Pointer[error] // of the last attempt to write; nil: none

	create func(path string) (sinkFile, error) // nil: os.OpenFile; tests change it
}

// sinkFile is an *os.File.
type sinkFile interface {
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Close() error
}

func (s *sink) Write(line []byte) (int, error) {
	now := s.now().UTC()
	if s.lost > 0 && now.Before(s.retryAt) {
		s.lose()
		return len(line), nil
	}
	if err := s.write(line, now); err != nil {
		s.retryAt = now.Add(retryTime)
		s.fault.Store(&err)
		if s.lose(); s.lost == 1 && s.OnFault != nil {
			s.OnFault(fmt.Errorf("frames are not recorded, and the next attempt is in %v: %w", retryTime, err))
		}
	} else if lost := s.lost; lost > 0 {
		s.lost = 0
		s.fault.Store(nil)
		if s.OnRight != nil {
			s.OnRight(lost)
		}
	}
	return len(line), nil
}

func (s *sink) lose() {
	s.lost++
	s.missed.Add(1)
}

func (s *sink) write(line []byte, now time.Time) error {
	if s.lost > 0 {
		line = withLost(line, s.lost)
	}
	if s.file == nil || s.gone(now) || s.day != now.Format(day) || s.size > 0 && s.size+int64(len(line)) > s.MaxFile {
		if err := s.begin(now); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(line, s.size)
	if err == nil {
		s.size += int64(n)
		return nil
	}
	if n > 0 && s.file.Truncate(s.size) != nil { // half a line: the next begins in another file
		_ = s.end() // the write has failed already
	}
	return err
}

// gone reports whether the file was removed or renamed. It looks at most once in lookTime.
func (s *sink) gone(now time.Time) bool {
	if now.Sub(s.looked).Abs() < lookTime {
		return false
	}
	s.looked = now
	own, err := s.file.Stat()
	there, _ := os.Stat(s.path)
	return err == nil && !os.SameFile(there, own)
}

// withLost adds to the number of frames that a line says are missing before it.
func withLost(line []byte, n int) []byte {
	var f trace.Frame
	if f.UnmarshalJSON(line) != nil {
		return line
	}
	f.Lost += n
	return append(f.Append(nil), '\n')
}

// begin begins a file, in a new folder if there is none, and deletes old files.
func (s *sink) begin(now time.Time) error {
	if err := s.end(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	s.prune(now)
	today := now.Format(day)
	path := filepath.Join(s.dir, fmt.Sprintf("trace-%s-%s-%04d.jsonl", today, s.run, s.number+1))
	create := s.create
	if create == nil {
		create = func(path string) (sinkFile, error) {
			return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		}
	}
	file, err := create(path)
	if err != nil {
		return err
	}
	s.file, s.path, s.size, s.day, s.looked = file, path, 0, today, now
	s.number++
	return nil
}

// end closes the file.
func (s *sink) end() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}

var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^trace-\d{4}-\d\d-\d\d-\d{6}-[a-z0-9]{6}-\d{4,}\.jsonl$`)
})

// prune deletes files that are too old, and the oldest until there is room for another. A file
// that cannot be deleted, for instance because another program has it open on Windows, stays.
func (s *sink) prune(now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // begin reports a folder that cannot be used
	}
	var files []fs.FileInfo
	total := s.MaxFile
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && ours().MatchString(e.Name()) {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if total <= s.MaxBytes && now.Sub(f.ModTime()) <= s.MaxAge {
			continue
		}
		if os.Remove(filepath.Join(s.dir, f.Name())) == nil {
			total -= f.Size()
		}
	}
}

// missing returns the error for the lines that could not be written, or nil.
func (s *sink) missing() error {
	if n := s.missed.Load(); n > 0 {
		return fmt.Errorf("%w: %d: writing to %s failed", trace.ErrDropped, n, s.dir)
	}
	return nil
}
