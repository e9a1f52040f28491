package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/mcp"
)

// File is a file of approvals. It is safe for concurrent use, by several processes too.
type File struct {
	path string
	by   string
}

// kept is the content of the file.
type kept struct {
	Version   int        `json:"version"`
	Approvals []Approval `json:"approvals"`
}

const (
	version  = 2        // the newest one
	maxFile  = 16 << 20 // bytes
	keyBytes = 32

	maxDefinition = 16 << 10 // bytes of a definition that is stored
	lockTime      = 10 * time.Second
)

// DefaultPath returns the user's file: approvals.json in the folder patchbay of the user's data.
func DefaultPath() (string, error) { return ownfile.Data("approvals.json") }

// Open returns the approvals of a file, which need not exist. An empty path means [DefaultPath].
// Open does not read the file.
func Open(path string) (*File, error) {
	var err error
	if path == "" {
		if path, err = DefaultPath(); err != nil {
			return nil, fmt.Errorf("where to keep approvals: %w", err)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	f := &File{path: path}
	if u, err := user.Current(); err == nil { // the user is for information only
		f.by = u.Username
	}
	return f, nil
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

func (f *File) read() ([]Approval, error) {
	data, err := ownfile.Read(f.path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if err := ownfile.Newer(f.path, data, version); err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("approvals: %s is damaged (%w); correct it or move it away", f.path, err)
	}
	return k.Approvals, nil
}

// lock keeps other processes from changing the file.
func (f *File) lock() (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lockTime, errors.New("another process has held the lock for too long"))
	defer cancel()
	return ownfile.Lock(ctx, f.path+".lock")
}

// change replaces the approvals, one change at a time.
func (f *File) change(do func([]Approval) []Approval) error {
	unlock, err := f.lock()
	if err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	defer unlock()
	list, err := f.read()
	if err != nil {
		return err
	}
	k := kept{1, do(list)}
	if slices.ContainsFunc(k.Approvals, func(a Approval) bool { return a.When != "" }) {
		k.Version = version
	}
	data, err := json.MarshalIndent(k, "", "  ")
	if err == nil && len(data) >= maxFile {
		err = fmt.Errorf("%s would exceed %d bytes; revoke approvals that you do not need", f.path, maxFile)
	}
	if err == nil {
		err = ownfile.Replace(f.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	return nil
}

// Find looks a tool up, as the function [Find] does.
func (f *File) Find(identity string, tool *mcp.Tool) (Found, error) {
	list, err := f.read()
	if err != nil {
		return Found{}, err
	}
	return Find(list, identity, tool)
}

// Allow stores approvals, all of them or none. Approvals of earlier definitions of these tools are removed.
func (f *File) Allow(more ...Approval) error {
	at := time.Now().UTC().Truncate(time.Second)
	more = slices.Clone(more)
	for i := range more {
		more[i].By, more[i].At = f.by, at
	}
	return f.change(func(list []Approval) []Approval { return With(list, more...) })
}

// Revoke removes the approvals for which the function returns true, and returns them.
func (f *File) Revoke(which func(Approval) bool) (gone []Approval, err error) {
	err = f.change(func(list []Approval) []Approval {
		gone = nil
		return slices.DeleteFunc(list, func(a Approval) bool {
			forget := which(a)
			if forget {
				gone = append(gone, a)
			}
			return forget
		})
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// List returns all approvals, the oldest first.
func (f *File) List() ([]Approval, error) { return f.read() }

// Digest returns 16 hex digits that distinguish a text from others, for an identity that does not
// reveal all of it. It uses a key in a file beside the approvals, made on first use, so that the
// text cannot be guessed without the key.
func (f *File) Digest(text string) (string, error) {
	key, err := f.key()
	if err != nil {
		return "", fmt.Errorf("approvals: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:8]), nil
}

func (f *File) key() ([]byte, error) {
	unlock, err := f.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := f.path + ".key"
	key, err := ownfile.Read(path, keyBytes)
	switch {
	case err != nil:
	case key == nil:
		key = make([]byte, keyBytes)
		rand.Read(key) // does not fail
		err = ownfile.Replace(path, key)
	case len(key) != keyBytes:
		err = fmt.Errorf("%s is damaged; remove it, and grant its approvals again", path)
	}
	return key, err
}
