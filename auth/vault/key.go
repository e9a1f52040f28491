package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// keyFile says where the key of a vault is, and holds the key if its Kind is inFile.
type keyFile struct {
	Version int    `json:"version"` // of the whole vault
	Kind    string `json:"kind"`    // inKeyring, inFile or ofPassphrase
	ID      string `json:"id,omitempty"`
	Key     []byte `json:"key,omitempty"`
	Salt    []byte `json:"salt,omitempty"`
	Iter    int    `json:"iterations,omitempty"`
	Check   []byte `json:"check"` // tells a wrong key from a damaged file
}

const (
	version = 1

	inKeyring    = "keyring"
	inFile       = "file"
	ofPassphrase = "passphrase"

	keyName = "key.json"
	keySize = 32

	maxIterations = 10_000_000 // that a file can ask for
)

// iterations of PBKDF2 with SHA-256, as OWASP recommends since 2023. Tests use fewer.
var iterations = 600_000

// key returns the cipher of the vault. If the vault has no key yet, key makes one if create is
// set, and else fails with errNoKey.
func (v *Vault) key(ctx context.Context, create bool) (cipher.AEAD, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.aead != nil {
		return v.aead, nil
	}
	k, how, err := v.readKey()
	if errors.Is(err, errNoKey) && create {
		var unlock func()
		if unlock, err = v.lock(ctx, "key"); err != nil {
			return nil, err
		}
		defer unlock()
		if k, how, err = v.readKey(); errors.Is(err, errNoKey) { // no other process made one meanwhile
			k, how, err = v.makeKey()
		}
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	v.aead, v.how = aead, how
	return aead, nil
}

var errNoKey = errors.New("the key of the tokens is lost; move the folder away and log in again")

func (v *Vault) readKey() (k []byte, kind string, err error) {
	path := filepath.Join(v.dir, keyName)
	content, err := ownfile.Read(path, maxFile)
	if err != nil {
		return nil, "", err
	}
	if content == nil {
		return nil, "", fmt.Errorf("%s: %w", v.dir, errNoKey)
	}
	if err := ownfile.Newer(path, content, version); err != nil {
		return nil, "", err
	}
	var f keyFile
	if json.Unmarshal(content, &f) != nil { // its text may hold the key
		return nil, "", fmt.Errorf("%s is damaged; move %s away and log in again", path, v.dir)
	}
	switch f.Kind {
	case inFile:
		k = f.Key
	case inKeyring:
		text, err := v.keyring.Get(f.ID)
		if err != nil {
			return nil, "", fmt.Errorf("the key of %s is in the system's keyring: %w", v.dir, err)
		}
		k, _ = base64.StdEncoding.DecodeString(string(text))
	case ofPassphrase:
		if v.phrase == "" {
			return nil, "", fmt.Errorf("the tokens in %s are locked with a passphrase; set PATCHBAY_PASSPHRASE", v.dir)
		}
		if f.Iter < 1 || f.Iter > maxIterations {
			return nil, "", fmt.Errorf("%s is damaged; move %s away and log in again", path, v.dir)
		}
		if k, err = pbkdf2.Key(sha256.New, string(v.phrase), f.Salt, f.Iter, keySize); err != nil {
			return nil, "", err
		}
	default:
		return nil, "", fmt.Errorf("%s needs a key of kind %q; is this program too old?", path, text.Short(f.Kind))
	}
	if len(k) != keySize || !hmac.Equal(check(k), f.Check) {
		if f.Kind == ofPassphrase {
			return nil, "", fmt.Errorf("the passphrase does not open %s; check PATCHBAY_PASSPHRASE", v.dir)
		}
		return nil, "", fmt.Errorf("the key in the %s does not open %s; move that folder away and log in again", f.Kind, v.dir)
	}
	return k, f.Kind, nil
}

// makeKey makes the key of a new vault.
func (v *Vault) makeKey() (k []byte, kind string, err error) {
	f := keyFile{Version: version, Kind: inFile}
	k = make([]byte, keySize)
	rand.Read(k) // it never fails
	switch {
	case v.phrase != "":
		f.Kind, f.Salt, f.Iter = ofPassphrase, k[:16], iterations
		if k, err = pbkdf2.Key(sha256.New, string(v.phrase), f.Salt, f.Iter, keySize); err != nil {
			return nil, "", err
		}
	default:
		f.ID = "vault " + rand.Text()
		if v.keyring.Set(f.ID, base64.StdEncoding.EncodeToString(k)) == nil {
			f.Kind = inKeyring
		} else {
			f.ID, f.Key = "", k
		}
	}
	f.Check = check(k)
	content, err := json.Marshal(f)
	if err != nil {
		return nil, "", err
	}
	return k, f.Kind, ownfile.Replace(filepath.Join(v.dir, keyName), content)
}

// check returns a value that verifies a key and does not reveal it.
func check(k []byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("patchbay vault"))
	return h.Sum(nil)
}

// Where says, for people, where the vault is and what protects its key.
func (v *Vault) Where() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.how {
	case inKeyring:
		return v.dir + ", locked with a key in the system's keyring"
	case ofPassphrase:
		return v.dir + ", locked with PATCHBAY_PASSPHRASE"
	case inFile:
		return v.dir + ", which no other user can read (there is no system keyring)"
	}
	return v.dir
}
