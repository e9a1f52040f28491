package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// A page that other machines reach shows views of apps at the host of page.sandbox, which has the frame of views alone and gets no
// cookie. Without the member it shows none, and names the member.
func TestPageSandbox(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	t.Chdir(dir)
	ca := testcert.New(t, "ca.pem")
	ca.Sign(t, &x509.Certificate{DNSNames: []string{"mcp.example", "apps.example"}}, "server.pem", "server.key")
	key, entry := auth.NewAPIKey("ada")
	entry.Roles = []string{"admin"}
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	authority, err := os.ReadFile("ca.pem")
	if err != nil || !roots.AppendCertsFromPEM(authority) {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"keys.jsonl": string(line) + "\n", "with.yaml": "page: {sandbox: 'https://apps.example'}\n", "without.yaml": "ready: {wait: 1s}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"with.yaml", "without.yaml"} {
		t.Run(file, func(t *testing.T) {
			r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", filepath.Join(dir, file), "--http", "0.0.0.0:0", "--page", "--allow-host", "mcp.example",
				"--auth", "apikeys:"+filepath.Join(dir, "keys.jsonl"), "--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key"))
			listener, err := url.Parse(r.url)
			if err != nil {
				t.Fatal(err)
			}
			v := newGuest(t, "https://mcp.example")
			v.client.Transport = asPage{&http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots},
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, listener.Host) // both names lead there
				},
			}}
			if status, text := v.ask(t, "/ui/in", map[string]string{"key": key}); status != http.StatusOK {
				t.Fatalf("ada: HTTP %d %s", status, text)
			}
			_, state := v.ask(t, "/ui/state", nil)
			status, text := v.ask(t, "/ui/view", map[string]any{})
			if file == "without.yaml" {
				if want := "page: {sandbox: https://OTHER-HOST} in gateway.yaml"; !strings.Contains(state, want) || status != http.StatusConflict || !strings.Contains(text, want) {
					t.Errorf("a view: HTTP %d %s; the state is %s", status, text, state)
				}
				return
			}
			var view struct{ Src string }
			if err := json.Unmarshal([]byte(text), &view); err != nil || status != http.StatusOK || !strings.Contains(state, `"sandbox":"https://apps.example"`) {
				t.Fatalf("a view: HTTP %d %s; the state is %s", status, text, state)
			}
			at, err := url.Parse(view.Src)
			if err != nil || at.Host != "apps.example" {
				t.Fatalf("the frame is at %q, %v", view.Src, err)
			}
			if sent := v.client.Jar.Cookies(at); len(sent) > 0 {
				t.Errorf("the sandbox gets the cookies %v", sent)
			}
			v.at = "https://apps.example"
			if status, text := v.ask(t, at.RequestURI(), nil); status != http.StatusOK || !strings.Contains(text, `data-page="https://mcp.example"`) {
				t.Errorf("the frame: HTTP %d %s", status, text)
			}
			for _, path := range []string{"/", "/ui/state", "/mcp", "/mcp/s/a", "/healthz", "/metrics"} {
				if status, text := v.ask(t, path, nil); status != http.StatusForbidden {
					t.Errorf("%s at the sandbox: HTTP %d %s", path, status, text)
				}
			}
			if status, text := v.ask(t, "/mcp", map[string]any{}); status != http.StatusForbidden {
				t.Errorf("a request to /mcp at the sandbox: HTTP %d %s", status, text)
			}
		})
	}
}
