package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// secure serves TLS with a certificate that it makes.
func secure(t *testing.T, name string, ends time.Time) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: ends,
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// examined runs the exam of one server.
func examined(t *testing.T, s config.Server) *Exam {
	t.Helper()
	return bounded(t, s, 10*time.Second)
}

func bounded(t *testing.T, s config.Server, d time.Duration) *Exam {
	t.Helper()
	e := &Exam{Env: &launch.Env{}, Server: s, Client: func(config.Server) (*mcp.Client, error) { return &mcp.Client{Name: "doctor"}, nil }}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	e.Run(ctx)
	return e
}

func TestTLS(t *testing.T) {
	unknown := secure(t, "localhost", time.Now().Add(time.Hour))
	e := examined(t, config.Server{Name: "x", URL: unknown.URL})
	if f := e.Failed(); f == nil || f.Name != "tls" || !strings.Contains(e.next, "--server-ca") {
		t.Errorf("a certificate nobody signed: %+v, next %q", e.steps, e.next)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"other"}}, Host: "h"}, "certificate is not for h"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "not valid today"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "not valid today"},
		{tls.RecordHeaderError{}, "http:// instead of https://"},
		{io.EOF, "contact its operator"},
	} {
		if got := tlsAdvice(tt.err, "h"); !strings.Contains(got, tt.want) {
			t.Errorf("tlsAdvice(%v) = %q, want %q in it", tt.err, got, tt.want)
		}
	}
}

// The exam of a server that never answers ends in time and leaves no process.
func TestBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	e := bounded(t, config.Server{Name: "x", URL: "http://" + silent.Addr().String() + "/mcp"}, 300*time.Millisecond)
	if f := e.Failed(); f == nil || f.Name != "handshake" || !strings.Contains(f.Detail, "no answer in") {
		t.Errorf("steps %+v, want no answer to the handshake", e.steps)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// After a command fails, the report names the variables of the person's environment that it seems
// to need, never their values.
func TestEnvironment(t *testing.T) {
	for _, name := range networkVariables {
		t.Setenv(name, "")
	}
	t.Setenv("ACMEHUB_TOKEN", "planted-right")
	t.Setenv("WEATHER_REGION", "planted-wrong")
	t.Setenv("OTHER_TOKEN", "planted-wrong")
	t.Setenv("HTTPS_PROXY", "http://planted-wrong")
	tests := []struct {
		name   string
		server config.Server
		said   string
		want   []string
	}{
		{"named", config.Server{Name: "x", Command: "x"}, "Error: WEATHER_REGION is not set", []string{"WEATHER_REGION"}},
		{"part of another name", config.Server{Name: "x", Command: "x"}, "MY_WEATHER_REGION2 is not set", nil},
		{"like the server", config.Server{Name: "x", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-acmehub"}}, "no", []string{"ACMEHUB_TOKEN"}},
		{"it gets it", config.Server{Name: "acmehub", Command: "x", Env: map[string]string{"ACMEHUB_TOKEN": "y"}}, "ACMEHUB_TOKEN is wrong", nil},
		{"it gets everything", config.Server{Name: "acmehub", Command: "x", InheritEnv: true}, "ACMEHUB_TOKEN", nil},
		{"network", config.Server{Name: "x", Command: "x"}, "getaddrinfo ENOTFOUND registry.example", []string{"HTTPS_PROXY"}},
		{"URL", config.Server{Name: "acmehub", URL: "https://x.example"}, "ACMEHUB_TOKEN", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Exam{Server: tt.server, stderr: []string{tt.said}}
			if got := e.wanted(); !slices.Equal(got, tt.want) {
				t.Errorf("wanted %q, want %q", got, tt.want)
			}
		})
	}
}
