package eval_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/eval"
)

const whole = `
servers:
  db: {builtin: sqlite, args: [--db, x.db]}
  web:
    url: https://example.com/mcp
models: openai/a
judge: openai/b
runs: 3
parallel: 2
allow: ["db/*"]
tasks:
  - name: tables
    prompt: |
      Which tables
      are there?
    runs: 1
    sampling: true
    answers: {date: 2026-12-24, n: 0x10, big: 12345678901234567890}
    expect:
      ordered: true
      calls:
        - db/list_tables
        - tool: db/read_query
          min: 1
          max: 2
          arguments:
            sql: {regexp: "(?i)^select"}
            options.limits[0]: 5
            options: {equals: {contains: x}}
            gone: {absent: true}
      never: ["*/write_query"]
      answer:
        contains: [dolphin]
        lacks: sorry
        schema: {type: object}
        judge: It is polite.
      steps: 4
      cost: 0.05
      time: 90s
`

func TestParse(t *testing.T) {
	got, err := eval.Parse("dir/dolphins.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := &eval.Suite{
		Name: "dolphins", Models: []string{"openai/a"}, Judge: "openai/b", Runs: 3, Parallel: 2, Allow: []string{"db/*"},
		Inline: got.Inline,
		Tasks: []*eval.Task{{
			Name: "tables", Line: 12, Prompt: "Which tables\nare there?\n", Runs: 1, Sampling: true,
			Answers: map[string]json.RawMessage{"date": raw(`"2026-12-24"`), "n": raw("16"), "big": raw("12345678901234567890")},
			Expect: eval.Expect{
				Ordered: true,
				Calls: []eval.Call{{Tool: "db/list_tables"}, {Tool: "db/read_query", Min: 1, Max: 2, Arguments: []eval.Argument{
					{Path: "sql", Matcher: eval.Matcher{Regexp: "(?i)^select"}},
					{Path: "options.limits[0]", Matcher: eval.Matcher{Equals: raw("5")}},
					{Path: "options", Matcher: eval.Matcher{Equals: raw(`{"contains":"x"}`)}},
					{Path: "gone", Matcher: eval.Matcher{Absent: true}},
				}}},
				Never:  []string{"*/write_query"},
				Answer: eval.Answer{Contains: []string{"dolphin"}, Lacks: []string{"sorry"}, Schema: raw(`{"type":"object"}`), Judge: []string{"It is polite."}},
				Steps:  4, Cost: 0.05, Time: 90 * time.Second,
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse: (-want +got)\n%s", diff)
	}
}

// A server that the file describes keeps its position in Inline, so that its faults have the right
// lines.
func TestInlineKeepsPlaces(t *testing.T) {
	s, err := eval.Parse("x.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	var servers struct {
		McpServers map[string]struct {
			Builtin, URL string
			Args         []string
		}
	}
	if err := json.Unmarshal(s.Inline, &servers); err != nil {
		t.Fatalf("Inline = %s: %v", s.Inline, err)
	}
	if db := servers.McpServers["db"]; db.Builtin != "sqlite" || len(db.Args) != 2 || servers.McpServers["web"].URL == "" {
		t.Errorf("Inline = %s", s.Inline)
	}
	lines, inline := strings.Split(whole, "\n"), strings.Split(string(s.Inline), "\n")
	for _, word := range []string{"builtin", "url"} {
		for i, line := range lines {
			if at := strings.Index(line, word+":"); at >= 0 && astray(strings.Index(inline[i], `"`+word+`":`), at) {
				t.Errorf("%s is in line %d, column %d of the file; Inline has there %q", word, i+1, at+1, inline[i])
			}
		}
	}
}

// astray tells a place that is another, but for the quotes and brackets that YAML does without.
func astray(got, want int) bool { return got < 0 || got < want-3 || got > want+3 }

// JSON is accepted too, with tabs.
func TestParseJSON(t *testing.T) {
	s, err := eval.Parse("x.json", []byte("{\n\t\"servers\": {\"a\": {\"builtin\": \"shop\"}},\n\t\"tasks\": [{\"name\": \"a\", \"prompt\": \"b\"}]\n}"))
	if err != nil || len(s.Tasks) != 1 || !json.Valid(s.Inline) {
		t.Errorf("Parse = %+v, %v", s, err)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "", "f:1:1: the file is empty; begin with tasks:"},
		{"no tasks", "runs: 2", "f:1:1: the file has no tasks; add tasks:"},
		{"misspelt", "task: []", "f:1:1: the file has no member \"task\"; did you mean \"tasks\"?\nf:1:1: the file has no tasks; add tasks:"},
		{"not a list", "tasks: {}", "f:1:8: tasks must be a list; begin each task with \"- name:\""},
		{"all at once", `tasks:
- name: a
- name: a
  prompt: b
  expect:
    calls: [list_tables, {min: 3, max: 2, tool: a/b, arguments: {"a..b": 1}}]
    answer: {regexp: "(", schema: {type: 7}}
    time: soon
    cost: -1
    steps: 0`, `f:2:3: task "a" has no prompt; add prompt: or turns:
f:3:3: task "a" is in line 2 already; name it differently
f:6:13: "list_tables" does not name a tool; write SERVER/TOOL, where * stands for any text
f:6:26: min is 3, but max is 2
f:6:66: the path "a..b": a name is missing; it looks like filter.tags[0]
f:7:22: "(" is not a regular expression; see github.com/google/re2/wiki/Syntax
f:7:35: the schema:`},
		{"turns", `tasks:
- {name: a, turns: []}
- {name: b, turns: x}
- {name: c, prompt: x, turns: [{prompt: y}]}
- {name: d, turns: [{expect: {stesp: 1}}, {prompt: y, exept: 1}]}`, `f:2:20: the list of turns is empty; add one
f:3:20: turns must be a list; begin each turn with "- prompt:"
f:4:3: task "c" has a prompt and turns; write the prompt as the first of the turns
f:5:21: a turn has no prompt; add prompt:
f:5:31: expect has no member "stesp"; did you mean "steps"?
f:5:55: a turn has no member "exept"; did you mean "expect"?`},
		{"alias", "tasks:\n- name: &x a\n  prompt: b", `f:2:3: a task needs a one-line name; add name:
f:2:9: name: anchors and aliases are not supported; write it out`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := eval.Parse("f", []byte(tt.file))
			var all eval.Problems
			if !errors.As(err, &all) || s != nil {
				t.Fatalf("Parse = %v, %v", s, err)
			}
			if got := all.Error(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("Parse says\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// For any file, Parse returns a suite, or faults with a position in the file; the servers that it
// describes are valid JSON.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("tasks: [{name: a, prompt: b, expect: {calls: [{tool: a/b, arguments: {x: {schema: {}}}}]}}]"))
	f.Add([]byte("servers: {a: {b: [1.e3, .inf, ~, \"\\u2028\"]}}"))
	f.Add([]byte("{\"servers\":{\"a\":1},\"tasks\":[]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := eval.Parse("f", data)
		if err != nil {
			var all eval.Problems
			if s != nil || !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("Parse = %v, %v", s, err)
			}
			for _, p := range all {
				if p.Line < 1 || p.Column < 1 || p.Text == "" {
					t.Fatalf("fault %+v", p)
				}
			}
			return
		}
		if len(s.Tasks) == 0 || s.Inline != nil && !json.Valid(s.Inline) {
			t.Fatalf("Parse = %+v", s)
		}
	})
}
