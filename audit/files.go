package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// DefaultPath returns the user's file: calls.jsonl in the folder patchbay of the user's data.
func DefaultPath() (string, error) { return ownfile.Data("calls.jsonl") }

// Files returns the files of the log at path, in the order of their lines: the rotated ones, which
// stand beside it, and path itself if it exists. A rotated file has the time and the number of its
// first line in its name: audit.20261122T150000Z.000000004711.jsonl. Without any file, the error
// wraps [io/fs.ErrNotExist].
func Files(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	type part struct {
		name string
		seq  int64
	}
	var parts []part
	there := false
	for _, e := range entries {
		if seq := rotatedSeq(base, e.Name()); seq > 0 {
			parts = append(parts, part{e.Name(), seq})
		}
		there = there || e.Name() == base
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.name, b.name)) })
	var files []string
	for _, p := range parts {
		files = append(files, dir+p.name)
	}
	if there {
		files = append(files, path)
	}
	if files == nil {
		return nil, fmt.Errorf("audit log: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	}
	return files, nil
}

const rotatedTime = "20060102T150405Z"

func rotatedName(path string, at time.Time, seq int64) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%s.%012d%s", strings.TrimSuffix(path, ext), at.UTC().Format(rotatedTime), seq, ext)
}

// rotatedSeq returns the number in the name of a rotated file; 0: the name is of another file.
func rotatedSeq(base, name string) int64 {
	ext := filepath.Ext(base)
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(base, ext)+".")
	if !ok {
		return 0
	}
	if rest, ok = strings.CutSuffix(rest, ext); !ok {
		return 0
	}
	at, number, _ := strings.Cut(rest, ".")
	if _, err := time.Parse(rotatedTime, at); err != nil || len(number) < 12 {
		return 0
	}
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

// logOf returns the path of the log that a file belongs to: without the part of a rotated file.
func logOf(name string) string {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for range 2 { // the number and the time
		stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	}
	if path := stem + ext; rotatedSeq(filepath.Base(path), filepath.Base(name)) > 0 {
		return path
	}
	return name
}

// headPath is the file with the last checkpoint of a log.
func headPath(path string) string { return path + ".head" }

