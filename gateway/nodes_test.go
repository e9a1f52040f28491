package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// asking are servers whose tool asks three questions, in a call or a task.
func asking(t *testing.T, rev mcp.Revision) func() *farm {
	return func() *farm {
		return &farm{rev: rev, more: func(_ int, s *mcp.Server) {
			s.Tasks.Poll = 10 * time.Millisecond
			mcp.AddTool(s, mcp.Tool{Name: "deploy", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
				for n := range 3 {
					if ok, err := mcp.Confirm(ctx, fmt.Sprintf("Step %d?", n+1)); err != nil || !ok {
						return "", errors.Join(err, errors.New("not confirmed"))
					}
				}
				return "deployed", nil
			})
			mcp.AddTool(s, mcp.Tool{Name: "hang", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-ctx.Done():
				case <-t.Context().Done(): // servers keep their tasks when their gateways end
				}
				return "", context.Cause(ctx)
			})
		}}
	}
}

// inTurn sends requests to handlers in turn, as a load balancer does.
func inTurn[H http.Handler](t *testing.T, handlers []H) *httptest.Server {
	var n atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[int(n.Add(1))%len(handlers)].ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web
}

// A client of 2026-07-28 whose requests come to two gateways in turn answers the questions of older servers, and finds its tasks,
// at the gateway that has them.
func TestNodesGoOnWithCallsAndTasks(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			nodes := twoNodes(t, map[string]func() *farm{"ops": asking(t, rev)})
			web := inTurn(t, nodes)
			var asked atomic.Int64
			s, err := (&mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked.Add(1)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}}).Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 { // begins at the one, then at the other
				res, err := s.CallTool(t.Context(), "ops_deploy", nil)
				if err != nil || res.Text() != "deployed" {
					t.Fatalf("call: %v, %v", res, err)
				}
				task, err := s.StartTask(t.Context(), "ops_deploy", nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // a task that has ended answers at each
					if res, err := task.Wait(t.Context()); err != nil || res.Text() != "deployed" {
						t.Fatalf("task: %v, %v", res, err)
					}
				}
				if _, err := s.CallTool(t.Context(), "ops_which", nil); err != nil { // one request more, so that the next begins elsewhere
					t.Fatal(err)
				}
			}
			if n := asked.Load(); n != 12 {
				t.Errorf("%d questions, want 12", n)
			}
			if rev == mcp.V2025_06_18 {
				return // it has no tasks
			}
			task, err := s.StartTask(t.Context(), "ops_hang", nil)
			if err != nil {
				t.Fatal(err)
			}
			at, _, _ := strings.Cut(task.ID, ";")
			for range 2 {
				if info, err := task.Info(t.Context()); err != nil || info.Status != "working" {
					t.Errorf("%+v, %v", info, err)
				}
			}
			for i := range nodes {
				if got := acknowledged(t, inTurn(t, nodes[i:i+1]).URL, task.ID); !strings.Contains(got, task.ID) {
					t.Errorf("node %d acknowledges %s", i, got)
				}
			}
			if at == nodes[0].Name {
				slices.Reverse(nodes)
			}
			if err := nodes[1].Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			last, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), inTurn(t, nodes[:1]).URL)
			if err != nil {
				t.Fatal(err)
			}
			defer last.Close()
			if rev == mcp.V2025_11_25 { // whose tasks the gateway watches
				if info, err := last.Task(task.ID).Info(t.Context()); err != nil || info.Status != "failed" || !strings.Contains(info.Message, "whether the task has done what was asked is not known") {
					t.Errorf("%+v, %v", info, err)
				}
				return
			}
			if info, err := last.Task(task.ID).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist or has expired, or has ended with the node that had it") {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}

// A task at a server that every node reaches is found from the other node when the one that began it has ended, with the id that
// the client knows, but only by its principal.
func TestNodesFindTasksOfServers(t *testing.T) {
	for _, pair := range [][2]mcp.Revision{ // a task that a client of 2025-11-25 begins at a server of 2026-07-28 is the gateway's own
		{mcp.V2025_11_25, mcp.V2025_11_25}, {mcp.V2026_07_28, mcp.V2025_11_25}, {mcp.V2026_07_28, mcp.V2026_07_28},
	} {
		t.Run(string(pair[0]+" to "+pair[1]), func(t *testing.T) { findTasks(t, pair[0], pair[1]) })
	}
}

