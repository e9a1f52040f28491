package eval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/eval"
)

// results returns a report in which some of ten runs of each task have passed.
func results(model string, passed map[string]int) *eval.Report {
	r := new(eval.Report)
	for _, task := range []string{"a", "b", "c"} {
		n, there := passed[task]
		for i := range 10 {
			if there {
				r.Results = append(r.Results, &eval.Result{Task: task, Model: model, Run: i + 1, Passed: i < n})
			}
		}
	}
	return r
}

func TestBaseline(t *testing.T) {
	data, err := json.Marshal(results("m", map[string]int{"a": 9, "b": 5, "c": 10}).Baseline())
	if err != nil {
		t.Fatal(err)
	}
	b, err := eval.ParseBaseline(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		model     string
		passed    map[string]int
		tolerance float64
		worse     string // lines of the error
		missing   []string
	}{
		{"the same", "m", map[string]int{"a": 9, "b": 5, "c": 10}, 0, "", nil},
		{"better", "m", map[string]int{"a": 10, "b": 6, "c": 10}, 0, "", nil},
		{"worse", "m", map[string]int{"a": 9, "b": 4, "c": 9}, 0, "b, m: 4 of 10 runs passed; in the baseline 5 of 10\nc, m: 9 of 10 runs passed; in the baseline 10 of 10", nil},
		{"worse within the tolerance", "m", map[string]int{"a": 8, "b": 3, "c": 9}, .1, "b, m: 3 of 10 runs passed; in the baseline 5 of 10", nil},
		{"a task is missing", "m", map[string]int{"a": 9}, 0, "", []string{"b", "c"}},
		{"another model", "other", map[string]int{"a": 8, "b": 5, "c": 10}, 0, "a, other: 8 of 10 runs passed; in the baseline 9 of 10", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := b.Compare(results(tt.model, tt.passed), tt.tolerance)
			got := ""
			if err := c.Err(); err != nil {
				got = err.Error()
			}
			if got != tt.worse || !slices.Equal(c.Missing, tt.missing) {
				t.Errorf("worse:\n%s\nmissing: %q; want\n%s\n%q", got, c.Missing, tt.worse, tt.missing)
			}
		})
	}
	// Rows of several models belong each to its own; a row without one in the baseline must pass.
	several := results("m", map[string]int{"a": 9, "b": 5, "c": 10})
	several.Results = append(several.Results, results("new", map[string]int{"a": 9, "b": 10}).Results...)
	if err := b.Compare(several, 0).Err(); err == nil || err.Error() != "a, new: 9 of 10 runs passed; the baseline does not have this task" {
		t.Errorf("Err = %v", err)
	}
	// A run that does not complete is worse than one that fails.
	broken := results("m", map[string]int{"a": 9, "b": 5, "c": 10})
	broken.Results[19].Error = "not recorded"
	if err := b.Compare(broken, 0).Err(); err == nil || err.Error() != "b, m: 5 of 10 runs passed; in the baseline 5 of 10; 1 did not complete" {
		t.Errorf("Err = %v", err)
	}
	for file, want := range map[string]string{
		`{"rows":[]}`:             "is not a baseline",
		`{"version":1}`:           "is not a baseline",
		`[1]`:                     "cannot be read",
		`{"version":2,"rows":[]}`: "a newer program",
		`{"version":1,"rows":[{"task":"a","runs":0}]}`: "0 of 0 runs",
	} {
		if _, err := eval.ParseBaseline([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseBaseline(%s): %v, want %q", file, err, want)
		}
	}
}
