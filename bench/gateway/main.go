//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/bench/gateway/setup"
	"github.com/patchbay-dev/patchbay/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// patience bounds the measurement of one way.
const patience = time.Minute

// bench is one run of the program.
type bench struct {
	rounds    int
	warm, dur time.Duration
	clients   int
	upstream  string // "stdio" or "http"
	folder    string // for the files of gateways

	programs       string // folder of the programs
	server, before string // programs
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := &bench{}
	fs := flag.NewFlagSet("gateway", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&b.rounds, "rounds", 10, "number of rounds, each of which measures every way")
	fs.DurationVar(&b.dur, "dur", 600*time.Millisecond, "time of one series of calls, after a warm-up of half that time")
	fs.IntVar(&b.clients, "clients", 50, "connections of the second series; the first has one")
	fs.StringVar(&b.upstream, "upstream", "stdio", "how the gateway reaches the server: stdio or http")
	fs.StringVar(&b.before, "before", "", "measure this program too, a file or a commit to build")
	fs.StringVar(&b.folder, "dir", "", "folder for audit logs and other files, to measure its disk (default: that for temporary files)")
	only := fs.String("only", "", "measure only these ways, separated by commas: "+names(ways))
	if err := fs.Parse(args); err != nil {
		return 2
	}
	b.warm = b.dur / 2
	usage := func(err error) int { fmt.Fprintln(stderr, "gateway:", err); return 2 }
	if fs.NArg() > 0 || b.rounds < 1 || b.dur <= 0 || b.clients < 2 {
		return usage(errors.New("it takes only flags, with -rounds and -dur above 0 and -clients above 1"))
	}
	if b.upstream != "stdio" && b.upstream != "http" {
		return usage(fmt.Errorf("-upstream %q: use stdio or http", b.upstream))
	}
	chosen, err := choose(*only, b.before != "")
	if err != nil {
		return usage(err)
	}
	fail := func(err error) int { fmt.Fprintln(stderr, "gateway:", err); return 1 }
	began := time.Now()
	fmt.Fprintln(stderr, "building")
	if b.programs, err = os.MkdirTemp("", "gateway"); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(b.programs)
	if err := b.build(ctx); err != nil {
		return fail(err)
	}
	r := &results{ways: chosen, clients: b.clients, values: map[string]map[string][]float64{}}
	failed := false
	for round := range b.rounds {
		fmt.Fprintf(stderr, "round %d of %d\n", round+1, b.rounds)
		for i := range chosen {
			w := chosen[(i+round)%len(chosen)]
			one, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
			figures, err := b.measure(one, w)
			cancel()
			if ctx.Err() != nil {
				return fail(errors.New("interrupted"))
			}
			if err != nil {
				fmt.Fprintf(stderr, "%s: %v\n", w.name, err)
				failed = true
			}
			r.add(round, b.rounds, w.name, figures)
		}
	}
	r.print(stdout)
	fmt.Fprintf(stdout, "\n%s, %s/%s, %d cores, %d rounds of %v, upstream over %s; %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), b.rounds, b.dur, b.upstream, time.Since(began).Round(time.Second))
	if failed {
		return 1
	}
	return 0
}

// way is a way of a call to the server.
type way struct {
	name   string
	duties []setup.Duty
}

// ways are all of them. Neighbours are compared with each other.
var ways = []way{
	{direct, nil},
	{before, nil},
	{bare, nil},
	{pausing, nil},
	{"jwt", []setup.Duty{setup.JWT}},
	{"policy", []setup.Duty{setup.Policy}},
	{disk, nil},
	{"audit", []setup.Duty{setup.Audit}},
	{"telemetry", []setup.Duty{setup.Telemetry}},
	{everything, setup.All},
}

const (
	direct     = "direct"
	before     = "before"
	bare       = "bare"
	pausing    = "pausing"
	disk       = "disk"
	everything = "everything"
)

func names(list []way) string {
	var all []string
	for _, w := range list {
		all = append(all, w.name)
	}
	return strings.Join(all, ", ")
}

// choose returns the ways with the names, all if there are none.
func choose(list string, withBefore bool) ([]way, error) {
	var wanted []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.ContainsFunc(ways, func(w way) bool { return w.name == name }) {
			return nil, fmt.Errorf("-only %q: there are %s", name, names(ways))
		}
		if name == before && !withBefore {
			return nil, errors.New("-only before needs -before, a program or a commit")
		}
		wanted = append(wanted, name)
	}
	if wanted != nil && withBefore {
		wanted = append(wanted, before)
	}
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool {
		return wanted != nil && !slices.Contains(wanted, w.name) || w.name == before && !withBefore
	}), nil
}

