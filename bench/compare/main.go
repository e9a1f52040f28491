//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// patience bounds one measurement.
const patience = time.Minute

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 5, "number of rounds, each of which measures everything")
	dur := fs.Duration("dur", 120*time.Millisecond, "time of one series of calls, after a warm-up of half that time")
	only := fs.String("only", "", "measure only rows whose names contain one of these words, separated by commas")
	others := fs.String("peers", "bare,go-sdk,mcp-go", "peers to compare with, separated by commas")
	file := fs.String("json", "", "write the measurements to this file")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	usage := func(err error) int { fmt.Fprintln(stderr, "compare:", err); return 2 }
	if fs.NArg() > 0 || *rounds < 1 || *dur <= 0 {
		return usage(errors.New("it takes only flags, with -rounds and -dur above 0"))
	}
	chosen, err := choose(*only)
	if err != nil {
		return usage(err)
	}
	peers := []string{"patchbay"}
	for name := range strings.SplitSeq(*others, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if _, ok := folders[name]; !ok || slices.Contains(peers, name) {
			return usage(fmt.Errorf("unknown peer %q: use bare, go-sdk and mcp-go, each at most once", name))
		}
		peers = append(peers, name)
	}
	fail := func(err error) int { fmt.Fprintln(stderr, "compare:", err); return 1 }
	fmt.Fprintf(stderr, "building %s\n", strings.Join(peers, ", "))
	began := time.Now()
	programs, err := build(ctx, withBare(peers))
	if err != nil {
		return fail(err)
	}
	defer programs.remove()
	built := time.Since(began)

	b := &bench{programs: programs, dur: *dur, warm: *dur / 2}
	results := newResults(peers, *rounds)
	for round := range *rounds {
		fmt.Fprintf(stderr, "round %d of %d\n", round+1, *rounds)
		for i, r := range chosen {
			for turn := range peers {
				peer := peers[(turn+round+i)%len(peers)]
				one, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("a measurement took longer than %v", patience))
				figures, err := r.measure(one, b, peer)
				cancel()
				if ctx.Err() != nil {
					return fail(errors.New("interrupted"))
				}
				if err != nil && !errors.Is(err, load.ErrUnsupported) {
					fmt.Fprintf(stderr, "%s, %s: %v\n", r.name, peer, err)
				}
				results.add(r.name, peer, round, figures, err)
			}
		}
	}
	results.print(stdout)
	fmt.Fprintf(stdout, "\n%s, %s/%s, %d cores, %d rounds of %v; %v, and %v to build\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), *rounds, *dur, (time.Since(began) - built).Round(time.Second), built.Round(time.Second))
	if *file != "" {
		out, err := json.MarshalIndent(results.report(*dur), "", "  ")
		if err == nil {
			err = os.WriteFile(*file, append(out, '\n'), 0o644)
		}
		if err != nil {
			return fail(err)
		}
	}
	for _, f := range results.failures {
		if f.peer == "patchbay" || f.peer == "bare" {
			return 1
		}
	}
	return 0
}

// withBare adds bare, whose server the clients call.
func withBare(peers []string) []string {
	if slices.Contains(peers, "bare") {
		return peers
	}
	return append(slices.Clone(peers), "bare")
}
