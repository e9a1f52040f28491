package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store/sqlite"
)

// Every revision gets the result. Where there are tasks, it outlives the server.
func TestTasks(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "tasks.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() }) // after the servers, which the test ends first
			first := newServer(db)
			s := mcptest.Connect(t, first, &mcp.Client{}, rev)
			task, err := s.StartTask(t.Context(), "render", Scene{"dawn", 2, 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			res, err := task.Wait(t.Context())
			if err != nil || res.Text() != "dawn is rendered" {
				t.Errorf("render = %v, %v", res, err)
			}
			if has := rev >= mcp.V2025_11_25; has != (task.ID != "") {
				t.Fatalf("the id of the task is %q", task.ID)
			} else if !has {
				return
			}
			if err := first.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			again := mcptest.Connect(t, newServer(db), &mcp.Client{}, rev)
			res, err = again.Task(task.ID).Wait(t.Context())
			if err != nil || res.Text() != "dawn is rendered" {
				t.Errorf("after a restart: %v, %v", res, err)
			}
		})
	}
}
