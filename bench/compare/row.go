//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/bench/gateway/setup"
	"github.com/patchbay-dev/patchbay/bench/load"
)

// A bench measures peers.
type bench struct {
	programs  programs
	warm, dur time.Duration
}

// A row is one measurement of each peer.
type row struct {
	name    string
	measure func(ctx context.Context, b *bench, peer string) ([]figure, error)
}

const kib = 1 << 10

// rows are all measurements. docs/performance.md explains each.
var rows = []row{
	{"stdio, 100 B", stdio(load.Legacy, 100, 1)},
	{"stdio, 100 B, 64 in flight", stdio(load.Legacy, 100, 64)},
	{"stdio, 10 KiB", stdio(load.Legacy, 10*kib, 1)},
	{"stdio, 1 MiB", stdio(load.Legacy, kib*kib, 1)},
	{"stdio 2026-07-28, 100 B", stdio(load.Modern, 100, 1)},
	{"http 2026-07-28, 100 B", http(modern, 100, 1)},
	{"http 2026-07-28, 100 B, 16 connections", http(modern, 100, 16)},
	{"http 2026-07-28, 100 B, 128 connections", http(modern, 100, 128)},
	{"http 2026-07-28, 10 KiB", http(modern, 10*kib, 1)},
	{"http 2026-07-28, 1 MiB", http(modern, kib*kib, 1)},
	{"http session, JSON, 100 B", http(session, 100, 1)},
	{"http session, JSON, 100 B, 16 connections", http(session, 100, 16)},
	{"http session, JSON, 100 B, 128 connections", http(session, 100, 128)},
	{"http session, SSE, 100 B", http(sessionSSE, 100, 1)},
	{"http session, SSE, 100 B, 16 connections", http(sessionSSE, 100, 16)},
	{"http session, SSE, 100 B, 128 connections", http(sessionSSE, 100, 128)},
	{"http no session, 100 B", http(stateless, 100, 1)},
	{"list of 1,000 tools", list},
	{"start", start(1)},
	{"start with 1,000 tools", start(1000)},
	{"idle session", idle(2000, false)},
	{"idle session with a GET stream", idle(2000, true)},
	{"client, stdio, 100 B", client("stdio", 1)},
	{"client, stdio, 100 B, 64 at once", client("stdio", 64)},
	{"client, http, 100 B", client("http", 1)},
	{"client, http, 100 B, 64 at once", client("http", 64)},
	{"in-process call", inproc("BenchmarkEcho")},
	{"in-process calls, 64 at once", inproc("BenchmarkEchoParallel")},
	{"gateway, http to stdio, 100 B", gateway(1)},
	{"gateway, http to stdio, 100 B, 16 connections", gateway(16)},
	{"gateway with all duties, http to stdio, 100 B", gateway(1, setup.All...)},
	{"gateway with all duties, http to stdio, 100 B, 16 connections", gateway(16, setup.All...)},
}

// choose returns the rows whose names contain one of the words, all if there are none.
func choose(words string) ([]row, error) {
	if strings.TrimSpace(words) == "" {
		return rows, nil
	}
	var chosen []row
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%q", r.name))
		for word := range strings.SplitSeq(words, ",") {
			word = strings.TrimSpace(word)
			if word != "" && strings.Contains(strings.ToLower(r.name), strings.ToLower(word)) {
				chosen = append(chosen, r)
				break
			}
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("-only %q matches no row of %s", words, strings.Join(names, "; "))
	}
	return chosen, nil
}

type measureFunc = func(ctx context.Context, b *bench, peer string) ([]figure, error)

// of returns the figures of a sample. It leaves out the latency of concurrent calls, which
// depends more on the machine than on the peer.
func of(s load.Sample, sequential bool) []figure {
	f := []figure{{"CPU µs", micro(s.CPUPerCall())}}
	if sequential {
		f = append(f, figure{"p50 µs", micro(s.P50)})
	}
	return f
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func stdio(r load.Revision, size, inFlight int) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		argv := []string{b.programs.server(peer), "stdio"}
		if r == load.Modern {
			argv = append(argv, "-session", "modern")
		}
		s, err := load.StartStdio(ctx, r, argv...)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		sample, err := s.Echo("echo", load.Text(size), inFlight, b.warm, b.dur)
		return of(sample, inFlight == 1), err
	}
}

// A mode is a way to serve HTTP.
type mode struct {
	revision      load.Revision
	session, resp string
}

var (
	modern     = mode{load.Modern, "modern", "json"}
	session    = mode{load.Legacy, "stateful", "json"}
	sessionSSE = mode{load.Legacy, "stateful", "sse"}
	stateless  = mode{load.Legacy, "stateless", "json"}
)

