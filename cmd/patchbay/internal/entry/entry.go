// Package entry shows entries of an mcp.json to people: their place in the file, and the command or
// URL, without possible secrets.
package entry

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// Here returns a path relative to the current folder if it is below it.
func Here(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// HereLine shortens the path of a source, "path:line".
func HereLine(source string) string {
	path, line, ok := CutLast(source, ":")
	if !ok {
		return source
	}
	return Here(path) + ":" + line
}

// CutLast cuts s at the last sep.
func CutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// File returns the file that defines a server.
func File(s config.Server) string {
	path, _, _ := CutLast(s.Source, ":")
	return path
}

// Where returns the command or URL of a server as the file has it, without possible secrets.
func Where(s *config.Server) string {
	switch {
	case s.Builtin != "":
		return screen.Shell(secrets.ShownArgs(append([]string{s.Builtin}, s.Args...)))
	case s.URL != "":
		for _, v := range s.Values() {
			if v.Member == "url" {
				return secrets.ShownURL(v.Written)
			}
		}
		return secrets.ShownURL(s.URL)
	}
	return screen.Shell(secrets.ShownArgs(s.CommandLine()))
}
