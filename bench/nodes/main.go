//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/bench/gateway/setup"
	"github.com/patchbay-dev/patchbay/bench/load"
	"github.com/patchbay-dev/patchbay/internal/freeport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// bench is one run of the program.
type bench struct {
	dur      time.Duration
	clients  int
	sessions int    // that go on elsewhere
	dir      string // of programs, and of what nodes keep
	server   string
	program  string
	values   map[string][]float64 // of figures, by round
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := &bench{values: map[string][]float64{}}
	fs := flag.NewFlagSet("nodes", flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 9, "number of rounds, each of which measures both sides")
	fs.DurationVar(&b.dur, "dur", 2*time.Second, "time of one series of calls, after a warm-up of half that time")
	fs.IntVar(&b.clients, "clients", 24, "clients of a series")
	fs.IntVar(&b.sessions, "sessions", 10, "sessions of the node that is killed")
	fs.StringVar(&b.program, "program", "", "measure this program, in place of one that is built")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() > 0 || *rounds < 1 || b.dur <= 0 || b.clients < 3 || b.sessions < 1 {
		fmt.Fprintln(stderr, "nodes: it takes only flags, with -rounds, -dur and -sessions above 0 and -clients above 2")
		return 2
	}
	fail := func(err error) int { fmt.Fprintln(stderr, "nodes:", err); return 1 }
	began := time.Now()
	fmt.Fprintln(stderr, "building")
	var err error
	if b.dir, err = os.MkdirTemp("", "nodes"); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(b.dir)
	if err := b.build(ctx); err != nil {
		return fail(err)
	}
	code := 0
	for round := range *rounds {
		fmt.Fprintf(stderr, "round %d of %d\n", round+1, *rounds)
		if err := b.round(ctx, round); ctx.Err() != nil {
			return fail(errors.New("interrupted"))
		} else if err != nil {
			code = fail(err)
		}
	}
	b.print(stdout)
	fmt.Fprintf(stdout, "\n%s, %s/%s, %d cores, %d rounds of %v, %d clients; %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), *rounds, b.dur, b.clients, time.Since(began).Round(time.Second))
	return code
}

// build builds the programs.
func (b *bench) build(ctx context.Context) error {
	mod, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/patchbay-dev/patchbay").Output()
	root := string(bytes.TrimSpace(mod))
	if err != nil || root == "" {
		return errors.New("run it in the folder of the repository: go run ./bench/nodes")
	}
	packages := []string{"./bench/target/server"}
	if b.server = filepath.Join(b.dir, "server"); b.program == "" {
		b.program = filepath.Join(b.dir, "patchbay")
		packages = append(packages, "./cmd/patchbay")
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", b.dir}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// patience bounds a round, without its series of calls.
const patience = 2 * time.Minute

// The two sides.
const (
	separate = "separate"
	nodes    = "nodes"
)

// series are the calls of the sides. Those that are compared stand beside each other.
var series = []struct {
	side, name string
	revision   load.Revision
	way        load.Way
	one        bool // client
}{
	{separate, "2026-07-28", load.Modern, load.Sticky, false},
	{nodes, "2026-07-28", load.Modern, load.Sticky, false},
	{nodes, "sticky", load.Legacy, load.Sticky, false},
	{separate, "sticky", load.Legacy, load.Sticky, false},
	{nodes, "round robin", load.Legacy, load.Turns, false},
	{nodes, "local", load.Legacy, load.Sticky, true},
	{nodes, "forwarded", load.Legacy, load.Away, true},
}

// The figures of a series, which follow its side and its name, and that of a death.
const (
	figureCPU      = "CPU ms"
	figureP50      = "p50 ms"
	figureTakeover = "takeover s"
)

// round measures both sides.
func (b *bench) round(ctx context.Context, n int) error {
	most := patience + time.Duration(2*len(series))*b.dur
	ctx, stop := context.WithTimeoutCause(ctx, most, fmt.Errorf("it took longer than %v", most))
	defer stop()
	server, err := load.StartHTTP(ctx, load.Modern, b.server, "http", "-addr", load.Addr, "-session", "modern", "-resp", "json")
	if err != nil {
		return err
	}
	defer server.Close()
	sides := map[string][]*setup.Gateway{}
	defer func() {
		for _, list := range sides {
			end(list)
		}
	}()
	for _, side := range []string{separate, nodes} {
		if sides[side], err = b.start(ctx, side, "http://"+server.Addr+"/mcp"); err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
	}
	figures := map[string]float64{}
	order := slices.Clone(series)
	if n%2 == 1 {
		slices.Reverse(order)
	}
	text, tool := load.Text(100), sides[nodes][0].Tool
	for _, list := range sides { // what a new process does once is not measured
		if _, err := group(list).Echo(load.Legacy, load.Sticky, tool, text, b.clients, 0, b.dur); err != nil {
			return err
		}
	}
	for _, s := range order {
		clients := b.clients
		if s.one {
			clients = 1
		}
		sample, err := group(sides[s.side]).Echo(s.revision, s.way, tool, text, clients, b.dur/2, b.dur)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.side, s.name, err)
		}
		figures[s.side+s.name+figureCPU] = sample.CPUPerCall().Seconds() * 1e6
		figures[s.side+s.name+figureP50] = sample.P50.Seconds() * 1e3
	}
	took, err := group(sides[nodes]).Takeover(tool, text, b.sessions)
	if err != nil {
		return err
	}
	figures[figureTakeover] = slices.Max(took).Seconds()
	for name, v := range figures {
		b.values[name] = append(b.values[name], v)
	}
	return nil
}

func group(list []*setup.Gateway) (all load.Nodes) {
	for _, g := range list {
		all = append(all, g.HTTP)
	}
	return all
}

// end ends gateways together, as a majority of nodes has to run.
func end(list []*setup.Gateway) {
	var all sync.WaitGroup
	for _, g := range list {
		all.Go(func() { _, _ = g.End() }) // they have no duties
	}
	all.Wait()
}

// start starts the gateways of a side.
func (b *bench) start(ctx context.Context, side, server string) ([]*setup.Gateway, error) {
	const count = 3
	var routes []string
	for range count {
		addr, err := freeport.Addr()
		if err != nil {
			return nil, err
		}
		routes = append(routes, addr)
	}
	dir, err := os.MkdirTemp(b.dir, "stores")
	if err != nil {
		return nil, err
	}
	list, errs := make([]*setup.Gateway, count), make([]error, count)
	var all sync.WaitGroup
	for i, addr := range routes {
		all.Go(func() {
			o := setup.Options{Program: b.program, Server: []string{server}, Gateway: "ready: {wait: 30s}\n"}
			if side == nodes {
				o.Gateway += fmt.Sprintf("cluster: {nats: embedded, node: n%d, listen: '%s', routes: ['nats://%s'], store: '%s', secret: bench, drain: 1s}\n",
					i, addr, strings.Join(routes, "', 'nats://"), filepath.Join(dir, fmt.Sprint(i)))
			}
			list[i], errs[i] = setup.Start(ctx, o)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		end(slices.DeleteFunc(list, func(g *setup.Gateway) bool { return g == nil }))
		return nil, err
	}
	return list, nil
}

// goal is a figure with its bound.
type goal struct {
	name   string
	least  bool // or most
	bound  float64
	values func(b *bench) []float64
}

// work returns the goal of a series of the nodes, compared with one of the separate gateways.
func work(name, with string, least float64) goal {
	return goal{"work: " + name, true, least, func(b *bench) []float64 {
		return b.pairs(separate+with+figureCPU, nodes+name+figureCPU, func(a, b float64) float64 { return a / b })
	}}
}

var goals = []goal{
	work("2026-07-28", "2026-07-28", 0.9),
	work("sticky", "sticky", 0.9),
	work("round robin", "sticky", 0.6),
	{"forwarded - local: p50 ms", false, 1, func(b *bench) []float64 {
		return b.pairs(nodes+"forwarded"+figureP50, nodes+"local"+figureP50, func(a, b float64) float64 { return a - b })
	}},
	{"takeover s, the slowest", false, 3, func(b *bench) []float64 { return b.values[figureTakeover] }},
}

// pairs compares two figures, round by round.
func (b *bench) pairs(one, other string, compare func(a, b float64) float64) (list []float64) {
	for i, v := range b.values[one] {
		if v = compare(v, b.values[other][i]); !math.IsNaN(v) && !math.IsInf(v, 0) {
			list = append(list, v)
		}
	}
	return list
}

// print writes the table of the figures, and that of the goals.
func (b *bench) print(w io.Writer) {
	fmt.Fprintf(w, "CPU of the three gateways for 1,000 calls\n\n")
	table := [][]string{{"", "", figureCPU, figureP50}}
	for _, s := range series {
		name := s.side + s.name
		table = append(table, []string{s.side, s.name, load.Cell(b.values[name+figureCPU]), load.Cell(b.values[name+figureP50])})
	}
	load.PrintTable(w, 2, table)
	fmt.Fprintln(w)
	table = [][]string{{"goal", "", "", "is", ""}}
	for _, g := range goals {
		values := g.values(b)
		if len(values) == 0 {
			continue
		}
		word, median, met := "at most", load.Median(values), "met"
		if g.least {
			word = "at least"
		}
		if g.least && median < g.bound || !g.least && median > g.bound {
			met = "missed"
		}
		table = append(table, []string{g.name, word, fmt.Sprint(g.bound), load.Cell(values), met})
	}
	load.PrintTable(w, 2, table)
}
