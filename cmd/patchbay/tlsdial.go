package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/patchbay-dev/patchbay/config"
)

// withTLS adds to a server with a URL what the command line says about how it is known and
// shown who we are. The command line goes before the file.
func (a *app) withTLS(s config.Server) config.Server {
	if s.URL == "" {
		return s
	}
	if a.ServerCA != "" {
		s.CA = a.ServerCA
	}
	if a.ClientCert != "" {
		s.Cert, s.Key = a.ClientCert, a.ClientKey
	}
	return s
}

// modelTLS is how connections to language models are secured; nil: as usual. They are shown no
// certificate.
func (a *app) modelTLS() (*tls.Config, error) {
	return clientTLS(config.Server{CA: a.ServerCA})
}

// clientTLS is how connections to a server are secured; nil: as usual. The certificate that is
// shown is read again for each connection.
func clientTLS(s config.Server) (*tls.Config, error) {
	if s.CA == "" && s.Cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		content, err := readBounded(s.CA)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if c.RootCAs, err = authorities(s.CA, content, pool); err != nil {
			return nil, err
		}
	}
	if s.Cert == "" {
		return c, nil
	}
	key := s.Key
	if key == "" {
		key = s.Cert
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.Cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", s.Cert, key, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return c, nil
}

// carrier carries requests to a server that has TLS settings of its own.
func carrier(c *tls.Config) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.MaxIdleConns, t.MaxIdleConnsPerHost = c, 256, 128 // as a gateway needs them
	return t
}
