package vault

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Options configure a [Vault]. Nil and the zero value mean defaults.
type Options struct {
	// Keyring holds the key. Nil: the keyring of the system, see [SystemKeyring].
	Keyring Keyring

	// Passphrase makes the key of a new vault, and opens one that was made with it. Empty: the
	// value of PATCHBAY_PASSPHRASE.
	Passphrase login.Secret
}

// Vault is a folder of secrets, and a [login.Store]. It may be used by several goroutines, and its
// folder by several processes, at once.
type Vault struct {
	dir     string
	keyring Keyring
	phrase  login.Secret

	mu   sync.Mutex
	aead cipher.AEAD // nil until the key was needed; guarded by mu
	how  string      // the key is kept; guarded by mu
}

var _ login.Store = (*Vault)(nil)

const (
	maxFile   = 1 << 20 // bytes
	maxLogins = 8       // at one server; the oldest goes
)

// Open returns the vault of a folder, which need not exist. Empty: "patchbay/vault" in the
// user's configuration folder. Opening reads nothing, and does not need the key.
func Open(dir string, opts *Options) (*Vault, error) {
	if opts == nil {
		opts = &Options{}
	}
	if dir == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("where to keep tokens: %w", err)
		}
		dir = filepath.Join(base, "patchbay", "vault")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	v := &Vault{dir: dir, keyring: opts.Keyring, phrase: cmp.Or(opts.Passphrase, login.Secret(os.Getenv("PATCHBAY_PASSPHRASE")))}
	if v.keyring == nil {
		v.keyring = SystemKeyring()
	}
	return v, nil
}

// Dir returns the folder.
func (v *Vault) Dir() string { return v.dir }

// file returns the name of the file of a server or secret. It is a hash, because a name may have
// characters that file names cannot have, and tells which servers are used.
func file(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

// record is a login.Record with its secrets as plain text, for encryption.
type record struct {
	login.Record
	ClientSecret, Access, Refresh string
}

func (l *record) open() login.Record {
	out := l.Record
	out.ClientSecret, out.Access, out.Refresh = login.Secret(l.ClientSecret), login.Secret(l.Access), login.Secret(l.Refresh)
	return out
}

// Load implements login.Store.
func (v *Vault) Load(_ context.Context, server string) ([]login.Record, error) {
	kept, err := v.logins(server)
	if err != nil {
		return nil, err
	}
	out := make([]login.Record, len(kept))
	for i := range kept {
		out[i] = kept[i].open()
	}
	return out, nil
}

func (v *Vault) logins(server string) ([]record, error) {
	var kept []record
	plain, err := v.read(file("login", server))
	if err == nil && plain != nil {
		err = json.Unmarshal(plain, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("tokens for %q: %w", text.Short(server), err)
	}
	return kept, nil
}

// Save implements login.Store.
func (v *Vault) Save(ctx context.Context, l *login.Record) error {
	return v.change(ctx, l.Server, func(kept []record) []record {
		kept = without(kept, l.Key)
		kept = slices.Insert(kept, 0, record{*l, string(l.ClientSecret), string(l.Access), string(l.Refresh)})
		return kept[:min(len(kept), maxLogins)]
	})
}

// Delete implements login.Store.
func (v *Vault) Delete(ctx context.Context, k login.Key) error {
	return v.change(ctx, k.Server, func(kept []record) []record { return without(kept, k) })
}

func without(kept []record, k login.Key) []record {
	return slices.DeleteFunc(kept, func(l record) bool { return l.Key == k })
}

// change replaces the logins at a server, one change at a time.
func (v *Vault) change(ctx context.Context, server string, do func([]record) []record) error {
	name := file("login", server)
	unlock, err := v.lock(ctx, name+".write")
	if err != nil {
		return fmt.Errorf("tokens for %q: %w", text.Short(server), err)
	}
	defer unlock()
	kept, err := v.logins(server)
	if err != nil {
		return err
	}
	before := len(kept)
	if kept = do(kept); len(kept) == 0 {
		if before == 0 {
			return nil
		}
		return v.remove(name)
	}
	plain, err := json.Marshal(kept)
	if err == nil {
		err = v.write(ctx, name, plain)
	}
	if err != nil {
		return fmt.Errorf("tokens for %q: %w", text.Short(server), err)
	}
	return nil
}

// Lock implements login.Store.
func (v *Vault) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return v.lock(ctx, file("hold", name))
}

// Secret returns the text that [Vault.SetSecret] has stored under a name, or "" if there is none.
func (v *Vault) Secret(name string) (login.Secret, error) {
	plain, err := v.read(file("secret", name))
	return login.Secret(plain), err
}

// SetSecret stores a text under a name. An empty text deletes the stored one.
func (v *Vault) SetSecret(ctx context.Context, name string, s login.Secret) error {
	if s == "" {
		return v.remove(file("secret", name))
	}
	return v.write(ctx, file("secret", name), []byte(s))
}

// read decrypts a file; nil without error: there is none.
func (v *Vault) read(name string) ([]byte, error) {
	sealed, err := ownfile.Read(filepath.Join(v.dir, name), maxFile)
	if sealed == nil {
		return nil, err
	}
	aead, err := v.key(context.Background(), false)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged, or was encrypted with another key; move it away and log in again", filepath.Join(v.dir, name))
	}
	return plain, nil
}

func (v *Vault) write(ctx context.Context, name string, plain []byte) error {
	aead, err := v.key(ctx, true)
	if err != nil {
		return err
	}
	return ownfile.Replace(filepath.Join(v.dir, name), aead.Seal(nil, nil, plain, []byte(name)))
}

func (v *Vault) remove(name string) error {
	err := os.Remove(filepath.Join(v.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lock takes the lock of a file.
func (v *Vault) lock(ctx context.Context, name string) (unlock func(), err error) {
	unlock, err = ownfile.Lock(ctx, filepath.Join(v.dir, name+".lock"))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("wait for another process that logs in or refreshes: %w", err)
	}
	return unlock, err
}