func findTasks(t *testing.T, front, rev mcp.Revision) {
	ops := &mcp.Server{Name: "ops", Version: "1"}
	ops.Tasks.Poll = 10 * time.Millisecond
	required := mcp.ToolExecution{TaskSupport: mcp.TaskRequired}
	mcp.AddTool(ops, mcp.Tool{Name: "deploy", Execution: required}, func(context.Context, struct{}) (string, error) { return "deployed", nil })
	mcp.AddTool(ops, mcp.Tool{Name: "fail", Execution: required}, func(context.Context, struct{}) (string, error) { return "", errors.New("no disk") })
	mcp.AddTool(ops, mcp.Tool{Name: "hang", Execution: required}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	at := inTurn(t, []http.Handler{ops})
	nodes, ends := twoGateways(t, map[string]func() *farm{"ops": func() *farm { return &farm{rev: rev, url: at.URL} }})
	for _, at := range nodes {
		at.Handler.(*mcp.Server).HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	}
	client := func(url, user string) *mcp.Session {
		s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{front}, Header: http.Header{"User": {user}}}).Dial(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ids := map[string]string{}
	first := client(inTurn(t, nodes[:1]).URL, "ann")
	for _, tool := range []string{"deploy", "fail", "hang"} {
		task, err := first.StartTask(t.Context(), "ops_"+tool, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids[tool] = task.ID
		if tool != "hang" {
			task.Wait(t.Context())
		}
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends[0]() // as a process does that is told to end
	last := inTurn(t, nodes[1:]).URL
	for tool, want := range map[string]string{"deploy": "completed deployed", "fail": "completed no disk", "hang": "working"} {
		task := client(last, "ann").Task(ids[tool])
		info, err := task.Info(t.Context())
		if err != nil || info.ID != ids[tool] {
			t.Errorf("%s: %+v, %v", tool, info, err)
			continue
		}
		got := info.Status
		if tool == "fail" {
			got = strings.Replace(got, "failed", "completed", 1) // as 2025-11-25 says it
		}
		if tool != "hang" {
			if res, err := task.Wait(t.Context()); err != nil {
				got += " " + err.Error()
			} else {
				got += " " + res.Text()
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	hang := client(last, "ann").Task(ids["hang"])
	if err := hang.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if info, err := hang.Info(t.Context()); err != nil || info.Status != "cancelled" {
		t.Errorf("cancelled: %+v, %v", info, err)
	}
	unknown := strings.Replace(ids["hang"], ids["hang"][strings.LastIndexByte(ids["hang"], '/')+1:], "other", 1)
	if err := client(last, "ann").Task(unknown).Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("an id that was changed: %v", err)
	}
	if info, err := client(last, "bob").Task(ids["deploy"]).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("another principal: %+v, %v", info, err)
	}
}

// A task that ends with its node, at a server that the node has started or made for a client of 2025-11-25, is told by the other node when its own
// has ended: with its result, or that the outcome is not known; only to its principal, and behind the middleware of its server.
func TestNodesTellOfTasksThatEndedWithOne(t *testing.T) {
	for _, c := range []struct {
		front, back mcp.Revision
		remote      bool
	}{
		{mcp.V2025_11_25, mcp.V2025_11_25, false}, {mcp.V2026_07_28, mcp.V2025_11_25, false},
		{mcp.V2025_11_25, mcp.V2026_07_28, false}, {mcp.V2025_11_25, mcp.V2026_07_28, true},
	} {
		t.Run(fmt.Sprint(c.front, " to ", c.back, ", remote ", c.remote), func(t *testing.T) { keptTasks(t, c.front, c.back, c.remote) })
	}
}

func keptTasks(t *testing.T, front, back mcp.Revision, remote bool) {
	tools := func(_ int, ops *mcp.Server) {
		ops.Tasks.Poll = 10 * time.Millisecond
		required := mcp.ToolExecution{TaskSupport: mcp.TaskRequired}
		mcp.AddTool(ops, mcp.Tool{Name: "deploy", Execution: required}, func(context.Context, struct{}) (string, error) {
			time.Sleep(5 * time.Millisecond)
			return "deployed", nil
		})
		mcp.AddTool(ops, mcp.Tool{Name: "fail", Execution: required}, func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(-32000, "no disk") })
		mcp.AddTool(ops, mcp.Tool{Name: "hang", Execution: required}, func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-ctx.Done():
			case <-t.Context().Done():
			}
			return "", context.Cause(ctx)
		})
	}
	newFarm := func() *farm { return &farm{rev: back, more: tools} }
	if remote {
		ops := &mcp.Server{Name: "ops", Version: "1"}
		tools(0, ops)
		at := inTurn(t, []http.Handler{ops})
		newFarm = func() *farm { return &farm{rev: back, url: at.URL} }
	}
	nodes, ends := twoGateways(t, map[string]func() *farm{"ops": newFarm})
	for _, at := range nodes {
		at.Handler.(*mcp.Server).HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	}
	client := func(node int, user string) *mcp.Session {
		s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{front}, Header: http.Header{"User": {user}}}).Dial(t.Context(), inTurn(t, nodes[node:node+1]).URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ids := map[string]string{}
	first := client(0, "ann")
	for _, tool := range []string{"deploy", "fail", "hang"} {
		task, err := first.StartTask(t.Context(), "ops_"+tool, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids[tool] = task.ID
		if tool != "hang" {
			task.Wait(t.Context())
		}
	}
	first.Close()
	for _, tool := range []string{"deploy", "fail"} { // also asked at the other node, while its own lives
		if info, err := client(1, "ann").Task(ids[tool]).Info(t.Context()); err != nil || info.Status == "working" {
			t.Errorf("%s while its node lives: %+v, %v", tool, info, err)
		}
	}
	if front.Sessions() {
		for info, err := range client(1, "ann").Tasks(t.Context()) {
			t.Errorf("another node lists %+v, %v", info, err)
		}
		if err := client(1, "ann").Task(ids["hang"]).Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), `"`+ids["hang"][:20]) {
			t.Errorf("cancelled at another node: %v", err)
		}
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"deploy": "completed, deployed", "fail": "failed, no disk", "hang": "failed, has ended; whether the task has done what was asked is not known"} {
		task := client(1, "ann").Task(ids[tool])
		info, err := task.Info(t.Context())
		if err != nil || info.ID != ids[tool] {
			t.Errorf("%s: %+v, %v", tool, info, err)
			continue
		}
		if tool == "deploy" && !info.Updated.After(info.Created) {
			t.Errorf("it was updated at %v, and created at %v", info.Updated, info.Created)
		}
		got := info.Status + ", "
		if res, err := task.Wait(t.Context()); err != nil {
			got += err.Error()
		} else {
			got += res.Text()
		}
		status, words, _ := strings.Cut(want, ", ")
		if !strings.HasPrefix(got, status) || !strings.Contains(got, words) {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
		if info, err := client(1, "bob").Task(ids[tool]).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("%s to another principal: %+v, %v", tool, info, err)
		}
	}
	if err := client(1, "bob").Task(ids["hang"]).Cancel(t.Context()); err == nil {
		t.Error("another principal cancels")
	}
	ends[0]()
}

