package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// rules is a model whose function answers the last text of the user or of a tool.
type rules func(ctx context.Context, said, result string) model.Message

func (rules) Info() model.Info {
	return model.Info{Name: "test/rules", Price: model.Price{Input: 1, Output: 1}}
}

func (r rules) Generate(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	var said, result string
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if m.Role == model.User && p.Text != "" {
				said = p.Text
			}
			if p.Result != nil {
				result += (&model.Message{Parts: p.Result.Parts}).Text() + "\n"
			}
		}
	}
	msg := r(ctx, said, result)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	msg.Role = model.Assistant
	return &model.Response{Message: msg, Usage: model.Usage{Input: 100, Output: 10}}, nil
}

func says(text string) model.Message { return model.Message{Parts: []model.Part{{Text: text}}} }

func calls(tools ...string) (m model.Message) {
	for i, t := range tools {
		name, args, _ := strings.Cut(t, " ")
		m.Parts = append(m.Parts, model.Part{Call: &model.Call{ID: fmt.Sprint("c", i, len(t)), Name: name, Arguments: json.RawMessage(args)}})
	}
	return m
}

type number struct {
	N int `json:"n"`
}

// start adds a server with a counter, which begins at 0 in each host. It is trusted.
func start(_ context.Context, h *host.Host) error {
	var sum atomic.Int64
	srv := &mcp.Server{Name: "counter"}
	mcp.AddTool(srv, mcp.Tool{Name: "add"}, func(_ context.Context, in number) (string, error) {
		return fmt.Sprint("sum ", sum.Add(int64(in.N))), nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "reset"}, func(context.Context, struct{}) (string, error) { return "ok", nil })
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		in, err := mcp.Elicit[number](ctx, "Which number?")
		return fmt.Sprint(in.N), err
	})
	yes := true
	mcp.AddTool(srv, mcp.Tool{Name: "peek", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, func(context.Context, struct{}) (string, error) {
		return fmt.Sprint("sum ", sum.Load()), nil
	})
	return h.Add(host.Server{Name: "c", Trusted: true, Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		near, far := jsonrpc.Pipe()
		go srv.Serve(context.WithoutCancel(ctx), far) // ended by the session
		return c.Connect(ctx, mcptest.Wire(near))
	}})
}

// counting adds as told and answers with the sum. It is also the judge.
func counting(_ context.Context, said, result string) model.Message {
	switch {
	case strings.Contains(said, "The criterion: It is 7."):
		if strings.Contains(said, "sum 7") {
			return says(`Sure: {"pass": true, "reason": "it is"}`)
		}
		return says(`{"pass": false, "reason": "it is not"}`)
	case strings.HasPrefix(said, "That is not a verdict"), strings.Contains(said, "The criterion:"):
		return says("well")
	case result != "":
		return says(strings.TrimSpace(result))
	case said == "add":
		return calls(`c_add {"n": 3}`, `c_add {"n": 4}`)
	case said == "ask":
		return calls("c_ask {}")
	}
	return calls("c_reset {}")
}

func run(t *testing.T, m rules, file string) (*eval.Report, error) {
	t.Helper()
	mcptest.LeakCheck(t)
	s, err := eval.Parse("counter.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	r := &eval.Runner{Start: start, Model: func(name string) (model.Model, error) {
		if name == "none" {
			return nil, errors.New("there is no such model")
		}
		return m, nil
	}}
	return r.Run(t.Context(), s)
}

