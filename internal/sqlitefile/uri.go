// Package sqlitefile checks and opens the files of SQLite databases.
package sqlitefile

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// URI returns a path as an SQLite URI, with "?" and "%" escaped.
func URI(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %q: %w", path, err)
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // C:/notes.db
	}
	return "file://" + (&url.URL{Path: abs}).EscapedPath(), nil
}
