package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// states records the calls of OnStatus.
type states struct {
	mu   sync.Mutex
	told []string // guarded by mu
}

func (s *states) note(st host.ServerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%s %s", st.Name, st.State)
	if n := len(s.told); n == 0 || s.told[n-1] != line {
		s.told = append(s.told, line)
	}
}

func (s *states) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.told, ", ")
	s.told = nil
	return all
}

// A server can be used as soon as it is added, and a slow or failing one does not delay others.
func TestServersStartSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := (&node{name: "slow"}).server("")
		open := slow.Open
		slow.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
			time.Sleep(20 * time.Second)
			return open(ctx, c)
		}
		broken := &node{name: "broken", refuses: errors.New("no such program")}
		h := &host.Host{}
		defer h.Close()
		began := time.Now()
		added(t, h, slow, broken.server(""), (&node{name: "good"}).server(""))
		if text, err := work(t.Context(), h, "good"); text != "by good" || err != nil || time.Since(began) > 0 {
			t.Errorf("good = %q, %v after %v", text, err, time.Since(began))
		}
		synctest.Wait()
		if _, err := work(t.Context(), h, "broken"); err == nil || !strings.Contains(err.Error(), "no such program") || time.Since(began) > 0 {
			t.Errorf("broken: %v after %v", err, time.Since(began))
		}
		var got []string
		for _, s := range h.Servers() {
			got = append(got, fmt.Sprintf("%s %s", s.Name, s.State))
		}
		if want := "slow starting, broken failing, good ready"; strings.Join(got, ", ") != want {
			t.Errorf("servers: %q, want %s", got, want)
		}
		if text, err := work(t.Context(), h, "slow"); text != "by slow" || err != nil || time.Since(began) != 20*time.Second {
			t.Errorf("slow = %q, %v after %v", text, err, time.Since(began))
		}
		if _, err := work(t.Context(), h, "nobody"); err == nil {
			t.Error("there is a server that nobody has added")
		}
	})
}

// Retry connects without waiting for the next attempt.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n", refuses: &gateway.LoginError{Do: "log in", Err: errors.New("who are you?")}}
		h := &host.Host{}
		defer h.Close()
		added(t, h, n.server(""))
		time.Sleep(time.Hour)
		if s := status(t, h, "n"); s.State != gateway.NeedsLogin || s.Reason != "log in" {
			t.Errorf("status: %+v", s)
		}
		n.set(func() { n.refuses = nil })
		began := time.Now()
		h.Retry("n")
		synctest.Wait()
		if text, err := work(t.Context(), h, "n"); text != "by n" || err != nil || time.Since(began) != 0 {
			t.Errorf("n = %q, %v after %v", text, err, time.Since(began))
		}
	})
}

// A change of one server leaves calls in progress at others alone; those at a server that
// is replaced or removed may finish within a bound.
func TestChangesWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, other := &node{name: "n", takes: 10 * time.Second}, &node{name: "other", takes: 15 * time.Second}
		told := &states{}
		h := &host.Host{OnStatus: told.note}
		defer h.Close()
		added(t, h, old.server(""), other.server(""))
		synctest.Wait()
		told.take()
		results := make(chan string, 10)
		begin := func(name string) {
			go func() {
				text, err := work(t.Context(), h, name)
				results <- fmt.Sprint(text, " ", err)
			}()
			synctest.Wait()
		}
		begin("n")
		begin("other")
		if err := h.Add(old.server("")); err == nil {
			t.Error("a server can be added twice")
		}
		newer := &node{name: "n"}
		newer.set(func() { newer.takes = time.Second })
		replaced := newer.server("")
		if err := h.Replace(replaced); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := told.take(); got != "n starting, n ready" {
			t.Errorf("OnStatus of the new one: %s", got)
		}
		if text, err := work(t.Context(), h, "n"); text != "by n" || err != nil || newer.count() != 1 {
			t.Errorf("n = %q, %v, not by the new one", text, err)
		}
		for _, want := range []string{"by n <nil>", "by other <nil>"} {
			if got := <-results; got != want {
				t.Errorf("a call in progress = %s, want %s", got, want)
			}
		}
		if _, opened := other.seen(); opened != 1 {
			t.Errorf("the other server was opened %d times", opened)
		}
		if got := told.take(); got != "" {
			t.Errorf("OnStatus when the old one ended: %s", got)
		}

		// A call that never ends is cancelled, and the server is closed.
		newer.set(func() { newer.takes = time.Hour })
		begin("n")
		began := time.Now()
		h.Remove("n")
		if _, err := work(t.Context(), h, "n"); err == nil {
			t.Error("a server that was removed can be used")
		}
		if got := <-results; !strings.Contains(got, "it was removed") || time.Since(began) != 30*time.Second {
			t.Errorf("the call = %s after %v", got, time.Since(began))
		}
		synctest.Wait()
		if got := told.take(); got != "n stopped" {
			t.Errorf("OnStatus of the one that was removed: %s", got)
		}
	})
}

