package follow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Another folder can be watched while more notifications wait than a watcher keeps.
func TestManyNotifications(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	w := Start(filepath.Join(dir, "x"))
	defer w.Close()
	w.Also()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	added := make(chan struct{})
	go func() {
		w.Also(filepath.Join(other, "x"))
		close(added)
	}()
	select {
	case <-added:
	case <-time.After(20 * time.Second):
		t.Fatal("Also has not returned within 20 s")
	}
	if !w.Wait(t.Context(), 20*time.Second) {
		t.Error("Wait noticed none of the notifications")
	}
}

// A change between a look and the moment from which changes are heard is not missed: neither in the
// folder of the file nor in one that the look names.
func TestChangedWhileItBegins(t *testing.T) {
	for _, tt := range []struct{ name, file string }{{"its own", "file"}, {"another", filepath.Join("sub", "file")}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, tt.file)
			ctx, cancel := context.WithCancel(t.Context())
			began, seen := time.Now(), ""
			File(ctx, filepath.Join(dir, "file"), func() Look {
				text, _ := os.ReadFile(path)
				if seen = string(text); seen == "new" {
					cancel()
				} else if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
					t.Error(err)
					cancel()
				}
				return Look{Also: []string{path}}
			}, func(string) {}, func() {})
			if took := time.Since(began); seen != "new" || took >= LookAgain {
				t.Errorf("the change was seen as %q after %v, want it before %v", seen, took, LookAgain)
			}
		})
	}
}

// A file that is written beside the followed one, such as a log, causes no look; a change of the
// followed one does, written in place or replaced.
func TestFileBeside(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "x.log")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "a")
	write(log, "")
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		File(ctx, file, func() Look {
			text, _ := os.ReadFile(file)
			looks <- string(text)
			return Look{}
		}, func(string) {}, func() {})
	}()
	defer func() { cancel(); <-done }()
	await := func(want string) {
		t.Helper()
		late := time.After(9 * time.Second) // without notifications it takes 10
		for {
			select {
			case got := <-looks:
				if got == want {
					return
				}
			case <-late:
				t.Fatalf("there is no look at %q", want)
			}
		}
	}
	await("a")
	await("a") // the folder is watched now
	quiet := false
	for range 10 { // a notification that the system loses causes a look too, but not each time
		for len(looks) > 0 {
			<-looks
		}
		for range 30 {
			write(log, "line")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * settleTime)
		if quiet = len(looks) == 0; quiet {
			break
		}
	}
	if !quiet {
		t.Error("a log causes looks")
	}
	write(file, "b")
	await("b")
	if err := ownfile.Replace(file, []byte("c")); err != nil {
		t.Fatal(err)
	}
	await("c")
}

// A fault is reported although another file of the folder is replaced all the time, as the head of an audit
// log is; one of a file that becomes complete is not.
func TestFaultBesideReplacedFile(t *testing.T) {
	dir := t.TempDir()
	file, head := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "x.head")
	write := func(path, text string) {
		t.Helper()
		if err := ownfile.Replace(path, []byte(text)); err != nil { // it waits where a file that is being read can't be replaced
			t.Fatal(err)
		}
	}
	write(file, "half")
	ctx, cancel := context.WithCancel(t.Context())
	faults, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		File(ctx, file, func() Look {
			text, _ := os.ReadFile(file)
			if string(text) == "right" {
				return Look{}
			}
			return Look{Fault: string(text), Wrong: true}
		}, func(fault string) { faults <- fault }, func() { faults <- "" })
	}()
	defer func() { cancel(); <-done }()
	write(file, "wrong")
	await := func(want string) {
		t.Helper()
		late := time.After(20 * time.Second)
		for {
			select {
			case got := <-faults:
				if got != want {
					t.Fatalf("the fault is %q, want %q", got, want)
				}
				return
			case <-time.After(20 * time.Millisecond):
				write(head, "head")
			case <-late:
				t.Fatalf("the fault %q is not reported", want)
			}
		}
	}
	await("wrong")
	write(file, "right")
	await("")
}

// A folder that is removed and made again is followed within seconds, with what is written to it later.
func TestFolderComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	path := filepath.Join(dir, "file")
	put := func(text string) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(done)
		File(ctx, path, func() Look {
			text, _ := os.ReadFile(path)
			seen <- string(text)
			return Look{}
		}, func(string) {}, func() {})
	}()
	await := func(want string) time.Duration {
		t.Helper()
		began, late := time.Now(), time.After(30*time.Second)
		for {
			select {
			case got := <-seen:
				if got == want {
					return time.Since(began)
				}
			case <-late:
				t.Fatalf("%q is not seen", want)
			}
		}
	}
	await("first")
	for _, text := range []string{"second", "third"} {
		for late := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // on Windows not while somebody looks at it
			if err := os.RemoveAll(dir); err == nil {
				break
			} else if time.Now().After(late) {
				t.Fatal(err)
			}
		}
		await("")
		time.Sleep(3 * folderTime / 2) // the folder stays away
		put(text)
		if took := await(text); took > LookAgain/2 {
			t.Errorf("%q is seen after %v", text, took)
		}
	}
	cancel()
	<-done
}
