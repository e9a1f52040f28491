// Package trust remembers which files a person has said yes to, by what is in them: files that come
// with a folder, as with a repository that was cloned or an archive that was unpacked, and that have commands run.
//
// The store remembers the path and the SHA-256 of the content, for this person alone. A file that
// says something else is another one, and so is a symbolic link to a trusted file: relative paths in
// it lead elsewhere. The package starts nothing and asks nobody.
package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Store is the file that remembers. It may be used by several goroutines and processes.
type Store struct{ path string }

// Open returns the store at a path; empty means trust.json among the data of the program. It makes
// nothing.
func Open(path string) (*Store, error) {
	if path == "" {
		var err error
		if path, err = ownfile.Data("trust.json"); err != nil {
			return nil, err
		}
	}
	return &Store{path}, nil
}

// Path is where the store is.
func (s *Store) Path() string { return s.path }

// Bounds of a store.
const (
	maxBytes    = 4 << 20
	maxContents = 32 // of one file; the oldest is forgotten
	lockTime    = 10 * time.Second
)

// content is the store as it is written: hashes by path, the newest last.
type content struct {
	Trusted map[string][]string `json:"trusted"`
}

func (s *Store) read() (*content, error) {
	c := new(content)
	raw, err := ownfile.Read(s.path, maxBytes)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil {
		return nil, fmt.Errorf("what you trust cannot be read: %s: %w", s.path, err)
	}
	return c, nil
}

// Trusts tells whether a person has said yes to a file with this content. A store that is not there
// trusts nothing.
func (s *Store) Trusts(file string, text []byte) (bool, error) {
	c, err := s.read()
	if err != nil {
		return false, err
	}
	return slices.Contains(c.Trusted[ownfile.InRealFolder(file)], hash(text)), nil
}

// Trust remembers that a person has said yes to a file with this content.
func (s *Store) Trust(ctx context.Context, file string, text []byte) error {
	return s.change(ctx, func(c *content) {
		h := hash(text)
		known := slices.DeleteFunc(c.Trusted[ownfile.InRealFolder(file)], func(old string) bool { return old == h })
		known = append(known, h)
		c.Trusted[ownfile.InRealFolder(file)] = known[max(0, len(known)-maxContents):]
	})
}

// Forget takes back what was said of a file, and tells whether anything was.
func (s *Store) Forget(ctx context.Context, file string) (was bool, err error) {
	err = s.change(ctx, func(c *content) {
		_, was = c.Trusted[ownfile.InRealFolder(file)]
		delete(c.Trusted, ownfile.InRealFolder(file))
	})
	return was, err
}

func (s *Store) change(ctx context.Context, f func(*content)) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	unlock, err := ownfile.Lock(ctx, s.path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := s.read()
	if err != nil {
		return err
	}
	if c.Trusted == nil {
		c.Trusted = map[string][]string{}
	}
	f(c)
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return ownfile.Replace(s.path, append(raw, '\n'))
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
