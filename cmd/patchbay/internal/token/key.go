package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Key reads a P-256 key from a PEM file. If there is no file, Key creates it with a new key and
// reports made; if another process creates it meanwhile, the error wraps [fs.ErrExist].
func Key(path string) (key crypto.Signer, made bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, false, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(fresh)
		if err != nil {
			return nil, false, err
		}
		// Never overwrite a key that another process has just made, because it may have signed
		// tokens.
		if err := ownfile.Create(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
			return nil, false, err
		}
		return fresh, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, false, fmt.Errorf("%s is not a PEM file", path)
	}
	if key, err = listen.ParsePrivate(block.Bytes); err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	if ec, ok := key.(*ecdsa.PrivateKey); !ok || ec.Curve != elliptic.P256() {
		return nil, false, fmt.Errorf("%s: ES256 needs an EC key on P-256", path)
	}
	return key, false, nil
}
