package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// worker is a node with a server that has tasks, and its address.
type worker struct {
	*cluster.Node
	url string
}

// workers returns nodes whose tools run as tasks, until their functions hang is closed.
func workers(t *testing.T, n int, hang chan struct{}) (list []worker) {
	m := new(cluster.Memory)
	for i := range n {
		w := newMember(t, m, i, func(n *cluster.Node, srv *mcp.Server) {
			srv.Tasks.Poll = 10 * time.Millisecond
			must := mcp.ToolExecution{TaskSupport: mcp.TaskRequired}
			mcp.AddTool(srv, mcp.Tool{Name: "make", Execution: must}, func(_ context.Context, in struct {
				Bytes int `json:"bytes"`
			}) (string, error) {
				return fmt.Sprint("made ", strings.Repeat("x", in.Bytes)), nil
			})
			mcp.AddTool(srv, mcp.Tool{Name: "hang", Execution: must}, func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-hang:
				case <-ctx.Done():
				}
				return "over", context.Cause(ctx)
			})
			srv.HTTP.Sessions, srv.Tasks.Store = n.Sessions("/"), n.Tasks("/")
		})
		list = append(list, worker{w.Node, w.web.URL})
	}
	return list
}

func (w worker) client(t *testing.T, user string, revisions ...mcp.Revision) *mcp.Session {
	t.Helper()
	s, err := (&mcp.Client{Name: "c", Revisions: revisions, Header: http.Header{"User": {user}}}).Dial(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The result of a task is found when the node that ran it has ended. A task that was at work there has failed, as has one whose
// result was too large to be shared.
func TestTasksOutliveNodes(t *testing.T) {
	t.Parallel()
	nodes := workers(t, 2, make(chan struct{}))
	s := nodes[0].client(t, "ann")
	ids := map[string]string{}
	begin := func(what, tool string, bytes int) {
		args := map[string]any{"bytes": bytes}
		if tool == "hang" {
			args = nil
		}
		task, err := s.StartTask(t.Context(), tool, args)
		if err != nil {
			t.Fatal(err)
		}
		if ids[what] = task.ID; tool == "make" {
			if res, err := task.Wait(t.Context()); err != nil || len(res.Text()) != bytes+5 {
				t.Fatal(res, err)
			}
		}
	}
	begin("small", "make", 3)
	begin("large", "make", 600<<10)
	begin("working", "hang", 0)
	for what, id := range ids { // forwarded
		want := map[string]string{"working": "working"}[what]
		if info, err := nodes[1].client(t, "ann").Task(id).Info(t.Context()); err != nil || want != "" && info.Status != want {
			t.Errorf("%s, while its node lives: %+v, %v", what, info, err)
		}
	}
	nodes[0].Leave(t.Context())
	last := nodes[1].client(t, "ann")
	if res, err := last.Task(ids["small"]).Wait(t.Context()); err != nil || res.Text() != "made xxx" {
		t.Errorf("small: %v, %v", res, err)
	}
	for _, what := range []string{"large", "working"} {
		if res, err := last.Task(ids[what]).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%s: %v, %v", what, res, err)
		}
	}
	if _, err := nodes[1].client(t, "bob").Task(ids["small"]).Info(t.Context()); err == nil {
		t.Error("another principal finds the task")
	}
}

// Sessions of one principal at several nodes list its tasks, and those at work at another node have not failed.
func TestTasksAreListedAtEachNode(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	nodes := workers(t, 2, hang)
	rev := mcp.V2025_11_25
	one, two := nodes[0].client(t, "ann", rev), nodes[1].client(t, "ann", rev)
	task, err := one.StartTask(t.Context(), "hang", nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := func(s *mcp.Session) (all string) {
		t.Helper()
		for info, err := range s.Tasks(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all += info.ID + " " + info.Status + "\n"
		}
		return all
	}
	for range 2 {
		if got, want := listed(two), task.ID+" working\n"; got != want {
			t.Errorf("at the other node: %q, want %q", got, want)
		}
	}
	if err := two.Task(task.ID).Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), "at work at another node") {
		t.Errorf("cancelled at the other node: %v", err)
	}
	if got := listed(nodes[1].client(t, "bob", rev)); got != "" {
		t.Errorf("another principal has %q", got)
	}
	close(hang)
	if res, err := two.Task(task.ID).Wait(t.Context()); err != nil || res.Text() != "over" {
		t.Errorf("waited for at the other node: %v, %v", res, err)
	}
	if got, want := listed(two), task.ID+" completed\n"; got != want {
		t.Errorf("afterwards: %q, want %q", got, want)
	}
}

