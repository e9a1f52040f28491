package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, file, code string
		good             bool
	}{
		{"good", "p_windows.go", "package p\n", true},
		{"types", "p_windows.go", "package p\n\nvar x int = \"a\"\n", false},
		{"vet", "p_windows.go", "package p\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"a\") }\n", false},
		{"a function that never returns", "p_windows.go", "package p\n\nimport (\n\t\"context\"\n\t\"log\"\n)\n\nfunc F() {\n\tctx, stop := context.WithCancel(context.Background())\n\tif ctx.Err() != nil {\n\t\tlog.Fatal()\n\t\treturn\n\t}\n\tstop()\n}\n", true},
		{"a function that returns", "p_windows.go", "package p\n\nimport (\n\t\"context\"\n\t\"log\"\n)\n\nfunc F() {\n\tctx, stop := context.WithCancel(context.Background())\n\tif ctx.Err() != nil {\n\t\tlog.Print()\n\t\treturn\n\t}\n\tstop()\n}\n", false},
		{"vet of a test", "p_windows_test.go", "package p_test\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"a\") }\n", false},
		{"a package that is not there", "p_windows.go", "package p\n\nimport _ \"nowhere\"\n", false},
		{"types, with another package", "p_windows.go", "package p\n\nimport \"os\"\n\nvar _ int = os.Getpid\n", false},
		{"types, all systems", "all.go", "package p\n\nvar x int = \"a\"\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("GOOS", "windows")
			for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p.go": "package p\n", tc.file: tc.code, "p_linux.go": "what is for Linux is not read\n"} {
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