// build builds the programs, or finds those of flags.
func (b *bench) build(ctx context.Context) error {
	mod, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/patchbay-dev/patchbay").Output()
	root := string(bytes.TrimSpace(mod))
	if err != nil || root == "" {
		return errors.New("run it in the folder of the repository: go run ./bench/gateway")
	}
	b.server = b.program("server")
	err = errors.Join(command(ctx, root, "go", "build", "-o", b.server, "./bench/target/server"),
		command(ctx, root, "go", "build", "-o", b.program("patchbay"), "./cmd/patchbay"))
	if b.before == "" || err != nil {
		return err
	}
	if _, err := os.Stat(b.before); err == nil {
		b.before, err = filepath.Abs(b.before)
		return err
	}
	source := b.program("source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return err
	}
	err = command(ctx, root, "git", "archive", "-o", b.program("source.tar"), b.before)
	if err != nil {
		return fmt.Errorf("-before %s is neither a file nor a commit: %w", b.before, err)
	}
	b.before = b.program("before")
	if err := command(ctx, source, "tar", "-xf", b.program("source.tar")); err != nil {
		return err
	}
	return command(ctx, source, "go", "build", "-o", b.before, "./cmd/patchbay")
}

func (b *bench) program(name string) string { return filepath.Join(b.programs, name) }

// command runs a command in a folder. Its error has the output.
func command(ctx context.Context, dir string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// pause is the time of a client between two calls, about as long as a disk takes for a line.
const pause = 300 * time.Microsecond

// caller is what is measured.
type caller interface {
	Echo(tool, text string, conns int, warm, dur time.Duration) (load.Sample, error)
}

// measure starts a way and measures calls of one connection, and of several.
func (b *bench) measure(ctx context.Context, w way) (f map[string]float64, err error) {
	if w.name == disk {
		return diskOf(b.folder)
	}
	server := []string{b.server, "stdio"}
	var upstream *load.HTTP
	if w.name == direct || b.upstream == "http" {
		if upstream, err = load.StartHTTP(ctx, load.Modern, b.server, "http", "-addr", load.Addr, "-session", "modern", "-resp", "json"); err != nil {
			return nil, err
		}
		defer upstream.Close()
		server = []string{"http://" + upstream.Addr + "/mcp"}
	}
	if w.name == direct {
		return b.figures(upstream, "echo")
	}
	program := b.program("patchbay")
	if w.name == before {
		program = b.before
	}
	g, err := setup.Start(ctx, setup.Options{Program: program, Server: server, Duties: w.duties, Dir: b.folder})
	if err != nil {
		return nil, err
	}
	if w.name == pausing {
		g.Pause = pause
	}
	f, err = b.figures(g, g.Tool)
	done, late := g.End()
	if err = errors.Join(err, late); err != nil {
		return nil, err
	}
	for name, n := range map[string]int{figureLines: done.Lines, figureSpans: done.Spans} {
		if n > 0 {
			f[name] = float64(n)
		}
	}
	return f, nil
}

// figures measures calls.
func (b *bench) figures(c caller, tool string) (map[string]float64, error) {
	text := load.Text(100)
	one, err := c.Echo(tool, text, 1, b.warm, b.dur)
	if err != nil {
		return nil, err
	}
	many, err := c.Echo(tool, text, b.clients, b.warm, b.dur)
	if err != nil {
		return nil, err
	}
	milli := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return map[string]float64{
		figureCPU: milli(one.CPUPerCall()) * 1000, figureP50: milli(one.P50),
		figureCPUMany: milli(many.CPUPerCall()) * 1000, figureP99: milli(many.P99), figureRate: float64(many.Calls) / b.dur.Seconds(),
	}, nil
}
