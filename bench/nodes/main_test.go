//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-dur", "0"}, {"-clients", "2"}, {"-sessions", "0"}, {"x"}, {"-nonsense"}} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), args, &out, &talk); code != 2 || talk.Len() == 0 || out.Len() > 0 {
			t.Errorf("nodes %v: exit %d, %q", args, code, talk.String())
		}
	}
}

// Goals compare the sides within a round.
func TestGoals(t *testing.T) {
	b := &bench{values: map[string][]float64{
		separate + "sticky" + figureCPU: {100, 300, 200}, nodes + "sticky" + figureCPU: {110, 330, 220}, nodes + "round robin" + figureCPU: {200, 600, 400},
		nodes + "local" + figureP50: {0.5}, nodes + "forwarded" + figureP50: {2}, figureTakeover: {2.5},
	}}
	var out bytes.Buffer
	b.print(&out)
	for _, want := range []string{"work: sticky at least 0.9 0.91 ±0.00 met", "work: round robin at least 0.6 0.50 ±0.00 missed", "forwarded - local: p50 ms at most 1 1.50 missed", "takeover s, the slowest at most 3 2.50 met"} {
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, out.String())
		}
	}
}
