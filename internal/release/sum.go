package main

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"
)

// signer signs the checksums.
type signer = crypto.Signer

// readKey reads a private key as "openssl genpkey -algorithm ed25519" writes it.
func readKey(path string) (signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file; make a key with: openssl genpkey -algorithm ed25519 -out FILE", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make a key with: openssl genpkey -algorithm ed25519 -out FILE", path, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has a key of the type %T; make one with: openssl genpkey -algorithm ed25519 -out FILE", path, key)
	}
	return own, nil
}

// sums writes the checksums of all files, as "sha256sum -c" takes them, and their signature.
func (r *release) sums(s signer) error {
	var b strings.Builder
	slices.Sort(r.files)
	for _, name := range r.files {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	if err := r.add("SHA256SUMS", []byte(b.String())); err != nil {
		return err
	}
	if s == nil {
		return nil
	}
	signature, err := s.Sign(nil, []byte(b.String()), crypto.Hash(0))
	if err != nil {
		return err
	}
	return r.add("SHA256SUMS.sig", signature)
}
