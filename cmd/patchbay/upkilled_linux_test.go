package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// up is killed at random moments while callers call, and goes on with its audit log each time: each call that
// the server has executed has its begin in the log, and the log is whole but for fragments, which are noted.
func TestUpKilled(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	ledger, log := filepath.Join(dir, "ledger.jsonl"), filepath.Join(dir, "audit.jsonl")
	server := map[string]any{"books": map[string]any{"url": weekWeb(t, weekServer("books", "1", ledger, mcp.V2026_07_28))}}
	file := filepath.Join(dir, "mcp.json")
	writeConfig(t, file, server)
	rounds := long.Or(200, 50)
	var number atomic.Int64
	for round := range rounds {
		r := beginUp(t, "up", "--http", "127.0.0.1:0", "--config", file, "--audit", log)
		answered := make(chan struct{})
		var once sync.Once
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				s, err := (&mcp.Client{Name: "desk", Revisions: []mcp.Revision{mcp.V2026_07_28}}).Dial(t.Context(), r.url)
				if err != nil {
					return
				}
				defer s.Close()
				for {
					if _, err := s.CallTool(t.Context(), "books_note", errand{ID: fmt.Sprint(number.Add(1))}); err != nil {
						return
					}
					once.Do(func() { close(answered) })
				}
			})
		}
		select {
		case <-answered:
		case <-time.After(20 * time.Second):
			t.Fatalf("round %d: no call has an answer: %s", round, r.stderr)
		}
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { r.cmd.Process.Kill() })
		r.cmd.Wait()
		callers.Wait()
	}
	begun := map[string]bool{}
	files, err := audit.Files(log)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for e, err := range audit.Read(files...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == audit.CallBegin {
			begun[e.Arguments.Digest] = true
		}
	}
	executed := deeds(t, ledger)
	for _, d := range executed {
		arguments, err := json.Marshal(errand{ID: d.ID})
		if err != nil {
			t.Fatal(err)
		}
		if !begun[audit.Digest(arguments)] {
			t.Errorf("call %s was executed, and its begin is missing", d.ID)
		}
	}
	if len(executed) < rounds {
		t.Errorf("%d calls were executed in %d rounds", len(executed), rounds)
	}
	report, err := audit.Verify(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Faults {
		if f.Kind != audit.Cut || f.File != log { // the fragment of the last process
			t.Errorf("the log: %v", f)
		}
	}
	t.Logf("%d calls executed, %d begun", len(executed), len(begun))
}
