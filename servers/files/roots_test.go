package files_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/files"
)

// uriOf is the file: URI of a folder, as a client would write it.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + strings.ReplaceAll(path, " ", "%20")
}

// rooted is a client with roots that can be changed, and counts how often it is asked.
type rooted struct {
	roots atomic.Pointer[[]string]
	asked atomic.Int64
}

func (r *rooted) set(dirs ...string) { r.roots.Store(&dirs) }

func (r *rooted) client() *mcp.Client {
	return &mcp.Client{Name: "tester", Version: "1", Roots: func(context.Context) ([]mcp.Root, error) {
		r.asked.Add(1)
		dirs := r.roots.Load()
		if dirs == nil {
			return nil, errors.New("no roots today")
		}
		roots := []mcp.Root{}
		for _, dir := range *dirs {
			roots = append(roots, mcp.Root{URI: uriOf(dir)})
		}
		return roots, nil
	}}
}

// Roots of a client take away and never add, from the next call on (ROOT-26-010,
// ROOT-26-012). They are asked for on older revisions alone, unless it is wanted.
func TestClientRoots(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a b/one": "1", "a b/sub/x": "x", "c/two": "2", "three": "3"})
	outside := t.TempDir()
	put(t, outside, map[string]string{"secret": "secret"})
	var c rooted
	mcptest.Every(t, func() *mcp.Server {
		return newServer(t, files.Options{Roots: []string{dir}})
	}, c.client, func(t *testing.T, s *mcp.Session) {
		c.set(filepath.Join(dir, "a b"))
		before := c.asked.Load()
		if s.Revision() >= mcp.V2026_07_28 {
			call(t, s, "read", args{"path": "three"})
			if c.asked.Load() != before {
				t.Error("the client was asked for roots")
			}
			return
		}
		if got := as[entries](t, call(t, s, "list", nil)).paths(); !slices.Equal(got, []string{"one", "sub"}) {
			t.Errorf("list = %q", got)
		}
		for _, path := range []string{"three", "c/two", filepath.Join(dir, "three"), "../three", filepath.Join(outside, "secret")} {
			refused(t, s, "read", args{"path": path})
		}
		if got := call(t, s, "read", args{"path": filepath.Join(dir, "a b", "one")}).Text(); got != "1" {
			t.Errorf("read = %q", got)
		}
		if _, err := s.ReadResource(t.Context(), uriOf(filepath.Join(dir, "a b", "one"))); err != nil {
			t.Errorf("read a resource: %v", err)
		}
		if _, err := s.ReadResource(t.Context(), uriOf(filepath.Join(dir, "three"))); err == nil {
			t.Error("a resource outside of the client's roots can be read")
		}

		c.set(filepath.Join(dir, "a b"), filepath.Join(dir, "c"), filepath.Join(dir, "a b", "sub"), outside, filepath.Join(dir, "nosuch"), filepath.Join(dir, "three"))
		if got := as[entries](t, call(t, s, "list", nil)).paths(); !slices.Equal(got, []string{"a b", "c"}) {
			t.Errorf("list of two roots = %q", got)
		}
		call(t, s, "read", args{"path": "c/two"})

		c.set(filepath.Dir(dir)) // wider than the server's
		call(t, s, "read", args{"path": "three"})
		refused(t, s, "read", args{"path": filepath.Join(outside, "secret")})

		for _, none := range [][]string{{}, {outside}, {filepath.Join(dir, "three")}, {dir + "x"}} {
			c.set(none...)
			if got := refused(t, s, "list", nil); !strings.Contains(got, "none is a folder") {
				t.Errorf("list with the roots %q = %q", none, got)
			}
		}
		c.roots.Store(nil)
		if got := refused(t, s, "list", nil); !strings.Contains(got, "does not list its roots") {
			t.Errorf("list without an answer = %q", got)
		}
	})
}

func TestClientRootsChoice(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a/x": "", "b": ""})
	for _, tt := range []struct {
		choice  files.ClientRoots
		rev     mcp.Revision
		narrows bool
	}{
		{files.AlwaysClientRoots, mcp.V2026_07_28, true},
		{files.AlwaysClientRoots, mcp.V2024_11_05, true},
		{files.NoClientRoots, mcp.V2025_11_25, false},
		{files.LegacyClientRoots, mcp.V2026_07_28, false},
	} {
		var c rooted
		c.set(filepath.Join(dir, "a"))
		srv := newServer(t, files.Options{Roots: []string{dir}, ClientRoots: tt.choice})
		s := mcptest.Connect(t, srv, c.client(), tt.rev)
		got := as[entries](t, call(t, s, "list", nil)).paths()
		if narrowed := slices.Equal(got, []string{"x"}); narrowed != tt.narrows || (c.asked.Load() > 0) != tt.narrows {
			t.Errorf("%q with %s: list = %q, asked %d times", tt.choice, tt.rev, got, c.asked.Load())
		}
		// Completion of 2026-07-28 knows no questions, and so suggests nothing.
		res, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "file:///{+path}"}, "path", strings.TrimPrefix(uriOf(dir), "file:///")+"/b", nil)
		if err != nil || len(res.Values) == 1 == tt.narrows {
			t.Errorf("%q with %s: complete = %v, %v", tt.choice, tt.rev, res, err)
		}
		// A client that has none is not asked.
		s = mcptest.Connect(t, srv, newClient(), tt.rev)
		if got := as[entries](t, call(t, s, "list", nil)).paths(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%q with %s, without roots: list = %q", tt.choice, tt.rev, got)
		}
	}
	var c files.ClientRoots
	for _, text := range []string{"legacy", "always", "never"} {
		if err := c.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
		}
		if b, err := c.MarshalText(); string(b) != text || err != nil {
			t.Errorf("%q is written %q, %v", text, b, err)
		}
	}
	if err := c.UnmarshalText([]byte("sometimes")); err == nil {
		t.Error("sometimes is taken")
	}
}

