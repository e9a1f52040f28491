package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/files"
)

// withSecrets makes a folder with files that are withheld, each with the text SECRET, and others.
func withSecrets(t *testing.T) (dir string, back []string) {
	dir = t.TempDir()
	back = []string{
		".git/config", "sub/.git/hooks/x", ".GIT2/../.Env", ".env", ".env.local", "sub/prod.env", ".envrc", ".ssh/config", "home/.aws/credentials",
		".netrc", ".npmrc", "id_ed25519", "store.p12", "sub/.svn/entries",
	}
	texts := map[string]string{"README.md": "open", ".env.example": "open", "id_ed25519.pub": "open", ".gitignore": "open", "environment": "open", "cert.pem": "-----BEGIN CERTIFICATE-----\n"}
	for i, path := range back {
		back[i] = strings.TrimPrefix(path, ".GIT2/../")
		texts[back[i]] = "SECRET"
	}
	texts["tls/server.key"] = "-----BEGIN EC PRIVATE KEY-----\nSECRET\n"
	texts["deploy.txt"] = "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET\n"
	put(t, dir, texts)
	return dir, append(back, "tls/server.key", "deploy.txt")
}

// TestSecretsAreKeptBack: what usually holds secrets is not shown, and neither read nor written by any
// path, unless the server is started with Secrets.
func TestSecretsAreKeptBack(t *testing.T) {
	dir, back := withSecrets(t)
	links := map[string]string{"link": ".env", "sub/up": "../.git", "dir": ".ssh"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Logf("no links here: %v", err)
			links = nil
			break
		}
	}
	s := connect(t, files.Options{Roots: []string{dir}})
	paths := append([]string{}, back...)
	if links != nil {
		paths = append(paths, "link", "sub/up/config", "dir/config")
	}
	for _, path := range paths {
		for _, given := range []string{path, filepath.Join(dir, filepath.FromSlash(path))} {
			if got := refused(t, s, "read", args{"path": given}); strings.Contains(got, "SECRET") || !strings.Contains(got, "--secrets") {
				t.Errorf("read %q = %q, want a refusal that names the flag", given, got)
			}
		}
		if r, err := s.ReadResource(t.Context(), uriOf(filepath.Join(dir, filepath.FromSlash(path)))); err == nil {
			t.Errorf("the resource of %q = %+v, want a refusal", path, r)
		}
		if path == "deploy.txt" || path == "tls/server.key" { // known by what is in them
			continue
		}
		for tool, in := range map[string]args{
			"info": {"path": path}, "write": {"path": path, "content": "x", "overwrite": true}, "move": {"path": path, "to": "open.txt"},
			"edit": {"path": path, "edits": []args{{"old_text": "SECRET", "new_text": "x"}}}, "tree": {"path": path}, "search": {"path": path, "text": "SECRET"},
		} {
			if tool == "move" {
				in = args{"from": path, "to": "open.txt"}
			}
			refused(t, s, tool, in)
		}
	}
	refused(t, s, "write", args{"path": ".git/hooks/post-checkout", "content": "x", "parents": true})
	refused(t, s, "write", args{"path": ".env.new", "content": "x"})
	refused(t, s, "move", args{"from": "README.md", "to": ".git/README.md"})
	for _, path := range []string{"README.md", ".env.example", "id_ed25519.pub", ".gitignore", "environment", "cert.pem"} {
		call(t, s, "read", args{"path": path})
	}
	for tool, in := range map[string]args{"list": {}, "tree": {"all": true}, "search": {"text": "SECRET", "all": true}} {
		got := call(t, s, tool, in).Text()
		if strings.Contains(got, "SECRET") || strings.Contains(got, "config") || strings.Contains(got, ".ssh\"") || !strings.Contains(got, "withheld") {
			t.Errorf("%s shows what is withheld, or does not say that something is: %s", tool, got)
		}
	}
	open := connect(t, files.Options{Roots: []string{dir}, Secrets: true})
	for _, path := range paths {
		if got := call(t, open, "read", args{"path": path}).Text(); !strings.Contains(got, "SECRET") {
			t.Errorf("with Secrets, read %q = %q", path, got)
		}
	}
	if got := call(t, open, "tree", args{"all": true}).Text(); !strings.Contains(got, ".git") || strings.Contains(got, "withheld") {
		t.Errorf("with Secrets, tree = %s", got)
	}
}

// A root of the server is served under any name, since its user named it. This does not hold for
// roots of a client.
func TestSecretRoots(t *testing.T) {
	dir, _ := withSecrets(t)
	s := connect(t, files.Options{Roots: []string{filepath.Join(dir, ".ssh")}})
	if got := call(t, s, "read", args{"path": "config"}).Text(); !strings.Contains(got, "SECRET") {
		t.Errorf("read of a root that was named = %q", got)
	}
	var c rooted
	c.set(filepath.Join(dir, ".git"))
	narrowed := mcptest.Connect(t, newServer(t, files.Options{Roots: []string{dir}}), c.client(), mcp.V2025_11_25)
	if got := refused(t, narrowed, "read", args{"path": "config"}); strings.Contains(got, "SECRET") {
		t.Errorf("read below a root of the client = %q", got)
	}
}
