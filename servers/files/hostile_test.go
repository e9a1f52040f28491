package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/files"
)

// trap is a root with links that lead out of it and the file that they lead to.
func trap(t testing.TB) (dir, secret string) {
	base := t.TempDir()
	put(t, base, map[string]string{"root/in/file": "inside", "outside/secret": "SECRET", "root/plain": "plain"})
	dir, secret = filepath.Join(base, "root"), filepath.Join(base, "outside", "secret")
	link(t, secret, filepath.Join(dir, "file"))
	link(t, filepath.Dir(secret), filepath.Join(dir, "abs"))
	link(t, filepath.Join("..", "outside"), filepath.Join(dir, "rel"))
	link(t, "..", filepath.Join(dir, "up"))
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "in", filepath.Join(dir, "stays"))
	link(t, filepath.Join(base, "nosuch"), filepath.Join(dir, "dangling"))
	return dir, secret
}

// No tool follows a link out of a root, to read, to write or to list (RES-26-018).
func TestLinksThatLeadOut(t *testing.T) {
	dir, secret := trap(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	before := get(t, secret)
	outs := []string{"file", "abs/secret", "rel/secret", "up/outside/secret", "in/../rel/secret", "stays/../../outside/secret", "loop", "dangling"}
	for _, path := range outs {
		for tool, in := range map[string]args{
			"read":   {"path": path},
			"write":  {"path": path, "content": "x", "overwrite": true, "parents": true},
			"edit":   {"path": path, "edits": []args{{"old_text": "SECRET", "new_text": "x"}}},
			"list":   {"path": path},
			"tree":   {"path": path},
			"search": {"path": path, "text": "SECRET"},
		} {
			if got := refused(t, s, tool, in); strings.Contains(got, "SECRET\n") {
				t.Errorf("%s %s = %q", tool, path, got)
			}
		}
		refused(t, s, "move", args{"from": "plain", "to": path + "/x", "parents": true})
		if _, err := s.ReadResource(t.Context(), uriOf(filepath.Join(dir, path))); err == nil {
			t.Errorf("the resource of %s can be read", path)
		}
	}
	for _, path := range []string{"abs/x", "rel/x", "up/x", "abs/new/x"} {
		refused(t, s, "write", args{"path": path, "content": "x", "parents": true})
		refused(t, s, "move", args{"from": "plain", "to": path, "parents": true})
		refused(t, s, "move", args{"from": strings.Replace(path, "x", "secret", 1), "to": "y"})
	}
	if got := as[entries](t, call(t, s, "search", args{"text": "SECRET"})).paths(); len(got) != 0 {
		t.Errorf("search finds %q", got)
	}
	if got := call(t, s, "tree", args{"depth": 9}).Text(); strings.Contains(got, "secret") || !strings.Contains(got, "abs (link)") {
		t.Errorf("tree = %s", got)
	}
	if got := call(t, s, "info", args{"path": "file"}).Text(); !strings.Contains(got, `"type":"symlink"`) || strings.Contains(got, `"size"`) {
		t.Errorf("info = %s", got)
	}
	if get(t, secret) != before {
		t.Error("the file outside was changed")
	}
	if left, _ := os.ReadDir(filepath.Dir(secret)); len(left) != 1 {
		t.Errorf("outside there is now %v", left)
	}
	// A link that stays within is followed, but not replaced.
	if got := call(t, s, "read", args{"path": "stays/file"}).Text(); got != "inside" {
		t.Errorf("read = %q", got)
	}
	call(t, s, "write", args{"path": "stays/new", "content": "new"})
	if get(t, dir, "in", "new") != "new" {
		t.Error("a file was not written by way of a link that stays within")
	}
	link(t, filepath.Join("in", "file"), filepath.Join(dir, "near"))
	if got := refused(t, s, "write", args{"path": "near", "content": "x", "overwrite": true}); !strings.Contains(got, `link to "in/file"`) {
		t.Errorf("write of a link = %q", got)
	}
	// A link is moved as what it is.
	call(t, s, "move", args{"from": "file", "to": "in/link"})
	if to, err := os.Readlink(filepath.Join(dir, "in", "link")); to != secret || err != nil || get(t, secret) != before {
		t.Errorf("the link that was moved leads to %q, %v", to, err)
	}
}

// A folder that is swapped for a link and back, as fast as can be, is never a way out.
func TestFolderSwappedForLink(t *testing.T) {
	base := t.TempDir()
	put(t, base, map[string]string{"root/d/secret": "inside", "outside/secret": "SECRET"})
	dir := filepath.Join(base, "root")
	real, door := filepath.Join(dir, "d"), filepath.Join(dir, "l")
	link(t, filepath.Join(base, "outside"), door)
	s := connect(t, files.Options{Roots: []string{dir}})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		aside := filepath.Join(dir, "aside")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(real, aside)
			os.Rename(door, real)
			os.Rename(real, door)
			os.Rename(aside, real)
		}
	})
	defer func() { close(stop); wg.Wait() }()
	deadline := time.Now().Add(300 * time.Millisecond)
	reads, seen := 0, 0
	for time.Now().Before(deadline) {
		for _, in := range []struct {
			tool string
			args args
		}{
			{"read", args{"path": "d/secret"}},
			{"read_many", args{"paths": []string{"d/secret"}}},
			{"search", args{"text": "S", "path": "d"}},
			{"write", args{"path": "d/secret", "content": "inside", "overwrite": true}},
		} {
			res, err := s.CallTool(t.Context(), in.tool, in.args)
			if err != nil {
				t.Fatal(err)
			}
			reads++
			if strings.Contains(res.Text(), "inside") {
				seen++
			}
			if strings.Contains(res.Text(), "SECRET") {
				t.Fatalf("%s got out: %q", in.tool, res.Text())
			}
		}
	}
	if get(t, base, "outside", "secret") != "SECRET" {
		t.Error("the file outside was changed")
	}
	t.Logf("%d of %d calls found the folder", seen, reads)
}

