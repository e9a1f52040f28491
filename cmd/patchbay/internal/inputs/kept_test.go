package inputs

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
)

// Answers that several processes keep at once are all kept.
func TestAnswersKeptAtOnce(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "AppData", "USERPROFILE", "LOCALAPPDATA", "XDG_DATA_HOME"} {
		t.Setenv(name, home)
	}
	t.Setenv("PATCHBAY_KEYRING", "off")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := config.Server{Name: "web", URL: "https://example.com/mcp", Source: filepath.Join(t.TempDir(), "mcp.json") + ":1"}
	const n = 8
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a := &Answers{Context: t.Context, Talk: &terminal.Talk{W: io.Discard}}
			a.keepAnswer(s, config.Input{ID: fmt.Sprint("i", i)}, &answer{text: "planted"})
		})
	}
	all.Wait()
	v, err := vault.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := AllKept(v, entry.File(s)); len(kept) != n || err != nil {
		t.Errorf("%d answers are kept, %v; want %d", len(kept), err, n)
	}
}
