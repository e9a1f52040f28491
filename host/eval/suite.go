package eval

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// Suite is what a file says. It may also be made in Go.
type Suite struct {
	Name string // of the file, or whatever

	// Servers are the names of servers; none: those that the runner has otherwise.
	Servers []string

	// Inline is a configuration as mcp.json has it, of the servers that the file describes
	// itself, in place of Servers. Its lines, and nearly its columns, are those of the file.
	Inline json.RawMessage

	Models   []string // the runner's own if there are none
	Judge    string   // the model that judges answers; empty: the first of Models
	Runs     int      // of each task with each model; 0: 1
	Parallel int      // runs at the same time; 0: 4
	System   string   // what models are told first
	Allow    []string // tools that may be called besides those that are expected, as in host.Host
	Tasks    []*Task
}

// RunsOf is how often a task is run with each model.
func (s *Suite) RunsOf(t *Task) int { return cmp.Or(t.Runs, s.Runs, 1) }

// Task is one task of a suite.
type Task struct {
	Name   string // no other has it
	Line   int    // of the file; 0: it is from none
	Prompt string
	System string   // in place of that of the suite
	Runs   int      // in place of those of the suite
	Allow  []string // besides those of the suite

	// Answers are given to questions of servers, by the names of the fields. Nil: they are declined.
	Answers map[string]json.RawMessage

	Sampling bool // servers may have the model complete texts
	Expect   Expect
}

// Expect is what is expected of a run. The zero value is satisfied with an answer.
type Expect struct {
	Calls   []Call   // that are made; one that is made counts for one of these
	Ordered bool     // in this order; others may stand between them
	Never   []string // tools that the model does not even try to call, as patterns
	Answer  Answer

	Steps int           // at most; 0: no bound but that of the host
	Cost  float64       // at most; 0: no bound
	Time  time.Duration // at most, of the whole run but for judges, who have 5 minutes for each criterion; 0: DefaultTime
}

// DefaultTime bounds a run that says nothing about its time.
const DefaultTime = 5 * time.Minute

// Call is a call that is expected.
type Call struct {
	Tool      string // SERVER/TOOL, where * stands for any text
	Arguments []Argument
	Min, Max  int // how often; 0 and 0: once or more; Max alone 0: no bound
}

// Argument is what is expected of an argument.
type Argument struct {
	// Path is its name, or leads into it: "filter.tags[0]".
	Path string
	Matcher
}

// Matcher is what is expected of a value. All of its fields that are set must hold.
type Matcher struct {
	Equals   json.RawMessage // as JSON: 1 equals 1.0, and the order of members is of no account
	Contains string          // of a text, or of one of the texts of a list
	Regexp   string          // likewise
	Schema   json.RawMessage // JSON Schema
	Absent   bool            // there is no such value
}

// Answer is what is expected of the last answer of the model. All that is set must hold.
type Answer struct {
	Equals   string // but for the space around it
	Contains []string
	Lacks    []string // texts that are not in it
	Regexp   []string
	Schema   json.RawMessage // it is JSON, be it in a fence, and fits this
	Judge    []string        // what a model is asked about it: each must be true
}

// Problem is one fault of a file.
type Problem = yamlfile.Problem

// Problems are all faults of a file, as an error.
type Problems = yamlfile.Problems
