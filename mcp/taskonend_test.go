package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// OnEnd gets the outcome of each task once, with the values that middleware gave the call, whether
// the call becomes a task at its start or with Detach. A panic of OnEnd, or a goroutine
// that it ends, harms nothing.
func TestTasksOnEnd(t *testing.T) {
	type key struct{}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, onDetach := range []bool{false, true} {
			t.Run(fmt.Sprint(rev, " ", onDetach), func(t *testing.T) {
				var (
					mu     sync.Mutex
					ends   []string
					panics int
				)
				srv := &mcp.Server{Name: "s", Version: "1",
					Tasks: mcp.TaskConfig{OnEnd: func(ctx context.Context, res mcp.Result, err error) {
						mu.Lock()
						defer mu.Unlock()
						end := fmt.Sprint(ctx.Value(key{}), ": ")
						switch res, ok := res.(*mcp.ToolResult); {
						case errors.Is(err, context.Canceled):
							end += "cancelled"
						case err != nil || !ok:
							end += fmt.Sprint("not a result: ", err)
						default:
							end += fmt.Sprint(res.Text(), res.IsError)
						}
						if ends = append(ends, end); len(ends) == 1 {
							runtime.Goexit()
						}
						panic("in OnEnd")
					}},
					OnPanic: func(_ context.Context, v any, _ []byte) {
						mu.Lock()
						defer mu.Unlock()
						panics++
					},
				}
				srv.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						return next.Handle(context.WithValue(ctx, key{}, "middleware"), req)
					})
				})
				mcp.AddTool(srv, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired, OnDetach: onDetach}},
					func(ctx context.Context, in struct {
						How string `json:"how"`
					}) (string, error) {
						mcp.Detach(ctx)
						switch in.How {
						case "fail":
							return "", errors.New("no paper")
						case "wait":
							<-ctx.Done()
							return "", ctx.Err()
						}
						return "done", nil
					})
				s := mcptest.Connect(t, srv, &mcp.Client{}, rev)
				for _, how := range []string{"work", "fail", "wait"} {
					task, err := s.StartTask(t.Context(), "work", map[string]string{"how": how})
					if err != nil || task.ID == "" {
						t.Fatalf("%s: %v, task %q", how, err, task.ID)
					}
					if how == "wait" {
						if err := task.Cancel(t.Context()); err != nil {
							t.Fatal(err)
						}
					} else if _, err := task.Wait(t.Context()); err != nil {
						t.Errorf("%s: %v", how, err)
					}
				}
				s.Close()
				if err := srv.Shutdown(t.Context()); err != nil { // it waits for the handlers
					t.Fatal(err)
				}
				slices.Sort(ends)
				if want := []string{"middleware: cancelled", "middleware: donefalse", "middleware: no papertrue"}; !slices.Equal(ends, want) || panics != 3 {
					t.Errorf("the ends are %q, want %q; %d panics, want 3", ends, want, panics)
				}
			})
		}
	}
}

// OnEnd gets a result or an error, not both, also for a task that Shutdown ends.
func TestTasksOnEndAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type outcome struct {
			res mcp.Result
			err error
		}
		ends := make(chan outcome, 1)
		srv := &mcp.Server{Name: "s", Version: "1"}
		srv.Tasks.OnEnd = func(_ context.Context, res mcp.Result, err error) { ends <- outcome{res, err} }
		mcp.AddTool(srv, mcp.Tool{Name: "wait", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2026_07_28)
		if _, err := s.StartTask(t.Context(), "wait", nil); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		if err := srv.Shutdown(short); err != nil {
			t.Fatal(err)
		}
		if end := <-ends; end.res != nil || end.err == nil {
			t.Errorf("OnEnd got %v and %v, want an error alone", end.res, end.err)
		}
	})
}

// inMemory serves a server over HTTP to a client, without sockets: a test with a clock of its own can use it.
func inMemory(t *testing.T, srv *mcp.Server, client *mcp.Client) *mcp.Session {
	t.Helper()
	client.HTTPClient = webInMemory(t, srv)
	s, err := client.Dial(t.Context(), "http://127.0.0.1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// webInMemory serves HTTP to the client that it returns, without sockets.
func webInMemory(t testing.TB, h http.Handler) *http.Client {
	l := &faultyListener{conn: make(chan net.Conn), closed: make(chan struct{})}
	web := &http.Server{Handler: h}
	go func() { _ = web.Serve(l) }() // until it is closed
	wire := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		l.conn <- far
		return near, nil
	}}
	t.Cleanup(func() {
		wire.CloseIdleConnections()
		_ = web.Close()
	})
	return &http.Client{Transport: wire}
}

// Shutdown waits for a task as for a call. Meanwhile its caller hears of it over HTTP, and answers its question; other requests are refused.
func TestShutdownWaitsForTasks(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
		synctest.Test(t, func(t *testing.T) { // the time in which its caller gets the result is two polls
			srv := &mcp.Server{Name: "s", Version: "1"}
			goOn := make(chan struct{})
			mcp.AddTool(srv, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
				<-goOn
				yes, err := mcp.Confirm(ctx, "really?")
				return fmt.Sprint("done ", yes), err
			})
			s := inMemory(t, srv, &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}})
			task, err := s.StartTask(t.Context(), "work", nil)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- srv.Shutdown(t.Context()) }()
			synctest.Wait()
			if _, err := s.StartTask(t.Context(), "work", nil); err == nil || !strings.Contains(err.Error(), "shutting down") {
				t.Errorf("%s: another task: %v", rev, err)
			}
			if info, err := task.Info(t.Context()); err != nil || info.Status != "working" {
				t.Errorf("%s: the task is %+v, %v", rev, info, err)
			}
			time.Sleep(time.Minute)
			select {
			case err := <-ended:
				t.Errorf("%s: Shutdown = %v beside a task", rev, err)
			default:
			}
			close(goOn)
			if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done true" {
				t.Errorf("%s: the result is %v, %v", rev, res, err)
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: Shutdown = %v", rev, err)
			}
		})
	}
}
