package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/store/sqlite"
)

var _ store.Tasks = (*sqlite.Tasks)(nil)

func record(id, owner, data string, ttl time.Duration) store.Task {
	return store.Task{ID: id, Owner: owner, Expires: time.Now().Add(ttl), Data: []byte(data)}
}

func put(t *testing.T, v *sqlite.Tasks, r store.Task) {
	t.Helper()
	if err := v.PutTask(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, v *sqlite.Tasks, owner, after string, limit int) string {
	t.Helper()
	tasks, err := v.ListTasks(t.Context(), owner, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range tasks {
		out = append(out, r.ID+string(r.Data))
	}
	return strings.Join(out, " ")
}

func TestTasksAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path)
	v := s.Tasks()
	for _, id := range []string{"c", "a", "b"} {
		put(t, v, record(id, "ada", `{}`, time.Hour))
	}
	put(t, v, record("d", "", `{}`, time.Hour))
	put(t, v, record("a", "ada", `{"n":1}`, time.Hour))
	put(t, v, record("old", "ada", `{}`, -time.Second))
	if got := listed(t, v, "ada", "", 2); got != `a{"n":1} b{}` {
		t.Errorf("first page = %s", got)
	}
	if got := listed(t, v, "ada", "b", 2); got != `c{}` {
		t.Errorf("second page = %s", got)
	}
	if got := listed(t, v, "", "", 9); got != `d{}` {
		t.Errorf("tasks of nobody = %s", got)
	}
	for _, id := range []string{"old", "never"} {
		if r, ok, err := v.GetTask(t.Context(), id); ok || err != nil {
			t.Errorf("GetTask(%q) = %v, %v, %v", id, r, ok, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Each method returns an error for a closed database, and none hangs.
	for what, err := range map[string]error{
		"PutTask":   v.PutTask(t.Context(), record("e", "ada", `{}`, time.Hour)),
		"GetTask":   func() error { _, _, err := v.GetTask(t.Context(), "a"); return err }(),
		"ListTasks": func() error { _, err := v.ListTasks(t.Context(), "ada", "", 9); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "x.db") {
			t.Errorf("%s of a closed store = %v", what, err)
		}
	}
	r, ok, err := open(t, path).Tasks().GetTask(t.Context(), "a")
	if err != nil || !ok || r.Owner != "ada" || string(r.Data) != `{"n":1}` || time.Until(r.Expires) < time.Minute {
		t.Errorf("after a restart = %+v, %v, %v", r, ok, err)
	}
}

func TestTasksAreBounded(t *testing.T) {
	v := open(t, filepath.Join(t.TempDir(), "x.db")).Tasks()
	v.MaxPerOwner, v.MaxBytes = 3, 1000
	for i := range 3 {
		put(t, v, record(fmt.Sprint(i), "ada", `{}`, time.Hour))
	}
	if err := v.PutTask(t.Context(), record("3", "ada", `{}`, time.Hour)); err == nil || !strings.Contains(err.Error(), "MaxPerOwner") {
		t.Errorf("a fourth task = %v", err)
	}
	done := record("2", "ada", `{}`, time.Hour)
	done.Over = true
	put(t, v, done)
	put(t, v, record("3", "ada", `{}`, time.Hour)) // in place of the one that is over
	if got := listed(t, v, "ada", "", 9); got != `0{} 1{} 3{}` {
		t.Errorf("kept %s", got)
	}
	put(t, v, record("4", "bob", strings.Repeat("x", 900), time.Hour)) // of somebody else
	put(t, v, record("0", "ada", `{"n":1}`, time.Hour))                // known already
	if err := v.PutTask(t.Context(), record("0", "ada", strings.Repeat("x", 200), time.Hour)); err == nil || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("too many bytes = %v", err)
	}
	put(t, v, record("4", "bob", strings.Repeat("x", 700), time.Hour))
	put(t, v, record("0", "ada", strings.Repeat("x", 200), time.Hour)) // there is room again
}

// A disk that is full is an error of the call that needs room, and what was kept before
// is still there.
func TestTasksOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path)
	put(t, s.Tasks(), record("a", "ada", `{}`, time.Hour))
	sqlite.Fill(t, s)
	big := strings.Repeat("x", 1<<20)
	if err := s.Tasks().PutTask(t.Context(), record("b", "ada", big, time.Hour)); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("PutTask = %v, want an error that says full", err)
	}
	if _, ok, err := s.Tasks().GetTask(t.Context(), "a"); !ok || err != nil {
		t.Errorf("GetTask = %v, %v", ok, err)
	}
	if _, ok, err := s.Tasks().GetTask(t.Context(), "b"); ok || err != nil {
		t.Errorf("a task that was not kept = %v, %v", ok, err)
	}
}

func TestTasksOfManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	stores := []*sqlite.Store{open(t, path), open(t, path)} // as two processes would
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			v := stores[i%2].Tasks()
			for n := range 10 {
				if err := v.PutTask(context.Background(), record(fmt.Sprintf("%d-%d", i, n), fmt.Sprint(i), `{}`, time.Hour)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		if tasks, err := stores[0].Tasks().ListTasks(t.Context(), fmt.Sprint(i), "", 99); len(tasks) != 10 || err != nil {
			t.Errorf("%d tasks of %d, %v", len(tasks), i, err)
		}
	}
}

// worker is a server whose tasks are kept in a database.
func worker(s *sqlite.Store, block <-chan struct{}) *mcp.Server {
	srv := &mcp.Server{Name: "worker", Tasks: mcp.TaskConfig{Store: s.Tasks(), Poll: 10 * time.Millisecond}}
	mcp.AddTool(srv, mcp.Tool{Name: "quick", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) { return "quick", nil })
	mcp.AddTool(srv, mcp.Tool{Name: "slow", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) {
			<-block
			return "slow", nil
		})
	return srv
}

// Results survive a restart of the server, and what was at work then has failed, with the
// reason. XTASK-26-010: a handle is given out when the task is in the store.
func TestTasksSurviveARestart(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			path := filepath.Join(t.TempDir(), "x.db")
			block := make(chan struct{})
			before, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			session := mcptest.Connect(t, worker(before, block), &mcp.Client{Name: "c"}, rev)
			quick, err := session.StartTask(t.Context(), "quick", nil)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := quick.Wait(t.Context()); err != nil || res.Text() != "quick" {
				t.Fatalf("before the restart: %v, %v", res, err)
			}
			slow, err := session.StartTask(t.Context(), "slow", nil)
			if err != nil {
				t.Fatal(err)
			}
			// The process dies: nothing of it writes to the database any more.
			before.Close()
			if _, err := session.StartTask(t.Context(), "quick", nil); err == nil {
				t.Error("a task was made that could not be kept")
			}
			session.Close()
			close(block)

			after := open(t, path)
			session = mcptest.Connect(t, worker(after, nil), &mcp.Client{Name: "c"}, rev)
			if res, err := session.Task(quick.ID).Wait(t.Context()); err != nil || res.Text() != "quick" {
				t.Errorf("after the restart: %v, %v", res, err)
			}
			info, err := session.Task(slow.ID).Info(t.Context())
			if err != nil || info.Status != "failed" || !strings.Contains(info.Message, "interrupted") {
				t.Errorf("what was at work is %+v, %v", info, err)
			}
			var rpc *mcp.Error
			if res, err := session.Task(slow.ID).Wait(t.Context()); !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "interrupted") {
				t.Errorf("its result is %v, %v", res, err)
			}
		})
	}
}
