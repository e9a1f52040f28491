// Package trust stores the files that a person has trusted, by content: files that run commands
// and come with a folder, such as a cloned repository or an unpacked archive.
//
// The store has the path and the SHA-256 of the content, for one person. A file with other content
// is not trusted, nor is a symbolic link to a trusted file, because relative paths in it lead
// elsewhere. The package starts nothing and does not ask the person.
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

// Store is the file that lists the trusted files. It is safe for concurrent use, by several
// processes too.
type Store struct{ path string }

// Open returns the store at a path; empty means trust.json in the folder of the program's data.
// It creates nothing.
func Open(path string) (*Store, error) {
	if path == "" {
		var err error
		if path, err = ownfile.Data("trust.json"); err != nil {
			return nil, err
		}
	}
	return &Store{path}, nil
}

// Path returns the path of the store.
func (s *Store) Path() string { return s.path }

// Bounds of a store.
const (
	version     = 1 // of the file's format
	maxBytes    = 4 << 20
	maxContents = 32 // contents of one file; the oldest is dropped
	lockTime    = 10 * time.Second
)

// content is the JSON form of the store: hashes by path, the newest last.
type content struct {
	Version int                 `json:"version"`
	Trusted map[string][]string `json:"trusted"`
}

func (s *Store) read() (*content, error) {
	c := new(content)
	raw, err := ownfile.Read(s.path, maxBytes)
	if err == nil && raw != nil {
		if err := ownfile.Newer(s.path, raw, version); err != nil {
			return nil, fmt.Errorf("the list of trusted files: %w", err)
		}
		err = json.Unmarshal(raw, c)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of trusted files cannot be read: %s: %w", s.path, err)
	}
	return c, nil
}

// Trusts reports whether the person has trusted a file with this content. A missing store trusts
// nothing.
func (s *Store) Trusts(file string, text []byte) (bool, error) {
	c, err := s.read()
	if err != nil {
		return false, err
	}
	return slices.Contains(c.Trusted[ownfile.InRealFolder(file)], hash(text)), nil
}

// Knows reports whether the person has trusted a file with any content.
func (s *Store) Knows(file string) (bool, error) {
	c, err := s.read()
	if err != nil {
		return false, err
	}
	return len(c.Trusted[ownfile.InRealFolder(file)]) > 0, nil
}

// Trust stores that the person trusts a file with this content.
func (s *Store) Trust(ctx context.Context, file string, text []byte) error {
	return s.change(ctx, func(c *content) {
		h := hash(text)
		known := slices.DeleteFunc(c.Trusted[ownfile.InRealFolder(file)], func(old string) bool { return old == h })
		known = append(known, h)
		c.Trusted[ownfile.InRealFolder(file)] = known[max(0, len(known)-maxContents):]
	})
}

// Forget removes the trust in a file, and reports whether there was any.
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
	c.Version = version
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
