package auth

import (
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// MTLS is a [Verifier] of client certificates that the TLS server itself has verified: it must be
// served with tls.VerifyClientCertIfGiven or tls.RequireAndVerifyClientCert, and ClientCAs. A
// certificate in a header of a proxy is ignored. The zero value is ready.
//
// The subject is the first URI of the certificate (such as spiffe://example.org/agent), else its
// first host name, else its first mail address, else its distinguished name. So all of the
// ClientCAs must be trusted to give each to one owner only.
type MTLS struct {
	// Grant says what the owner of a certificate may do: it may set Name, Scopes and Roles, and
	// refuse with an error. If nil, certificates grant nothing.
	Grant func(cert *x509.Certificate, p *Principal) error
}

// Verify implements [Verifier].
func (m *MTLS) Verify(r *http.Request) (*Principal, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil, ErrNoCredential
	}
	cert := r.TLS.VerifiedChains[0][0]
	if !time.Now().Before(cert.NotAfter) { // since the connection was opened
		return nil, errors.New("the client certificate has expired")
	}
	subject := subjectOf(cert)
	if err := checkName("the subject of the client certificate", subject); err != nil {
		return nil, err
	}
	p := &Principal{ID: "mtls#" + subject, Scheme: "mtls", Subject: subject, Name: cert.Subject.CommonName, Expires: cert.NotAfter}
	if m.Grant != nil {
		if err := m.Grant(cert, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func subjectOf(cert *x509.Certificate) string {
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.EmailAddresses) > 0:
		return cert.EmailAddresses[0]
	}
	return cert.Subject.String()
}