func TestRun(t *testing.T) {
	report, err := run(t, counting, `
models: [one, two]
runs: 2
tasks:
  - name: adds
    prompt: add
    expect:
      calls: [{tool: c/add, times: 1}, {tool: c/add, arguments: {n: 4}}]
      answer: {contains: sum 7, judge: It is 7.}
      never: [c/reset]
      steps: 2
      cost: 1
  - name: misses
    prompt: add
    runs: 1
    expect:
      calls: [{tool: c/add, arguments: {n: 5}}, {tool: c/reset}, {tool: c/add, max: 1}]
      answer: {equals: seven, lacks: sum, regexp: ^s, schema: {type: integer}, judge: [It is 7., It is nice.]}
      steps: 1
      cost: 0.0000001
  - name: forbidden
    prompt: reset
    runs: 1
    expect: {never: ["c/*"]}
  - name: asked
    prompt: ask
    answers: {n: 17, other: 1}
    expect: {calls: [c/ask], answer: "17"}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, r := range report.Results {
		fmt.Fprintf(&got, "%s %s %d: %v\n", r.Task, r.Model, r.Run, r.Passed)
		if r.Model == "one" {
			for _, f := range append(r.Faults, r.Error) {
				if f != "" {
					got.WriteString("  " + f + "\n")
				}
			}
		}
	}
	want := `adds one 1: true
adds one 2: true
adds two 1: true
adds two 2: true
misses one 1: false
  c/add was not called as expected: n is 4, not 5
  c/reset was not called; called: c/add
  c/add was called 2 times, not once
  the answer is "sum 3\nsum 7", not "seven"
  the answer contains "sum"
  the answer is not JSON: `
	if !strings.HasPrefix(strings.ReplaceAll(got.String(), "sum 4\\nsum 7", "sum 3\\nsum 7"), want) && !strings.Contains(got.String(), "sum 7\\nsum") {
		t.Errorf("results:\n%s\nwant\n%s", got.String(), want)
	}
	for _, part := range []string{
		"it took 2 steps; the limit is 1\n  it cost 0.00022; the limit is 1e-07\n  the judge gave no verdict\n",
		"forbidden one 1: false\n  c/reset was called, but must not be (denied)\n",
		"asked one 1: true\nasked one 2: true\nasked two 1: true\nasked two 2: true\n",
	} {
		if !strings.Contains(got.String(), part) {
			t.Errorf("results:\n%s\nare without\n%s", got.String(), part)
		}
	}
	rows := report.Rows()
	if len(rows) != 8 || rows[0].Runs != 2 || rows[0].Passed != 2 || rows[0].Steps != 2 || rows[0].Tokens != 220 || rows[2].Passed != 0 || rows[2].Errors != 1 {
		t.Errorf("rows: %+v", rows)
	}
	if err := report.Err(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("Err = %v", err)
	}
	if judging := report.Results[0].Judging; judging.Input != 100 {
		t.Errorf("the judge used %+v", judging)
	}
}

// Each run has servers of its own, and all results are in the order of the file.
func TestRunsAreApart(t *testing.T) {
	report, err := run(t, counting, "models: [one]\nruns: 20\nparallel: 8\ntasks: [{name: a, prompt: add, expect: {calls: [c/add], answer: sum 7}}]")
	if err != nil || report.Err() != nil {
		t.Fatal(err, report.Err())
	}
	for i, r := range report.Results {
		if r.Run != i+1 {
			t.Fatalf("result %d is run %d", i, r.Run)
		}
	}
}

func TestOrdered(t *testing.T) {
	m := func(_ context.Context, said, result string) model.Message {
		switch strings.Count(result, "\n") {
		case 0:
			return calls("c_reset {}")
		case 1:
			return calls(`c_add {"n": 1}`)
		}
		return says("done")
	}
	report, err := run(t, m, `
models: [one]
tasks:
  - {name: right, prompt: x, expect: {ordered: true, calls: [c/reset, c/add]}}
  - {name: wrong, prompt: x, expect: {ordered: true, calls: [c/add, c/reset]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Results; !r[0].Passed || r[1].Passed || r[1].Faults[0] != "c/reset was called too early" {
		t.Errorf("results: %+v, %+v", r[0], r[1])
	}
}

// A run calls nothing that it does not name, even if the tool is read-only and its server trusted.
func TestNothingElseIsCalled(t *testing.T) {
	m := func(_ context.Context, _, result string) model.Message {
		if result == "" {
			return calls("c_peek {}")
		}
		return says("done")
	}
	report, err := run(t, m, `
models: [one]
tasks:
  - {name: not named, prompt: x}
  - {name: expected, prompt: x, expect: {calls: [c/peek]}}
  - {name: allowed, prompt: x, allow: [c/peek]}
`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []host.Outcome{host.Denied, host.Succeeded, host.Succeeded} {
		if r := report.Results[i]; len(r.Calls) != 1 || r.Calls[0].Outcome != want {
			t.Errorf("%s: the calls are %+v, want one that is %s", r.Task, r.Calls, want)
		}
	}
}

// If a judge never answers, the run has an error after the judge's own time limit.
func TestJudgeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := func(ctx context.Context, said, _ string) model.Message {
			if strings.Contains(said, "The criterion:") {
				<-ctx.Done()
			}
			return says("done")
		}
		report, err := run(t, m, "models: [one]\ntasks: [{name: a, prompt: x, expect: {time: 10s, answer: {judge: It is nice.}}}]")
		if err != nil {
			t.Fatal(err)
		}
		if r := report.Results[0]; r.Passed || r.Error != "the judge: no verdict within 5m0s" || time.Duration(r.Took) < 5*time.Minute {
			t.Errorf("the result is %+v", r)
		}
	})
}

// A run that takes too long fails, and so does one with a failing model; the others do not.
func TestRunThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := func(ctx context.Context, said, _ string) model.Message {
			if said == "hang" {
				<-ctx.Done()
			}
			return says("done")
		}
		report, err := run(t, m, "models: [one]\nparallel: 1\ntasks: [{name: a, prompt: hang, expect: {time: 10s}}, {name: b, prompt: x}]")
		if err != nil {
			t.Fatal(err)
		}
		if r := report.Results; r[0].Passed || r[0].Faults[0] != "it took longer than 10s" || time.Duration(r[0].Took) < 10*time.Second || !r[1].Passed {
			t.Errorf("results: %+v, %+v", r[0], r[1])
		}
	})
}