// Restart ends hanging calls, and the server is back at once.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n", takes: time.Hour}
		told := &states{}
		h := &host.Host{OnStatus: told.note}
		defer h.Close()
		added(t, h, n.server(""))
		synctest.Wait()
		told.take()
		ended := make(chan error)
		go func() {
			_, err := work(t.Context(), h, "n")
			ended <- err
		}()
		synctest.Wait()
		n.set(func() { n.takes = 0 })
		began := time.Now()
		for range 5 { // restarts do not count as crashes
			h.Restart("n")
		}
		if text, err := work(t.Context(), h, "n"); text != "by n" || err != nil {
			t.Errorf("n = %q, %v", text, err)
		}
		if err := <-ended; !errors.Is(err, mcp.ErrClosed) || time.Since(began) > time.Second {
			t.Errorf("the call = %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if got := told.take(); !strings.HasSuffix(got, "n starting, n ready") || strings.Contains(got, "stopped") || strings.Contains(got, "crashing") {
			t.Errorf("OnStatus: %s", got)
		}
		h.Restart("nobody")
	})
}

// slowToClose is a session whose end takes its time.
type slowToClose struct{ *nodeSession }

func (s slowToClose) Close() error {
	time.Sleep(time.Second)
	return s.nodeSession.Close()
}

// A caller that waits for a restarting server waits for the last of several restarts.
func TestRestartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&node{name: "n"}).server("")
		open := s.Open
		s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
			session, err := open(ctx, c)
			return slowToClose{session.(*nodeSession)}, err
		}
		h := &host.Host{}
		defer h.Close()
		added(t, h, s)
		synctest.Wait()
		go h.Restart("n")
		synctest.Wait()
		began, ended := time.Now(), make(chan error)
		go func() {
			_, err := work(t.Context(), h, "n")
			ended <- err
		}()
		synctest.Wait()
		h.Restart("n")
		select {
		case err := <-ended:
			if err != nil || time.Since(began) > 10*time.Second {
				t.Errorf("the call = %v after %v", err, time.Since(began))
			}
		case <-time.After(time.Hour):
			t.Fatal("the call waits for a restart that never was")
		}
	})
}

// Close ends hanging calls and leaves nothing behind.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n", takes: time.Hour}
		h := &host.Host{}
		added(t, h, n.server(""))
		ended := make(chan error)
		go func() {
			_, err := work(t.Context(), h, "n")
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		h.Close()
		if err := <-ended; !errors.Is(err, mcp.ErrClosed) || time.Since(began) > time.Second {
			t.Errorf("the call = %v after %v", err, time.Since(began))
		}
		if err := h.Add(n.server("")); !errors.Is(err, host.ErrClosed) {
			t.Errorf("Add = %v", err)
		}
		if err := h.Replace(n.server("")); !errors.Is(err, host.ErrClosed) {
			t.Errorf("Replace = %v", err)
		}
		if _, err := work(t.Context(), h, "n"); err == nil {
			t.Error("a host that is closed can be used")
		}
		h.Restart("n")
		h.Retry("n")
		h.Remove("n")
		h.Close()
	})
}

// Operations at the same time, in any order, end.
func TestChangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host.Host{OnStatus: (&states{}).note}
		defer h.Close()
		n := &node{name: "n", takes: time.Millisecond}
		m := &node{name: "m", takes: time.Millisecond}
		added(t, h, n.server("g"), m.server("g"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for _, f := range []func(){
			func() { h.Replace(n.server("g")) }, func() { h.Restart("n") }, func() { h.Restart("g") }, func() { h.Retry("g") },
			func() { h.Servers() }, func() { h.Tools(ctx) }, func() { work(ctx, h, "g") }, func() { h.SetRoots(ctx, nil) },
			func() { h.Remove("m"); h.Add(m.server("g")) },
		} {
			wg.Go(func() {
				for ctx.Err() == nil {
					f()
					time.Sleep(3 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * time.Minute)
		if text, err := work(t.Context(), h, "g"); err != nil || text == "" {
			t.Errorf("g = %q, %v", text, err)
		}
	})
}
