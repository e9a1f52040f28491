//go:build linux

// Command rude tests a running "patchbay up" with clients that disconnect abruptly and with
// SIGKILL at random moments. It fails if a process or a descriptor is left, or if the program
// does not answer.
//
//	go run ./bench/rude
//	go run ./bench/rude -disconnects 0 -kills 20 -seed 7 ./patchbay
//
// Without a program it builds cmd/patchbay of this module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/bench/rude/trial"
)

func main() {
	disconnects := flag.Int("disconnects", 10_000, "number of `clients` that disconnect")
	kills := flag.Int("kills", 200, "`number` of times the program is killed")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random choices")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args(), *disconnects, *kills, *seed); err != nil {
		fmt.Fprintf(os.Stderr, "rude: %v (-seed %d)\n", err, *seed)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, disconnects, kills int, seed uint64) error {
	if len(args) > 1 {
		return errors.New("usage: rude [FLAGS] [PATCHBAY]")
	}
	program := ""
	if len(args) == 1 {
		program = args[0]
	} else {
		dir, err := os.MkdirTemp("", "rude")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "patchbay")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/patchbay-dev/patchbay/cmd/patchbay")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build patchbay: %w", err)
		}
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	p := trial.Program{Command: []string{program}}
	if disconnects > 0 {
		d, err := trial.Disconnect(ctx, p, disconnects, seed)
		if err != nil {
			return err
		}
		fmt.Printf("%d rude disconnects in %v, of which %d were refused or not answered\n", disconnects, d.Took.Round(time.Millisecond), d.Failed)
		fmt.Printf("  held before %+v\n  held after  %+v\n  an ordinary call afterwards took %v\n", d.Before, d.After, d.Answer.Round(10*time.Microsecond))
	}
	if kills > 0 {
		k, err := trial.Kill(ctx, p, kills, seed, func(i int) { fmt.Fprintf(os.Stderr, "\rkill %d of %d", i+1, kills) })
		fmt.Fprintln(os.Stderr)
		if err != nil {
			return err
		}
		fmt.Printf("%d times kill -9, with up to %d processes: nothing left after %v in the median, %v at most\n",
			kills, k.Processes, k.Times[len(k.Times)/2].Round(time.Millisecond), k.Times[len(k.Times)-1].Round(time.Millisecond))
	}
	return nil
}
