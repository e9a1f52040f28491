package eval

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// Suite is the content of a file. It may also be built in Go.
type Suite struct {
	Name string // base name of the file, or any other name

	// Servers are the names of the servers to use; empty: the caller decides. Run does not read
	// them: Runner.Start adds the servers.
	Servers []string

	// Inline is a configuration in the format of mcp.json, of servers that the file defines itself,
	// instead of Servers. Its lines, and nearly its columns, are those of the file.
	Inline json.RawMessage

	Models   []string // Run needs at least one; a file may name none
	Judge    string   // model that judges answers; empty: the first of Models
	Runs     int      // of each task with each model; 0: 1
	Parallel int      // concurrent runs; 0: 4
	System   string   // system prompt
	Allow    []string // tools that may be called besides the expected ones, as in host.Host
	Tasks    []*Task
}

// RunsOf returns how many times a task is run with each model.
func (s *Suite) RunsOf(t *Task) int { return cmp.Or(t.Runs, s.Runs, 1) }

// Task is one task of a suite.
type Task struct {
	Name   string // unique in the suite
	Line   int    // in the file; 0: not from a file
	Prompt string
	Turns  []Turn   // of a conversation, instead of Prompt
	System string   // replaces that of the suite
	Runs   int      // replaces that of the suite
	Allow  []string // in addition to those of the suite

	// Answers are the answers to forms from servers, by field name. If nil, forms are declined.
	Answers map[string]json.RawMessage

	Sampling bool   // servers may send sampling requests
	Expect   Expect // of the whole conversation, and the last answer
}

// Turn is what a person says in a conversation, and what must follow.
type Turn struct {
	Prompt string
	Expect Expect // until the next turn
}

// conversation returns the turns. The only one of a Prompt has no expectations besides those of the task.
func (t *Task) conversation() []Turn {
	if len(t.Turns) == 0 {
		return []Turn{{Prompt: t.Prompt}}
	}
	return t.Turns
}

// Expect describes what a run, or a turn of it, must do. The zero value requires only an answer.
type Expect struct {
	Calls   []Call   // required calls; each call that was made counts for at most one of them
	Ordered bool     // in this order; others may come between
	Never   []string // patterns of tools that the model must not try to call
	Answer  Answer

	Steps int           // at most; 0: only the bound of the host
	Cost  float64       // at most; 0: no bound
	Time  time.Duration // at most, without judges, which have 5 minutes for each criterion; 0: none of a turn, DefaultTime of a task
}

// DefaultTime is the time limit of each turn of a run whose task does not set one.
const DefaultTime = 5 * time.Minute

// Call is an expected call.
type Call struct {
	Tool      string // SERVER/TOOL, where * matches any text
	Arguments []Argument
	Min, Max  int // number of times; both 0: at least once; Max alone 0: no upper bound
}

// Argument describes an expected argument.
type Argument struct {
	// Path is the name of the argument, or leads into it: "filter.tags[0]".
	Path string
	Matcher
}

// Matcher describes an expected value. All fields that are set must match.
type Matcher struct {
	Equals   json.RawMessage // compared as JSON: 1 equals 1.0, and the order of members does not matter
	Contains string          // of a text, or of one text in a list
	Regexp   string          // likewise
	Schema   json.RawMessage // JSON Schema
	Absent   bool            // the value must not exist
}

// Answer describes the expected last answer from the model. All fields that are set must match.
type Answer struct {
	Equals   string // ignoring surrounding white space
	Contains []string
	Lacks    []string // texts that must not occur
	Regexp   []string
	Schema   json.RawMessage // the answer must be JSON, possibly in a fence, that fits the schema
	Judge    []string        // criteria for the judge: all must be met
}

// Problem is a fault of a file.
type Problem = yamlfile.Problem

// Problems is an error that lists all faults of a file.
type Problems = yamlfile.Problems