// A result that does not come is an error of that request, and not the end of a task that another gateway has begun.
func TestNodesAskForResultsAgain(t *testing.T) {
	ops := &mcp.Server{Name: "ops", Version: "1"}
	ops.Tasks.Poll = 10 * time.Millisecond
	mcp.AddTool(ops, mcp.Tool{Name: "deploy", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) { return "deployed", nil })
	var busy atomic.Bool
	at := inTurn(t, []http.Handler{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || busy.Load() && strings.Contains(string(body), `"tasks/result"`) {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		ops.ServeHTTP(w, r)
	})})
	nodes := twoNodes(t, map[string]func() *farm{"ops": func() *farm { return &farm{rev: mcp.V2025_11_25, url: at.URL} }})
	task, err := dialed(t, nodes[0]).StartTask(t.Context(), "ops_deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := dialed(t, nodes[1]).Task(task.ID)
	busy.Store(true)
	if info, err := again.Info(t.Context()); err == nil {
		t.Errorf("while the result does not come: %+v", info)
	}
	busy.Store(false)
	if res, err := again.Wait(t.Context()); err != nil || res.Text() != "deployed" {
		t.Errorf("%v, %v", res, err)
	}
}

// dialed connects to a node.
func dialed(t *testing.T, node *cluster.Node) *mcp.Session {
	t.Helper()
	s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), inTurn(t, []*cluster.Node{node}).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// acknowledged returns the first message to a client that listens for changes of a task.
func acknowledged(t *testing.T, url, task string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, task)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.TrimSpace(data) != "" {
			return data
		}
	}
	return fmt.Sprint("nothing: ", lines.Err())
}
