package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parseBenchmark returns the figures of a benchmark, by unit, from the output of a test
// binary.
func parseBenchmark(out, name string) (map[string]float64, error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		if got, _, _ := strings.Cut(f[0], "-"); got != name {
			continue
		}
		figures := map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %.200q: %w", line, err)
			}
			figures[f[i+1]] = v
		}
		return figures, nil
	}
	return nil, fmt.Errorf("no benchmark %s in %.500q", name, out)
}
