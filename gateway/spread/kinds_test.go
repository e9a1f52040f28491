package spread_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// kinds adds to a replica what is more than one request and one answer.
func (b *box) kinds() {
	b.srv.Tasks = mcp.TaskConfig{Poll: 10 * time.Millisecond}
	b.begun = make(chan bool)
	mcp.AddTool(b.srv, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
		time.Sleep(50 * time.Millisecond) // so that it is read before it ends
		return "done by " + b.name, nil
	})
	mcp.AddTool(b.srv, mcp.Tool{Name: "form"}, func(ctx context.Context, _ struct{}) (string, error) {
		var answers []string
		for i := range 2 {
			out, err := mcp.Elicit[struct {
				Text string `json:"text"`
			}](ctx, fmt.Sprintf("%s asks question %d", b.name, i))
			if err != nil {
				return "", err
			}
			answers = append(answers, out.Text)
		}
		return fmt.Sprint(b.name, " got ", answers), nil
	})
	mcp.AddTool(b.srv, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, b.name)
		}
		return b.name, nil
	})
	mcp.AddTool(b.srv, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case b.begun <- true:
		case <-ctx.Done():
		}
		<-ctx.Done()
		b.asked.Store("wait canceled", true)
		return "", ctx.Err()
	})
	mcp.AddResource(b.srv, mcp.Resource{URI: "x://1", Name: "x"}, func(context.Context) (string, error) { return b.name, nil })
}

// kindsOf runs a test for replicas and callers of both eras.
func kindsOf(t *testing.T, test func(t *testing.T, group *spread.Group, s *mcp.Session, boxes map[string]*box)) {
	t.Parallel()
	for _, of := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
		for _, by := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_11_25} {
			t.Run(fmt.Sprintf("replicas of %s, caller of %s", of, by), func(t *testing.T) {
				t.Parallel()
				a, b := newBox(t, "a"), newBox(t, "b")
				a.kinds()
				b.kinds()
				group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: 200 * time.Millisecond},
					Replicas: []spread.Replica{a.patient(of), b.patient(of)}}
				g, _ := through(t, group, gateway.Shared)
				caller := &mcp.Client{Name: "caller", Version: "1", OnElicit: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": "to " + q.Message}}, nil
				}}
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, caller, by)
				connected(t, group)
				compared(t, s, a, b)
				test(t, group, s, map[string]*box{"a": a, "b": b})
			})
		}
	}
}