// cutting is a model whose answers are cut off.
type cutting struct{ rules }

func (m cutting) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	r, err := m.rules.Generate(ctx, req, emit)
	if err == nil {
		r.Stop = model.StopLength
	}
	return r, err
}

// A run whose answer was cut off fails.
func TestAnswerIsCutOff(t *testing.T) {
	m := cutting{func(context.Context, string, string) model.Message { return says("half of") }}
	r := &eval.Runner{Start: start, Model: func(string) (model.Model, error) { return m, nil }}
	report, err := r.Run(t.Context(), &eval.Suite{Models: []string{"m"}, Runs: 1, Tasks: []*eval.Task{{Name: "a", Prompt: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Results[0]; got.Passed || len(got.Faults) != 1 || got.Faults[0] != "the answer was cut off" {
		t.Errorf("the result is %+v", got)
	}
}

func TestRunIsCancelled(t *testing.T) {
	mcptest.LeakCheck(t)
	ctx, cancel := context.WithCancel(t.Context())
	m := rules(func(ctx context.Context, _, _ string) model.Message {
		cancel()
		<-ctx.Done()
		return says("")
	})
	r := &eval.Runner{Start: start, Model: func(string) (model.Model, error) { return m, nil }}
	report, err := r.Run(ctx, &eval.Suite{Models: []string{"m"}, Runs: 10, Parallel: 2, Tasks: []*eval.Task{{Name: "a", Prompt: "x"}}})
	if !errors.Is(err, context.Canceled) || len(report.Results) != 10 || report.Err() == nil {
		t.Errorf("Run = %+v, %v", report, err)
	}
}

func TestUnknownModel(t *testing.T) {
	if report, err := run(t, counting, "models: [one, none]\ntasks: [{name: a, prompt: x}]"); err == nil || report != nil {
		t.Errorf("Run = %v, %v", report, err)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	r := &eval.Runner{
		Model: func(string) (model.Model, error) { return rules(counting), nil },
		Start: func(_ context.Context, h *host.Host) error {
			return h.Add(host.Server{Name: "gone", Open: func(context.Context, *mcp.Client) (mcp.Handler, error) { return nil, errors.New("nobody is there") }})
		},
	}
	report, err := r.Run(t.Context(), &eval.Suite{Models: []string{"m"}, Tasks: []*eval.Task{{Name: "a", Prompt: "x"}}})
	if err != nil || !strings.Contains(report.Results[0].Error, "gone: failing: nobody is there") {
		t.Errorf("Run = %+v, %v", report.Results[0], err)
	}
}

// A conversation keeps its servers and what was said; expectations are those of each turn, and of all of it.
func TestTurns(t *testing.T) {
	judged := ""
	m := func(_ context.Context, said, result string) model.Message {
		results := strings.Split(strings.TrimSpace(result), "\n")
		switch {
		case strings.Contains(said, "The criterion:"):
			judged = said
			return says(`{"pass": false, "reason": "no"}`)
		case said == "add 3" && result == "":
			return calls(`c_add {"n": 3}`)
		case said == "and 4" && len(results) == 1:
			return calls(`c_add {"n": 4}`)
		}
		return says("now " + results[len(results)-1])
	}
	report, err := run(t, m, `
models: [one]
tasks:
  - name: fine
    turns:
      - {prompt: add 3, expect: {calls: [{tool: c/add, times: 1}], answer: sum 3, steps: 2}}
      - {prompt: and 4, expect: {calls: [{tool: c/add, times: 1, arguments: {n: 4}}], answer: sum 7}}
    expect: {calls: [{tool: c/add, times: 2}], steps: 4, answer: {lacks: [sum 3]}}
  - name: wrong
    turns:
      - {prompt: add 3, expect: {never: [c/add]}}
      - {prompt: and 4, expect: {answer: sum 8}}
      - {prompt: thanks, expect: {answer: {judge: It is kind.}}}
    expect: {steps: 4}
    allow: [c/add]
`)
	if err != nil {
		t.Fatal(err)
	}
	fine, wrong := report.Results[0], report.Results[1]
	if !fine.Passed || len(fine.Turns) != 2 || fine.Turns[0].Answer != "now sum 3" || fine.Answer != "now sum 7" || fine.Steps != 4 || len(fine.Calls) != 2 || fine.Usage.Input != 400 || fine.Cost != 2*fine.Turns[0].Cost {
		t.Errorf("the result is %+v", fine)
	}
	want := []string{
		"turn 1: c/add was called, but must not be (done)", `turn 2: the answer does not contain "sum 8"`, "it took 5 steps; the limit is 4", `turn 3: the judge rejects "It is kind.": no`,
	}
	if !slices.Equal(wrong.Faults, want) {
		t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(wrong.Faults, "\n"), strings.Join(want, "\n"))
	}
	for _, part := range []string{"Turn 1: the task:\n", "add 3", "Turn 2: the calls of tools:\n", `c/add {"n":4}: done`, "Turn 3: the answer:\n", "The criterion: It is kind. (about the answer of turn 3)"} {
		if !strings.Contains(judged, part) {
			t.Errorf("the judge does not see %q:\n%s", part, judged)
		}
	}
}

// A turn has a time limit of its own; the conversation ends there.
func TestTurnThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := func(ctx context.Context, said, _ string) model.Message {
			if said == "hang" {
				<-ctx.Done()
			}
			return says("done")
		}
		report, err := run(t, m, "models: [one]\ntasks: [{name: a, turns: [{prompt: x, expect: {time: 1s}}, {prompt: hang, expect: {time: 10s}}, {prompt: y}]}, {name: b, turns: [{prompt: x}, {prompt: hang}]}]")
		if err != nil {
			t.Fatal(err)
		}
		a, b := report.Results[0], report.Results[1]
		if a.Passed || !slices.Equal(a.Faults, []string{"turn 2: it took longer than 10s"}) || len(a.Turns) != 2 {
			t.Errorf("the result is %+v", a)
		}
		if b.Passed || !slices.Equal(b.Faults, []string{"turn 2: it took longer than 10m0s"}) {
			t.Errorf("the result is %+v", b)
		}
	})
}

func TestJUnit(t *testing.T) {
	report := &eval.Report{Suite: "s", Took: host.Millis(3 * time.Second), Results: []*eval.Result{
		{Task: "a", Model: "m", Run: 1, Passed: true, Reply: eval.Reply{Answer: "fine \x00 <b>"}, Took: host.Millis(time.Second)},
		{Task: "a", Model: "n", Run: 1, Faults: []string{"one", "two"}, Reply: eval.Reply{Calls: []eval.Made{{Server: "s", Tool: "t", Arguments: json.RawMessage(`{}`), Outcome: host.Succeeded}}}},
		{Task: "b", Model: "m", Run: 1, Error: "no model"},
	}}
	var b bytes.Buffer
	if err := report.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Tests, Failures, Errors int `xml:",attr"`
		Suites                  []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &parsed); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	const file = "testdata/junit.xml"
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s is not\n%s", file, &b)
	}
}
