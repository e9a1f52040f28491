package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// site is a gateway with a server whose instances can be told apart and whose calls can be held.
type site struct {
	*Servers
	started atomic.Int64  // instances of the server
	opening chan struct{} // an instance waits for it; nil: it does not
	began   chan struct{} // gets a value when a call is held
	held    chan struct{} // calls of hold, and reads, end when it is closed
	runs    atomic.Int64  // calls of hold
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{began: make(chan struct{}, 100), held: make(chan struct{})}
	hold := func(ctx context.Context) {
		s.began <- struct{}{}
		select {
		case <-s.held:
		case <-ctx.Done():
		}
	}
	s.Servers = &Servers{Gateway: &gateway.Gateway{Name: "g", Version: "1"}, Env: &Env{Builtin: func(name string, _ []string, _ *slog.Logger) (mcp.Handler, error) {
		n := s.started.Add(1)
		if s.opening != nil {
			<-s.opening
		}
		srv := &mcp.Server{Name: name, Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "which"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint(n), nil })
		mcp.AddTool(srv, mcp.Tool{Name: "hold"}, func(ctx context.Context, _ struct{}) (string, error) {
			s.runs.Add(1)
			hold(ctx)
			return fmt.Sprint("held by ", n), nil
		})
		mcp.AddResource(srv, mcp.Resource{URI: "x://1", Name: "x"}, func(ctx context.Context) (string, error) {
			if n == 1 {
				hold(ctx)
			}
			return fmt.Sprint("read from ", n), nil
		})
		return srv, nil
	}}}
	t.Cleanup(s.Close)
	s.Set([]config.Server{{Name: "a", Builtin: "a"}}, nil, "")
	return s
}

// do sends a request to the gateway and returns its result or its error.
func (s *site) do(ctx context.Context, method, params string) string {
	res, err := s.Gateway.Handle(ctx, &mcp.Request{Method: method, Params: []byte(params)})
	var rpc *mcp.Error
	switch {
	case errors.As(err, &rpc):
		return rpc.Message
	case err != nil:
		return err.Error()
	}
	return string(res.JSON())
}

func (s *site) call(t *testing.T, tool string) string {
	return s.do(t.Context(), "tools/call", `{"name":"a_`+tool+`"}`)
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %s, want %q", what, got, want)
	}
}

// A call in progress finishes over the old connection, and new ones go to the new one.
func TestRestartFinishesCalls(t *testing.T) {
	s := newSite(t)
	expect(t, "before", s.call(t, "which"), `"1"`)
	done := make(chan string)
	go func() { done <- s.call(t, "hold") }()
	<-s.began
	got, err := s.Restart(t.Context(), "a", -1)
	if err != nil || got.Joined || got.Status.State != gateway.Ready || s.Restarted("a") != 1 {
		t.Errorf("Restart = %+v, %v", got, err)
	}
	expect(t, "after", s.call(t, "which"), `"2"`)
	close(s.held)
	expect(t, "in progress", <-done, "held by 1")
	if _, err := s.Restart(t.Context(), "b", -1); !errors.Is(err, ErrNoServer) {
		t.Errorf("a server that is not there: %v", err)
	}
}

// A call that does not finish in time fails, is not repeated, and its caller learns that it may have run. A
// read is repeated at the new instance.
func TestRestartCutsCalls(t *testing.T) {
	s := newSite(t)
	expect(t, "before", s.call(t, "which"), `"1"`)
	done, read := make(chan string), make(chan string)
	go func() { done <- s.call(t, "hold") }()
	go func() { read <- s.do(t.Context(), "resources/read", `{"uri":"x://1"}`) }()
	<-s.began
	<-s.began
	if _, err := s.Restart(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	expect(t, "the call", <-done, `connection to server "a" lost; the tool may or may not have run`)
	expect(t, "the read", <-read, "read from 2")
	if n := s.runs.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// Two restarts at once are one.
func TestRestartJoins(t *testing.T) {
	s := newSite(t)
	expect(t, "before", s.call(t, "which"), `"1"`)
	s.opening = make(chan struct{})
	var joined atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := s.Restart(t.Context(), "a", -1)
			if err != nil || got.Status.State != gateway.Ready {
				t.Errorf("Restart = %+v, %v", got, err)
			} else if got.Joined {
				joined.Add(1)
			}
		})
	}
	for s.started.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	close(s.opening)
	all.Wait()
	if n := s.started.Load(); n > 2 && joined.Load() == 7 || n != 1+8-joined.Load() {
		t.Errorf("%d instances were started and %d restarts joined", n, joined.Load())
	}
}

