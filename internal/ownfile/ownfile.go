// Package ownfile reads, replaces and locks the files that the program keeps for a person: for
// their eyes alone, by several processes at once.
package ownfile

import (
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

// Read reads a file of bounded length in bytes; nil without error: there is none.
func Read(path string, most int64) ([]byte, error) {
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Replace puts content in the place of a file, whole or not at all, and makes its folder. The
// file is 0600, the folder 0700.
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

// lockEvery is the longest time between two looks at a lock that somebody else holds.
const lockEvery = 50 * time.Millisecond

// Lock takes the lock that a file is, and makes it and its folder. The file stays when the lock
// is let go: to remove it would take it from those who wait. The lock ends with the process. The
// error wraps the cause of ctx when somebody else has the lock until then.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, lockEvery) {
		got, err := tryLock(f)
		if got {
			return sync.OnceFunc(func() { f.Close() }), nil
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-time.After(wait): // locks tell nobody when they end
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("%s is locked by another process: %w", f.Name(), context.Cause(ctx))
		}
	}
}
