package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/vault"
)

// An upgrade keeps configuration and data: what the program keeps is read as the first version wrote it, without a version of its format, and
// mcp.json stays as it is. A file of a later format is refused in words, and stays as it is too. The files of the issuer, of conversations and of
// traces have such tests in their packages.
func TestUpgrade(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have other folders")
	}
	home := t.TempDir()
	data := filepath.Join(home, "data", "patchbay")
	for name, dir := range map[string]string{"HOME": home, "XDG_DATA_HOME": filepath.Dir(data), "XDG_CONFIG_HOME": filepath.Join(home, "config"), "XDG_RUNTIME_DIR": filepath.Join(home, "run")} {
		t.Setenv(name, dir)
	}
	t.Setenv("PATCHBAY_KEYRING", "off")
	t.Chdir(filepath.Join(home))
	const servers = "{\n  // mine\n  \"mcpServers\": {\"conj\": {\"builtin\": \"conjugate\"},},\n}\n"
	host := filepath.Join(home, ".cursor", "mcp.json")
	for path, text := range map[string]string{".mcp.json": servers, host: servers, filepath.Join(data, "approvals.json"): `{"version": 1, "approvals": [{"server": "shop", "tool": "buy"}]}`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func(args ...string) (string, int) {
		var out strings.Builder
		code := run(t.Context(), args, strings.NewReader(""), &out, &out)
		return out.String(), code
	}
	does := func(args ...string) func() (string, int) {
		return func() (string, int) { return said(args...) }
	}
	for _, f := range []struct {
		name, path, version string // the pattern of its path, and the member
		make, read          func() (string, int)
		want                string // of read
	}{
		{"trusted files", "trust.json", "version", does("config", "trust", ".mcp.json"), does("tools"), "conjugate("},
		{"approvals", "approvals.json", "version", does("version"), does("config", "approvals"), "buy"},
		{"changes of hosts", "installed/*.json", "version", does("up", "install", "cursor", "--url", "http://127.0.0.1:7420/mcp", "--name", "team"),
			does("up", "uninstall", "cursor", "--name", "team"), "is as it was before"},
		{"audit log", "calls.jsonl", "v", does("serve", "everything", "--audit", filepath.Join(data, "calls.jsonl")), does("audit", "verify"), "is whole"},
		{"audit log, to write", "calls.jsonl", "v", does("version"), does("serve", "everything", "--audit", filepath.Join(data, "calls.jsonl")), ""},
		{"vault", "vault/key.json", "version", func() (string, int) {
			v, err := vault.Open(filepath.Join(data, "vault"), nil)
			if err == nil {
				err = v.SetSecret(t.Context(), "input token", "planted")
			}
			return result("", err)
		}, func() (string, int) {
			v, err := vault.Open(filepath.Join(data, "vault"), nil)
			if err != nil {
				return result("", err)
			}
			s, err := v.Secret("input token")
			return result(string(s), err)
		}, "planted"},
	} {
		t.Run(f.name, func(t *testing.T) {
			if out, code := f.make(); code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			found, err := filepath.Glob(filepath.Join(data, f.path))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %q, %v", f.path, found, err)
			}
			path := found[0]
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			newer := versioned(t, now, f.version, 99)
			write(t, path, newer)
			out, code := f.read()
			if code == 0 || !strings.Contains(out, "written by a newer version (format 99, this one knows ") || !strings.Contains(out, "upgrade") {
				t.Errorf("a later format: exit code %d\n%s", code, out)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, newer) {
				t.Errorf("a later format was changed (%v):\n%s", err, after)
			}
			older := now
			if f.version == "version" {
				older = versioned(t, now, f.version, 0)
			}
			write(t, path, older)
			if out, code := f.read(); code != 0 || !strings.Contains(out, f.want) {
				t.Errorf("as the first version wrote it: exit code %d, want %q in\n%s", code, f.want, out)
			}
		})
	}
	for _, path := range []string{".mcp.json", host} {
		if text, err := os.ReadFile(path); err != nil || string(text) != servers {
			t.Errorf("%s has changed (%v):\n%s", path, err, text)
		}
	}
}

func result(text string, err error) (string, int) {
	if err != nil {
		return err.Error(), 1
	}
	return text, 0
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// versioned returns objects with another version, or without one, which they must have.
func versioned(t *testing.T, content []byte, member string, version int) []byte {
	t.Helper()
	var out []byte
	for d := json.NewDecoder(bytes.NewReader(content)); ; {
		var o map[string]any
		if err := d.Decode(&o); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if o[member] == nil {
			t.Fatalf("no %q in %s", member, content)
		}
		o[member] = version
		if version == 0 {
			delete(o, member)
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
}