// restarts restarts the replicas again and again until stop is called.
func restarts(t *testing.T, group *spread.Group) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := group.Replicas[i%len(group.Replicas)].Name
			if err := group.Restart(t.Context(), name, 20*time.Second); err != nil {
				t.Errorf("the restart of %s: %v", name, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// within bounds a request.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A task is read at the replica that runs it, also when the replicas have been restarted meanwhile.
func TestTasksOverReplicas(t *testing.T) {
	kindsOf(t, func(t *testing.T, group *spread.Group, s *mcp.Session, _ map[string]*box) {
		seen := map[string]bool{}
		for n := 0; n < 10 || len(seen) < 2; n++ {
			task, err := s.StartTask(within(t), "work_job", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := task.Wait(within(t))
			if err != nil {
				t.Fatal(err)
			}
			seen[res.Text()] = true
		}
		if !seen["done by a"] || !seen["done by b"] {
			t.Errorf("tasks were %v", seen)
		}
	})
}

// A call asks its questions, each at the replica that the call is at, while the replicas are restarted.
func TestQuestionsOverReplicas(t *testing.T) {
	kindsOf(t, func(t *testing.T, group *spread.Group, s *mcp.Session, _ map[string]*box) {
		stop := restarts(t, group)
		defer stop()
		seen := map[string]bool{}
		for n := 0; n < 10 || len(seen) < 2; n++ {
			res, err := s.CallTool(within(t), "work_form", nil)
			if err != nil {
				t.Fatal(err)
			}
			seen[res.Text()] = true
		}
		for _, name := range []string{"a", "b"} {
			if want := fmt.Sprintf("%s got [to %[1]s asks question 0 to %[1]s asks question 1]", name); !seen[want] || len(seen) != 2 {
				t.Errorf("answers %v, want %q", seen, want)
			}
		}
	})
}

// Progress reaches the caller from each replica, and so does the end of a call the replica, while the
// replicas are restarted.
func TestProgressAndCancelOverReplicas(t *testing.T) {
	kindsOf(t, func(t *testing.T, group *spread.Group, s *mcp.Session, boxes map[string]*box) {
		stop := restarts(t, group)
		seen := map[string]bool{}
		for n := 0; n < 20 || len(seen) < 2; n++ {
			var mu sync.Mutex
			var got []string
			res, err := s.CallTool(within(t), "work_steps", nil, mcp.OnProgress(func(done, _ float64, message string) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(done, message))
			}))
			if err != nil {
				t.Fatal(err)
			}
			seen[res.Text()] = true
			mu.Lock()
			if want := fmt.Sprintf("[1%s 2%[1]s 3%[1]s]", res.Text()); fmt.Sprint(got) != want {
				t.Errorf("progress %v, want %s", got, want)
			}
			mu.Unlock()
		}
		stop()
		for name, box := range boxes {
			eventually(t, "a call of "+name+" is canceled", func() bool {
				ctx, cancel := context.WithCancel(within(t))
				defer cancel()
				go func() {
					select {
					case <-boxes["a"].begun:
					case <-boxes["b"].begun:
					case <-ctx.Done():
					}
					cancel()
				}()
				if _, err := s.CallTool(ctx, "work_wait", nil); err == nil {
					t.Error("a call that was canceled has a result")
				}
				_, ended := box.asked.Load("wait canceled")
				return ended
			})
		}
	})
}

// Changes of lists and of resources reach a caller that listens after the replica that they came from has
// died, or was restarted or disabled.
func TestSubscriptionsOverReplicas(t *testing.T) {
	for _, how := range []string{"dies", "is restarted", "is disabled"} {
		t.Run(how, func(t *testing.T) {
			kindsOf(t, func(t *testing.T, group *spread.Group, s *mcp.Session, boxes map[string]*box) {
				ctx, leave := context.WithCancel(t.Context())
				var mu sync.Mutex
				got := map[string]int{}
				done := make(chan bool)
				go func() {
					defer close(done)
					for e, err := range s.Watch(ctx, "x://1") {
						if err != nil {
							continue
						}
						mu.Lock()
						got[e.Method]++
						mu.Unlock()
					}
				}()
				defer func() { leave(); <-done }()
				count := func(method string) int {
					mu.Lock()
					defer mu.Unlock()
					return got[method]
				}
				n := 0
				// Until a change arrives: the caller or the gateway may still be subscribing.
				changes := func(what string, of map[string]*box) {
					t.Helper()
					tools, updates := count("notifications/tools/list_changed"), count("notifications/resources/updated")
					eventually(t, what, func() bool {
						for _, box := range of {
							n++
							mcp.AddTool(box.srv, mcp.Tool{Name: fmt.Sprint("new", n)}, func(context.Context, struct{}) (string, error) { return "", nil })
							box.srv.ResourceUpdated("x://1")
						}
						time.Sleep(20 * time.Millisecond)
						return count("notifications/tools/list_changed") > tools && count("notifications/resources/updated") > updates
					})
				}
				changes("changes arrive", boxes)
				for name, lead := range boxes {
					rest := map[string]*box{}
					for other, box := range boxes {
						if other != name {
							rest[other] = box
						}
					}
					switch how {
					case "dies":
						lead.kill()
						changes("changes of the other arrive", rest)
						lead.start()
						eventually(t, name+" is back", func() bool { return !statusOf(group, name).Breaker.Open && statusOf(group, name).Conns > 0 })
					case "is restarted":
						if err := group.Restart(within(t), name, 20*time.Second); err != nil {
							t.Fatal(err)
						}
						changes("changes arrive", boxes)
					case "is disabled":
						if _, err := group.Disable(name, "enable it", 0); err != nil {
							t.Fatal(err)
						}
						changes("changes of the other arrive", rest)
						if _, err := group.Enable(within(t), name); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		})
	}
}

func statusOf(group *spread.Group, name string) spread.Status {
	for _, s := range group.Status() {
		if s.Name == name {
			return s
		}
	}
	return spread.Status{}
}
