// Package tlsfiles makes configurations of TLS from files in PEM, for servers and for clients.
//
// # Guarantees
//
//   - Files that change count for the next connection, without a restart: those of a [Server] within a
//     second, the certificate of a client at once.
//   - While a file of a [Server] cannot be read, the last good content counts. The log says so once, and
//     when the files are read again.
//   - A session that was resumable under other files is not resumed.
//   - A file has at most 1 MiB. TLS 1.2 is the least.
package tlsfiles

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

// Server is the certificate and the key that a listener shows, and the authorities that sign the
// certificates of its clients. It may be used by several goroutines.
type Server struct {
	cert, key string
	clientCA  string // empty: no certificates of clients are asked for
	log       *slog.Logger

	mu      sync.Mutex
	looked  time.Time   // guarded by mu
	fault   error       // of the last look; guarded by mu
	content [3][]byte   // of the files; guarded by mu
	config  *tls.Config // that they make; guarded by mu
	http1   *tls.Config // config without HTTP/2; guarded by mu
}

const (
	lookAtFiles = time.Second
	maxFile     = 1 << 20 // bytes
)

// Open reads the files. An empty key is in the file of the certificate; without a clientCA no
// certificates of clients are asked for.
func Open(cert, key, clientCA string, log *slog.Logger) (*Server, error) {
	if key == "" {
		key = cert
	}
	f := &Server{cert: cert, key: key, clientCA: clientCA, log: log, looked: time.Now()}
	return f, f.read()
}

// Config returns what a listener is configured with. The function http2 reports whether a new
// connection may speak HTTP/2; if not, it is offered HTTP/1.1 alone.
func (f *Server) Config(http2 func(*tls.ClientHelloInfo) bool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return f.current(http2(hello)), nil
	}}
}

// current is the configuration for a new connection.
func (f *Server) current(http2 bool) *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if !http2 {
		return f.http1
	}
	return f.config
}

// Fault returns why changed files are not in use; nil: they are.
func (f *Server) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.fault
}

// look reads the files if the last look was a while ago; mu is held.
func (f *Server) look() {
	now := time.Now()
	if now.Sub(f.looked) < lookAtFiles {
		return
	}
	f.looked = now
	before := f.fault
	switch f.fault = f.read(); {
	case f.fault != nil && (before == nil || before.Error() != f.fault.Error()):
		f.log.Warn("certificates not reloaded; the earlier ones stay in use", "err", f.fault)
	case f.fault == nil && before != nil:
		f.log.Info("certificates are reloaded again", "file", f.cert)
	}
}

// read makes a configuration of the files if their content has changed. Their times may lie, and
// are not looked at. It is called with mu held, or before f is shared.
func (f *Server) read() error {
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
		// The guard refuses a client without one, and answers with what is missing.
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
		return nil, fmt.Errorf("%s: it has no certificates in PEM", path)
	}
	return pool, nil
}

func readBounded(path string) ([]byte, error) {
	text, err := ownfile.ReadNow(path, maxFile)
	if err == nil && len(text) > maxFile {
		err = errors.New("it is too long for certificates")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