// Sixteen callers call while a server is disabled: each call finishes, or says that the server is disabled.
// A changed entry does not enable it.
func TestDisable(t *testing.T) {
	s := newSite(t)
	const says = `server "a" is disabled (do this)`
	var all sync.WaitGroup
	var answered atomic.Int64
	for range 16 {
		all.Go(func() {
			for {
				switch got := s.call(t, "which"); {
				case strings.Contains(got, `"1"`):
					answered.Add(1)
				case strings.Contains(got, says):
					return
				default:
					t.Errorf("a call got %s", got)
					return
				}
			}
		})
	}
	inProgress := make(chan string)
	go func() { inProgress <- s.call(t, "hold") }()
	<-s.began
	for answered.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	got, err := s.Disable("a", "do this")
	if err != nil || got.Already || got.Status.State != gateway.Disabled {
		t.Errorf("Disable = %+v, %v", got, err)
	}
	all.Wait()
	close(s.held)
	expect(t, "in progress", <-inProgress, "held by 1")
	if got := s.do(t.Context(), "tools/list", "{}"); got != `{"tools":[]}` {
		t.Errorf("the list is %s", got)
	}
	if got, err := s.Disable("a", "do this"); err != nil || !got.Already {
		t.Errorf("a second Disable = %+v, %v", got, err)
	}
	if _, err := s.Restart(t.Context(), "a", -1); !errors.Is(err, ErrDisabled) {
		t.Errorf("Restart of a disabled server: %v", err)
	}
	s.Set([]config.Server{{Name: "a", Builtin: "a", Args: []string{"changed"}}}, nil, "")
	expect(t, "a changed entry", s.call(t, "which"), says)
	s.Set(nil, nil, "")
	s.Set([]config.Server{{Name: "a", Builtin: "a"}}, nil, "")
	expect(t, "an entry that is back", s.call(t, "which"), says)
	back, err := s.Enable(t.Context(), "a")
	if err != nil || back.Already || back.Status.State != gateway.Ready {
		t.Errorf("Enable = %+v, %v", back, err)
	}
	expect(t, "enabled", s.call(t, "which"), `"2"`)
	if got, err := s.Enable(t.Context(), "a"); err != nil || !got.Already {
		t.Errorf("a second Enable = %+v, %v", got, err)
	}
	var events []string
	for _, line := range s.Journal("a").Last(100) {
		events = append(events, strings.Fields(line.Text)[0])
	}
	if got := strings.Join(events, " "); !strings.Contains(got, "ready, disabled: ") || !strings.HasSuffix(got, "starting ready,") {
		t.Errorf("the journal has %s", got)
	}
}

// A journal is bounded, and a slow reader finds what it has missed by the numbers.
func TestJournal(t *testing.T) {
	j := new(Journal)
	lines, changed := j.After(0)
	if len(lines) != 0 {
		t.Fatal(lines)
	}
	for i := range maxJournal + 5 {
		j.Event(fmt.Sprint("line ", i+1))
	}
	<-changed
	if lines, _ = j.After(0); len(lines) != maxJournal || lines[0].N != 6 || lines[0].Text != "line 6" {
		t.Errorf("%d lines, from %+v", len(lines), lines[0])
	}
	if lines, _ = j.After(maxJournal + 4); len(lines) != 1 || lines[0].N != maxJournal+5 {
		t.Errorf("after the last but one: %+v", lines)
	}
	j.add(false, strings.Repeat("x", maxJournalBytes+1))
	if lines = j.Last(10); len(lines) != 0 {
		t.Errorf("a text beyond the bound is kept")
	}
	j.Event("a\nb")
	if lines = j.Last(10); len(lines) != 2 || lines[1].Text != "b" || !lines[1].Event {
		t.Errorf("two lines: %+v", lines)
	}
}

// The journal has the lines of standard error without secrets, also while nobody else reads them.
func TestJournalOfLog(t *testing.T) {
	j := new(Journal)
	l := (&Env{}).NewLog("a", nil)
	l.journal = j
	fmt.Fprint(l, "one\ntw")
	fmt.Fprint(l, "o\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\nlast\n")
	var got []string
	for _, line := range j.Last(10) {
		got = append(got, line.Text)
	}
	if text := strings.Join(got, "|"); !strings.HasPrefix(text, "one|two|") || !strings.HasSuffix(text, "|last") || strings.Contains(text, "MIIB") {
		t.Errorf("the journal has %s", text)
	}
}

// The number of restarts of a server does not fall when it is restarted, disabled, enabled, changed or removed.
func TestRestartedDoesNotFall(t *testing.T) {
	s := newSite(t)
	expect(t, "before", s.call(t, "which"), `"1"`)
	s.mu.Lock()
	a := s.list[0]
	s.mu.Unlock()
	is := func(what string, want int) {
		t.Helper()
		if got := s.Restarted("a"); got != want {
			t.Errorf("%s: %d restarts, want %d", what, got, want)
		}
	}
	a.mu.Lock()
	var open []*Upstream
	for u := range a.ups {
		open = append(open, u)
	}
	a.mu.Unlock()
	for _, u := range open { // as if it had crashed
		u.Close()
	}
	for deadline := time.Now().Add(time.Minute); s.Restarted("a") == 0 && time.Now().Before(deadline); {
		s.do(t.Context(), "tools/call", `{"name":"a_which"}`)
		time.Sleep(time.Millisecond)
	}
	is("crashed", 1)
	if _, err := s.Restart(t.Context(), "a", -1); err != nil {
		t.Fatal(err)
	}
	is("restarted", 2)
	if _, err := s.Disable("a", "later"); err != nil {
		t.Fatal(err)
	}
	is("disabled", 2)
	if _, err := s.Enable(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	is("enabled", 2)
	s.Set([]config.Server{{Name: "a", Builtin: "a", Args: []string{"x"}}}, nil, "")
	is("changed", 2)
	s.Set(nil, nil, "")
	is("removed", 2)
}
