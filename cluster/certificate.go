package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
)

// headerCertificate has the certificate with which a client has connected to another node, which has verified it or not.
const headerCertificate = "Patchbay-Cluster-Certificate"

// withCertificate is what a node that sends a certificate adds to the hops, which others do not pass on from a client.
const withCertificate = "c"

const verified, unverified = "verified ", "unverified "

// certificateOf returns the certificate of a client for another node; empty: it has none.
func certificateOf(s *tls.ConnectionState) string {
	if s == nil || len(s.PeerCertificates) == 0 {
		return ""
	}
	how := unverified
	if len(s.VerifiedChains) > 0 {
		how = verified
	}
	return how + base64.StdEncoding.EncodeToString(s.PeerCertificates[0].Raw)
}

// connectionWith returns the connection of a client with a certificate that another node has sent.
func connectionWith(certificate string) (*tls.ConnectionState, error) {
	how, text, _ := strings.Cut(certificate, " ")
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("certificate of a client: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of a client: %w", err)
	}
	s := &tls.ConnectionState{HandshakeComplete: true, PeerCertificates: []*x509.Certificate{cert}}
	if how+" " == verified {
		s.VerifiedChains = [][]*x509.Certificate{{cert}}
	}
	return s, nil
}
