package gateway_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// childVar makes the test binary a server over its standard streams.
const childVar = "GATEWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "":
		os.Exit(m.Run())
	case "marked":
		if err := markedServer().ServeStdio(context.Background()); err != nil {
			os.Exit(1)
		}
		return
	case "broken":
		fmt.Fprintln(os.Stderr, "no API key in the environment")
		os.Exit(3)
	}
	s := newsServer("child")
	mcp.AddTool(s, mcp.Tool{Name: "die"}, func(context.Context, struct{}) (string, error) {
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(4)
		return "", nil
	})
	if err := s.ServeStdio(context.Background()); err != nil {
		os.Exit(1)
	}
}

// child runs a server as a process and returns its states.
func child(t *testing.T, kind string) (*gateway.Gateway, <-chan gateway.Status) {
	t.Helper()
	states := make(chan gateway.Status, 1000)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) { states <- s }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "db", Open: func(ctx context.Context) (gateway.Upstream, error) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVar+"="+kind)
			return (&mcp.Client{Name: "gw"}).Start(ctx, cmd)
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return g, states
}

func wantState(t *testing.T, states <-chan gateway.Status, want gateway.State, reason string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case s := <-states:
			if s.State != want {
				continue
			}
			if !strings.Contains(s.Reason, reason) {
				t.Errorf("%s: %q, want a reason with %q", s.State, s.Reason, reason)
			}
			return
		case <-limit:
			t.Fatalf("it did not become %s", want)
		}
	}
}

// STDIO-26-013: a process that ends is restarted, and its status says how it ended and what it
// wrote last.
func TestAProcessComesBack(t *testing.T) {
	g, states := child(t, "good")
	wantState(t, states, gateway.Ready, "")
	s := connect(t, g, mcp.V2026_07_28)
	if res, err := s.CallTool(t.Context(), "db_whoami", nil); err != nil || res.Text() != "child" {
		t.Errorf("call = %v, %v", res, err)
	}
	_, err := s.CallTool(t.Context(), "db_die", nil)
	if err == nil || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("the call that ends the process = %v, want what it said last", err)
	}
	if res, err := s.CallTool(t.Context(), "db_whoami", nil); err != nil || res.Text() != "child" { // it waits
		t.Errorf("call after that = %v, %v", res, err)
	}
	wantState(t, states, gateway.Starting, "exit status 4")
	wantState(t, states, gateway.Ready, "")
}

func TestAProcessThatDoesNotStart(t *testing.T) {
	g, states := child(t, "broken")
	wantState(t, states, gateway.Failing, "no API key in the environment")
	s := connect(t, g, mcp.V2026_07_28)
	if _, err := s.CallTool(t.Context(), "db_whoami", nil); err == nil || !strings.Contains(err.Error(), "no API key") {
		t.Errorf("call = %v, want the reason", err)
	}
}
