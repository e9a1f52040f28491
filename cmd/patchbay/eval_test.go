package main

import (
	"encoding/json"
	"os"
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
		{"eval faults.yaml", exitLocal, "faults.yaml:3:5: a task has no member \"promt\"; did you mean \"prompt\"?"},
		{"eval server.yaml -m openai/x", exitLocal, "server.yaml:4:"},
		{"eval fine.yaml", exitUsage, "no model is configured"},
		{"eval fine.yaml --task b", exitUsage, "no task b; tasks: a"},
		{"eval fine.yaml -m fast", exitUsage, `no model "fast"`},
		{"eval", exitUsage, "missing FILE"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			typed(t, "", strings.Fields(tt.args)...).expect(t, tt.code, "", tt.want)
		})
	}
}
