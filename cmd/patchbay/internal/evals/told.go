package evals

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/launch"
)

// Told returns the result of one run in lines; paint colours a text.
func Told(r *eval.Result, paint func(text, colour string) string) []string {
	what := paint("ok", "32")
	switch {
	case r.Error != "":
		what = paint("error", "31")
	case !r.Passed:
		what = paint("failed", "31")
	}
	lines := []string{fmt.Sprintf("%s  %s, %s, run %d: %s", what, screen.OneLine(r.Task), screen.OneLine(r.Model), r.Run, screen.Quantity(r.Steps, "step"))}
	faults := r.Faults
	if r.Error != "" {
		faults = append(faults[:len(faults):len(faults)], r.Error)
	}
	for _, f := range faults {
		lines = append(lines, "  "+screen.Visible(screen.Clip(f)))
	}
	return lines
}

// JSON returns a report, and how it compares with a baseline, which may be nil.
func JSON(r *eval.Report, c *eval.Comparison) ([]byte, error) {
	return json.MarshalIndent(struct {
		*eval.Report
		Rows     []eval.Row       `json:"rows"`
		Compared *eval.Comparison `json:"compared,omitempty"` // with the baseline
	}{r, r.Rows(), c}, "", "  ")
}

// Inline returns the servers in a file of tasks.
func Inline(file string, text []byte) ([]config.Server, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	f, faults, err := config.Parse(path, text, nil)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return launch.Enabled(f), nil
}
