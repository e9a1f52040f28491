package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// The descriptions of clients have a bound, for each principal a part of it, so that they do not push names and leases out of the
// State. Sessions that end make room.
func TestRoomForSessions(t *testing.T) {
	long.WithoutRace(t)
	t.Parallel()
	m := new(cluster.Memory)
	n := &cluster.Node{Name: "n", State: m, Bus: m, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
	sessions := n.Sessions("/")
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.Leave(context.Background())
	data := json.RawMessage(`"` + strings.Repeat("x", 400<<10) + `"`)
	fill := func(principal string) (count int, err error) {
		for ; count < 1000; count++ {
			if err = sessions.PutSession(t.Context(), store.Session{ID: fmt.Sprint(principal, count), Principal: principal, Data: data}); err != nil {
				return count, err
			}
		}
		return count, nil
	}
	first, err := fill("mallory")
	if !errors.Is(err, store.ErrNoRoom) || first < 50 || first > 100 {
		t.Errorf("after %d sessions of one principal: %v", first, err)
	}
	if err := sessions.PutSession(t.Context(), store.Session{ID: "b", Principal: "bob", Data: json.RawMessage(`1`)}); err != nil {
		t.Errorf("a session of another principal: %v", err)
	}
	all := first
	for i := range 5 {
		more, err := fill(fmt.Sprint("m", i))
		if !errors.Is(err, store.ErrNoRoom) {
			t.Errorf("after %d sessions: %v", more, err)
		}
		all += more
	}
	if all > 400 {
		t.Errorf("%d sessions of 400 KB are kept", all)
	}
	for i := range first {
		if err := sessions.DropSession(t.Context(), fmt.Sprint("mallory", i)); err != nil {
			t.Fatal(err)
		}
	}
	if again, _ := fill("mallory"); again != first {
		t.Errorf("after the sessions have ended, there is room for %d, before for %d", again, first)
	}
}

// A client that is refused because of its description is told why, and an initialize without a State takes only as long as one attempt.
func TestRefusedInitialize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, refusedInitialize)
}

func refusedInitialize(t *testing.T) {
	m := new(cluster.Memory)
	state := &hooked{State: m}
	srv := &mcp.Server{Name: "s", Version: "1"}
	n := &cluster.Node{Name: "n", State: state, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
	srv.HTTP.Sessions = n.Sessions("/mcp")
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.Leave(context.Background())
	w := post(t, n, "POST", "", strings.Replace(initialize, `"name":"t"`, `"name":"t","title":"`+strings.Repeat("x", 600<<10)+`"`, 1))
	if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, "description of the client") {
		t.Errorf("a large description: %d %s", w.Code, body)
	}
	state.hook(func(op, key string) error {
		if strings.HasPrefix(key, "session.") {
			time.Sleep(2 * time.Second)
			return errors.New("away")
		}
		return nil
	})
	began := time.Now()
	if w := post(t, n, "POST", "", initialize); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a State: %d %s", w.Code, w.Body)
	}
	if took := time.Since(began); took > 3500*time.Millisecond {
		t.Errorf("the answer took %v, and one attempt 2 s", took)
	}
	state.hook(func(string, string) error { return nil })
	time.Sleep(time.Minute) // the session that was not opened is dropped
}

// A client that names the session of another principal gets 404, and does not end the session, also if the server keeps no sessions.
func TestSessionOfAnotherPrincipal(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	alone := func(*cluster.Node, *mcp.Server) {}
	nodes := []member{newMember(t, m, 0, alone), newMember(t, m, 1, alone)}
	send := func(node int, user, session, body string) *http.Response {
		t.Helper()
		w := nodes[node].send(t, t.Context(), "POST", user, session, body)
		_, _ = io.Copy(io.Discard, w.Body)
		return w
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	bob := send(0, "bob", "", initialize).Header.Get("Mcp-Session-Id")
	if w := send(0, "eve", bob, ping); w.StatusCode != http.StatusNotFound {
		t.Errorf("another principal gets %s", w.Status)
	}
	if w := send(1, "bob", bob, ping); w.StatusCode != http.StatusOK {
		t.Errorf("then the session is %s at the other node", w.Status)
	}
}

// While the State does not answer, tasks are refused after 3 seconds.
func TestTasksWithoutState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		n := &cluster.Node{Name: "n", State: unanswering{m}, Bus: m, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		tasks := n.Tasks("/")
		for what, err := range map[string]func() error{
			"PutTask": func() error {
				return tasks.PutTask(t.Context(), store.Task{ID: "t", Expires: time.Now().Add(time.Hour)})
			},
			"GetTask":   func() error { _, _, err := tasks.GetTask(t.Context(), "t"); return err },
			"ListTasks": func() error { _, err := tasks.ListTasks(t.Context(), "o", "", 10); return err },
		} {
			began := time.Now()
			if err := err(); err == nil || time.Since(began) > 3*time.Second {
				t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
		}
	})
}

// unanswering is a State that does not answer.
type unanswering struct{ *cluster.Memory }

func (unanswering) Get(ctx context.Context, _ string) (cluster.Entry, error) {
	<-ctx.Done()
	return cluster.Entry{}, context.Cause(ctx)
}

func (unanswering) Put(ctx context.Context, _ string, _ []byte, _ uint64, _ time.Duration) (uint64, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func (unanswering) Watch(ctx context.Context, _ string) iter.Seq2[cluster.Change, error] {
	return func(yield func(cluster.Change, error) bool) {
		<-ctx.Done()
		yield(cluster.Change{}, context.Cause(ctx))
	}
}
