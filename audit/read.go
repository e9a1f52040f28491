package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// ErrReplaced is the error of [Follow] at a log that was replaced by another one, or cut. It is in a
// [*LineError], and the lines of the file follow from its first one.
var ErrReplaced = errors.New("audit: the log was replaced or cut: the numbers of its lines begin again, and a line may come twice")

// LineError is a line that is not one of a log. Reading goes on after it.
type LineError struct {
	File string
	Line int // from 1; 0: Backward does not know it, or the file has no lines
	Err  error
}

func (e *LineError) Error() string {
	if errors.As(e.Err, new(irregular)) {
		return e.Err.Error()
	}
	if e.Line == 0 {
		return fmt.Sprintf("%s: a line cannot be read: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// Read returns the lines of files, in order. A line that does not decode is a [*LineError], and the
// next lines follow; so is a file before the last one that is a pipe or a device. A fragment at the end
// of a file is left out, because it may still be written.
// Any other error is the last element.
func Read(files ...string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for i, name := range files {
			f, err := openFile(name)
			if err != nil {
				if !unreadable(name, err, i+1 < len(files), yield) {
					return
				}
				continue
			}
			_, more := readLines(f, name, 0, yield)
			f.Close()
			if !more {
				return
			}
		}
	}
}

// unreadable yields the error of a file that cannot be opened. It reports whether to go on.
func unreadable(name string, err error, rotated bool, yield func(*Entry, error) bool) bool {
	if rotated && errors.As(err, new(irregular)) {
		return yield(nil, &LineError{File: name, Err: err})
	}
	yield(nil, fmt.Errorf("audit log: %w", err))
	return false
}

// readLines yields the whole lines of r. It returns their bytes, and whether to go on.
func readLines(r io.Reader, name string, line int, yield func(*Entry, error) bool) (size int64, more bool) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := boundedLine(in)
		if err == io.EOF {
			return size, true
		}
		line++
		size += int64(len(text))
		if err != nil && !errors.Is(err, errLong) {
			yield(nil, fmt.Errorf("audit log: %w", err))
			return size, false
		}
		var e *Entry
		if err == nil {
			e, err = decode(bytes.TrimSuffix(text, []byte("\n")))
		}
		if err != nil {
			err = &LineError{name, line, err}
		}
		if !yield(e, err) {
			return size, false
		}
	}
}

// decode decodes a line, which the entry keeps.
func decode(line []byte) (*Entry, error) {
	e := &Entry{line: line}
	if err := jsonx.Unmarshal(line, e); err != nil {
		return nil, err
	}
	if e.Seq <= 0 {
		return nil, errors.New("it is not a line of an audit log")
	}
	if e.V > version {
		return nil, newer(e.V)
	}
	return e, nil
}

// newer is the error of a line of a later format.
func newer(v int) error {
	return fmt.Errorf("it was written by a newer version (format %d, this one knows %d); upgrade", v, version)
}

var errLong = errors.New("it is longer than 1 MiB")

// boundedLine reads a line with its end. Without an end the error is io.EOF.
func boundedLine(in *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = append(line[:0], part...)
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return line, err
		case long:
			return line, errLong
		default:
			return line, nil
		}
	}
}

// Backward returns the lines of files like [Read], from the last to the first, without reading more
// of the files than the caller takes.
func Backward(files ...string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for i, name := range slices.Backward(files) {
			f, err := openFile(name)
			if err != nil {
				if !unreadable(name, err, i+1 < len(files), yield) {
					return
				}
				continue
			}
			more := linesBackward(f, yield)
			f.Close()
			if !more {
				return
			}
		}
	}
}

// linesBackward yields the whole lines of a file, the last one first. It reports whether to go on.
func linesBackward(f *os.File, yield func(*Entry, error) bool) (more bool) {
	info, err := f.Stat()
	if err != nil {
		yield(nil, fmt.Errorf("audit log: %w", err))
		return false
	}
	var line []byte                  // the end of the current line, as far as it is read
	whole, long := false, false      // the line has an end; it is too long
	end := func(begin []byte) bool { // the current line begins here
		text := slices.Concat(begin, line)
		err, e := errLong, (*Entry)(nil)
		if !long && len(text) < maxLine {
			e, err = decode(text)
		}
		if line, long = nil, false; !whole { // it may still be written
			return true
		}
		if err != nil {
			err = &LineError{File: f.Name(), Err: err}
		}
		return yield(e, err)
	}
	buf := make([]byte, 64<<10)
	for at := info.Size(); at > 0; {
		part := buf[:min(int64(len(buf)), at)]
		at -= int64(len(part))
		if _, err := f.ReadAt(part, at); err != nil {
			yield(nil, fmt.Errorf("audit log: %w", err))
			return false
		}
		for i := bytes.LastIndexByte(part, '\n'); i >= 0; i = bytes.LastIndexByte(part, '\n') {
			if !end(part[i+1:]) {
				return false
			}
			part, whole = part[:i], true
		}
		if long = long || len(part)+len(line) > maxLine; !long {
			line = slices.Concat(part, line)
		}
	}
	return !whole || end(nil)
}

// followTime is the time between two looks at a log.
const followTime = 250 * time.Millisecond

// Follow returns the lines of the log at path with numbers above after as they are written, across
// rotations, until ctx ends. It waits for a file that is not there yet. If the log does not have the
// line after, or is replaced or cut meanwhile, there is an [ErrReplaced].
func Follow(ctx context.Context, path string, after int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		f := follower{path: path, last: after, done: map[[sha256.Size]byte]int64{}}
		for {
			if !f.look(yield) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(followTime):
			}
		}
	}
}

// follower has read the lines up to last.
type follower struct {
	path string
	last int64
	done map[[sha256.Size]byte]int64 // bytes that were read, by the digest of the first line of a file
	seen int64                       // the largest number that was read, also of lines that were skipped
}

