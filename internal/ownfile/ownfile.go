// Package ownfile reads, replaces and locks the program's private files of a person: only their
// owner can read them, and several processes may use them at once. [Sink] opens the files for writing
// that a person names, with any mode.
package ownfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Read reads a file of at most most bytes. It returns nil without an error if there is no file, and
// an error, without waiting, if there is a pipe or a folder in its place.
func Read(path string, most int64) ([]byte, error) {
	f, err := openNow(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is not a regular file", path))
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Replace replaces a file atomically, and creates its folder if needed. The file has mode 0600,
// the folder 0700.
func Replace(path string, content []byte) error { return ReplaceMode(path, content, 0o600) }

// ReplaceMode is [Replace] for a file with another mode.
func ReplaceMode(path string, content []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// lockEvery is the maximum time between two attempts to take a lock.
const lockEvery = 50 * time.Millisecond

// Lock takes a lock on a file, and creates it and its folder if needed. Unlocking does not remove
// the file, because others may wait for its lock. The lock ends with the process. If another
// process holds the lock until ctx ends, the error wraps the cause of ctx.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, false)
}

// LockShared is [Lock], but other processes can have the lock at the same time, with LockShared too.
func LockShared(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, true)
}

func lock(ctx context.Context, path string, shared bool) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, lockEvery) {
		got, err := tryLock(f, shared)
		if got {
			return sync.OnceFunc(func() { f.Close() }), nil
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-time.After(wait): // the end of a lock must be polled
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("%s is locked by another process: %w", f.Name(), context.Cause(ctx))
		}
	}
}
