package skills_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/skills"
)

// A skill that becomes invalid is logged once, until its fault changes.
func TestBrokenSkillIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		srv := &mcp.Server{Name: "s", Logger: slog.New(slog.NewTextHandler(&log, nil))}
		files := folder()
		if _, err := skills.Serve(srv, files); err != nil {
			t.Fatal(err)
		}
		s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
		steps := []struct {
			change func()
			warned int // so far
		}{
			{func() {}, 0},
			{func() { files["pdf/SKILL.md"] = file("broken") }, 1},
			{func() {}, 1},
			{func() { files["pdf/SKILL.md"] = manifest("fdp") }, 2},
			{func() { files["pdf/SKILL.md"] = manifest("pdf") }, 2},
			{func() { files["pdf/SKILL.md"] = manifest("fdp") }, 3},
		}
		for i, step := range steps {
			step.change()
			time.Sleep(3 * time.Second)
			uris(t, s)
			if got := strings.Count(log.String(), "skills left out"); got != step.warned {
				t.Errorf("step %d: %d warnings, want %d\n%s", i, got, step.warned, log.String())
			}
		}
	})
}
