package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/config/trust"
)

func open(t *testing.T) *trust.Store {
	t.Helper()
	s, err := trust.Open(filepath.Join(t.TempDir(), "deep", "trust.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func trusts(t *testing.T, s *trust.Store, file, text string) bool {
	t.Helper()
	yes, err := s.Trusts(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// Trust is for a file by its name in its folder: relative paths in a linked file are relative to
// the folder of the link, which may belong to anyone. A link to the folder makes no difference.
func TestLinkIsAnotherFile(t *testing.T) {
	dir := t.TempDir()
	mine, theirs := filepath.Join(dir, "mine"), filepath.Join(dir, "theirs")
	for _, folder := range []string{mine, theirs} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(mine, "mcp.json")
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, folder := filepath.Join(theirs, "mcp.json"), filepath.Join(dir, "short")
	for at, to := range map[string]string{link: file, folder: mine} {
		if err := os.Symlink(to, at); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	s := open(t)
	if err := s.Trust(t.Context(), file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if trusts(t, s, link, "one") {
		t.Error("a link in another folder to a trusted file is trusted")
	}
	if !trusts(t, s, filepath.Join(folder, "mcp.json"), "one") {
		t.Error("the file is not trusted by a link to its folder")
	}
	if err := s.Trust(t.Context(), link, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forget(t.Context(), link); err != nil || !trusts(t, s, file, "one") {
		t.Errorf("what is said of a link is said of the file: %v", err)
	}
}

// Trust is for one file with one content, under any path, until it is removed (trap 24).
func TestTrust(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("mcp.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t)
	if trusts(t, s, "mcp.json", "one") {
		t.Error("an empty store trusts")
	}
	if err := s.Trust(t.Context(), "mcp.json", []byte("one")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"mcp.json", "./mcp.json", filepath.Join(dir, "mcp.json")} {
		if !trusts(t, s, path, "one") {
			t.Errorf("%s is not trusted", path)
		}
	}
	if trusts(t, s, "mcp.json", "two") || trusts(t, s, "other.json", "one") {
		t.Error("another content, or another file, is trusted")
	}
	// Branches alternate: content that was trusted before stays trusted.
	if err := s.Trust(t.Context(), "mcp.json", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if !trusts(t, s, "mcp.json", "one") || !trusts(t, s, "mcp.json", "two") {
		t.Error("a second content takes the first away")
	}
	for range 2 {
		if err := s.Trust(t.Context(), "mcp.json", []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 31 {
		if err := s.Trust(t.Context(), "mcp.json", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if !trusts(t, s, "mcp.json", "one") || trusts(t, s, "mcp.json", "two") {
		t.Error("not the oldest is forgotten")
	}
	if was, err := s.Forget(t.Context(), "mcp.json"); err != nil || !was || trusts(t, s, "mcp.json", "one") {
		t.Errorf("Forget = %v, %v, and it is trusted: %v", was, err, trusts(t, s, "mcp.json", "one"))
	}
	if was, err := s.Forget(t.Context(), "mcp.json"); err != nil || was {
		t.Errorf("a second Forget = %v, %v", was, err)
	}
}

// Concurrent changes are all kept, and a store that cannot be read trusts nothing and is not
// replaced.
func TestTrustAtOnce(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.Trust(t.Context(), fmt.Sprintf("/x/%d", i), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 20 {
		if !trusts(t, s, fmt.Sprintf("/x/%d", i), "x") {
			t.Errorf("the yes to %d is lost", i)
		}
	}
	if err := os.WriteFile(s.Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if yes, err := s.Trusts("/x/1", []byte("x")); yes || err == nil {
		t.Errorf("a broken store: %v, %v", yes, err)
	}
	if err := s.Trust(t.Context(), "/x/1", []byte("x")); err == nil {
		t.Error("a broken store is replaced")
	}
}
