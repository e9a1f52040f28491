package sqlitefile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
)

// A name that a URI would read otherwise is the name of the file.
func TestOddName(t *testing.T) {
	dir, name := t.TempDir(), "100%20 ?#&é.db"
	if runtime.GOOS == "windows" {
		name = "100%20 #&é.db" // ? is not allowed in names
	}
	db, err := sqlitefile.Open(filepath.Join(dir, name), []string{"CREATE TABLE t (x)"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("INSERT INTO t VALUES (1)")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != name {
		t.Errorf("inserting: %v; the folder has %v, want %q alone", err, files, name)
	}
}