// A call ends when its time is up. Searches and trees answer with what they have.
func TestTimeout(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}, Timeout: time.Nanosecond})
	for tool, in := range map[string]args{"search": {"text": "x"}, "tree": {}} {
		if got := call(t, s, tool, in).Text(); !strings.Contains(got, "stopped after 1ns") {
			t.Errorf("%s = %q", tool, got)
		}
	}
	for tool, in := range map[string]args{"read": {"path": "README.md"}, "list": {}, "read_many": {"paths": []string{"README.md"}}} {
		if got := refused(t, s, tool, in); !strings.Contains(got, "stopped after 1ns") {
			t.Errorf("%s = %q", tool, got)
		}
	}
	s = connect(t, files.Options{Roots: []string{dir}, Timeout: -1})
	call(t, s, "tree", nil)
}

// Two edits at once are both done.
func TestEditsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"f": strings.Repeat("0\n", 20)})
	srv := newServer(t, files.Options{Roots: []string{dir}})
	var wg sync.WaitGroup
	for range 4 {
		s := mcptest.Connect(t, srv, newClient(), mcp.V2026_07_28)
		wg.Go(func() {
			for range 5 {
				if _, err := s.CallTool(t.Context(), "edit", args{"path": "f", "edits": []args{{"old_text": "\n", "new_text": "1\n", "replace_all": true}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := get(t, dir, "f"); got != strings.Repeat("0"+strings.Repeat("1", 20)+"\n", 20) {
		t.Errorf("after 20 edits the file begins with %.60q", got)
	}
}

// However many calls there are at once, all end, and few work at a time.
func TestManyCalls(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for _, tool := range []string{"tree", "list"} {
				if res, err := s.CallTool(t.Context(), tool, nil); err != nil || res.IsError {
					t.Errorf("%s = %v, %v", tool, res, err)
				}
			}
		})
	}
	wg.Wait()
}