// openFile opens a file for reading. It must be a regular one, because a pipe or a device may have no
// end; /dev/null and the shell's own pipes, /dev/fd/63 for instance, are what a person wants to read.
func openFile(path string) (*os.File, error) {
	f, err := openShared(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && path != os.DevNull && !strings.HasPrefix(path, "/dev/fd/") {
		err = irregular(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// irregular is the error of a path that is not the one of a regular file.
type irregular string

func (path irregular) Error() string {
	return string(path) + " is not a regular file; remove it, or move it away"
}

// end is the end of a log.
type end struct {
	Head
	size     int64     // of the whole lines of the file; 0: the file has none
	fragment int       // bytes after them
	first    int64     // number of the first line of the file
	opened   time.Time // time of the first line
	id       string    // of the log, as the first line has it; empty: it has none
}

// part reads the bytes before an offset in a file, or with the offset 0 its first ones: as many as suffice, but no
// more than most. Several processes that share a log read its end before each of their lines, which are
// much shorter than they may be.
func part(f *os.File, before, most int64, suffices func([]byte) bool) ([]byte, error) {
	for n := min(4<<10, most); ; n = min(8*n, most) {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, max(0, before-n)); err != nil && err != io.EOF {
			return nil, err
		}
		if n == most || suffices(b) {
			return b, nil
		}
	}
}

// endOf finds the end of the log in its current file.
func endOf(f *os.File) (e end, err error) {
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() {
		return e, irregular(f.Name())
	}
	size := info.Size()
	if size == 0 {
		return e, nil
	}
	tail, err := part(f, size, min(size, 2*maxLine), func(tail []byte) bool {
		last := bytes.LastIndexByte(tail, '\n')
		return last > 0 && bytes.IndexByte(tail[:last], '\n') >= 0
	})
	if err != nil {
		return e, err
	}
	last := bytes.LastIndexByte(tail, '\n') + 1 // of the tail
	e.fragment = len(tail) - last
	e.size = size - int64(e.fragment)
	if last == 0 {
		if size > int64(len(tail)) || !begun(tail) {
			return e, notALog(f.Name())
		}
		return e, nil
	}
	begin := bytes.LastIndexByte(tail[:last-1], '\n') + 1
	line := tail[begin : last-1]
	if begin == 0 && size > int64(len(tail)) || !chained(line) {
		return e, notALog(f.Name())
	}
	e.Head = headOf(line)
	number, _ := jsonx.Lookup(line, "v")
	if v, err := strconv.Atoi(string(number)); err == nil && v > version {
		return e, fmt.Errorf("%s: the last line: %w", f.Name(), newer(v))
	}
	header, err := part(f, 0, min(size, maxLine), func(header []byte) bool { return bytes.IndexByte(header, '\n') >= 0 })
	if err != nil {
		return e, err
	}
	header, _, _ = bytes.Cut(header, []byte("\n"))
	if !chained(header) {
		return e, notALog(f.Name())
	}
	e.first = headOf(header).Seq
	id, _ := jsonx.LookupPath(header, "detail", "log")
	e.id = clipped(stringOf(id), maxChosen)
	at, _ := jsonx.Lookup(header, "time")
	if err := jsonx.Unmarshal(at, &e.opened); err != nil {
		return e, notALog(f.Name())
	}
	return e, nil
}

// begun reports whether text may be the beginning of the first line of a file, which is of kind
// [Node].
func begun(text []byte) bool {
	for _, prefix := range []string{`{"detail":{`, `{"event":"`} {
		if n := min(len(prefix), len(text)); string(text[:n]) == prefix[:n] {
			return true
		}
	}
	return false
}

// Check returns why Open cannot go on with the file at path, or with FILE.head beside it. It is nil if
// there is neither. Check changes nothing.
func Check(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = endOf(f)
		f.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		_, err = readHead(path)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// InUse reports whether another [Log] has the file at path open, so that Open fails for one that is not
// Shared. It changes nothing.
func InUse(path string) bool {
	for _, ext := range []string{lockExt, usersExt} {
		lock := resolved(path) + ext
		if _, err := os.Stat(lock); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond) // a shared log has the first for an instant
		unlock, err := ownfile.Lock(ctx, lock)
		cancel()
		if err == nil {
			unlock()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return true
		}
	}
	return false
}

func notALog(path string) error {
	return fmt.Errorf("%s is not an audit log: it has a line without number or hash; move the file away, or name another", path)
}

// chained reports whether a line is one of a log.
func chained(line []byte) bool {
	if jsonx.KindOf(line) != '{' || jsonx.Valid(line, 0) != nil {
		return false
	}
	h := headOf(line)
	return h.Seq > 0 && len(h.Hash) == hashLen && strings.HasPrefix(h.Hash, hashPrefix)
}

// headOf returns the number and hash of a valid line.
func headOf(line []byte) (h Head) {
	seq, _ := jsonx.Lookup(line, "seq")
	h.Seq, _ = strconv.ParseInt(string(seq), 10, 64)
	hash, _ := jsonx.Lookup(line, "hash")
	h.Hash, _ = jsonx.Unquote(hash)
	return h
}

// readHead reads the checkpoint in the file beside a log; nil: there is none.
func readHead(path string) (*Entry, error) {
	raw, err := ownfile.Read(headPath(path), maxLine)
	if err != nil || raw == nil {
		return nil, err
	}
	e := new(Entry)
	if err := jsonx.Unmarshal(bytes.TrimSpace(raw), e); err != nil || e.Checkpoint == nil {
		return nil, fmt.Errorf("%s is not a checkpoint of an audit log", headPath(path))
	}
	return e, nil
}

// newFile opens or creates a file of a log to write to. It is an error if another process writes to
// it by another name.
func newFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := lockFile(f)
	if err == nil && !free {
		err = inUse(otherName(path))
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// otherName returns another name of a file in its folder, or describes it.
func otherName(path string) string {
	own, _ := os.Stat(path)
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		if there, err := os.Stat(name); err == nil && e.Name() != filepath.Base(path) && os.SameFile(own, there) {
			return name
		}
	}
	return path + " by another name"
}
