package main

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/testcert"
	"github.com/patchbay-dev/patchbay/mcp"
)

func clientCert(t *testing.T, uri string) *x509.Certificate {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{Subject: pkix.Name{CommonName: "client"}, URIs: []*url.URL{u}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// startListening starts the program, and returns the URL that it prints.
func startListening(t *testing.T, args ...string) (url string, said *transcript) {
	t.Helper()
	cmd, said := program(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	said.await(t, `listening on https?://\S+/mcp`)
	return regexp.MustCompile(`https?://\S+/mcp`).FindString(said.String()), said
}

// A server with a certificate and a client CA authenticates its clients by their certificates, in
// every revision; the program takes its own from flags or mcp.json.
func TestMutualTLS(t *testing.T) {
	ownFolders(t)
	dir := t.TempDir()
	t.Chdir(dir)
	ca, others := testcert.New(t, "ca.pem"), testcert.New(t, "others.pem")
	ca.Sign(t, testcert.Loopback(), "server.pem", "server.key")
	ca.Sign(t, clientCert(t, "spiffe://example.org/agent"), "client.pem", "client.key")
	others.Sign(t, clientCert(t, "spiffe://example.org/agent"), "stranger.pem", "")
	at, _ := startListening(t, "serve", "everything", "--http", "127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key", "--client-ca", "ca.pem")
	if !strings.HasPrefix(at, "https://") {
		t.Fatalf("it listens at %s, want https", at)
	}
	call := []string{"call", "describe_call", "-s", at}
	with := func(more ...string) []string { return append(call[:len(call):len(call)], more...) }
	if got := typedRun(t, "", exitUnreachable, call...); !strings.Contains(got, "--server-ca FILE") {
		t.Errorf("with an authority that is not known: %s", got)
	}
	typedRun(t, "", exitUnauthorized, with("--server-ca", "ca.pem")...)
	typedRun(t, "", exitUnreachable, with("--server-ca", "ca.pem", "--client-cert", "stranger.pem")...)
	typedRun(t, "", exitUsage, with("--server-ca", "no-such-file")...)
	typedRun(t, "", exitUsage, with("--client-key", "client.key")...)
	if got := typedRun(t, "", exitOK, with("--server-ca", "ca.pem", "--client-cert", "client.pem", "--client-key", "client.key")...); !strings.Contains(got, "mtls#spiffe://example.org/agent") {
		t.Errorf("call with a certificate: %s", got)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"web":    map[string]any{"url": at, "patchbay": map[string]any{"ca": "ca.pem", "cert": "${workspaceFolder}/client.pem", "key": "client.key"}},
		"header": map[string]any{"url": at, "headers": map[string]any{"X-Any": "x"}, "patchbay": map[string]any{"ca": "ca.pem", "cert": "client.pem", "key": "client.key"}},
		"bad":    map[string]any{"url": at, "patchbay": map[string]any{"ca": "server.key"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mcp.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"web", "header"} {
		if got := typedRun(t, "", exitOK, "call", "describe_call", "-s", server); !strings.Contains(got, "mtls#spiffe://example.org/agent") {
			t.Errorf("%s: call with the certificate of mcp.json: %s", server, got)
		}
	}
	if got := typedRun(t, "", exitLocal, "config", "doctor", "--config", "mcp.json"); !strings.Contains(got, "TLS 1.3, certificate valid until") || !strings.Contains(got, "no certificates in PEM") {
		t.Errorf("doctor: %s", got)
	}

	pair, err := tls.LoadX509KeyPair("client.pem", "client.key")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for _, rev := range mcp.Revisions() {
		for _, proto := range []string{"h2", "http/1.1"} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, ForceAttemptHTTP2: proto == "h2"}
			t.Cleanup(transport.CloseIdleConnections)
			c := &mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}, HTTPClient: &http.Client{Transport: transport}}
			s, err := c.Dial(t.Context(), at)
			if err != nil {
				t.Errorf("%s over %s: %v", rev, proto, err)
				continue
			}
			if res, err := s.CallTool(t.Context(), "describe_call", nil); err != nil || !strings.Contains(res.Text(), "mtls#") {
				t.Errorf("%s over %s: call = %v, %v", rev, proto, res, err)
			}
			s.Close()
		}
	}
	host := strings.TrimSuffix(strings.TrimPrefix(at, "https://"), listen.Path)
	if conn, err := tls.Dial("tcp", host, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// TLS alone is not authentication: off loopback the program requires more. Flags that do not fit
// together are refused before anything is served.
func TestTLSFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	ca := testcert.New(t, "ca.pem")
	ca.Sign(t, testcert.Loopback(), "server.pem", "")
	for _, tt := range []struct {
		args string
		want string
	}{
		{"serve everything --http 0.0.0.0:0 --tls-cert server.pem", "there is no authentication"},
		{"serve everything --http 127.0.0.1:0 --client-ca ca.pem", "--tls-cert FILE"},
		{"serve everything --http 127.0.0.1:0 --tls-key server.pem", "--tls-cert FILE"},
		{"serve everything --http 127.0.0.1:0 --tls-cert no-such-file", "no-such-file"},
		{"serve everything --http 127.0.0.1:0 --tls-cert server.pem --client-ca no-such-file", "no-such-file"},
		{"serve everything --http 127.0.0.1:0 --tls-cert server.pem --client-ca ca.pem --auth-scope x", "certificates have no scopes"},
		{"serve everything --tls-cert server.pem", "need HTTP"},
		{"up --stdio --tls-cert server.pem", "need HTTP"},
		{"bridge --stdio --tls-cert server.pem -s everything", "need HTTP"},
	} {
		if got := typedRun(t, "", exitUsage, strings.Fields(tt.args)...); !strings.Contains(got, tt.want) {
			t.Errorf("patchbay %s: %s, want %q", tt.args, got, tt.want)
		}
	}
}

// up over TLS: its pages, its table and its state have https URLs.
func TestUpOverTLS(t *testing.T) {
	runtimeFolder(t)
	ownFolders(t)
	dir := t.TempDir()
	ca := testcert.New(t, filepath.Join(dir, "ca.pem"))
	cert := filepath.Join(dir, "server.pem")
	ca.Sign(t, testcert.Loopback(), cert, "")
	file := filepath.Join(dir, "mcp.json")
	writeConfig(t, file, map[string]any{"all": map[string]any{"builtin": "everything"}})
	cmd, said := program(t, "up", "--http", "127.0.0.1:0", "--config", file, "--tls-cert", cert)
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out.await(t, "ctrl-C ends it")
	at := regexp.MustCompile(`https://\S+/mcp`).FindString(out.String())
	if at == "" {
		t.Fatalf("up printed no https: %s%s", out, said)
	}
	if got := typedRun(t, "", exitOK, "status", "-s", at, "--server-ca", filepath.Join(dir, "ca.pem")); !strings.Contains(got, at) {
		t.Errorf("status: %s", got)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	res, err := client.Get(strings.TrimSuffix(at, listen.Path) + "/healthz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("healthz = %v, %v", res, err)
	}
	res.Body.Close()
	var unknown *tls.CertificateVerificationError
	if _, err := http.Get(at); !errors.As(err, &unknown) {
		t.Errorf("a client that does not know the authority: %v", err)
	}
}
