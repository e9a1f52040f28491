package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const maxKey = 64 << 10

// LoadKey reads the private key that signs checkpoints from a file in PEM (PKCS #8, Ed25519). A
// missing file is made, readable only by its owner, with the public key in PATH.pub beside it. It is
// an error if only PATH.pub is there, since that file verifies the earlier checkpoints.
func LoadKey(path string) (ed25519.PrivateKey, error) {
	if path == "" {
		return nil, errors.New("key of the audit log: the path is empty; name a file such as audit.key")
	}
	raw, err := ownfile.Read(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	if raw == nil {
		return makeKey(path)
	}
	return parseKey(path, raw)
}

// CheckKey returns why [LoadKey] can neither read the key nor make it. It changes nothing.
func CheckKey(path string) error {
	raw, err := ownfile.Read(path, maxKey)
	switch {
	case err != nil:
		return fmt.Errorf("key of the audit log: %w", err)
	case raw == nil:
		return keyLost(path)
	}
	_, err = parseKey(path, raw)
	return err
}

// keyLost returns an error if a public key is there without its private key.
func keyLost(path string) error {
	if _, err := os.Lstat(path + ".pub"); err != nil {
		return nil
	}
	return fmt.Errorf("key of the audit log: %s is missing, but its public key %s.pub is there; restore the private key, or rename the public one to keep it for the earlier checkpoints", path, path)
}

func parseKey(path string, raw []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("key of the audit log: %s is not in PEM; remove the file, and a key is made", path)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := any.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("key of the audit log: %s is not a private Ed25519 key (PKCS #8); make one with: openssl genpkey -algorithm ed25519", path)
	}
	return key, nil
}

func makeKey(path string) (ed25519.PrivateKey, error) {
	if err := keyLost(path); err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	shown, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	if err := ownfile.ReplaceMode(path+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: shown}), 0o644); err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	if err := ownfile.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	return key, nil
}

// LoadPublicKey reads a public key in PEM (PKIX, Ed25519), such as the file that [LoadKey] makes.
// The error wraps [io/fs.ErrNotExist] if there is no file.
func LoadPublicKey(path string) (ed25519.PublicKey, error) {
	raw, err := ownfile.ReadNow(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("public key of the audit log: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type == "PRIVATE KEY" {
		return nil, fmt.Errorf("public key of the audit log: %s is not a public key in PEM; the public key is in the file that ends in .pub", path)
	}
	any, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := any.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("public key of the audit log: %s is not a public Ed25519 key", path)
	}
	return key, nil
}

// KeyID returns the name of a key in checkpoints: the first 8 bytes of its SHA-256, in hex.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// signed returns the text that a checkpoint signs.
func signed(node string, h Head) []byte {
	return []byte("patchbay audit checkpoint\n" + node + "\n" + strconv.FormatInt(h.Seq, 10) + "\n" + h.Hash + "\n")
}

func sign(key ed25519.PrivateKey, node string, h Head) *Signed {
	return &Signed{Hash: h.Hash, Seq: h.Seq, Key: KeyID(key.Public().(ed25519.PublicKey)), Signature: ed25519.Sign(key, signed(node, h))}
}

// check returns why a checkpoint is wrong; nil: it is right.
func (s *Signed) check(node string, key ed25519.PublicKey) error {
	if s == nil {
		return errors.New("it has no signature")
	}
	if s.Key != KeyID(key) {
		return fmt.Errorf("it is signed with another key, %.40q, not with %s; name the keys of earlier checkpoints too", s.Key, KeyID(key))
	}
	if !ed25519.Verify(key, signed(node, Head{s.Seq, s.Hash}), s.Signature) {
		return errors.New("its signature is wrong")
	}
	return nil
}
