package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
)

// followed collects the calls that Follow yields, "!" for a log that was replaced, until it has want.
func followed(t *testing.T, path string, after int64) (until func(want string), stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	seen := make(chan string, 100) // so that Follow does not keep the file open
	go func() {
		defer close(seen)
		for e, err := range audit.Follow(ctx, path, after) {
			text := "!"
			if err == nil {
				text = e.Call
			} else if !errors.Is(err, audit.ErrReplaced) {
				text = err.Error()
			}
			seen <- text
		}
	}()
	until = func(want string) {
		t.Helper()
		got := ""
		for text := range seen {
			if got += text; got == want {
				return
			}
			if len(got) >= len(want) {
				break
			}
		}
		t.Fatalf("Follow yields %q, want %q", got, want)
	}
	return until, func() {
		cancel()
		for range seen {
		}
	}
}

// logged writes calls to a log and closes it.
func logged(t *testing.T, path string, calls ...string) {
	t.Helper()
	l := open(t, path, &audit.Options{Sync: audit.SyncNone})
	for _, call := range calls {
		write(t, l, audit.Entry{Kind: audit.CallEnd, Call: call})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Follow says that the log was replaced, and goes on with the lines of the new one, whose numbers
// begin again.
func TestFollowReplaced(t *testing.T) {
	for _, by := range []string{"another file", "its beginning", "a longer file"} {
		t.Run(by, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			logged(t, path, "a", "b", "c")
			until, stop := followed(t, path, 0)
			defer stop()
			until("abc")
			switch by {
			case "another file":
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				logged(t, path, "d")
				until("!d")
			case "its beginning":
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				lines := strings.SplitAfter(string(data), "\n")
				if err := os.Truncate(path, int64(len(lines[0]+lines[1]))); err != nil {
					t.Fatal(err)
				}
				until("!a")
				logged(t, path, "e")
				until("e")
			case "a longer file":
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				calls := strings.Split("fghijklmnopqrstuvw", "")
				logged(t, path, calls...)
				until("!" + strings.Join(calls, ""))
			}
			logged(t, path, "z")
			until("z")
		})
	}
}

// A log that has no line of the number from which to follow is another one than before.
func TestFollowFromAMissingLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	until, stop := followed(t, path, 100)
	defer stop()
	logged(t, path, "a", "b")
	until("!ab")
	logged(t, path, "c")
	until("c")
}

// Rotated files of a replaced log that are still there do not come again.
func TestFollowReplacedAfterRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone, MaxBytes: 900})
	want := ""
	for i := range 9 {
		want += fmt.Sprint(i)
		write(t, l, audit.Entry{Kind: audit.CallEnd, Call: fmt.Sprint(i)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := audit.Files(path)
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	until, stop := followed(t, path, 0)
	defer stop()
	until(want)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	logged(t, path, "x", "y", "z") // as many lines as were in the file, or more
	until("!xyz")
}
