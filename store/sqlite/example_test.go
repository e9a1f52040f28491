package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store/sqlite"
)

// A server keeps its tasks, and the events of its streams, in one file.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "patchbay.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	srv := &mcp.Server{Name: "reports", Tasks: mcp.TaskConfig{Store: db.Tasks()}, HTTP: mcp.HTTPConfig{Events: db.Events()}}
	fmt.Println(srv.Check())
	// Output: <nil>
}
