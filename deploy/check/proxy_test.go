//go:build linux

package check

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nginx with the file of deploy/nginx in front of two gateways with one list of keys: callers of a session and of single requests answer
// questions through it, each at one gateway, and the public name reaches a gateway on loopback.
func TestProxy(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatalf("%v: apt-get install nginx-light", err)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := path("patchbay")
	run(t, "go", "-C", "../..", "build", "-o", program, "./cmd/patchbay")
	write("mcp.json", `{"mcpServers": {"shop": {"builtin": "shop"}}}`)
	var keys []string
	for n := range 20 {
		key, _, _ := strings.Cut(run(t, program, "token", "key", "caller"+string(rune('A'+n)), "--file", path("keys.jsonl")), "\n")
		keys = append(keys, key)
	}
	gateways := []string{free(t), free(t)}
	for i, at := range gateways {
		name := string(rune('a' + i))
		write(name+".yaml", `{servers: mcp.json, listen: {http: "`+at+`"}, auth: ["apikeys:keys.jsonl"]}`)
		begin(t, program, "up", "--gateway", path(name+".yaml"), "--allow-host", "mcp.example.com", "--log", path(name+".log"))
		answers(t, "http://"+at+"/readyz", http.DefaultClient)
	}

	front := free(t)
	pool := certificate(t, path("patchbay.pem"), path("patchbay.key"))
	text, err := os.ReadFile("../nginx/patchbay.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := string(text)
	for _, change := range [][2]string{
		{"listen 443 ", "listen " + front + " "},
		{"server 127.0.0.1:7420;", "server " + gateways[0] + "; server " + gateways[1] + ";"},
		{"/etc/nginx/patchbay.pem", path("patchbay.pem")},
		{"/etc/nginx/patchbay.key", path("patchbay.key")},
	} {
		if strings.Count(conf, change[0]) != 1 {
			t.Fatalf("deploy/nginx/patchbay.conf has not one %q:\n%s", change[0], conf)
		}
		conf = strings.Replace(conf, change[0], change[1], 1)
	}
	write("patchbay.conf", conf)
	temporary := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += kind + "_temp_path " + path(kind) + ";\n"
	}
	write("nginx.conf", "user root;\ndaemon off;\npid "+path("pid")+";\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+temporary+"include patchbay.conf;\n}\n")
	begin(t, nginx, "-p", dir, "-e", "stderr", "-c", path("nginx.conf"))

	public := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", front)
		},
	}}
	answers(t, "https://mcp.example.com/readyz", public)
	res, err := public.Post("https://mcp.example.com/mcp", "application/json", strings.NewReader("{}"))
	if err != nil || res.StatusCode != http.StatusUnauthorized || res.ProtoMajor != 2 {
		t.Errorf("without a key: %v, %v", res, err)
	}

	_, port, err := net.SplitHostPort(front)
	if err != nil {
		t.Fatal(err)
	}
	both := func() bool {
		for _, name := range []string{"a.log", "b.log"} {
			if log, err := os.ReadFile(path(name)); err != nil || !bytes.Contains(log, []byte("shop_book-trip")) {
				return false
			}
		}
		return true
	}
	for n, key := range keys { // until both gateways have callers
		if n > 2 && both() {
			break
		}
		for _, revision := range []string{"2025-06-18", "2026-07-28"} {
			out := run(t, program, "call", "shop_book-trip", "date=2099-06-01", "--on-elicit", "decline", "--revision", revision,
				"-s", "https://localhost:"+port+"/mcp", "--server-ca", path("patchbay.pem"), "--header", "Authorization: Bearer "+key)
			if !strings.Contains(out, "Nothing was booked") {
				t.Errorf("%s: %s", revision, out)
			}
		}
	}
	if !both() {
		t.Error("all callers are at one gateway")
	}
}

// The lines of docs/deploy.md for a team are a drop-in of the unit that systemd takes.
func TestUnitOfTeam(t *testing.T) {
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?s)```ini\n(.*?)```").FindSubmatch(page)
	if lines == nil {
		t.Fatal("docs/deploy.md has no lines for systemd")
	}
	root := t.TempDir()
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	if err != nil || len(targets) == 0 {
		t.Fatalf("systemd is not installed: %v", err)
	}
	files := map[string]string{"usr/lib/systemd/system/patchbay.service": "../systemd/patchbay.service", "usr/lib/systemd/system/patchbay.socket": "../systemd/patchbay.socket"}
	for _, target := range targets {
		files[target] = target
	}
	for to, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, to), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/bin/patchbay"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	dropIn := filepath.Join(root, "etc/systemd/system/patchbay.service.d/override.conf")
	if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dropIn, lines[1], 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--root="+root, "patchbay.service", "patchbay.socket").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("override.conf")) || bytes.Contains(out, []byte("patchbay.socket:")) {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
	run(t, "systemd-analyze", "security", "--offline=yes", "--root="+root, "--threshold=25", "patchbay.service") // 2.5
}

// begin starts a program that ends with the test.
func begin(t *testing.T, name string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), said.String())
		}
	})
}

// answers waits until a URL answers 200.
func answers(t *testing.T, url string, client *http.Client) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := client.Get(url)
		if err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v", url, res, err)
		}
	}
}

// certificate writes one for the public name and localhost, signed by itself.
func certificate(t *testing.T, cert, key string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"mcp.example.com", "localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	all := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, block := range map[string][]byte{cert: all, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(file, block, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(all)
	return pool
}
