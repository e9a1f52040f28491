//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/patchbay-dev/patchbay/bench/load"
)

// The figures of a way.
const (
	figureCPU     = "CPU ms"
	figureP50     = "p50 ms"
	figureCPUMany = "CPU ms, many"
	figureP99     = "p99 ms, many"
	figureRate    = "calls/s"
	figureLines   = "audit lines"
	figureSpans   = "spans"
)

// results are the measurements so far.
type results struct {
	ways    []way
	clients int
	values  map[string]map[string][]float64 // by way and figure; by round, NaN where there is none
}

func (r *results) add(round, rounds int, way string, figures map[string]float64) {
	if r.values[way] == nil {
		r.values[way] = map[string][]float64{}
	}
	for name, v := range figures {
		if r.values[way][name] == nil {
			r.values[way][name] = slices.Repeat([]float64{math.NaN()}, rounds)
		}
		r.values[way][name][round] = v
	}
}

// of returns the values of a figure that exist.
func (r *results) of(way, figure string) []float64 {
	return slices.DeleteFunc(slices.Clone(r.values[way][figure]), math.IsNaN)
}

// pairs returns how a way compares with another in a figure, in each round that has both of them.
func (r *results) pairs(way, figure string, compare func(a, b float64) float64, other string) (out []float64) {
	others := r.values[other][figure]
	for i, v := range r.values[way][figure] {
		if i >= len(others) {
			break
		}
		if v = compare(v, others[i]); !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	return out
}

func less(a, b float64) float64  { return a - b }
func ratio(a, b float64) float64 { return a / b }

// goal is a figure with its bound.
type goal struct {
	name   string
	values func(r *results) []float64
	most   float64
}

var goals = []goal{
	{"bare: CPU ms for 1,000 calls", func(r *results) []float64 { return r.of(bare, figureCPU) }, 200},
	{"bare / before: CPU", func(r *results) []float64 { return r.pairs(bare, figureCPU, ratio, before) }, 1.02},
	{"bare / before: CPU, many", func(r *results) []float64 { return r.pairs(bare, figureCPUMany, ratio, before) }, 1.02},
	{"everything - bare: CPU ms for 1,000 calls", func(r *results) []float64 { return r.pairs(everything, figureCPU, less, bare) }, 250},
	{"everything - pausing: CPU ms for 1,000 calls", func(r *results) []float64 { return r.pairs(everything, figureCPU, less, pausing) }, 250},
	{"bare - direct: p50 ms", func(r *results) []float64 { return r.pairs(bare, figureP50, less, direct) }, 0.8},
	{"everything - direct: p50 ms", func(r *results) []float64 { return r.pairs(everything, figureP50, less, direct) }, 1.5},
	{"bare: p99 ms, many", func(r *results) []float64 { return r.of(bare, figureP99) }, 10},
	{"everything: p99 ms, many", func(r *results) []float64 { return r.of(everything, figureP99) }, 10},
}

// print writes the table of the figures, and that of the goals.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "CPU of the gateway's process for 1,000 calls; many: %d connections\n\n", r.clients)
	figures := []string{figureCPU, figureP50, figureCPUMany, figureP99, figureRate, figureLines, figureSpans}
	table := [][]string{append([]string{""}, figures...)}
	for _, way := range r.ways {
		cells := []string{way.name}
		for _, figure := range figures {
			cells = append(cells, load.Cell(r.of(way.name, figure)))
		}
		table = append(table, cells)
	}
	load.PrintTable(w, 1, table)
	fmt.Fprintln(w)
	table = [][]string{{"goal", "at most", "is", ""}}
	for _, g := range goals {
		values := g.values(r)
		if len(values) == 0 {
			continue
		}
		met := "met"
		if load.Median(values) > g.most {
			met = "missed"
		}
		table = append(table, []string{g.name, fmt.Sprint(g.most), load.Cell(values), met})
	}
	if len(table) > 1 {
		load.PrintTable(w, 1, table)
	}
}
