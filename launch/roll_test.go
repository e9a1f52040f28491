package launch

import (
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
)

// pair is a server with two replicas.
func pair(t *testing.T) (f *Servers, a, b *httptest.Server, nameA, nameB string) {
	t.Helper()
	a, b = web(t, "a"), web(t, "b")
	f = &Servers{Env: &Env{}, Gateway: &gateway.Gateway{Name: "g", Version: "1"}}
	t.Cleanup(f.Close)
	f.Set([]config.Server{{Name: "work", URL: a.URL, Replicas: []string{b.URL}}, {Name: "alone", URL: a.URL}}, nil, "")
	soon(t, "both replicas are connected", func() bool {
		list := f.Replicas("work")
		return len(list) == 2 && list[0].Conns > 0 && list[1].Conns > 0
	})
	soon(t, "the server is ready", func() bool { return f.Gateway.Status()[1].State == gateway.Ready })
	answered := map[string]bool{} // a connection is counted a moment before it gets calls
	soon(t, "both replicas get calls", func() bool {
		if name, err := ask(t, f.Gateway, "work_which"); err == nil {
			answered[name] = true
		}
		return len(answered) == 2
	})
	return f, a, b, strings.TrimPrefix(a.URL, "http://"), strings.TrimPrefix(b.URL, "http://")
}

// A restart of a server with replicas restarts one after another, and calls go on. If one does not start
// again, the others are left alone.
func TestRestartRolls(t *testing.T) {
	f, a, _, nameA, nameB := pair(t)
	stop := make(chan bool)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				if _, err := ask(t, f.Gateway, "work_which"); err != nil {
					t.Errorf("a call: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	did, err := f.Restart(t.Context(), "work", -1)
	close(stop)
	callers.Wait()
	if err != nil || strings.Join(did.Replicas, " ") != nameA+" "+nameB || did.Left != nil || did.Reason != "" || did.Status.State != gateway.Ready {
		t.Fatalf("Restart = %+v, %v", did, err)
	}
	if n := f.Restarted("work"); n != 1 {
		t.Errorf("%d restarts", n)
	}
	if did, err = f.RestartReplica(t.Context(), "work", nameB, 0); err != nil || strings.Join(did.Replicas, " ") != nameB {
		t.Errorf("RestartReplica = %+v, %v", did, err)
	}
	a.CloseClientConnections()
	a.Close()
	did, err = f.Restart(t.Context(), "work", -1)
	if err != nil || strings.Join(did.Replicas, " ") != nameA || strings.Join(did.Left, " ") != nameB || !strings.Contains(did.Reason, "refused") {
		t.Errorf("without the first one, Restart = %+v, %v", did, err)
	}
	if name, err := ask(t, f.Gateway, "work_which"); err != nil || name != "b" {
		t.Errorf("then: %q, %v", name, err)
	}
	var lines []string
	for _, l := range f.Journal("work").Last(100) {
		lines = append(lines, l.Text)
	}
	if log := strings.Join(lines, "\n"); strings.Count(log, ": restarted by its operator") != 4 || !strings.Contains(log, "replica "+nameA+": restarted by its operator; it does not start: ") {
		t.Errorf("the journal has %s", log)
	}
}

// A disabled replica stays so until it is enabled, whatever changes in the configuration. The last one in use
// cannot be disabled.
func TestDisableReplica(t *testing.T) {
	f, a, b, nameA, nameB := pair(t)
	var unknown *spread.UnknownReplica
	for _, c := range []struct {
		server, replica string
		is              func(error) bool
	}{
		{"none", nameA, func(err error) bool { return errors.Is(err, ErrNoServer) }},
		{"alone", nameA, func(err error) bool { return errors.Is(err, ErrNoReplicas) }},
		{"work", "c", func(err error) bool { return errors.As(err, &unknown) }},
	} {
		for what, err := range map[string]error{
			"restart": second(f.RestartReplica(t.Context(), c.server, c.replica, 0)),
			"disable": second(f.DisableReplica(c.server, c.replica, "x")),
			"enable":  second(f.EnableReplica(t.Context(), c.server, c.replica)),
		} {
			if !c.is(err) {
				t.Errorf("%s of replica %s of %s: %v", what, c.replica, c.server, err)
			}
		}
	}
	only := func(when, want string) {
		t.Helper()
		for range 20 {
			if name, err := ask(t, f.Gateway, "work_which"); err != nil || name != want {
				t.Fatalf("%s: %q, %v, want %q", when, name, err, want)
			}
		}
	}
	did, err := f.DisableReplica("work", nameA, "enable it")
	if err != nil || did.Already || did.Status.State != gateway.Ready {
		t.Fatalf("DisableReplica = %+v, %v", did, err)
	}
	only("disabled", "b")
	if did, err := f.DisableReplica("work", nameA, "enable it"); err != nil || !did.Already {
		t.Errorf("a second time: %+v, %v", did, err)
	}
	if _, err := f.DisableReplica("work", nameB, "enable it"); !errors.Is(err, ErrLastReplica) {
		t.Errorf("the last one: %v", err)
	}
	if _, err := f.RestartReplica(t.Context(), "work", nameA, 0); !errors.Is(err, spread.ErrDisabled) {
		t.Errorf("a restart: %v", err)
	}
	if did, err := f.Restart(t.Context(), "work", -1); err != nil || strings.Join(did.Replicas, " ") != nameB {
		t.Errorf("a restart of the server: %+v, %v", did, err)
	}
	f.Set([]config.Server{{Name: "work", URL: a.URL, Replicas: []string{b.URL}, Trusted: true}}, nil, "")
	only("changed", "b")
	if did, err := f.EnableReplica(t.Context(), "work", nameA); err != nil || did.Already || did.Reason != "" {
		t.Errorf("EnableReplica = %+v, %v", did, err)
	}
	soon(t, "it answers", func() bool { name, err := ask(t, f.Gateway, "work_which"); return err == nil && name == "a" })
	if did, err := f.EnableReplica(t.Context(), "work", nameA); err != nil || !did.Already {
		t.Errorf("a second time: %+v, %v", did, err)
	}
}

func second(_ *Steered, err error) error { return err }