// start starts the server of a peer.
func (m mode) start(ctx context.Context, b *bench, peer string) (*load.HTTP, error) {
	return load.StartHTTP(ctx, m.revision, b.programs.server(peer), "http", "-addr", load.Addr, "-session", m.session, "-resp", m.resp)
}

func http(m mode, size, conns int) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		s, err := m.start(ctx, b, peer)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		sample, err := s.Echo("echo", load.Text(size), conns, b.warm, b.dur)
		return of(sample, conns == 1), err
	}
}

func list(ctx context.Context, b *bench, peer string) ([]figure, error) {
	s, err := load.StartStdio(ctx, load.Legacy, b.programs.server(peer), "stdio", "-tools", "1000")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	sample, err := s.List(1000, b.warm, b.dur)
	return of(sample, true), err
}

// start starts a server several times, and returns the median.
func start(tools int) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		var times []float64
		for range 5 {
			s, err := load.StartStdio(ctx, load.Legacy, b.programs.server(peer), "stdio", "-tools", strconv.Itoa(tools))
			if err != nil {
				return nil, err
			}
			s.Close()
			times = append(times, milli(s.Startup))
		}
		return []figure{{"ms", load.Median(times)}}, nil
	}
}

func idle(n int, streams bool) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		s, err := session.start(ctx, b, peer)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		bytes, err := s.Idle(ctx, n, streams)
		return []figure{{"KiB", bytes / kib}}, err
	}
}

// client measures a client, which measures itself. The server is bare's.
func client(transport string, conc int) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		args := []string{transport, "-c", strconv.Itoa(conc), "-dur", b.dur.String(), "-warm", b.warm.String()}
		if transport == "stdio" {
			args = append(args, "--", b.programs.server("bare"), "stdio")
		} else {
			s, err := session.start(ctx, b, "bare")
			if err != nil {
				return nil, err
			}
			defer s.Close()
			args = append(args, "-url", "http://"+s.Addr+"/mcp")
		}
		out, err := output(exec.CommandContext(ctx, b.programs.client(peer), args...))
		if err != nil {
			return nil, err
		}
		var r struct {
			CPU float64 `json:"cpu_s_100k"`
			P50 float64 `json:"p50_us"`
		}
		if err := json.Unmarshal(out, &r); err != nil || r.CPU <= 0 {
			return nil, fmt.Errorf("the client says %.200q: %w", out, err)
		}
		f := []figure{{"CPU µs", r.CPU * 10}}
		if conc == 1 {
			f = append(f, figure{"p50 µs", r.P50})
		}
		return f, nil
	}
}

// output runs a program and returns its standard output. Its error includes the standard
// error.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if exit.ExitCode() == 64 {
			return nil, load.ErrUnsupported
		}
		return nil, fmt.Errorf("%w, saying %.500q", err, exit.Stderr)
	}
	return out, err
}

func inproc(name string) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		out, err := output(exec.CommandContext(ctx, b.programs.inproc(peer), "-test.run=^$", "-test.bench=^"+name+"$",
			"-test.benchmem", "-test.benchtime="+b.dur.String()))
		if err != nil {
			return nil, err
		}
		r, err := parseBenchmark(string(out), name)
		if err != nil {
			return nil, err
		}
		return []figure{{"time µs", r["ns/op"] / 1000}, {"bytes", r["B/op"]}, {"allocations", r["allocs/op"]}}, nil
	}
}

// gateway measures patchbay up in front of Patchbay's server on stdio, next to a call of
// that server over HTTP: a caller cannot tell them apart.
func gateway(conns int, duties ...setup.Duty) measureFunc {
	return func(ctx context.Context, b *bench, peer string) ([]figure, error) {
		if peer != "patchbay" {
			return nil, load.ErrUnsupported
		}
		through, err := throughGateway(ctx, b, peer, conns, duties)
		if err != nil {
			return nil, err
		}
		direct, err := modern.start(ctx, b, peer)
		if err != nil {
			return nil, err
		}
		defer direct.Close()
		without, err := direct.Echo("echo", load.Text(100), conns, b.warm, b.dur)
		if err != nil {
			return nil, err
		}
		return append(of(through, conns == 1), figure{"CPU / direct call", float64(through.CPUPerCall()) / float64(without.CPUPerCall())}), nil
	}
}

func throughGateway(ctx context.Context, b *bench, peer string, conns int, duties []setup.Duty) (load.Sample, error) {
	up, err := setup.Start(ctx, setup.Options{Program: b.programs.gateway(), Server: []string{b.programs.server(peer), "stdio"}, Duties: duties})
	if err != nil {
		return load.Sample{}, err
	}
	var sample load.Sample
	if err = up.Adopt(); err == nil {
		sample, err = up.Echo(up.Tool, load.Text(100), conns, b.warm, b.dur)
	}
	_, late := up.End()
	return sample, errors.Join(err, late)
}
