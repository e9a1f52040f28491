package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The servers of TestTeamsWeek write each execution of a tool to a ledger: a file to which several
// processes append one line for each.

// deed is a line of the ledger.
type deed struct {
	ID     string `json:"id"` // of the call, which its client has chosen
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Form   string `json:"form"` // an argument of the server, which the week changes
	PID    int    `json:"pid"`
}

// errand is what the tools of the week take.
type errand struct {
	ID    string `json:"id"`
	Until string `json:"until,omitempty"` // the tool waits until this file exists
}

// weekServer makes a server whose tools write to the ledger before they answer.
func weekServer(name, form, ledger string, revision mcp.Revision) *mcp.Server {
	s := &mcp.Server{Name: name, Version: "1", Revisions: []mcp.Revision{revision}}
	tool := func(tool string, after func(ctx context.Context, in errand) (string, error)) {
		mcp.AddTool(s, mcp.Tool{Name: tool}, func(ctx context.Context, in errand) (string, error) {
			line, err := json.Marshal(deed{in.ID, name, tool, form, os.Getpid()})
			if err != nil {
				return "", err
			}
			f, err := os.OpenFile(ledger, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
			if err != nil {
				return "", err
			}
			_, err = f.Write(append(line, '\n')) // one write is one line, of all processes
			if err := errors.Join(err, f.Close()); err != nil {
				return "", err
			}
			return after(ctx, in)
		})
	}
	tool("work", func(ctx context.Context, in errand) (string, error) {
		for in.Until != "" {
			if _, err := os.Stat(in.Until); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(5 * time.Millisecond): // files tell nobody
			}
		}
		return "did " + in.ID, nil
	})
	tool("note", func(_ context.Context, in errand) (string, error) { return "did " + in.ID, nil })
	tool("fail", func(_ context.Context, in errand) (string, error) { return "", errors.New("no paper for " + in.ID) })
	tool("ask", func(ctx context.Context, in errand) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.ID)}}}})
		if err != nil {
			return "", err
		}
		if res.Text() != "yes, "+in.ID {
			return "", fmt.Errorf("the answer is %q", res.Text())
		}
		return "did " + in.ID, nil
	})
	return s
}

// init makes the test binary a server of the week, with the arguments name, form, ledger and revision, and
// makes an up of the week write its stacks on SIGUSR1.
func init() {
	switch {
	case os.Getenv(testRun) == "week":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		weekServer(os.Args[1], os.Args[2], os.Args[3], mcp.Revision(os.Args[4])).ServeStdio(ctx)
		stop()
		os.Exit(0)
	case os.Getenv(weekStacks) != "":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR1)
		file := os.Getenv(weekStacks)
		go func() { // ends with the process
			for range asked {
				stacks := make([]byte, 4<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				if os.WriteFile(file+"~", stacks, 0o600) == nil {
					os.Rename(file+"~", file)
				}
			}
		}()
	}
}

// weekStacks names the file for the stacks of an up.
const weekStacks = "PATCHBAY_TEST_STACKS"

// deeds reads the ledger.
func deeds(t *testing.T, ledger string) (list []deed) {
	t.Helper()
	f, err := os.Open(ledger)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var d deed
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("the ledger has %q: %v", lines.Text(), err)
		}
		list = append(list, d)
	}
	return list
}

// weekWeb serves a server of the week over HTTP, in this process.
func weekWeb(t *testing.T, s *mcp.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: s}
	go web.Serve(l) // ends with Close
	t.Cleanup(func() {
		web.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
	})
	return "http://" + l.Addr().String()
}
