package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

const stoves = `
servers:
  cellar: {builtin: shop}
models: [openai/scripted, anthropic/scripted]
runs: 2
tasks:
  - name: stoves
    prompt: Put a stove into a cart.
    expect:
      calls: [cellar/products, {tool: cellar/add-to-cart, times: 1, arguments: {product: {regexp: ^prd-}}}]
      answer: {contains: 79.90, judge: It names a price.}
  - name: nothing
    prompt: Do nothing.
    runs: 1
    expect: {never: ["cellar/*"], answer: Done}
`

const stovesModel = `
rules:
  - when: {system: You judge}
    answer: [text: '{"pass": true, "reason": "it does"}']
  - when: {user: Do nothing}
    answer: [text: "No."]
  - when: {results: {cellar_products: Ember Stove}}
    answer: [call: {name: cellar_add-to-cart, arguments: {product: prd-1013}}]
    usage: {input: 100, output: 10}
  - when: {results: {cellar_add-to-cart: 79.90 EUR}}
    answer: [text: "It costs 79.90 EUR."]
    usage: {input: 200, output: 10}
  - when: {user: Put a stove, length: 0}
    answer: [call: {name: cellar_products, arguments: {category: kitchen}}]
    usage: {input: 50, output: 10}
`

// timeless replaces the parts that differ between runs.
func timeless(table string) string {
	var out []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if _, err := time.ParseDuration(fields[len(fields)-1]); err == nil {
			fields[len(fields)-1] = "T"
		}
		out = append(out, strings.Join(fields, " "))
	}
	return strings.Join(out, "\n")
}

func TestEval(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(stovesModel))
	if err := os.WriteFile("stoves.yaml", []byte(stoves), 0o600); err != nil {
		t.Fatal(err)
	}
	o := typed(t, "", "eval", "stoves.yaml", "--junit", "report.xml")
	const want = `TASK MODEL PASSED STEPS TOKENS COST TIME
stoves openai/scripted 2/2 3.0 380 - T
stoves anthropic/scripted 2/2 3.0 380 - T
nothing openai/scripted 0/1 1.0 0 - T
nothing anthropic/scripted 0/1 1.0 0 - T`
	if got := timeless(o.stdout); o.code != exitLocal || got != want {
		t.Errorf("exit code %d, stdout\n%s\nwant %d,\n%s\nstderr:\n%s", o.code, got, exitLocal, want, o.stderr)
	}
	for _, part := range []string{"ok  stoves, anthropic/scripted, run 2: 3 steps", "failed  nothing, openai/scripted, run 1: 1 step\n  the answer does not contain \"Done\"", "patchbay: some runs failed"} {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("stderr is without %q:\n%s", part, o.stderr)
		}
	}
	if report, err := os.ReadFile("report.xml"); err != nil || !strings.Contains(string(report), `<testsuites name="stoves" tests="6" failures="2" errors="0"`) {
		t.Errorf("report.xml is %s, %v", report, err)
	}

	o = typed(t, "", "eval", "stoves.yaml", "--task", "sto*", "-n", "1", "-m", "text/scripted", "--judge", "openai/scripted", "--json")
	var report struct {
		eval.Report
		Rows []eval.Row
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || o.code != exitOK {
		t.Fatalf("exit code %d, %v\n%s\n%s", o.code, err, o.stdout, o.stderr)
	}
	if len(report.Results) != 1 || !report.Results[0].Passed || len(report.Results[0].Calls) != 2 || len(report.Rows) != 1 {
		t.Errorf("report: %s", o.stdout)
	}
}

// A recording answers without the models and their keys, judges included.
func TestEvalWithoutAModel(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(stovesModel))
	if err := os.WriteFile("stoves.yaml", []byte(stoves), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded := typed(t, "", "eval", "stoves.yaml", "--record-model", "stoves.model.jsonl", "--save-baseline", "stoves.json")
	if recorded.code != exitLocal {
		t.Fatalf("exit code %d\n%s", recorded.code, recorded.stderr)
	}
	for _, of := range []string{"OPENAI", "ANTHROPIC"} {
		t.Setenv(of+"_BASE_URL", "http://127.0.0.1:1/v1")
		t.Setenv(of+"_API_KEY", "")
	}
	again := typed(t, "", "eval", "stoves.yaml", "--replay-model", "stoves.model.jsonl", "--baseline", "stoves.json")
	if again.code != exitOK || !strings.Contains(again.stderr, "some runs failed, not more than in the baseline") || strings.Contains(again.stderr, "not asked for") {
		t.Errorf("exit code %d, stderr:\n%s", again.code, again.stderr)
	}
	bare := regexp.MustCompile(` \([+-]\d+%\)`) // of the times
	if got, want := timeless(bare.ReplaceAllString(again.stdout, "")), timeless(recorded.stdout); got != want {
		t.Errorf("the replay prints\n%s\nwant\n%s", got, want)
	}
	// Another prompt is another request.
	if err := os.WriteFile("stoves.yaml", []byte(strings.ReplaceAll(stoves, "Do nothing.", "Do anything.")), 0o600); err != nil {
		t.Fatal(err)
	}
	o := typed(t, "", "eval", "stoves.yaml", "--replay-model", "stoves.model.jsonl", "--task", "nothing", "-m", "openai/scripted", "--baseline", "stoves.json")
	o.expect(t, exitLocal, o.stdout, "not recorded: stoves.model.jsonl has no answer to this request: the nearest one differs in messages[1].content; record it again")
	o.expect(t, exitLocal, o.stdout, "recorded answers that were not asked for: ")
	o.expect(t, exitLocal, o.stdout, "not run, though in the baseline: stoves")
}

