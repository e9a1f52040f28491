package recording

import (
	"context"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/trace/record"
)

// Is reports whether a word names a recording, a file of --trace or a folder of --record, and not a server.
func Is(name string) bool {
	if filepath.Ext(name) == ".jsonl" {
		return true
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return false
	}
	files, err := record.Files(name)
	return err == nil && len(files) > 0
}

// Show makes a page show a recording, on a free port of this machine. The page has no servers.
func Show(ctx context.Context, file string, page *inspector.Page) (*listen.Page, error) {
	frames, err := inspector.OpenRecording(ctx, file)
	if err != nil {
		return nil, err
	}
	ports, err := listen.Loopback()
	if err != nil {
		return nil, err
	}
	page.URL = "http://" + ports[0].Addr().String() + "/"
	page.Title, page.Recording, page.Home, page.Frames, page.Judge = file, file, "wire", frames, explain.Judge
	page.Report = func() *health.Report { return new(health.Report) }
	return listen.NewOwn(ports, page, page.Close, page.Logger), nil
}
