package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The test binary plays the servers that Start starts: MCP_TEST says which.
func TestMain(m *testing.M) {
	kind := os.Getenv("MCP_TEST")
	if kind == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "I am", kind)
	s := asker(new(deployer))
	mcp.AddTool(s, mcp.Tool{Name: "print"}, func(context.Context, struct{}) (string, error) {
		fmt.Println("a stray print")
		return os.Getenv("MCP_WANT"), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "exit"}, func(context.Context, struct{}) (string, error) {
		fmt.Fprintln(os.Stderr, "the disk is full")
		os.Exit(3)
		return "", nil
	})
	switch kind {
	case "legacy", "fussy":
		s.Revisions = []mcp.Revision{mcp.V2025_11_25}
	case "chatty": // prints before it serves, as many do
		fmt.Println("listening on standard input")
	case "broken":
		fmt.Fprintln(os.Stderr, "no configuration found")
		os.Exit(1)
	}
	if kind == "fussy" { // exits at a first message that it does not know
		in := bufio.NewReader(os.Stdin)
		head, _ := in.Peek(100)
		if strings.Contains(string(head), "server/discover") {
			os.Exit(4)
		}
		if err := s.Serve(context.Background(), lineConn(in)); err != nil {
			os.Exit(5)
		}
		return
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func program(kind string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCP_TEST="+kind, "MCP_WANT=from outside", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// TRAN-25-002: a program of ours as a child, in both eras.
func TestStart(t *testing.T) {
	mcptest.LeakCheck(t)
	for kind, rev := range map[string]mcp.Revision{"modern": mcp.V2026_07_28, "legacy": mcp.V2025_11_25, "chatty": mcp.V2026_07_28} {
		t.Run(kind, func(t *testing.T) {
			c := user()
			c.OnFrame = mcptest.Check(t, "", true, nil)
			if kind == "chatty" {
				c.OnFrame = nil
			}
			s, err := c.Start(t.Context(), program(kind))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Revision() != rev {
				t.Errorf("revision %s, %s", s.Revision(), s.Negotiation())
			}
			if got, err := mcp.CallAs[string](t.Context(), s, "deploy", service{"api"}); err != nil || got != "plan-1 of api at 4" {
				t.Errorf("deploy = %q, %v", got, err)
			}
			if got, err := mcp.CallAs[string](t.Context(), s, "print", nil); err != nil || got != "from outside" {
				t.Errorf("print = %q, %v", got, err)
			}
			start := time.Now()
			if err := s.Close(); err != nil || time.Since(start) > 20*time.Second {
				t.Errorf("Close = %v after %v", err, time.Since(start))
			}
		})
	}
}

// A server that dies at the probe is legacy; it is started again, and remembered.
func TestStartAgain(t *testing.T) {
	mcptest.LeakCheck(t)
	c := user()
	for i := range 2 {
		s, err := c.Start(t.Context(), program("fussy"))
		if err != nil {
			t.Fatal(err)
		}
		if s.Revision() != mcp.V2025_11_25 || !strings.Contains(s.Negotiation(), "legacy before") {
			t.Errorf("start %d: revision %s, %s", i, s.Revision(), s.Negotiation())
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "book", trip{"2026-12-24"}); err != nil || got != "booked 2026-12-27" {
			t.Errorf("book = %q, %v", got, err)
		}
		s.Close()
	}
}

// The death of a server is told with its last words: to calls in progress, to later
// ones, and when it never came to life.
func TestServerDies(t *testing.T) {
	mcptest.LeakCheck(t)
	s, err := user().Start(t.Context(), program("modern"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tool := range []string{"exit", "print"} {
		_, err := s.CallTool(t.Context(), tool, nil)
		var ee *mcp.ExitError
		if !errors.As(err, &ee) || ee.State != "exit status 3" || !strings.HasSuffix(ee.Stderr, "the disk is full") {
			t.Errorf("%s = %v, want an ExitError", tool, err)
		}
	}
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Err = %v", err)
	}

	c := user()
	_, err = c.Start(t.Context(), program("broken"))
	var ee *mcp.ExitError
	if !errors.As(err, &ee) || !strings.Contains(ee.Stderr, "no configuration found") {
		t.Errorf("Start of a broken server = %v, want an ExitError", err)
	}
	if _, err := c.Start(t.Context(), exec.Command("no-such-program-anywhere")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("Start of nothing = %v", err)
	}
	absent := exec.Command(filepath.Join(t.TempDir(), "absent"))
	if _, err := c.Start(t.Context(), absent); err == nil || strings.Count(err.Error(), "start") != 1 {
		t.Errorf("a path without a program: %v", err)
	}
	// That it broke once says nothing of its era.
	cmd := program("modern")
	broken := program("broken")
	cmd.Args, broken.Args = []string{"same"}, []string{"same"}
	if _, err := c.Start(t.Context(), broken); err == nil {
		t.Fatal("the broken server starts")
	}
	again, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Revision() != mcp.V2026_07_28 {
		t.Errorf("after it broke once the server speaks %s: %s", again.Revision(), again.Negotiation())
	}
}