// look yields new lines.
func (f *follower) look(yield func(*Entry, error) bool) (more bool) {
	files, err := Files(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, name := range files {
		if i+1 < len(files) {
			if next := f.firstOf(files[i+1]); next > 0 && next <= f.last+1 {
				continue // its lines are read
			}
		}
		if !f.file(files, name, yield) {
			return false
		}
	}
	if f.seen > 0 && f.seen < f.last && !f.rotated(files) { // the line from which to follow is not there
		if !yield(nil, &LineError{files[0], 1, ErrReplaced}) {
			return false
		}
		f.last = 0
		clear(f.done)
		return f.look(yield)
	}
	return true
}

// rotated reports whether the log has other files than a moment ago.
func (f *follower) rotated(files []string) bool {
	now, err := Files(f.path)
	return err != nil || !slices.Equal(now, files)
}

// firstOf returns the number of the first line of a file of the log, from its name if it is rotated; 0:
// it has none.
func (f *follower) firstOf(name string) int64 {
	if seq := rotatedSeq(filepath.Base(f.path), filepath.Base(name)); seq > 0 {
		return seq
	}
	return firstSeq(name)
}

// firstSeq returns the number of the first line of a file; 0: it has none.
func firstSeq(name string) int64 {
	f, err := openFile(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	line, err := boundedLine(bufio.NewReader(f))
	if err != nil {
		return 0
	}
	return seqOf(line)
}

// seqOf returns the number of a line; 0: it is not one of a log.
func seqOf(line []byte) int64 {
	if line = bytes.TrimSuffix(line, []byte("\n")); !chained(line) {
		return 0
	}
	return headOf(line).Seq
}

// file reads one of the files of the log.
func (f *follower) file(files []string, name string, yield func(*Entry, error) bool) (more bool) {
	in, err := openFile(name)
	if errors.Is(err, fs.ErrNotExist) || name != f.path && errors.As(err, new(irregular)) { // it was renamed just now, or is a pipe
		return true
	}
	if err != nil {
		yield(nil, fmt.Errorf("audit log: %w", err))
		return false
	}
	defer in.Close()
	text, err := boundedLine(bufio.NewReader(in))
	if err != nil {
		return true
	}
	first, id := seqOf(text), sha256.Sum256(text)
	if first > f.last+1 && f.rotated(files) {
		return true // the file between was not in the list; the next look has it
	}
	info, err := in.Stat()
	if err != nil {
		yield(nil, fmt.Errorf("audit log: %w", err))
		return false
	}
	from, known := f.done[id]
	replaced := info.Size() < from || !known && len(f.done) > 0 && first > 0 && first <= f.last
	for {
		if replaced {
			if from, f.last = 0, first-1; !yield(nil, &LineError{name, 1, ErrReplaced}) {
				return false
			}
		}
		if _, err := in.Seek(from, io.SeekStart); err != nil {
			yield(nil, fmt.Errorf("audit log: %w", err))
			return false
		}
		replaced = false
		read, more := readLines(in, name, 0, func(e *Entry, err error) bool {
			if err != nil {
				return yield(e, err)
			}
			f.seen = max(f.seen, e.Seq)
			if e.Seq > f.last {
				f.last = e.Seq
				return yield(e, nil)
			}
			replaced = from > 0
			return !replaced
		})
		f.done[id] = from + read
		if !replaced {
			return more
		}
	}
}

// Filter selects lines. Empty fields select all; in texts * stands for any text. Both spellings of
// "canceled" are the same.
type Filter struct {
	Since, Until time.Time // Since <= Time < Until
	Kind         string
	Principal    string // ID
	Team         string
	Client       string // name
	Server       string // name
	Tool         string // or the name of a prompt or resource; also SERVER_TOOL, its name at a gateway
	Rule         string
	Outcome      string
	Fault        string
	Slower       time.Duration // of ends: Millis is at least this
	Call         string
}

// Match reports whether the filter selects a line.
func (f *Filter) Match(e *Entry) bool {
	if !f.Since.IsZero() && e.Time.Before(f.Since) || !f.Until.IsZero() && !e.Time.Before(f.Until) {
		return false
	}
	var principal, client, server, rule string
	if e.Principal != nil {
		principal = e.Principal.ID
	}
	if e.Client != nil {
		client = e.Client.Name
	}
	if e.Server != nil {
		server = e.Server.Name
	}
	if e.Decision != nil {
		rule = e.Decision.Rule
	}
	tool := e.Tool
	if tool == "" {
		tool = e.Name
	}
	if f.Slower > 0 && e.Millis < float64(f.Slower)/float64(time.Millisecond) {
		return false
	}
	if f.Tool != "" && server != "" && wildcard.Match(f.Tool, server+"_"+tool) {
		tool = f.Tool
	}
	for _, m := range [][2]string{
		{f.Kind, string(e.Kind)}, {f.Principal, principal}, {f.Team, e.Team}, {f.Client, client}, {f.Server, server},
		{f.Tool, tool}, {f.Rule, rule}, {oneL(f.Outcome), oneL(e.Outcome)}, {f.Fault, e.Fault}, {f.Call, e.Call},
	} {
		if m[0] != "" && !wildcard.Match(m[0], m[1]) {
			return false
		}
	}
	return true
}

// oneL spells "cancelled", the word of package host, as that of requests.
func oneL(outcome string) string { return strings.ReplaceAll(outcome, "cancelled", "canceled") }

// Select returns the lines that the filter selects, and all errors.
func (f *Filter) Select(lines iter.Seq2[*Entry, error]) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for e, err := range lines {
			if (err != nil || f.Match(e)) && !yield(e, err) {
				return
			}
		}
	}
}
