// Command oneshot measures what "patchbay call" adds to the time of a server that is
// started for one call: until the result is printed, and until the program has ended.
//
//	go build -o /tmp/patchbay ./cmd/patchbay && go run ./bench/oneshot /tmp/patchbay
//
// The servers are this program itself: one that ends with its input, and one that
// ignores both the end of its input and SIGTERM. A bare client, which writes the same
// requests without an MCP library, measures the server alone.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

func main() {
	runs := flag.Int("n", 40, "number of `runs` of each case")
	flag.Parse()
	var err error
	switch flag.Arg(0) {
	case "":
		err = errors.New("usage: oneshot [-n RUNS] PATCHBAY")
	case serveQuick, serveDeaf:
		err = serve(flag.Arg(0) == serveDeaf)
	default:
		err = measure(flag.Arg(0), *runs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "oneshot:", err)
		os.Exit(1)
	}
}

const (
	serveQuick = "__quick"
	serveDeaf  = "__deaf"
)

// serve is the server.
func serve(deaf bool) error {
	if deaf {
		signal.Ignore(syscall.SIGTERM)
	}
	s := &mcp.Server{Name: "oneshot", Version: "1"}
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, v in) (string, error) { return v.Text, nil })
	err := s.ServeStdio(context.Background())
	if deaf {
		time.Sleep(time.Minute)
	}
	return err
}

// times are the durations of one run until its first output and until its end.
type times struct{ answer, exit time.Duration }

func measure(patchbay string, runs int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cases := []struct {
		name string
		run  func() (times, error)
	}{
		{"version", func() (times, error) { return program(exec.Command(patchbay, "version")) }},
		{"bare client", func() (times, error) { return bare(self) }},
		{"call", func() (times, error) {
			return program(exec.Command(patchbay, "call", "echo", `{"text":"hi"}`, "--", self, serveQuick))
		}},
		{"call, typed", func() (times, error) {
			return program(exec.Command(patchbay, "call", "echo", "text=hi", "--", self, serveQuick))
		}},
		{"call, deaf", func() (times, error) {
			return program(exec.Command(patchbay, "call", "echo", "text=hi", "--", self, serveDeaf))
		}},
	}
	fmt.Printf("%-12s  %9s  %9s  %9s  %9s\n", "", "answer", "p90", "exit", "p90")
	all := make([][]times, len(cases))
	for range runs { // in turn, so that a busy machine affects all alike
		for i, c := range cases {
			t, err := c.run()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all[i] = append(all[i], t)
		}
	}
	for i, c := range cases {
		answer := sorted(all[i], func(t times) time.Duration { return t.answer })
		exit := sorted(all[i], func(t times) time.Duration { return t.exit })
		fmt.Printf("%-12s  %9s  %9s  %9s  %9s\n", c.name, ms(at(answer, 50)), ms(at(answer, 90)), ms(at(exit, 50)), ms(at(exit, 90)))
	}
	return nil
}

// program runs a program and records the time of its first output.
func program(cmd *exec.Cmd) (times, error) {
	var t times
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return t, err
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(out, one); err != nil {
		return t, errors.Join(err, cmd.Wait())
	}
	t.answer = time.Since(start)
	io.Copy(io.Discard, out)
	err = cmd.Wait()
	t.exit = time.Since(start)
	return t, err
}

// bare is the minimal client: it sends the requests of a call one after the other,
// and closes the server's input.
func bare(self string) (times, error) {
	var t times
	cmd := exec.Command(self, serveQuick)
	in, err := cmd.StdinPipe()
	if err != nil {
		return t, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return t, err
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bare","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	lines := bufio.NewReader(out)
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},` + meta + `}}`,
	} {
		if _, err := io.WriteString(in, request+"\n"); err != nil {
			return t, err
		}
		if _, err := lines.ReadString('\n'); err != nil {
			return t, err
		}
	}
	t.answer = time.Since(start)
	in.Close()
	err = cmd.Wait()
	t.exit = time.Since(start)
	return t, err
}

func sorted(list []times, of func(times) time.Duration) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, t := range list {
		out[i] = of(t)
	}
	slices.Sort(out)
	return out
}

// at is a percentile of sorted times.
func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
