package files_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// testSubscription subscribes to a file and waits for the notification of a change.
func testSubscription(t *testing.T, s *mcp.Session, dir string) {
	uri := fileURI(t, s, "crlf.txt")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range s.Watch(ctx, uri) {
		if err != nil {
			t.Errorf("watch: %v", err)
			return
		}
		switch {
		case e.Method == "notifications/subscriptions/acknowledged":
			if err := os.WriteFile(filepath.Join(dir, "crlf.txt"), []byte("changed"), 0o666); err != nil {
				t.Fatal(err)
			}
		case e.URI == uri:
			return
		}
	}
	t.Error("the change was not told")
}
