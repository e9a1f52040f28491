package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/hop"
)

// A command gets the list of servers that have led to it. A server on the list is not started, by
// any path of its file, and nor is any server below 8 programs.
func TestLineage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	entry := func(path, name string) config.Server {
		return config.Server{Name: name, Command: "x", Source: path + ":3"}
	}
	child := func(l *lineage, s config.Server) *lineage {
		_, value, _ := strings.Cut(l.env(s), "=")
		t.Setenv(parentName, value)
		return newLineage()
	}
	t.Setenv(parentName, "")
	up := newLineage()
	if err := up.serves(file); err != nil {
		t.Fatalf("the first up: %v", err)
	}
	one := child(up, entry(file, "me"))
	if err := one.refuse(entry("mcp.json", "me")); err != errOwnParent {
		t.Errorf("its own entry, by another path: %v", err)
	}
	if err := one.refuse(entry(file, "other")); err != nil {
		t.Errorf("another entry: %v", err)
	}
	if err := one.serves("./mcp.json"); err == nil {
		t.Error("a second up of the same file is served")
	}
	if err := one.serves(filepath.Join(dir, "other.json")); err != nil {
		t.Errorf("an up of another file: %v", err)
	}
	// A verb that only calls one server does not serve its file.
	t.Setenv(parentName, "")
	if err := child(newLineage(), entry(file, "me")).serves(file); err != nil {
		t.Errorf("an up below a call: %v", err)
	}
	typedCommand := config.Server{Name: "x", Command: "x", Args: []string{"a", "b"}}
	below := child(newLineage(), typedCommand)
	if err := below.refuse(typedCommand); err != errOwnParent {
		t.Errorf("the command that was typed: %v", err)
	}
	if err := below.refuse(config.Server{Name: "x", Command: "x", Args: []string{"a b"}}); err != nil {
		t.Errorf("another command: %v", err)
	}
	deep := &lineage{}
	for i := range hop.Most {
		if err := deep.refuse(entry(file, "x")); err != nil {
			t.Errorf("below %d programs: %v", i, err)
		}
		deep = child(deep, entry(file, fmt.Sprint(i)))
	}
	if err := deep.refuse(entry(file, "x")); err != errDeep {
		t.Errorf("below %d programs: %v, want an error", hop.Most, err)
	}
	if env := environment(config.Server{InheritEnv: true}); strings.Contains(strings.Join(env, "\n"), parentName) {
		t.Error("a command that inherits the environment has the lineage twice")
	}
}
