package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// An entry whose file a server cannot read is not called gone: the session would be, and a node would take what belongs to another. NATS says
// "no message found" then.
func TestUnreadableIsNotGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open is not renamed there")
	}
	dir := t.TempDir()
	s := start(t, nats.ServerOptions{Cluster: "test", Node: "n0", Dir: dir})
	c := open(t, s, "found")
	const key = "some.key"
	if _, err := c.Put(t.Context(), key, []byte("x"), 0, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 12 { // so that the server begins another file
		if _, err := c.Put(t.Context(), fmt.Sprint("large.", i), make([]byte, cluster.MaxValue), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	const cached = 12 * time.Second // in the memory of the server, 10 s
	time.Sleep(cached)
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*-state", "msgs", "1.blk"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Rename(files[0], files[0]+".away"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if _, err = c.Get(ctx, key); err == nil || !strings.Contains(err.Error(), "cannot be read") || errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}
