package page

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The library that the page is made with is the one of its package, unchanged.
func TestVendored(t *testing.T) {
	npm := filepath.Join("..", "npm", "node_modules", "preact")
	if _, err := os.Stat(npm); err != nil {
		if os.Getenv("PATCHBAY_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip("no packages: npm ci --prefix interop/npm")
	}
	for ours, theirs := range map[string]string{"preact.mjs": "dist/preact.mjs", "hooks.mjs": "hooks/dist/hooks.mjs", "LICENSE": "LICENSE"} {
		have, err := os.ReadFile(filepath.Join("..", "..", "inspector", "ui", "vendor", "preact", ours))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(npm, filepath.FromSlash(theirs)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s differs from %s of the package", ours, theirs)
		}
	}
}
