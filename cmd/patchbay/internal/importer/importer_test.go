package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/importer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAdd(t *testing.T) {
	path := write(t, "mcp.json", `{"inputs": [{"id": "key", "type": "promptString"}], "mcpServers": {"same": {"command": "a"}, "taken": {"command": "mine"}}}`)
	theirs := write(t, "theirs.json", `{"inputs": [{"id": "key", "type": "other"}, {"id": "fresh", "type": "promptString"}],
		"servers": {"same": {"command": "a"}, "taken": {"command": "theirs"}, "clash": {"command": "a", "args": ["${input:key}"]},
		"new": {"command": "b", "args": ["${input:fresh}"], "env": {"TOKEN": "planted"}, "unknown": 1}}}`)
	f, err := importer.Read(theirs, hosts.System{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rename := range []bool{false, true} {
		doc, err := config.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		in := &importer.Importer{Doc: doc, Path: path, Rename: rename, Note: t.Logf}
		if err := in.Add(f); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, o := range in.Outcomes {
			lines = append(lines, o.Text)
		}
		said := strings.Join(lines, "\n")
		added := []string{"new"}
		want := []string{"same     same is already there", "skipped  taken: another server", `skipped  clash: the file has another input "key"`, "added    new ("}
		if rename {
			added = []string{"taken-" + f.Host.Name, "new"}
			want[1] = "added    taken-" + f.Host.Name + ", formerly taken ("
		}
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("rename %v: no %q in\n%s", rename, text, said)
			}
		}
		if !slices.Equal(in.Added, added) || in.Secrets != 1 || len(doc.Inputs()) != 2 {
			t.Errorf("rename %v: added %q, %d secrets, %d inputs", rename, in.Added, in.Secrets, len(doc.Inputs()))
		}
		if e, ok := doc.Entry("new"); !ok || !strings.Contains(string(e.Object), `"unknown"`) {
			t.Errorf("rename %v: new is %s", rename, e.Object)
		}
		if e, _ := doc.Entry("taken"); !strings.Contains(string(e.Object), "mine") {
			t.Errorf("rename %v: taken is %s", rename, e.Object)
		}
	}
}

func TestAddSkipsItself(t *testing.T) {
	path := write(t, "mcp.json", `{"mcpServers": {"one": {"command": "a"}}}`)
	f, err := importer.Read(path, hosts.System{})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	in := &importer.Importer{Path: path, Note: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}
	if err := in.Add(f); err != nil || len(in.Outcomes) > 0 || !strings.Contains(said, "the file to import into") {
		t.Errorf("%v, %v, %q", err, in.Outcomes, said)
	}
}

func TestFindWarns(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".cursor", "mcp.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, _ := hosts.Named("cursor")
	var warned []error
	files := importer.Find(h, hosts.System{OS: "linux", Home: home, Dir: t.TempDir()}, func(err error) { warned = append(warned, err) })
	if len(files) > 0 || len(warned) != 1 || !strings.Contains(warned[0].Error(), "mcp.json is not a file") {
		t.Errorf("%v, %v", files, warned)
	}
}