// A single node has at most 48 MiB of results in the State, and has room again when some have expired.
func TestTasksAreBounded(t *testing.T) { synctest.Test(t, tasksAreBounded) }

func tasksAreBounded(t *testing.T) {
	m := new(cluster.Memory)
	node := &cluster.Node{Name: "n", State: m, Bus: m, Handler: http.NotFoundHandler()}
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer node.Leave(context.Background())
	s := node.Tasks("/")
	data := json.RawMessage(`"` + strings.Repeat("x", 500_000) + `"`)
	put := func(i int, lives time.Duration, data json.RawMessage) error {
		return s.PutTask(t.Context(), store.Task{ID: fmt.Sprint(i), Owner: "ann", Expires: time.Now().Add(lives), Data: data})
	}
	const lives = 3 * time.Second
	n := 0
	for ; put(n, lives, data) == nil; n++ {
		if n > 110 {
			t.Fatal("no bound")
		}
	}
	if n < 90 {
		t.Errorf("only %d tasks of 0.5 MB", n)
	}
	if err := put(200, lives, json.RawMessage(`"working"`)); err != nil {
		t.Errorf("a task that begins: %v", err)
	}
	if list, err := node.Tasks("/other").ListTasks(t.Context(), "ann", "", 5); err != nil || len(list) != 0 {
		t.Errorf("at another path: %v, %v", list, err)
	}
	if err := put(0, lives, json.RawMessage(`"over"`)); err != nil {
		t.Errorf("a task that gets smaller: %v", err)
	}
	if err := put(n, lives, data); err != nil {
		t.Errorf("in its place: %v", err)
	}
	if list, err := s.ListTasks(t.Context(), "ann", "", 5); err != nil || len(list) != 5 || list[0].ID != "0" {
		t.Errorf("listed: %d, %v", len(list), err)
	}
	time.Sleep(lives)
	if err := put(n+1, time.Minute, data); err != nil {
		t.Errorf("when they have expired: %v", err)
	}
	if list, err := s.ListTasks(t.Context(), "ann", "", 5); err != nil || len(list) != 1 {
		t.Errorf("listed afterwards: %d, %v", len(list), err)
	}
}

// A node that was away for so long that another one has told that its task has failed says the same when the task ends.
func TestTaskThatEndsTooLate(t *testing.T) {
	t.Parallel()
	m, hang := new(cluster.Memory), make(chan struct{})
	var list []worker
	for i := range 2 {
		w := newMember(t, m, i, func(n *cluster.Node, srv *mcp.Server) {
			mcp.AddTool(srv, mcp.Tool{Name: "hang", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) {
				<-hang
				return "over", nil
			})
			srv.Shared = n.Share("/")
		})
		list = append(list, worker{w.Node, w.web.URL})
	}
	task, err := list[0].client(t, "ann", mcp.V2025_11_25).StartTask(t.Context(), "hang", nil)
	if err != nil {
		t.Fatal(err)
	}
	const lease = "lease.node.n0"
	state := func(of worker) string {
		t.Helper()
		info, err := of.client(t, "ann", mcp.V2025_11_25).Task(task.ID).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(info.Status, " ", info.Message)
	}
	const failed = "failed interrupted: the server ended, or was cut off, while the task was running"
	for range 100 { // n0, whose lease goes, may take its name again before it is missed
		if state(list[1]) == failed {
			break
		}
		if e, err := m.Get(t.Context(), lease); err == nil {
			_ = m.Delete(t.Context(), e.Key, e.Version) // or it was renewed
		}
	}
	close(hang)
	await(t, "both say the same", func() bool { return state(list[0]) == failed && state(list[1]) == failed })
}

// Clients are told that the cluster does not answer, and not which keys it has.
func TestErrorsOfTasksForClients(t *testing.T) {
	t.Parallel()
	f := twoNodes(t)
	kept := f.nodes[0].Tasks("/mcp")
	task := store.Task{ID: "one", Owner: "ann", Expires: time.Now().Add(time.Hour), Data: json.RawMessage(`{}`)}
	f.states[0].hook(func(_, key string) error { return fmt.Errorf("%s: no answer", key) })
	const words = "the cluster does not answer; try again"
	if err := kept.PutTask(t.Context(), task); err == nil || err.Error() != words {
		t.Errorf("PutTask = %v", err)
	}
	if _, _, err := kept.GetTask(t.Context(), "one"); err == nil || err.Error() != words {
		t.Errorf("GetTask = %v", err)
	}
}
