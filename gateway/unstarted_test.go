package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A server that cannot be started for a caller is failing, although its connection for lists lasts. It
// is ready when it can be started again, without a further call, and no connection is left over.
func TestUnstarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Pointer[error]
		f := keeper(mcp.V2025_11_25)
		f.open = func(context.Context) error {
			if err := down.Load(); err != nil {
				return *err
			}
			return nil
		}
		var mu sync.Mutex
		var told []string
		g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, strings.TrimSpace(fmt.Sprint(s.State, " ", s.Reason)))
		}}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerSession})
		synctest.Wait()
		state := func() string {
			s := g.Status()[0]
			return strings.TrimSpace(fmt.Sprint(s.State, " ", s.Reason))
		}
		for round, err := range []error{errors.New("no such file"), &gateway.LoginError{Do: "log in", Err: errors.New("401")}} {
			want := []string{"failing no such file", "needs login log in"}[round]
			s := connect(t, g, mcp.V2025_11_25)
			down.Store(&err)
			if got := set(t, s, "a"); !strings.Contains(got, "failing") && !strings.Contains(got, "needs login") {
				t.Errorf("the call = %q", got)
			}
			synctest.Wait()
			if state() != want {
				t.Errorf("the state is %q, want %q", state(), want)
			}
			for _, err := range s.Tools(t.Context()) {
				if err != nil {
					t.Errorf("its tools: %v", err)
				}
			}
			time.Sleep(5 * time.Minute)
			if state() != want {
				t.Errorf("after five minutes the state is %q, want %q", state(), want)
			}
			down.Store(nil)
			time.Sleep(2 * time.Minute)
			if state() != "ready" || f.alive() != "1" {
				t.Errorf("when it can be started again the state is %q, and %s run", state(), f.alive())
			}
			if got := set(t, s, "a"); got != "" {
				t.Errorf("the call = %q", got)
			}
			s.Close()
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		told = slices.Compact(told)
		want := []string{"starting", "ready", "failing no such file", "ready", "needs login log in", "ready"}
		if !slices.Equal(told, want) {
			t.Errorf("OnStatus got %q, want %q", told, want)
		}
	})
}

// A call that opens a connection ends the state at once, and so does the end of the connection for lists.
func TestUnstartedEnds(t *testing.T) {
	for _, how := range []string{"a call", "a new main connection"} {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			f := keeper(mcp.V2025_11_25)
			f.open = func(context.Context) error {
				if down.Load() {
					return errors.New("no such file")
				}
				return nil
			}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerSession})
			s := connect(t, g, mcp.V2025_11_25)
			synctest.Wait()
			down.Store(true)
			set(t, s, "a")
			time.Sleep(3 * time.Minute)
			if got := g.Status()[0].State; got != gateway.Failing {
				t.Errorf("the state is %s", got)
			}
			down.Store(false)
			if how == "a call" {
				if got := set(t, s, "a"); got != "" {
					t.Errorf("the call = %q", got)
				}
			} else {
				f.kill(1)
				time.Sleep(2 * time.Second)
			}
			synctest.Wait()
			if got := g.Status()[0].State; got != gateway.Ready {
				t.Errorf("after %s the state is %s", how, got)
			}
			time.Sleep(5 * time.Minute) // the retry ends
			if got, want := f.alive(), map[bool]int{true: 2, false: 1}[how == "a call"]; len(strings.Fields(got)) != want {
				t.Errorf("after %s %s run, want %d", how, got, want)
			}
		})
	}
}
