package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/bench/load"
)

// results are the measurements so far.
type results struct {
	peers    []string // ours first
	rounds   int
	lines    []*line
	failures []failure // except unsupported modes
}

// A figure is one number of a measurement.
type figure struct {
	name  string // with its unit: "CPU µs"
	value float64
}

// A line is one figure of a row, for all peers.
type line struct {
	row, figure string
	values      map[string][]float64 // by peer; by round, NaN where there is none
}

type failure struct {
	row, peer string
	err       error
}

func newResults(peers []string, rounds int) *results { return &results{peers: peers, rounds: rounds} }

// add adds the figures of a measurement, or its error.
func (r *results) add(row, peer string, round int, figures []figure, err error) {
	if err != nil {
		if !errors.Is(err, load.ErrUnsupported) {
			r.failures = append(r.failures, failure{row, peer, err})
		}
		return
	}
	for _, f := range figures {
		r.line(row, f.name, peer)[round] = f.value
	}
}

// line returns the values of one peer, for the caller to fill in.
func (r *results) line(row, figure, peer string) []float64 {
	i := slices.IndexFunc(r.lines, func(l *line) bool { return l.row == row && l.figure == figure })
	if i < 0 {
		// The lines of a row stay together, in any order of arrival.
		i = len(r.lines)
		for j, l := range r.lines {
			if l.row == row {
				i = j + 1
			}
		}
		r.lines = slices.Insert(r.lines, i, &line{row, figure, map[string][]float64{}})
	}
	l := r.lines[i]
	if l.values[peer] == nil {
		l.values[peer] = slices.Repeat([]float64{math.NaN()}, r.rounds)
	}
	return l.values[peer]
}

// measured returns the values that exist.
func (l *line) measured(peer string) []float64 {
	return slices.DeleteFunc(slices.Clone(l.values[peer]), math.IsNaN)
}

// ratios returns ours divided by a peer's, of each round that has both.
func (l *line) ratios(ours, peer string) []float64 {
	var out []float64
	a, b := l.values[ours], l.values[peer]
	for i := range min(len(a), len(b)) {
		if q := a[i] / b[i]; !math.IsNaN(q) && !math.IsInf(q, 0) {
			out = append(out, q)
		}
	}
	return out
}

// print writes the table.
func (r *results) print(w io.Writer) {
	ours, others := r.peers[0], r.peers[1:]
	table := [][]string{{"", ""}}
	table[0] = append(table[0], r.peers...)
	for _, p := range others {
		table[0] = append(table[0], "/ "+p)
	}
	last := ""
	for _, l := range r.lines {
		cells := []string{l.row, l.figure}
		if l.row == last {
			cells[0] = ""
		}
		last = l.row
		for _, p := range r.peers {
			cells = append(cells, load.Cell(l.measured(p)))
		}
		for _, p := range others {
			cells = append(cells, load.Cell(l.ratios(ours, p)))
		}
		table = append(table, cells)
	}
	load.PrintTable(w, 2, table)
	for _, f := range r.failures {
		fmt.Fprintf(w, "failed: %s, %s: %v\n", f.row, f.peer, f.err)
	}
}

// A report is the content of the file of -json.
type report struct {
	Go       string        `json:"go"`
	System   string        `json:"system"`
	Cores    int           `json:"cores"`
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"durationNs"`
	Lines    []reportLine  `json:"lines"`
	Failures []string      `json:"failures"`
}

type reportLine struct {
	Row    string                `json:"row"`
	Figure string                `json:"figure"`
	Peers  map[string]reportPeer `json:"peers"`
}

type reportPeer struct {
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
	Spread float64   `json:"spread"`
	// Ratio is ours divided by the peer's, the median over the rounds. Absent for ours.
	Ratio       *float64 `json:"ratio,omitempty"`
	RatioSpread *float64 `json:"ratioSpread,omitempty"`
}

func (r *results) report(dur time.Duration) report {
	out := report{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Rounds: r.rounds, Duration: dur,
		Lines: []reportLine{}, Failures: []string{}}
	for _, l := range r.lines {
		rl := reportLine{l.row, l.figure, map[string]reportPeer{}}
		for _, peer := range r.peers {
			v := l.measured(peer)
			if len(v) == 0 {
				continue
			}
			p := reportPeer{Values: v, Median: load.Median(v), Spread: load.Spread(v)}
			if q := l.ratios(r.peers[0], peer); peer != r.peers[0] && len(q) > 0 {
				m, s := load.Median(q), load.Spread(q)
				p.Ratio, p.RatioSpread = &m, &s
			}
			rl.Peers[peer] = p
		}
		out.Lines = append(out.Lines, rl)
	}
	for _, f := range r.failures {
		out.Failures = append(out.Failures, fmt.Sprintf("%s, %s: %v", f.row, f.peer, f.err))
	}
	return out
}
