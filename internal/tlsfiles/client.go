package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
)

// Client returns how connections to a server are secured; nil without files, which stands for the
// authorities of the system and no certificate. The authorities in the file ca count besides those
// of the system. An empty key is in the file cert, which is read again for each connection.
func Client(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		content, err := readBounded(ca)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if c.RootCAs, err = authorities(ca, content, pool); err != nil {
			return nil, err
		}
	}
	if cert == "" {
		return c, nil
	}
	if key == "" {
		key = cert
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", cert, key, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return c, nil
}

// Transport carries requests to a server with settings of its own.
func Transport(c *tls.Config) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.MaxIdleConns, t.MaxIdleConnsPerHost = c, 256, 128 // as a gateway needs them
	return t
}
