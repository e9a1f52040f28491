package files

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// listen subscribes to resources and returns their notifications, and a function that
// ends the subscription.
func listen(t testing.TB, s *mcp.Session, uris ...string) (<-chan string, func()) {
	t.Helper()
	events := make(chan string, 1000)
	ready := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range s.Watch(ctx, uris...) {
			switch {
			case err != nil:
				select {
				case ready <- err:
				default:
					t.Errorf("watch: %v", err)
				}
				return
			case e.Method == "notifications/subscriptions/acknowledged":
				ready <- nil
			case e.URI != "":
				events <- e.URI
			}
		}
	})
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	if err := <-ready; err != nil {
		t.Fatalf("watch: %v", err)
	}
	return events, stop
}

// told waits for a notification of uri.
func told(t testing.TB, events <-chan string, uri, what string) {
	t.Helper()
	select {
	case got := <-events:
		if got != uri {
			t.Fatalf("%s: told of %q, want %q", what, got, uri)
		}
	case <-time.After(3 * patrol):
		t.Fatalf("%s: told of nothing", what)
	}
}

// quiet drops notifications of an earlier change, which may come in two parts.
func quiet(events <-chan string) {
	for {
		select {
		case <-events:
		case <-time.After(4 * settle):
			return
		}
	}
}

// serving returns a server that closes its folders with the test: Windows does not remove open ones.
func serving(t testing.TB, o Options) *server {
	s := newServer(o)
	t.Cleanup(func() { s.mcp.Shutdown(context.Background()) })
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A subscription reports that a file is written, replaced, removed and created again,
// and of no other. It releases its resources at its end.
func TestWatch(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "a b.txt"), filepath.Join(dir, "other")
			write(t, path, "one")
			srv := serving(t, Options{Roots: []string{dir}})
			s := mcptest.Connect(t, srv.mcp, &mcp.Client{Name: "c", Version: "1"}, rev)
			uri := host.toURI(filepath.ToSlash(path))
			events, stop := listen(t, s, uri)

			write(t, other, "not this one")
			write(t, path, "two")
			told(t, events, uri, "write")
			quiet(events)

			write(t, other, "new")
			if err := os.Rename(other, path); err != nil {
				t.Fatal(err)
			}
			told(t, events, uri, "replace by rename")
			quiet(events)

			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			told(t, events, uri, "remove")
			quiet(events)
			write(t, path, "again")
			told(t, events, uri, "make again")
			quiet(events)

			if _, err := s.CallTool(t.Context(), "edit", map[string]any{"path": "a b.txt", "edits": []map[string]any{{"old_text": "again", "new_text": "edited"}}}); err != nil {
				t.Fatal(err)
			}
			told(t, events, uri, "edit")
			quiet(events)
			select {
			case e := <-events:
				t.Errorf("told of %q, though nothing happened", e)
			default:
			}
			stop()
			idle(t, srv)
		})
	}
}

// idle waits until nothing is watched any more.
func idle(t testing.TB, s *server) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		s.watcher.mu.Lock()
		left, running := len(s.watcher.by), s.watcher.running != nil
		s.watcher.mu.Unlock()
		if left == 0 && !running {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d resources are still watched", left)
		case <-time.After(time.Millisecond):
		}
	}
}

// A client that goes away takes its subscriptions with it, on every wire.
func TestWatchEndsWithTheClient(t *testing.T) {
	dir := t.TempDir()
	var srv *server
	mcptest.Every(t, func() *mcp.Server {
		srv = serving(t, Options{Roots: []string{dir}})
		return srv.mcp
	}, func() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }, func(t *testing.T, s *mcp.Session) {
		uri := host.toURI(filepath.ToSlash(filepath.Join(dir, "x")))
		_, stop := listen(t, s, uri, uri)
		srv.watcher.mu.Lock()
		n := len(srv.watcher.by)
		srv.watcher.mu.Unlock()
		if n != 1 {
			t.Fatalf("%d resources are watched, want 1", n)
		}
		go stop() // the watch of a session that is closed ends by itself too
		s.Close()
		idle(t, srv)
	})
}

// A file outside the roots is not honoured: an older client gets an error, a newer one
// an acknowledgement that leaves it out (SUB-26-004).
func TestWatchOutside(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "")
	in, out := host.toURI(filepath.ToSlash(filepath.Join(dir, "in"))), host.toURI(filepath.ToSlash(filepath.Join(filepath.Dir(dir), "out")))
	srv := serving(t, Options{Roots: []string{dir}})
	client := &mcp.Client{Name: "c", Version: "1"}
	s := mcptest.Connect(t, srv.mcp, client, mcp.V2025_11_25)
	for _, err := range s.Watch(t.Context(), out) {
		if err == nil {
			t.Error("an older client subscribes to what is outside")
		}
		break
	}
	s = mcptest.Connect(t, srv.mcp, client, mcp.V2026_07_28)
	for e, err := range s.Watch(t.Context(), in, out, "https://example.com/") {
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"notifications":{"`; len(e.Params) < len(want) || !slices.Equal(honoured(t, e), []string{in}) {
			t.Errorf("acknowledged is %s, want %q", e.Params, in)
		}
		break
	}
	idle(t, srv)
}

func honoured(t testing.TB, e mcp.Event) []string {
	t.Helper()
	return subscribed(&mcp.Request{Params: e.Params})
}

// A folder that goes and comes back is watched again, and so is a file in a folder that
// did not exist.
func TestWatchFolderComesBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "file")
	srv := serving(t, Options{Roots: []string{dir}})
	srv.watcher.patrol = 2 * settle
	s := mcptest.Connect(t, srv.mcp, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
	uri := host.toURI(filepath.ToSlash(path))
	events, _ := listen(t, s, uri)
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, path, "one")
	told(t, events, uri, "folder made") // by a patrol
	quiet(events)
	write(t, path, "two")
	told(t, events, uri, "write in the new folder")
	quiet(events)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	told(t, events, uri, "folder removed")
}

func TestWatchIsBounded(t *testing.T) {
	dir := t.TempDir()
	srv := serving(t, Options{Roots: []string{dir}})
	var err error
	if srv.roots, err = openRoots([]string{dir}); err != nil {
		t.Fatal(err)
	}
	defer closeRoots(srv.roots)
	var ends []func()
	uri := func(i int) string {
		return host.toURI(filepath.ToSlash(filepath.Join(dir, string(rune('a'+i%26)), string(rune(0x4E00+i)))))
	}
	for i := range maxWatched {
		end, ok := srv.watcher.add(uri(i))
		if !ok {
			t.Fatalf("resource %d is not watched", i)
		}
		ends = append(ends, end)
	}
	if _, ok := srv.watcher.add(uri(maxWatched)); ok {
		t.Error("one too many is watched")
	}
	if end, ok := srv.watcher.add(uri(0)); ok {
		ends = append(ends, end, end)
	} else {
		t.Error("what is watched already cannot be watched by another")
	}
	for _, end := range ends {
		end()
	}
	idle(t, srv)
}
