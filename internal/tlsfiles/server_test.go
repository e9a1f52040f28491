package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// A certificate that is renewed is shown to the next connection; one that cannot be read leaves
// the old one in place, and a client that is known no more cannot resume its session.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	ca := testcert.New(t, "ca.pem")
	ca.Sign(t, testcert.Loopback(), "server.pem", "server.key")
	var said bytes.Buffer
	f, err := Open("server.pem", "server.key", "ca.pem", slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	again := func() *tls.Config {
		f.looked = time.Time{} // a second has passed
		return f.current(true)
	}
	serial := func(c *tls.Config) string {
		cert, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(cert.SerialNumber)
	}
	first := f.current(true)
	if again() != first {
		t.Error("files that did not change make a new configuration")
	}
	ca.Sign(t, testcert.Loopback(), "server.pem", "other.key") // half of a renewal
	for range 3 {
		if again() != first || strings.Count(said.String(), "certificates not reloaded") != 1 {
			t.Errorf("with a key that does not fit: %s", said.String())
		}
	}
	if err := f.Fault(); err == nil || !strings.Contains(err.Error(), "server.key") {
		t.Errorf("the fault is %v", err)
	}
	if err := os.Rename("other.key", "server.key"); err != nil {
		t.Fatal(err)
	}
	second := again()
	if err := f.Fault(); err != nil || !strings.Contains(said.String(), "certificates are reloaded again") {
		t.Errorf("the fault is %v, and the log is %s", err, said.String())
	}
	if serial(first) == serial(second) {
		t.Error("the new certificate is not taken")
	}
	if err := os.Remove("ca.pem"); err != nil {
		t.Fatal(err)
	}
	if again() != second {
		t.Error("without the authority another configuration counts")
	}
	testcert.New(t, "ca.pem")
	if third := again(); third == second || third.ClientCAs.Equal(second.ClientCAs) {
		t.Error("the new authority is not taken")
	}
}

// Files behind a link that is replaced, as Kubernetes mounts secrets, are read again together.
func TestCertificatesBehindALink(t *testing.T) {
	t.Chdir(t.TempDir())
	ca := testcert.New(t, "ca.pem")
	swap := func(to string) {
		t.Helper()
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		ca.Sign(t, testcert.Loopback(), to+"/tls.crt", to+"/tls.key")
		if err := os.Symlink(to, "..data_tmp"); err != nil {
			t.Skip(err) // Windows
		}
		if err := os.Rename("..data_tmp", "..data"); err != nil {
			t.Fatal(err)
		}
	}
	swap("..1")
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink("..data/"+name, name); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open("tls.crt", "tls.key", "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first := f.current(true)
	swap("..2")
	if err := os.RemoveAll("..1"); err != nil {
		t.Fatal(err)
	}
	f.looked = time.Time{} // a second has passed
	if second := f.current(true); f.Fault() != nil || bytes.Equal(second.Certificates[0].Certificate[0], first.Certificates[0].Certificate[0]) {
		t.Errorf("the certificate is still that of before the link was replaced, fault %v", f.Fault())
	}
}
