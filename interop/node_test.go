package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/npm"
)

// required reports whether a missing Node is a failure and not a skip.
func required() bool { return os.Getenv("PATCHBAY_INTEROP") == "required" }

// Node, and the files and programs of foreign peers.
var (
	nodeBinary = npm.Binary
	node       = npm.Node
	npmFile    = npm.File
	npmProgram = npm.Program
)

// nodePath is the environment variable that puts that Node first.
func nodePath(t *testing.T) string {
	t.Helper()
	return "PATH=" + filepath.Dir(node(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
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
