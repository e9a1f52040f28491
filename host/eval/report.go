package eval

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Report is the result of a suite.
type Report struct {
	Suite   string      `json:"suite"`
	Results []*Result   `json:"results"` // by task, model and run, in the order of the suite
	Took    host.Millis `json:"duration_ms"`
}

// Row sums up the runs of a task with a model.
type Row struct {
	Task   string      `json:"task"`
	Model  string      `json:"model"`
	Runs   int         `json:"runs"`
	Passed int         `json:"passed"`
	Errors int         `json:"errors,omitempty"` // runs that did not complete
	Steps  float64     `json:"steps"`            // of a run, on average
	Tokens int64       `json:"tokens"`           // of a run, input and output, on average
	Cost   float64     `json:"cost,omitempty"`   // of all runs and their judges; 0: unknown
	Median host.Millis `json:"median_ms"`        // of the time of a run
	Worst  host.Millis `json:"worst_ms"`         // likewise
}

// Rows sums up the results, in their order.
func (r *Report) Rows() []Row {
	var rows []Row
	for i := 0; i < len(r.Results); {
		first := r.Results[i]
		row := Row{Task: first.Task, Model: first.Model}
		var times []host.Millis
		for ; i < len(r.Results) && r.Results[i].Task == first.Task && r.Results[i].Model == first.Model; i++ {
			one := r.Results[i]
			row.Runs++
			if one.Passed {
				row.Passed++
			}
			if one.Error != "" {
				row.Errors++
			}
			row.Steps += float64(one.Steps)
			row.Tokens += one.Usage.Input + one.Usage.Output
			row.Cost += one.Cost + one.JudgeCost
			times = append(times, one.Took)
		}
		row.Steps /= float64(row.Runs)
		row.Tokens /= int64(row.Runs)
		slices.Sort(times)
		row.Median, row.Worst = times[len(times)/2], times[len(times)-1]
		rows = append(rows, row)
	}
	return rows
}

// Err returns nil if all runs have passed, or an error with a line for each run that has not.
func (r *Report) Err() error {
	var lines []string
	for _, one := range r.Results {
		if !one.Passed {
			lines = append(lines, fmt.Sprintf("%s, %s, run %d: %s", one.Task, one.Model, one.Run, one.why()))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// why returns the reasons why a run has not passed, on one line.
func (r *Result) why() string {
	list := r.Faults
	if r.Error != "" {
		list = append(slices.Clone(list), r.Error)
	}
	return strings.Join(list, "; ")
}

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Time    string      `xml:"time,attr"`
		Failure *junitFault `xml:"failure,omitempty"`
		Error   *junitFault `xml:"error,omitempty"`
		Out     string      `xml:"system-out,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report in the JUnit XML format of continuous integration systems: a suite
// for each model, a case for each run.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Name: r.Suite, Time: seconds(r.Took)}
	var models []string
	for _, one := range r.Results {
		if !slices.Contains(models, one.Model) {
			models = append(models, one.Model)
		}
	}
	for _, m := range models {
		s := junitSuite{Name: m}
		var took host.Millis
		for _, one := range r.Results {
			if one.Model != m {
				continue
			}
			c := junitCase{Class: r.Suite + "." + one.Task, Name: fmt.Sprintf("run %d", one.Run), Time: seconds(one.Took), Out: one.protocol()}
			switch {
			case one.Error != "":
				c.Error = &junitFault{text.Short(one.Error), one.why()}
				s.Errors++
			case !one.Passed:
				c.Failure = &junitFault{text.Short(one.Faults[0]), strings.Join(one.Faults, "\n")}
				s.Failures++
			}
			took += one.Took
			s.Cases = append(s.Cases, c)
		}
		s.Tests, s.Time = len(s.Cases), seconds(took)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// protocol returns the calls and the answers of a run.
func (r *Result) protocol() string {
	var b strings.Builder
	turns := r.Turns
	if turns == nil {
		turns = []Reply{r.Reply}
	}
	for i := range turns {
		if i > 0 {
			b.WriteString("\n\n")
		}
		for j := range turns[i].Calls {
			c := &turns[i].Calls[j]
			fmt.Fprintf(&b, "%s %s: %s\n", c.name(), text.Clip(string(c.Arguments), 1000), c.Outcome)
		}
		b.WriteString(turns[i].Answer)
	}
	return b.String()
}

func seconds(d host.Millis) string { return fmt.Sprintf("%.3f", time.Duration(d).Seconds()) }
