package files

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No path reads a file outside of a root, with any links.
func FuzzEscape(f *testing.F) {
	base, err := os.MkdirTemp("", "files")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(base) })
	root := filepath.Join(base, "root")
	for _, dir := range []string{filepath.Join(root, "in"), filepath.Join(base, "out")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			f.Fatal(err)
		}
	}
	for path, text := range map[string]string{filepath.Join(root, "in", "f"): "inside", filepath.Join(base, "out", "f"): "SECRET", filepath.Join(base, "f"): "SECRET"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			f.Fatal(err)
		}
	}
	for name, to := range map[string]string{"a": filepath.Join(base, "out"), "r": "../out", "u": "..", "s": "in", "in/u": "../..", "in/f2": "../../f", "o": filepath.Join(base, "out", "f")} {
		if err := os.Symlink(to, filepath.Join(root, filepath.FromSlash(name))); err != nil {
			f.Logf("no links here: %v", err)
		}
	}
	s := newServer(Options{})
	if s.roots, err = openRoots([]string{root}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { closeRoots(s.roots) })
	for _, p := range []string{
		"in/f", "s/f", "a/f", "r/f", "u/f", "u/out/f", "in/u/f", "in/f2", "o", "s/../a/f", "s/u/f", "u/root/in/f", "../out/f", "in/../../f",
		"file://" + filepath.ToSlash(root) + "/a/f", filepath.Join(root, "u", "f"), filepath.Join(base, "f"), "in/u/root/u/f", "a/./f", "a/../f", "u/../f",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		a := s.whole()
		defer a.close()
		target, err := a.find(p)
		if err != nil {
			return
		}
		if file, _, err := target.open(); err == nil {
			defer file.Close()
			if b, _ := io.ReadAll(file); strings.Contains(string(b), "SECRET") {
				t.Fatalf("%q reads what is outside", p)
			}
		}
		if dir, err := target.openDir(); err == nil {
			defer dir.Close()
			if names, _, _ := namesIn(dir); len(names) == 1 && names[0] == "f" {
				t.Fatalf("%q lists what is outside", p)
			}
		}
		if _, err := target.store(context.Background(), strings.NewReader("x"), storing{overwrite: true}); err == nil {
			for _, path := range []string{filepath.Join(base, "out", "f"), filepath.Join(base, "f")} {
				if b, _ := os.ReadFile(path); string(b) != "SECRET" {
					t.Fatalf("%q writes what is outside", p)
				}
			}
			for _, dir := range []string{filepath.Join(base, "out"), base} {
				if names, _ := os.ReadDir(dir); len(names) > 3 {
					t.Fatalf("%q makes files outside: %v", p, names)
				}
			}
			if target.rel != "in/f" {
				target.place.dir.Remove(target.name())
			}
		}
	})
}
