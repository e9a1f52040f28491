// Package testcert makes certificate authorities, and certificates that they sign, for tests. All are
// good for an hour before and after now.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

// New makes an authority, and writes its certificate and key to a file.
func New(t testing.TB, file string) *Authority {
	t.Helper()
	a := &Authority{n: 1}
	a.Cert = &x509.Certificate{Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.Sign(t, a.Cert, file, "")
	return a
}

// Sign writes a certificate and its key; an empty key file: both are in one.
func (a *Authority) Sign(t testing.TB, c *x509.Certificate, file, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.n++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.n), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if signer == nil { // its own
		a.key, signer = key, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.Cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if c == a.Cert {
		if a.Cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	if keyFile == "" {
		text, keyFile = append(text, keyText...), file
	} else if err := os.WriteFile(keyFile, keyText, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Loopback is what Sign makes the certificate of a server on 127.0.0.1 of.
func Loopback() *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}
