package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// TestQuestionsThroughTheProgram (trap 6): each question of an older server over stdio reaches the
// user, whatever runs beside it, in a hundred rounds (the long form), through "up" and "bridge",
// over HTTP and stdio.
func TestQuestionsThroughTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs the command env")
	}
	rounds := long.Or(100, 10)
	older := []string{testRun + "=patchbay", self, "serve", "everything", "--revision", string(mcp.V2025_11_25)}
	servers := map[string]any{"old": map[string]any{"command": "env", "args": older}}
	up := startUp(t, servers)
	bridge := bridged(t, append([]string{"--http", "127.0.0.1:0"}, child(t, mcp.V2025_11_25)...)...)
	stdio := func(args ...string) func(*mcp.Client) (*mcp.Session, error) {
		return func(c *mcp.Client) (*mcp.Session, error) {
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), testRun+"=patchbay")
			return c.Start(t.Context(), cmd)
		}
	}
	http := func(url string) func(*mcp.Client) (*mcp.Session, error) {
		return func(c *mcp.Client) (*mcp.Session, error) { return c.Dial(t.Context(), url) }
	}
	for name, open := range map[string]func(*mcp.Client) (*mcp.Session, error){
		"up over HTTP":      http(up.url),
		"up over stdio":     stdio("up", "--stdio", "--config", up.file),
		"bridge over HTTP":  http(bridge),
		"bridge over stdio": stdio(append([]string{"bridge", "--stdio"}, child(t, mcp.V2025_11_25)...)...),
	} {
		for _, rev := range mcp.Revisions() {
			t.Run(name+"/"+string(rev), func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				c := answering(rev)
				c.OnSample = func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
					asked.Add(1)
					return &mcp.SampleResult{Model: "test", Content: r.Messages[0].Content}, nil
				}
				c.OnElicit = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": r.Message, "email": "ada@example.com"}}, nil
				}
				s, err := open(c)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				prefix := map[bool]string{true: "old_"}[strings.HasPrefix(name, "up")]
				beside := make(chan string, 1)
				for n := range rounds {
					tool, args := "test_sampling", map[string]any{"prompt": fmt.Sprint("answer ", n)}
					if n%2 == 1 && rev >= mcp.V2025_06_18 {
						tool, args = "test_elicitation", map[string]any{"message": fmt.Sprint("answer ", n)}
					}
					go func() {
						res, err := s.CallTool(t.Context(), prefix+"long_operation", map[string]any{"steps": 1, "seconds": 0.01})
						if err != nil {
							beside <- err.Error()
							return
						}
						beside <- res.Text()
					}()
					res, err := s.CallTool(t.Context(), prefix+tool, args)
					if err != nil || res.IsError || !strings.Contains(res.Text(), fmt.Sprint("answer ", n)) {
						t.Fatalf("round %d: %s = %v, %v", n, tool, res, err)
					}
					if got, want := <-beside, "1 steps in 0.01 seconds"; got != want {
						t.Fatalf("round %d: the call beside it = %q, want %q", n, got, want)
					}
				}
				if asked.Load() != int64(rounds) {
					t.Errorf("the user is asked %d times, want %d", asked.Load(), rounds)
				}
			})
		}
	}
}
