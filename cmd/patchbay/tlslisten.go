package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// tlsFiles are the certificate and the key that a listener shows, and the authorities whose
// clients it knows. They are read again when they have changed; while that cannot be done, what
// they said before counts. It may be used by several goroutines.
type tlsFiles struct {
	cert, key string
	clientCA  string // empty: no certificates of clients are asked for
	log       *slog.Logger

	mu      sync.Mutex
	looked  time.Time   // guarded by mu
	content [3][]byte   // of the files; guarded by mu
	config  *tls.Config // that they make; guarded by mu
	http1   *tls.Config // config without HTTP/2; guarded by mu
}

const (
	lookAtFiles = time.Second
	maxTLSFile  = 1 << 20 // bytes
)

// newTLSFiles reads the files. An empty key: it is in the file of the certificate.
func newTLSFiles(cert, key, clientCA string, log *slog.Logger) (*tlsFiles, error) {
	if key == "" {
		key = cert
	}
	f := &tlsFiles{cert: cert, key: key, clientCA: clientCA, log: log, looked: time.Now()}
	return f, f.read()
}

// listener is what a TLS server is configured with.
func (f *tlsFiles) listener() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return f.current(mayHTTP2(hello)), nil
	}}
}

// current is the configuration for a new connection.
func (f *tlsFiles) current(http2 bool) *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= lookAtFiles {
		f.looked = now
		if err := f.read(); err != nil {
			f.log.Warn("certificates not read again; those from before count", "err", err)
		}
	}
	if !http2 {
		return f.http1
	}
	return f.config
}

// read makes a configuration of the files, if they are not as they were. What they say is
// compared, as their times may lie. It is called with mu held, or before f is shared.
func (f *tlsFiles) read() error {
	var content [3][]byte
	same := f.config != nil
	for i, path := range []string{f.cert, f.key, f.clientCA} {
		if path == "" {
			continue
		}
		text, err := readBounded(path)
		if err != nil {
			return err
		}
		content[i] = text
		same = same && bytes.Equal(text, f.content[i])
	}
	if same {
		return nil
	}
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return fmt.Errorf("%s and %s: %w", f.cert, f.key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if f.clientCA != "" {
		if config.ClientCAs, err = authorities(f.clientCA, content[2], x509.NewCertPool()); err != nil {
			return err
		}
		// Who has none is refused by the guard, which answers with what is missing.
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	// A session that another configuration let in is not resumed under this one.
	var ticket [32]byte
	rand.Read(ticket[:]) // it never fails
	config.SetSessionTicketKeys([][32]byte{ticket})
	f.content, f.config, f.http1 = content, config, config.Clone()
	f.http1.NextProtos = []string{"http/1.1"}
	return nil
}

// authorities adds the certificates of a PEM file to a pool.
func authorities(path string, content []byte, pool *x509.CertPool) (*x509.CertPool, error) {
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s: no certificates in PEM are in it", path)
	}
	return pool, nil
}

func readBounded(path string) ([]byte, error) {
	text, err := ownfile.ReadNow(path, maxTLSFile)
	if err == nil && len(text) > maxTLSFile {
		err = errors.New("it is too long for certificates")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
