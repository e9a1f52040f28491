package evals

import (
	"fmt"
	"math"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host/eval"
)

// Table returns a table with a row for each task and model. Beside what differs from a baseline stands how: the baseline may be nil.
func Table(r *eval.Report, c *eval.Comparison) *screen.Grid {
	g := &screen.Grid{Right: []bool{false, false, true, true, true, true, true}}
	g.Add("TASK", "MODEL", "PASSED", "STEPS", "TOKENS", "COST", "TIME")
	for i, r := range r.Rows() {
		var base *eval.Row
		if c != nil {
			base = c.Changes[i].Base
		}
		passed := fmt.Sprintf("%d/%d", r.Passed, r.Runs)
		if base != nil && base.Passed*r.Runs != r.Passed*base.Runs {
			passed += fmt.Sprintf(" (was %d/%d)", base.Passed, base.Runs)
		}
		steps, tokens, cost, took := fmt.Sprintf("%.1f", r.Steps), fmt.Sprint(r.Tokens), "-", screen.ShortTime(time.Duration(r.Median))
		if r.Cost > 0 {
			cost = fmt.Sprintf("%.4f", r.Cost)
		}
		if base != nil {
			steps += change(r.Steps, base.Steps)
			tokens += change(float64(r.Tokens), float64(base.Tokens))
			cost += change(r.Cost/float64(r.Runs), base.Cost/float64(base.Runs))
			took += change(float64(r.Median), float64(base.Median))
		}
		g.Add(r.Task, r.Model, passed, steps, tokens, cost, took)
	}
	return g
}

// change describes a difference of a percent or more.
func change(now, before float64) string {
	if before <= 0 || now <= 0 {
		return ""
	}
	percent := math.Round(100 * (now/before - 1))
	if percent == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.0f%%)", percent)
}
