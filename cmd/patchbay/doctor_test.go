package main

import (
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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/launch"
)

// secure serves TLS with a certificate of its own making.
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

// examined examines one server.
func examined(t *testing.T, s config.Server) *exam {
	t.Helper()
	a := newApp(t.Context(), strings.NewReader(""), io.Discard, io.Discard)
	a.Timeout = 10 * time.Second
	e := &exam{a: a, server: s, done: make(chan struct{})}
	e.run(t.Context())
	return e
}

func TestDoctorOfTLS(t *testing.T) {
	unknown := secure(t, "localhost", time.Now().Add(time.Hour))
	e := examined(t, config.Server{Name: "x", URL: unknown.URL})
	if f := e.failed(); f == nil || f.Name != "tls" || !strings.Contains(e.next, "--server-ca") {
		t.Errorf("a certificate nobody signed: %+v, next %q", e.steps, e.next)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"other"}}, Host: "h"}, "for another name than h"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "not valid today"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "not valid today"},
		{tls.RecordHeaderError{}, "http:// instead of https://"},
		{io.EOF, "tell who runs it"},
	} {
		if got := tlsAdvice(tt.err, "h"); !strings.Contains(got, tt.want) {
			t.Errorf("tlsAdvice(%v) = %q, want %q in it", tt.err, got, tt.want)
		}
	}
}

// A server that never answers costs no longer than it may, and nothing is left of it.
func TestDoctorIsBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	a := newApp(t.Context(), strings.NewReader(""), io.Discard, io.Discard)
	a.Timeout = 300 * time.Millisecond
	e := &exam{a: a, server: config.Server{Name: "x", URL: "http://" + silent.Addr().String() + "/mcp"}, done: make(chan struct{})}
	e.run(t.Context())
	if f := e.failed(); f == nil || f.Name != "handshake" || !strings.Contains(f.Detail, "no answer in") {
		t.Errorf("steps %+v, want no answer to the handshake", e.steps)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

func TestExitCode(t *testing.T) {
	for state, want := range map[string]int{"exit status 3": 3, "exit status 0": 0, "signal: killed": -1, "": -1} {
		got, ok := launch.ExitCode(state)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("launch.ExitCode(%q) = %d, want %d", state, got, want)
		}
	}
}

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/a%20b":           "https://h/a%20b",
		"https://${env:H}/mcp":      "https://${env:H}/mcp",
		"https://me:pw@h/":          "https://[redacted]@h/",
		"https://h/?a=1&b=${input}": "https://h/?a=[redacted]&b=${input}",
	} {
		if got := secrets.ShownURL(in); got != want {
			t.Errorf("secrets.ShownURL(%q) = %q, want %q", in, got, want)
		}
	}
}

// A command that fails is told of what it seems to need of the person's environment, by name
// and never by value.
func TestDoctorOfEnvironment(t *testing.T) {
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
			e := &exam{server: tt.server, stderr: []string{tt.said}}
			if got := e.wanted(); !slices.Equal(got, tt.want) {
				t.Errorf("wanted %q, want %q", got, tt.want)
			}
		})
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"hub": map[string]any{"command": "sh", "args": []string{"-c", "echo ACMEHUB_TOKEN is missing >&2; exit 2"}}})
	got := typedRun(t, "", exitLocal, "config", "doctor", "--config", file)
	if one := strings.Join(strings.Fields(got), " "); !strings.Contains(one, `ACMEHUB_TOKEN is set here and not passed on to it; if it needs that, add "env": {"ACMEHUB_TOKEN": "${ACMEHUB_TOKEN}"} to hub (`) {
		t.Errorf("doctor: %s", got)
	}
}
