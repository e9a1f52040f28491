package vault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// ring is a keyring; nil: there is none.
type ring map[string]string

func (r ring) Get(id string) (login.Secret, error) {
	if text, ok := r[id]; ok {
		return login.Secret(text), nil
	}
	return "", errors.New("the ring is not here")
}

func (r ring) Set(id, text string) error {
	if r == nil {
		return errors.New("no ring")
	}
	r[id] = text
	return nil
}

func open(t *testing.T, dir string, opts *vault.Options) *vault.Vault {
	t.Helper()
	v, err := vault.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sample(client string) *login.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return &login.Record{
		Key:      login.Key{Server: "https://mcp.example.com/mcp", Issuer: "https://as.example.com", Client: client},
		Resource: "https://mcp.example.com/mcp", TokenURL: "https://as.example.com/token", RevokeURL: "https://as.example.com/revoke",
		ClientSecret: "planted-client", ClientMethod: "none", Access: "planted-access", Refresh: "planted-refresh",
		Asked: []string{"a", "b"}, Granted: []string{"a"}, Got: at, Expires: at.Add(time.Hour), Refreshing: at,
	}
}

// Saved logins are loaded, whole, by another process with the same key; the newest comes first,
// and logins of other clients and servers stay as they were. No file shows a secret or can be read
// by others: AUTH-26-073, AUTH-26-090.
func TestSaveLoadDelete(t *testing.T) {
	for name, opts := range map[string]*vault.Options{
		"file":       {Keyring: ring(nil)},
		"keyring":    {Keyring: ring{}},
		"passphrase": {Keyring: ring(nil), Passphrase: "correct horse"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "vault")
			v := open(t, dir, opts)
			if got, err := v.Load(t.Context(), "x"); len(got) != 0 || err != nil {
				t.Fatalf("an empty vault has %d logins, %v", len(got), err)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("reading made the folder")
			}
			one, two := sample("one"), sample("two")
			two.Server = one.Server
			for _, l := range []*login.Record{one, two, one} {
				if err := v.Save(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			got, err := open(t, dir, opts).Load(t.Context(), one.Server)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]login.Record{*one, *two}, got); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if err := v.Delete(t.Context(), one.Key); err != nil {
				t.Fatal(err)
			}
			if got, err = v.Load(t.Context(), one.Server); len(got) != 1 || got[0].Client != "two" || err != nil {
				t.Errorf("after Delete there are %d logins, %v; want that of two", len(got), err)
			}
			if err := v.SetSecret(t.Context(), "input x", "planted-input"); err != nil {
				t.Fatal(err)
			}
			if s, err := open(t, dir, opts).Secret("input x"); s != "planted-input" || err != nil {
				t.Errorf("Secret = %d bytes, %v", len(s), err)
			}
			searchPlanted(t, dir)
			if err := v.SetSecret(t.Context(), "input x", ""); err != nil {
				t.Fatal(err)
			}
			if s, err := v.Secret("input x"); s != "" || err != nil {
				t.Errorf("a forgotten secret has %d bytes, %v", len(s), err)
			}
		})
	}
}

// searchPlanted fails if a file of the vault shows a secret or can be read by others.
func searchPlanted(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		if strings.Contains(path+string(content), "planted") || strings.Contains(path+string(content), "example.com") {
			t.Errorf("%s shows what it holds", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A passphrase is stretched by as many iterations as OWASP recommends for PBKDF2 with SHA-256, and
// the file of the key says how many it has.
func TestIterations(t *testing.T) {
	long.WithoutRace(t)
	before := vault.Iterations(recommended)
	defer vault.Iterations(before)
	dir := t.TempDir()
	v := open(t, dir, &vault.Options{Passphrase: "one"})
	if err := v.Save(t.Context(), sample("one")); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "key.json"))
	if err != nil || recommended != 600_000 || !strings.Contains(string(key), `"iterations":600000`) {
		t.Errorf("the key is %s, %v; want 600,000 iterations", key, err)
	}
	vault.Iterations(before)
	if got, err := open(t, dir, &vault.Options{Passphrase: "one"}).Load(t.Context(), sample("one").Server); len(got) != 1 || err != nil {
		t.Errorf("loaded %d logins, %v", len(got), err)
	}
}

// A wrong or missing key is an error, and neither reading nor writing with it loses anything.
func TestWrongKey(t *testing.T) {
	keys := ring{}
	tests := map[string]struct {
		made, asked *vault.Options
		want        string
	}{
		"no keyring":       {&vault.Options{Keyring: keys}, &vault.Options{Keyring: ring(nil)}, "keyring"},
		"no passphrase":    {&vault.Options{Passphrase: "one"}, &vault.Options{Keyring: keys}, "PATCHBAY_PASSPHRASE"},
		"wrong passphrase": {&vault.Options{Passphrase: "one"}, &vault.Options{Passphrase: "two"}, "PATCHBAY_PASSPHRASE"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			good := open(t, dir, tt.made)
			l := sample("one")
			if err := good.Save(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			bad := open(t, dir, tt.asked)
			_, err := bad.Load(t.Context(), l.Server)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load: %v, want one that names %s", err, tt.want)
			}
			if err := bad.Save(t.Context(), l); err == nil {
				t.Error("Save without the key is no error")
			}
			if got, err := open(t, dir, tt.made).Load(t.Context(), l.Server); len(got) != 1 || err != nil {
				t.Errorf("afterwards there are %d logins, %v", len(got), err)
			}
		})
	}
}

// A file that was cut, changed, or put in the place of another is refused, and stays.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir, &vault.Options{Keyring: ring(nil)})
	a, b := sample("one"), sample("one")
	b.Server = "https://other.example.com/mcp"
	for _, l := range []*login.Record{a, b} {
		if err := v.Save(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "login-*[0-9a-f]"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files %q, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"empty": {}, "cut": whole[:20], "flipped": flipped, "moved": other, "long": make([]byte, 2<<20)} {
		if err := os.WriteFile(files[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, l := range []*login.Record{a, b} {
			if _, err := v.Load(t.Context(), l.Server); err != nil {
				bad++
				if err := v.Save(t.Context(), l); err == nil {
					t.Errorf("%s: Save over it is no error", name)
				}
			}
		}
		if bad != 1 {
			t.Errorf("%s: %d of 2 servers cannot be loaded, want 1", name, bad)
		}
		if now, err := os.ReadFile(files[0]); string(now) != string(content) || err != nil {
			t.Errorf("%s: the file is not as it was, %v", name, err)
		}
	}
}

// A lock keeps out others, in this process too, until it is released; a caller that waits can give
// up.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir, &vault.Options{Keyring: ring(nil)})
	unlock, err := v.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := open(t, dir, nil).Lock(ctx, "x"); !errors.Is(err, gone) {
		t.Errorf("a lock that is held: %v, want %v", err, gone)
	}
	if other, err := v.Lock(t.Context(), "y"); err != nil {
		t.Error(err)
	} else {
		other()
	}
	unlock()
	unlock()
	again, err := v.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func Example() {
	dir, err := os.MkdirTemp("", "vault")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	v, err := vault.Open(dir, &vault.Options{Passphrase: "correct horse battery staple"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := v.SetSecret(ctx, "github", "ghp_1234"); err != nil {
		fmt.Println(err)
		return
	}
	s, err := v.Secret("github")
	fmt.Println(s, len(string(s)), err)
	// Output: [redacted] 8 <nil>
}
