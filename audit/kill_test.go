package audit_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const childVariable = "PATCHBAY_AUDIT_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	mcptest.Main(m)
}

// child writes begins with four goroutines until it is killed, and prints each call after its line
// was written.
func child(dir string) error {
	key, err := audit.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	l, err := audit.Open(filepath.Join(dir, "audit.jsonl"), &audit.Options{Key: key, MaxBytes: 30_000, Interval: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for g := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				call := fmt.Sprintf("%d.%d.%d", os.Getpid(), g, i)
				if err := l.Write(context.Background(), audit.Entry{Kind: audit.CallBegin, Call: call, Tool: "buy"}); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				l.Add(audit.Entry{Kind: audit.CallEnd, Call: call, Outcome: "ok"})
				mu.Lock()
				fmt.Println(call)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return nil
}

// A process is killed at random moments, again and again, and goes on with its log: no begin that
// was reported is missing, and the chain is whole but for a fragment that was removed.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	rounds := long.Or(200, 50)
	for round := 0; round < rounds; round++ {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childVariable+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			cmd.Wait()
			t.Fatalf("round %d: the child wrote nothing: %v", round, lines.Err())
		}
		told[lines.Text()] = true
		kill := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { cmd.Process.Kill() })
		for lines.Scan() {
			told[lines.Text()] = true
		}
		cmd.Wait()
		kill.Stop()
		if round%20 != 19 && round != rounds-1 {
			continue
		}
		if _, err := os.Stat(path); err != nil { // killed after the file was renamed, and before there is another one: the next start goes on
			rounds++
			continue
		}
		key, err := audit.LoadPublicKey(filepath.Join(dir, "key.pub"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, path, key, told, round)
	}
	t.Logf("%d begins in %d rounds", len(told), rounds)
}

func check(t *testing.T, path string, key ed25519.PublicKey, told map[string]bool, kills int) {
	t.Helper()
	files, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	r := verify(t, &audit.VerifyOptions{Key: key}, files...)
	for _, f := range r.Faults {
		if f.Kind != audit.Cut || f.File != path {
			t.Errorf("after the kill: %v", f)
		}
	}
	for _, n := range r.Notes {
		switch n.Kind {
		case audit.Killed:
			kills--
		case audit.Recovered:
		default:
			t.Errorf("after the kill: %v", n)
		}
	}
	if kills != 0 { // the last one has no start after it
		t.Errorf("%d kills have no note", kills)
	}
	have := map[string]bool{}
	for e, err := range audit.Read(files...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == audit.CallBegin {
			have[e.Call] = true
		}
	}
	for call := range told {
		if !have[call] {
			t.Errorf("the begin of %s is missing", call)
		}
	}
}
