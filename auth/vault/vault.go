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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
)

// Options configure a [Vault]. Nil and the zero value mean defaults.
type Options struct {
	// Keyring holds the key. Nil: that of the system, see [SystemKeyring].
	Keyring Keyring

	// Passphrase makes the key of a new vault, and opens one that was made with it. Empty: the
	// value of PATCHBAY_PASSPHRASE.
	Passphrase auth.Secret
}

// Vault is a folder of secrets. It is an [auth.Store]. It may be used by several goroutines, and
// its folder by several processes, at once.
type Vault struct {
	dir     string
	keyring Keyring
	phrase  auth.Secret

	mu   sync.Mutex
	aead cipher.AEAD // nil until the key was needed; guarded by mu
	how  string      // the key is kept; guarded by mu
}

var _ auth.Store = (*Vault)(nil)

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
	v := &Vault{dir: dir, keyring: opts.Keyring, phrase: cmp.Or(opts.Passphrase, auth.Secret(os.Getenv("PATCHBAY_PASSPHRASE")))}
	if v.keyring == nil {
		v.keyring = SystemKeyring()
	}
	return v, nil
}

// Dir returns the folder.
func (v *Vault) Dir() string { return v.dir }

// file returns the name of the file of a server or secret: names tell who is talked to, and
// may have characters that no file has.
func file(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

// login is an auth.Login that shows its secrets: what is encrypted.
type login struct {
	auth.Login
	ClientSecret, Access, Refresh string
}

func (l *login) open() auth.Login {
	out := l.Login
	out.ClientSecret, out.Access, out.Refresh = auth.Secret(l.ClientSecret), auth.Secret(l.Access), auth.Secret(l.Refresh)
	return out
}

// Load implements auth.Store.
func (v *Vault) Load(_ context.Context, server string) ([]auth.Login, error) {
	kept, err := v.logins(server)
	if err != nil {
		return nil, err
	}
	out := make([]auth.Login, len(kept))
	for i := range kept {
		out[i] = kept[i].open()
	}
	return out, nil
}

func (v *Vault) logins(server string) ([]login, error) {
	var kept []login
	plain, err := v.read(file("login", server))
	if err == nil && plain != nil {
		err = json.Unmarshal(plain, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("tokens for %q: %w", clip(server), err)
	}
	return kept, nil
}

// Save implements auth.Store.
func (v *Vault) Save(ctx context.Context, l *auth.Login) error {
	return v.change(ctx, l.Server, func(kept []login) []login {
		kept = without(kept, l.Key)
		kept = slices.Insert(kept, 0, login{*l, string(l.ClientSecret), string(l.Access), string(l.Refresh)})
		return kept[:min(len(kept), maxLogins)]
	})
}

// Delete implements auth.Store.
func (v *Vault) Delete(ctx context.Context, k auth.Key) error {
	return v.change(ctx, k.Server, func(kept []login) []login { return without(kept, k) })
}

func without(kept []login, k auth.Key) []login {
	return slices.DeleteFunc(kept, func(l login) bool { return l.Key == k })
}

// change replaces the logins at a server, one change at a time.
func (v *Vault) change(ctx context.Context, server string, do func([]login) []login) error {
	name := file("login", server)
	unlock, err := v.lock(ctx, name+".write")
	if err != nil {
		return fmt.Errorf("tokens for %q: %w", clip(server), err)
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
		return fmt.Errorf("tokens for %q: %w", clip(server), err)
	}
	return nil
}

// Lock implements auth.Store.
func (v *Vault) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return v.lock(ctx, file("hold", name))
}

// Secret returns what was kept under a name by [Vault.SetSecret], empty if nothing was.
func (v *Vault) Secret(name string) (auth.Secret, error) {
	plain, err := v.read(file("secret", name))
	return auth.Secret(plain), err
}

// SetSecret keeps a text under a name; an empty text is forgotten.
func (v *Vault) SetSecret(ctx context.Context, name string, s auth.Secret) error {
	if s == "" {
		return v.remove(file("secret", name))
	}
	return v.write(ctx, file("secret", name), []byte(s))
}

// read decrypts a file; nil without error: there is none.
func (v *Vault) read(name string) ([]byte, error) {
	sealed, err := readFile(filepath.Join(v.dir, name))
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
	return replace(filepath.Join(v.dir, name), aead.Seal(nil, nil, plain, []byte(name)))
}

func (v *Vault) remove(name string) error {
	err := os.Remove(filepath.Join(v.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readFile reads a file of bounded length; nil without error: there is none.
func readFile(path string) ([]byte, error) {
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// replace puts content in the place of a file, whole or not at all.
func replace(path string, content []byte) (err error) {
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

// lock takes the lock of a file, which stays when it is let go: to remove it would take it from
// those who wait.
func (v *Vault) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(v.dir, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
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
			return nil, fmt.Errorf("wait for another process that logs in or refreshes: %w", context.Cause(ctx))
		}
	}
}

// clip bounds text for use in an error.
func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