// A link in a client's root may lead to another part of the server's root; it must not
// lead out of the client's.
func TestClientRootsKeepLinksIn(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"mine/x": "x", "other/secret": "secret"})
	link(t, filepath.Join("..", "other"), filepath.Join(dir, "mine", "out"))
	var c rooted
	c.set(filepath.Join(dir, "mine"))
	s := mcptest.Connect(t, newServer(t, files.Options{Roots: []string{dir}}), c.client(), mcp.V2025_11_25)
	if got := refused(t, s, "read", args{"path": "out/secret"}); strings.Contains(got, "secret\n") {
		t.Errorf("read = %q", got)
	}
	s = mcptest.Connect(t, newServer(t, files.Options{Roots: []string{dir}}), newClient(), mcp.V2025_11_25)
	call(t, s, "read", args{"path": "mine/out/secret"}) // it stays within the server's
}

func link(t testing.TB, old, name string) {
	t.Helper()
	if err := os.Symlink(old, name); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// Several roots are told apart by their names, also if their folders have the same.
func TestSeveralRoots(t *testing.T) {
	base := t.TempDir()
	put(t, base, map[string]string{"one/src/a": "1", "two/src/a": "2", "src-2/a": "3", "one/src/deep/b": "b"})
	s := connect(t, files.Options{Roots: []string{
		filepath.Join(base, "one", "src"), filepath.Join(base, "two", "src"), filepath.Join(base, "src-2"), filepath.Join(base, "one", "src", "deep"),
	}})
	roots := as[struct {
		Roots []struct{ Name, Folder, URI string }
	}](t, call(t, s, "roots", nil))
	var names []string
	for _, r := range roots.Roots {
		names = append(names, r.Name)
	}
	if want := []string{"src", "src-3", "src-2"}; !slices.Equal(names, want) {
		t.Fatalf("roots = %q, want %q", names, want)
	}
	for path, want := range map[string]string{"src/a": "1", "src-3/a": "2", "src-2/a": "3", "src/deep/b": "b", filepath.Join(base, "two", "src", "a"): "2"} {
		if got := call(t, s, "read", args{"path": path}).Text(); got != want {
			t.Errorf("read %s = %q, want %q", path, got, want)
		}
	}
	if got := as[entries](t, call(t, s, "list", nil)); !slices.Equal(got.paths(), []string{"src", "src-3", "src-2"}) || got.Total != 3 {
		t.Errorf("list = %+v", got)
	}
	if got := as[entries](t, call(t, s, "search", args{"glob": "a"})).paths(); !slices.Equal(got, []string{"src/a", "src-3/a", "src-2/a"}) {
		t.Errorf("search = %q", got)
	}
	want := ".\n├── src/\n│   ├── a\n│   └── deep/\n├── src-3/\n│   └── a\n└── src-2/\n    └── a\n"
	if got := call(t, s, "tree", args{"depth": 2}).Text(); got != want {
		t.Errorf("tree = %s, want %s", got, want)
	}
	if got := call(t, s, "tree", args{"depth": 1}).Text(); got != ".\n├── src/\n├── src-3/\n└── src-2/\n" {
		t.Errorf("tree of depth 1 = %s", got)
	}
	if got := call(t, s, "tree", args{"limit": 2}).Text(); !strings.Contains(got, "more entries") || strings.Count(got, "\n") != 4 {
		t.Errorf("tree of 2 = %s", got)
	}
	for _, path := range []string{"", ".", "a", "nosuch/a", "src/../..", "src/.."} {
		refused(t, s, "read", args{"path": path})
	}
}

// A root that is removed and made again is found again; a link in its place is not
// followed.
func TestRootComesBack(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "root")
	put(t, base, map[string]string{"root/a": "1", "elsewhere/a": "secret"})
	s := connect(t, files.Options{Roots: []string{dir}})
	call(t, s, "read", args{"path": "a"})
	if err := os.RemoveAll(dir); err != nil {
		t.Skipf("a folder in use cannot be removed here: %v", err)
	}
	refused(t, s, "read", args{"path": "a"})
	put(t, base, map[string]string{"root/a": "2"})
	if got := call(t, s, "read", args{"path": "a"}).Text(); got != "2" {
		t.Errorf("read = %q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(base, "elsewhere"), dir)
	if got := refused(t, s, "read", args{"path": "a"}); strings.Contains(got, "secret") {
		t.Errorf("read = %q", got)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"file": ""})
	if err := (files.Options{}).Check(); err != nil {
		t.Errorf("the working folder: %v", err)
	}
	for path, want := range map[string]string{"nosuch": "does not exist", "file": "is not a folder"} {
		o := files.Options{Roots: []string{dir, filepath.Join(dir, path)}}
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check of %s = %v, want %q", path, err, want)
		}
		srv := newServer(t, o)
		if _, err := srv.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a request with %s = %v, want %q", path, err, want)
		}
	}
}
