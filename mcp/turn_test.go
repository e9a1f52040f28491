package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// inLines serves a server over lines. The lines are sent in one write; the answers come line by
// line, and writes counts the writes in which they came.
func inLines(t *testing.T, w *mcp.Server) (send func(lines ...string), answers *bufio.Reader, writes *[]int) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	writes = new([]int)
	counted := writerFunc(func(p []byte) (int, error) {
		*writes = append(*writes, strings.Count(string(p), "\n"))
		return out.Write(p)
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.Serve(context.Background(), jsonrpc.NewLineConn(in, counted, func() error { in.Close(); return out.Close() }, 0))
	}()
	t.Cleanup(func() { toServer.Close(); fromServer.Close(); <-served })
	return func(lines ...string) {
		if _, err := io.WriteString(toServer, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Error(err)
		}
	}, bufio.NewReader(fromServer), writes
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func callOf(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},%s}}`, id, tool, modernMeta)
}

// nextIDs reads n answers and returns their ids, sorted.
func nextIDs(t *testing.T, r *bufio.Reader, n int) (ids []int) {
	t.Helper()
	for range n {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var id int
		if _, err := fmt.Sscanf(line, `{"jsonrpc":"2.0","id":%d,`, &id); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// turns is a server whose tools do what may go wrong on the goroutine that reads.
func turns(release chan struct{}) *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "quick"}, func(context.Context, struct{}) (string, error) { return "done", nil })
	mcp.AddTool(s, mcp.Tool{Name: "stuck"}, func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	mcp.AddTool(s, mcp.Tool{Name: "exit"}, func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "", nil })
	mcp.AddTool(s, mcp.Tool{Name: "big"}, func(context.Context, struct{}) (string, error) { return strings.Repeat("x", 1<<20), nil })
	return s
}

// Requests that came together are answered together, and a request that takes its time
// holds up neither the answers before it nor the requests behind it.
func TestSlowRequestsHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		send, answers, writes := inLines(t, turns(release))
		send(callOf(1, "quick"), callOf(2, "quick"), callOf(3, "quick"))
		if ids := nextIDs(t, answers, 3); !slices.Equal(ids, []int{1, 2, 3}) {
			t.Errorf("answers to %v", ids)
		}
		if !slices.Equal(*writes, []int{3}) {
			t.Errorf("%v lines were written at a time, want all three at once", *writes)
		}
		send(callOf(4, "quick"), callOf(5, "stuck"), callOf(6, "quick"), callOf(7, "stuck"), callOf(8, "quick"))
		if ids := nextIDs(t, answers, 3); !slices.Equal(ids, []int{4, 6, 8}) {
			t.Errorf("answers to %v while two are stuck", ids)
		}
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"enough"}}`, callOf(9, "quick"))
		if ids := nextIDs(t, answers, 1); ids[0] != 9 {
			t.Errorf("answer to %v after a cancellation", ids)
		}
		close(release)
		if ids := nextIDs(t, answers, 1); ids[0] != 7 {
			t.Errorf("answer to %v, want the one that is not stuck any more", ids)
		}
	})
}

// A tool that ends its goroutine, which tests do by t.Fatal, is answered and ends no connection
// (trap 3).
func TestToolThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, answers, _ := inLines(t, turns(nil))
		for i := range 3 {
			send(callOf(2*i, "exit"), callOf(2*i+1, "quick"))
			ids := nextIDs(t, answers, 2)
			if slices.Sort(ids); !slices.Equal(ids, []int{2 * i, 2*i + 1}) {
				t.Errorf("answers to %v", ids)
			}
		}
	})
}

// A client that sends more than the wire holds before it takes any answer gets all of them.
func TestAnswersThatNobodyTakesYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, answers, _ := inLines(t, turns(nil))
		var want []int
		for i := range 20 {
			send(callOf(2*i, "big"), callOf(2*i+1, "quick"))
			want = append(want, 2*i, 2*i+1)
		}
		if ids := nextIDs(t, answers, 40); !slices.Equal(ids, want) {
			t.Errorf("answers to %v", ids)
		}
	})
}

// A Read that nothing can interrupt, as of standard input, holds up neither the end of
// Serve nor a call that is at work meanwhile.
func TestServeLeavesAStuckReadBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		served := make(chan error, 1)
		go func() { served <- turns(nil).Serve(ctx, jsonrpc.NewLineConn(in, out, nil, 0)) }()
		if _, err := io.WriteString(stdin, callOf(1, "quick")+"\n"+callOf(2, "stuck")+"\n"); err != nil {
			t.Fatal(err)
		}
		if ids := nextIDs(t, bufio.NewReader(stdout), 1); ids[0] != 1 {
			t.Errorf("answer to %v", ids)
		}
		enough := errors.New("enough")
		cancel(enough)
		go io.Copy(io.Discard, stdout) // the answer to the other
		if err := <-served; err != enough {
			t.Errorf("Serve = %v, want the cause of its context", err)
		}
		stdin.Close()
		out.Close()
	})
}
