package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// The state and the metrics say that a faulty mcp.json, and files of certificates that cannot be used,
// are not in use, until they are right again.
func TestFilesNotInUse(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	ca := testcert.New(t, filepath.Join(dir, "ca.pem"))
	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	ca.Sign(t, testcert.Loopback(), cert, key)
	kept, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--tls-cert", cert, "--tls-key", key, "--insecure-no-auth")
	state := func() string { return patchbay(t, "status", "--json") }
	for _, tt := range []struct {
		file, right, fault string
	}{
		{cert, string(kept), "certificates not reloaded"},
		{r.file, "", r.file},
	} {
		if tt.right == "" {
			text, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			tt.right = string(text)
		}
		if got := state(); strings.Contains(got, "unapplied") {
			t.Fatalf("the state has faults: %s", got)
		}
		for _, step := range []struct {
			content string
			faulty  bool
		}{{"{", true}, {tt.right, false}} {
			if err := os.WriteFile(tt.file+"~", []byte(step.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(tt.file+"~", tt.file); err != nil {
				t.Fatal(err)
			}
			until(t, "the state is that of "+filepath.Base(tt.file), func() bool {
				_, list, faulty := strings.Cut(state(), `"unapplied":[`)
				return faulty == step.faulty && (!faulty || strings.Contains(list, tt.fault))
			})
		}
	}
}
