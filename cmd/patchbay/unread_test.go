package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// unread starts the program with a standard error that the test reads or not.
func unread(t *testing.T, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader, said *os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { said.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, self, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), testRun+"=patchbay"), w
	in, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return cmd, in, bufio.NewReader(stdout), said
}

// manyLines is more requests than lines of the access log fit into a pipe.
const manyLines = 1500

// A standard error that nobody reads does not hold the program: it answers all requests, and ends
// with its input or by a signal.
func TestUnreadStderr(t *testing.T) {
	runtimeFolder(t)
	for _, args := range []string{"serve everything", "up --stdio -s everything", "bridge --stdio -s everything"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			cmd, in, out, _ := unread(t, append(strings.Fields(args), "--log", "-")...)
			go func() {
				fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
				fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				for i := range manyLines {
					fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`+"\n", i+1)
				}
			}()
			for answers := 0; answers <= manyLines; {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatalf("%d answers, then %v", answers, err)
				}
				if strings.Contains(line, `"id":`) { // a busy gateway may refuse some
					answers++
				}
			}
			began := time.Now()
			in.Close()
			cmd.Wait()
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("the program needs %v to end with its input", took)
			}
		})
	}
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		cmd, s, _ := unreadHTTP(t)
		for range manyLines {
			if _, err := s.CallTool(t.Context(), "echo", map[string]any{"message": "hi"}); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		began := time.Now()
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no SIGTERM")
		}
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("the program needs %v to end after a signal", took)
		}
	})
}

// unreadHTTP starts a server over HTTP whose standard error nobody reads after its address.
func unreadHTTP(t *testing.T) (*exec.Cmd, *mcp.Session, *os.File) {
	t.Helper()
	cmd, _, _, said := unread(t, "serve", "everything", "--http", "127.0.0.1:0", "--log", "-")
	line, err := bufio.NewReader(said).ReadString('\n')
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	if err != nil || !strings.HasPrefix(url, "http://") {
		t.Fatalf("the program says %q, %v", line, err)
	}
	s, err := new(mcp.Client).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, s, said
}

// A server goes on when the reader of its standard error has gone.
func TestGoneStderr(t *testing.T) {
	cmd, s, said := unreadHTTP(t)
	said.Close()
	for range 5 {
		if _, err := s.CallTool(t.Context(), "echo", map[string]any{"message": "hi"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // the log is written in the background
	}
	s.Close()
	cmd.Process.Kill()
	cmd.Wait()
}
