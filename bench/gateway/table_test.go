//go:build linux

package main

import (
	"math"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/bench/load"
)

// Differences and ratios are taken within a round, so that a slow round does not count.
func TestGoals(t *testing.T) {
	r := &results{ways: ways, clients: 50, values: map[string]map[string][]float64{}}
	for round, slow := range []float64{1, 3, 2} {
		r.add(round, 3, direct, map[string]float64{figureP50: 0.1 * slow})
		r.add(round, 3, before, map[string]float64{figureCPU: 150 * slow, figureCPUMany: 80 * slow})
		r.add(round, 3, bare, map[string]float64{figureCPU: 151 * slow, figureCPUMany: 88 * slow, figureP50: 0.3 * slow, figureP99: 4 * slow})
	}
	r.add(1, 3, pausing, map[string]float64{figureCPU: 500})
	r.add(1, 3, everything, map[string]float64{figureCPU: 603, figureP50: 2, figureP99: 9})
	want := map[string]struct {
		is  float64
		met bool
	}{
		"bare: CPU ms for 1,000 calls":                 {302, false},
		"bare / before: CPU":                           {151. / 150, true},
		"bare / before: CPU, many":                     {1.1, false},
		"everything - bare: CPU ms for 1,000 calls":    {150, true},
		"everything - pausing: CPU ms for 1,000 calls": {103, true},
		"bare - direct: p50 ms":                        {0.4, true},
		"everything - direct: p50 ms":                  {1.7, false},
		"bare: p99 ms, many":                           {8, true},
		"everything: p99 ms, many":                     {9, true},
	}
	for _, g := range goals {
		is := load.Median(g.values(r))
		if w, ok := want[g.name]; !ok || math.Abs(is-w.is) > 1e-9 || (is <= g.most) != w.met {
			t.Errorf("%s: %v, want %v", g.name, is, w)
		}
	}
	var out strings.Builder
	r.print(&out)
	for _, text := range []string{"everything - direct: p50 ms", "missed", "1.01 ±0.00"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("there is no %q in\n%s", text, &out)
		}
	}
	if strings.Contains(out.String(), "NaN") {
		t.Errorf("a figure that was not measured is shown:\n%s", &out)
	}
}
