package sqlitefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// magic is the beginning of every SQLite file that is not empty.
var magic = []byte("SQLite format 3\x00")

// Memory is the name that SQLite gives a database in memory. It is not the path of a file.
const Memory = ":memory:"

// Check returns the error that opening a database would give: a folder that does not exist, a
// file that is not a database, missing rights, a URI in place of a path. It creates nothing.
func Check(path string) error {
	if uri, ok := strings.CutPrefix(path, "file:"); ok {
		uri, _, _ = strings.Cut(uri, "?")
		if host, file, ok := strings.Cut(strings.TrimPrefix(uri, "//"), "/"); ok && strings.HasPrefix(uri, "//") && (host == "" || host == "localhost") {
			uri = "/" + file
		}
		return fmt.Errorf("database %q is a URI; name the path of a file, as in --db %s; for a file of this name write ./%[1]s", path, cmp.Or(uri, "notes.db"))
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		switch info, err := os.Stat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("database %q: the folder %q does not exist; create it, or name a file in another one", path, dir)
		case err != nil:
			return fmt.Errorf("database %q: %w", path, err)
		case !info.IsDir():
			return fmt.Errorf("database %q: %q is not a folder; name another file", path, dir)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("database %q: %w", path, err)
	}
	if info.IsDir() {
		return fmt.Errorf("database %q is a folder; name a file in it", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("database %q: %w", path, err)
	}
	defer f.Close()
	head := make([]byte, len(magic))
	switch n, err := io.ReadFull(f, head); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil // SQLite makes a database of an empty file
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("database %q: %w", path, err)
	case !bytes.Equal(head, magic):
		return fmt.Errorf("%q is not an SQLite database; name another file", path)
	}
	return nil
}
