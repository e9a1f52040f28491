// Package evals has what the verb eval does besides running: baselines, models from a recording, and the table.
package evals

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/provider/recording"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// Flags are the flags of eval.
type Flags struct {
	Models   []string `name:"model" short:"m" sep:"none" placeholder:"MODEL" help:"Replace the models of the file (repeatable)."`
	Judge    string   `placeholder:"MODEL" help:"Judge answers with this model."`
	Runs     int      `short:"n" placeholder:"N" help:"Repetitions of each task with each model; 0: as in FILE."`
	Parallel int      `placeholder:"N" help:"Number of parallel runs [4]."`
	Task     []string `sep:"none" placeholder:"NAME" help:"Run only this task; * matches any text (repeatable)."`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Write a JUnit report."`

	Baseline  string  `placeholder:"FILE" help:"Compare with what --save-baseline has written."`
	Save      string  `name:"save-baseline" placeholder:"FILE" help:"Write what later reports are compared with."`
	Tolerance float64 `placeholder:"PERCENT" help:"How much fewer runs than in the baseline may pass [0]."`

	Record string `name:"record-model" placeholder:"FILE" help:"Record what the models are asked and answer."`
	Replay string `name:"replay-model" placeholder:"FILE" help:"Answer from such a recording instead of the models."`
}

// Choose lets flags override the file.
func (f *Flags) Choose(s *eval.Suite) error {
	if len(f.Models) > 0 {
		s.Models = f.Models
	}
	if f.Judge != "" {
		s.Judge = f.Judge
	}
	if f.Runs < 0 || f.Parallel < 0 {
		return advice.Usagef("--runs and --parallel must not be negative")
	}
	if f.Parallel > 0 {
		s.Parallel = f.Parallel
	}
	if f.Runs > 0 {
		s.Runs = f.Runs
		for _, t := range s.Tasks {
			t.Runs = 0
		}
	}
	if len(f.Task) == 0 {
		return nil
	}
	var names []string
	s.Tasks = slices.DeleteFunc(s.Tasks, func(t *eval.Task) bool {
		names = append(names, t.Name)
		return !slices.ContainsFunc(f.Task, func(pattern string) bool { return wildcard.Match(pattern, t.Name) })
	})
	if len(s.Tasks) == 0 {
		return advice.Usagef("no task %s; tasks: %s", strings.Join(f.Task, ", "), strings.Join(names, ", "))
	}
	return nil
}

// WriteJUnit writes a report for continuous integration, if a file is named.
func (f *Flags) WriteJUnit(r *eval.Report) (err error) {
	if f.JUnit == "" {
		return nil
	}
	var w io.WriteCloser
	if w, err = ownfile.Sink(f.JUnit, os.O_TRUNC, 0o644, nil); err != nil {
		return advice.Usagef("--junit: %w", err)
	}
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	return r.WriteJUnit(w)
}

// ReadBaseline reads the baseline for a file of tasks; nil: none is named.
func (f *Flags) ReadBaseline(file string) (*eval.Baseline, error) {
	if f.Tolerance < 0 || f.Tolerance > 100 || f.Tolerance > 0 && f.Baseline == "" {
		return nil, advice.Usagef("--tolerance is a percentage from 0 to 100, beside --baseline")
	}
	if f.Baseline == "" {
		return nil, nil
	}
	data, err := arguments.ReadFile(f.Baseline)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, advice.Usagef("--baseline: %w", err).Hint(screen.Shell([]string{"patchbay", "eval", file, "--save-baseline", f.Baseline}))
	} else if err != nil {
		return nil, advice.Usagef("--baseline: %w", err)
	}
	b, err := eval.ParseBaseline(data)
	if err != nil {
		return nil, advice.Usagef("--baseline %s: %w", f.Baseline, err)
	}
	return b, nil
}

// WriteBaseline writes what later reports are compared with, if a file is named.
func (f *Flags) WriteBaseline(r *eval.Report) error {
	if f.Save == "" {
		return nil
	}
	data, err := json.MarshalIndent(r.Baseline(), "", "  ")
	if err == nil {
		err = ownfile.ReplaceMode(f.Save, append(data, '\n'), 0o644)
	}
	if err != nil {
		return advice.Usagef("--save-baseline: %w", err)
	}
	return nil
}

// Wire returns what records the models, or answers in their place; nil: neither is asked for. The client is that for
// models, and may be nil. The function that it returns ends that after the runs.
func (f *Flags) Wire(client *http.Client, redact func(string) string, note func(string, ...any)) (_ http.RoundTripper, end func() error, err error) {
	o := recording.Options{Redact: redact}
	switch {
	case f.Record != "" && f.Replay != "":
		return nil, nil, advice.Usagef("--record-model and --replay-model exclude each other")
	case f.Record != "":
		if client != nil {
			o.Transport = client.Transport
		}
		w, err := recording.Create(f.Record, o)
		if err != nil {
			return nil, nil, advice.Usagef("--record-model: %w", err)
		}
		return w, w.Close, nil
	case f.Replay != "":
		p, err := recording.Open(f.Replay, o)
		if err != nil {
			return nil, nil, advice.Usagef("--replay-model: %w", err)
		}
		return p, func() error {
			if n := p.Similar(); n > 0 {
				note("recorded answers to other results of tools than now: %d", n)
			}
			if n := p.Unused(); n > 0 {
				note("recorded answers that were not asked for: %d", n)
			}
			return nil
		}, nil
	}
	return nil, func() error { return nil }, nil
}

// Notes says what a comparison does not count as worse, but a person wants to know.
func Notes(r *eval.Report, c *eval.Comparison) (notes []string) {
	if len(c.Missing) > 0 {
		notes = append(notes, "not run, though in the baseline: "+screen.Visible(strings.Join(c.Missing, ", ")))
	}
	if c.Err() == nil && r.Err() != nil {
		notes = append(notes, "some runs failed, not more than in the baseline")
	}
	return notes
}
