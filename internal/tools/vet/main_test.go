package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, code string
		good       bool
	}{
		{"good", "package p\n", true},
		{"types", "package p\n\nvar x int = \"a\"\n", false},
		{"vet", "package p\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"a\") }\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("GOOS", "windows")
			for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p.go": "package p\n", "p_windows.go": tc.code, "p_linux.go": "what is for Linux is not read\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := run(dir, "./..."); (err == nil) != tc.good {
				t.Errorf("run: %v", err)
			}
		})
	}
}
