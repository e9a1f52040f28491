package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Baseline is what a suite has reached before, to compare reports with. Its JSON is the content of a file.
type Baseline struct {
	Version int    `json:"version"` // 1
	Suite   string `json:"suite"`
	Rows    []Row  `json:"rows"`
}

// Baseline returns what later reports are compared with.
func (r *Report) Baseline() *Baseline { return &Baseline{Version: 1, Suite: r.Suite, Rows: r.Rows()} }

// ParseBaseline reads the JSON of a baseline.
func ParseBaseline(data []byte) (*Baseline, error) {
	b := new(Baseline)
	if err := json.Unmarshal(data, b); err != nil {
		return nil, fmt.Errorf("the baseline cannot be read: %w", err)
	}
	switch {
	case b.Version == 0 || b.Rows == nil:
		return nil, errors.New("the file is not a baseline: it has no version and rows")
	case b.Version > 1:
		return nil, fmt.Errorf("the baseline has version %d, which a newer program has written; this one knows version 1", b.Version)
	}
	for _, row := range b.Rows {
		if row.Runs < 1 || row.Passed < 0 || row.Passed > row.Runs {
			return nil, fmt.Errorf("the baseline cannot be read: %d of %d runs of task %q have passed", row.Passed, row.Runs, row.Task)
		}
	}
	return b, nil
}

// Comparison is a report beside a baseline.
type Comparison struct {
	Changes []Change `json:"changes"`
	Missing []string `json:"missing,omitempty"` // tasks of the baseline that were not run
}

// Change is a row beside that of the baseline.
type Change struct {
	Row
	Base  *Row `json:"base,omitempty"` // nil: the baseline has none
	Worse bool `json:"worse,omitempty"`
}

// Compare compares a report with the baseline. A row is worse if the share of its runs that have passed is lower than in the
// baseline by more than the tolerance (0.1: a tenth), or if more of them did not complete; a row that the baseline does not have
// if a run has failed. Rows belong together by task and model, or by task alone if both have a single model each, so that one model can be compared
// with another.
func (b *Baseline) Compare(r *Report, tolerance float64) *Comparison {
	c := &Comparison{Changes: []Change{}}
	rows := r.Rows()
	before, now := modelsOf(b.Rows), modelsOf(rows)
	other := len(before) == 1 && len(now) == 1
	seen := map[int]bool{}
	for _, row := range rows {
		change := Change{Row: row, Worse: row.Passed < row.Runs}
		if i := slices.IndexFunc(b.Rows, func(x Row) bool { return x.Task == row.Task && (x.Model == row.Model || other) }); i >= 0 {
			seen[i] = true
			change.Base = &b.Rows[i]
			change.Worse = row.share() < change.Base.share()-tolerance-1e-9 || row.Errors*change.Base.Runs > change.Base.Errors*row.Runs
		}
		c.Changes = append(c.Changes, change)
	}
	for i, row := range b.Rows {
		if !seen[i] && (other || slices.Contains(now, row.Model)) && !slices.Contains(c.Missing, row.Task) {
			c.Missing = append(c.Missing, row.Task)
		}
	}
	return c
}

// Err returns nil if no row is worse, or an error with a line for each that is.
func (c *Comparison) Err() error {
	var lines []string
	for _, change := range c.Changes {
		switch b := change.Base; {
		case !change.Worse:
		case b == nil:
			lines = append(lines, fmt.Sprintf("%s, %s: %d of %d runs passed; the baseline does not have this task", change.Task, change.Model, change.Passed, change.Runs))
		default:
			line := fmt.Sprintf("%s, %s: %d of %d runs passed; in the baseline %d of %d", change.Task, change.Model, change.Passed, change.Runs, b.Passed, b.Runs)
			if change.Errors > 0 {
				line += fmt.Sprintf("; %d did not complete", change.Errors)
			}
			lines = append(lines, line)
		}
	}
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

func (r *Row) share() float64 { return float64(r.Passed) / float64(r.Runs) }

func modelsOf(rows []Row) (names []string) {
	for _, row := range rows {
		if !slices.Contains(names, row.Model) {
			names = append(names, row.Model)
		}
	}
	return names
}
