//go:build unix

// Package clientkit is the measuring half of a client under test: flags, a
// closed loop of calls at some concurrency, and one JSON object on stdout.
//
// The client program is run as
//
//	CLIENT stdio -c N -dur D -warm D -size B -- SERVER ARG...
//	CLIENT http  -c N -dur D -warm D -size B -url URL
//
// and exits with status 64 if it does not support the transport.
package clientkit

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Unsupported is the exit status for a mode that the program lacks.
const Unsupported = 64

// Options are the parsed command line.
type Options struct {
	Transport string // "stdio" or "http"
	URL       string
	Server    []string
	Conc      int
	Dur, Warm time.Duration
	Text      string
}

// Parse reads the command line.
func Parse() Options {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: CLIENT stdio|http [flags]")
		os.Exit(Unsupported)
	}
	o := Options{Transport: os.Args[1]}
	size := 100
	fs := flag.NewFlagSet("client", flag.ExitOnError)
	fs.IntVar(&o.Conc, "c", 1, "concurrent calls")
	fs.DurationVar(&o.Dur, "dur", time.Second, "measured time")
	fs.DurationVar(&o.Warm, "warm", 200*time.Millisecond, "unmeasured time before")
	fs.IntVar(&size, "size", 100, "payload size")
	fs.StringVar(&o.URL, "url", "", "HTTP endpoint")
	fs.Parse(os.Args[2:])
	o.Server = fs.Args()
	o.Text = strings.Repeat("the quick brown fox jumps over the lazy dog\n", size/44+1)[:size]
	return o
}

func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// Run makes calls for the set time and prints the result. call must return the
// echoed text.
func Run(ctx context.Context, o Options, call func(ctx context.Context, text string) (string, error)) {
	got, err := call(ctx, o.Text)
	if err == nil && got != o.Text {
		err = fmt.Errorf("echoed %.80q", got)
	}
	if err != nil {
		Fail(err)
	}
	loop := func(d time.Duration) []time.Duration {
		lats := make([][]time.Duration, o.Conc)
		errs := make([]error, o.Conc)
		var wg sync.WaitGroup
		t0 := time.Now()
		for i := range lats {
			wg.Add(1)
			go func() {
				defer wg.Done()
				last := time.Now()
				for last.Sub(t0) < d && len(lats[i]) < 2000000 {
					s, err := call(ctx, o.Text)
					if err == nil && len(s) != len(o.Text) {
						err = fmt.Errorf("echoed %d bytes", len(s))
					}
					if err != nil {
						errs[i] = err
						return
					}
					now := time.Now()
					lats[i] = append(lats[i], now.Sub(last))
					last = now
				}
			}()
		}
		wg.Wait()
		var all []time.Duration
		for i := range lats {
			if errs[i] != nil {
				Fail(errs[i])
			}
			all = append(all, lats[i]...)
		}
		return all
	}
	loop(o.Warm)
	c0, t0 := cpu(), time.Now()
	lat := loop(o.Dur)
	wall, used := time.Since(t0), cpu()-c0
	slices.Sort(lat)
	n := len(lat)
	if n == 0 {
		Fail(fmt.Errorf("no call finished"))
	}
	json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"calls":      float64(n),
		"calls_s":    float64(n) / wall.Seconds(),
		"p50_us":     float64(lat[n/2]) / 1e3,
		"p99_us":     float64(lat[min(n-1, n*99/100)]) / 1e3,
		"cpu_s_100k": used.Seconds() / float64(n) * 1e5,
	})
}

// Fail ends the program with an error.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, "client:", err)
	os.Exit(1)
}
