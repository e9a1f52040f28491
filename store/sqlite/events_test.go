package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/store/sqlite"
)

var _ store.Events = (*sqlite.Events)(nil)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func after(t *testing.T, v *sqlite.Events, stream string, position int64) string {
	t.Helper()
	events, err := v.After(t.Context(), stream, position)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		out = append(out, string(e))
	}
	return strings.Join(out, " ")
}

func TestEventsSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name%20#.db")
	s := open(t, path)
	for i := range 4 {
		for _, stream := range []string{"a", "b"} {
			if err := s.Events().Append(t.Context(), stream, int64(i+1), fmt.Appendf(nil, "%s%d", stream, i+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Events().Append(t.Context(), "a", 4, nil); err == nil {
		t.Error("a position was used twice")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events().After(t.Context(), "a", 0); err == nil || !strings.Contains(err.Error(), "odd name") {
		t.Errorf("After of a closed store = %v", err)
	}
	if err := s.Events().Append(t.Context(), "a", 5, nil); err == nil {
		t.Error("Append to a closed store succeeded")
	}
	s = open(t, path)
	if got := after(t, s.Events(), "a", 2); got != "a3 a4" {
		t.Errorf("after a restart = %q", got)
	}
	if err := s.Events().Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if a, b := after(t, s.Events(), "a", 0), after(t, s.Events(), "b", 0); a != "" || b != "b1 b2 b3 b4" {
		t.Errorf("after Forget: %q and %q", a, b)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode = %v, %v; others can read it", info.Mode(), err)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	v := open(t, filepath.Join(t.TempDir(), "x.db")).Events()
	v.MaxBytes = 10_000
	for i := range int64(200) {
		if err := v.Append(t.Context(), "s", i+1, make([]byte, 400)); err != nil {
			t.Fatal(err)
		}
	}
	events, err := v.After(t.Context(), "s", 0)
	if err != nil || len(events) < 10 || len(events) > 20 {
		t.Errorf("%d events of 500 bytes are kept within 10,000 bytes, %v", len(events), err)
	}
	if newest, _ := v.After(t.Context(), "s", 199); len(newest) != 1 {
		t.Error("the newest was dropped")
	}
	v.MaxAge = time.Nanosecond
	if got := after(t, v, "s", 0); got != "" {
		t.Errorf("events that are too old are given out")
	}
}

func TestEventsOfManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	stores := []*sqlite.Store{open(t, path), open(t, path)} // as two processes would
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			v, stream := stores[i%2].Events(), fmt.Sprint(i)
			for p := range int64(20) {
				if err := v.Append(context.Background(), stream, p+1, []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		if got := after(t, stores[0].Events(), fmt.Sprint(i), 0); len(got) != 39 {
			t.Errorf("stream %d has %q", i, got)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, dir, filepath.Join(dir, "no", "folder.db")} {
		if s, err := sqlite.Open(path); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("Open(%q) = %v, %v", path, s, err)
		}
	}
}