// A task that passes less often than in the baseline is worse; one that fails as often as before is not.
func TestEvalBaseline(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(stovesModel))
	if err := os.WriteFile("stoves.yaml", []byte(stoves), 0o600); err != nil {
		t.Fatal(err)
	}
	base := func(passed string) {
		t.Helper()
		if err := os.WriteFile("base.json", []byte(`{"version":1,"suite":"stoves","rows":[{"task":"stoves","model":"openai/scripted","runs":4,"passed":4,"steps":6,"tokens":380},
			{"task":"nothing","model":"openai/scripted","runs":2,"passed":`+passed+`,"steps":1,"tokens":0}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base("0")
	o := typed(t, "", "eval", "stoves.yaml", "-m", "openai/scripted", "--baseline", "base.json")
	if !strings.Contains(o.stdout, "3.0 (-50%)") {
		t.Errorf("stdout is without %q", "3.0 (-50%)")
	}
	o.expect(t, exitOK, o.stdout, "some runs failed, not more than in the baseline")
	base("1")
	o = typed(t, "", "eval", "stoves.yaml", "-m", "openai/scripted", "--baseline", "base.json")
	if !strings.Contains(o.stdout, "0/1 (was 1/2)") {
		t.Errorf("stdout is without %q", "0/1 (was 1/2)")
	}
	o.expect(t, exitLocal, o.stdout, "nothing, openai/scripted: 0 of 1 runs passed; in the baseline 1 of 2\npatchbay: some runs failed: more than in the baseline")
	o = typed(t, "", "eval", "stoves.yaml", "-m", "openai/scripted", "--baseline", "base.json", "--tolerance", "50")
	o.expect(t, exitOK, o.stdout)
	o = typed(t, "", "eval", "stoves.yaml", "-m", "openai/scripted", "--baseline", "base.json", "--json")
	var out struct{ Compared eval.Comparison }
	if err := json.Unmarshal([]byte(o.stdout), &out); err != nil || o.code != exitLocal || len(out.Compared.Changes) != 2 || !out.Compared.Changes[1].Worse || out.Compared.Changes[1].Base.Runs != 2 {
		t.Errorf("exit code %d, %v:\n%s", o.code, err, o.stdout)
	}
}

func TestEvalIsUsedWrongly(t *testing.T) {
	alone(t)
	for name, text := range map[string]string{
		"faults.yaml": "tasks:\n  - name: a\n    promt: b\n",
		"server.yaml": "servers:\n  a:\n    command: x\n    url: y\ntasks: [{name: a, prompt: b}]\n",
		"fine.yaml":   "tasks: [{name: a, prompt: b}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"eval gone.yaml", exitUsage, "gone.yaml"},
		{"eval faults.yaml", exitUsage, "faults.yaml:3:5: a task has no member \"promt\"; did you mean \"prompt\"?"},
		{"eval server.yaml -m openai/x", exitUsage, "server.yaml:4:"},
		{"eval fine.yaml", exitUsage, "no model is configured"},
		{"eval fine.yaml --task b", exitUsage, "no task b; tasks: a"},
		{"eval fine.yaml -m fast", exitUsage, `no model "fast"`},
		{"eval", exitUsage, "missing FILE"},
		{"eval fine.yaml --baseline gone.json", exitUsage, "hint: patchbay eval fine.yaml --save-baseline gone.json"},
		{"eval fine.yaml --baseline fine.yaml", exitUsage, "--baseline fine.yaml: the baseline cannot be read"},
		{"eval fine.yaml --tolerance 5", exitUsage, "beside --baseline"},
		{"eval fine.yaml --replay-model fine.yaml", exitUsage, "fine.yaml is not a recording of a model"},
		{"eval fine.yaml --replay-model gone.jsonl", exitUsage, "gone.jsonl"},
		{"eval fine.yaml --replay-model a --record-model b", exitUsage, "exclude each other"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			typed(t, "", strings.Fields(tt.args)...).expect(t, tt.code, "", tt.want)
		})
	}
}
