package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// scriptedRun runs the program with a scripted model; its server is the shop.
func scriptedRun(t *testing.T, script string) func(stdin string, args ...string) ran {
	t.Helper()
	alone(t)
	scripted(t, modeltest.MustParse(script))
	return func(stdin string, args ...string) ran {
		t.Helper()
		return typed(t, stdin, append([]string{"run", "-m", "openai/scripted", "-s", "shop"}, args...)...)
	}
}

func TestRunDenies(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: It was not called|did not allow}}
    answer: [text: I must not.]
`)
	patchbay("", "a stove, please", "--allow", "shop/place-order", "--yes").expect(t, exitDenied, "I must not.\n",
		"not allowed, so not called: shop/add-to-cart", "hint: patchbay run "+shell([]string{"a stove, please"})+" -s shop -m openai/scripted --yes --allow shop/add-to-cart")
	if got, want := callsOf(t, "patchbay/calls.jsonl"), []string{"denied add-to-cart deny by person denied"}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
}

// callsOf describes the lines of an audit log that are about calls of tools. They are of this user.
func callsOf(t *testing.T, path string) (list []string) {
	t.Helper()
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Tool != "" {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s by %s%s %s", e.Kind, e.Tool, e.Decision.Effect, e.Decision.By, e.Decision.Rule, e.Outcome)))
			if e.Principal == nil || !strings.HasPrefix(e.Principal.ID, "local#") || e.Conversation == "" || e.Server == nil || e.Server.Name != "shop" || len(e.Definition) != len("sha256:")+64 {
				t.Errorf("a line is %s", e.Line())
			}
		}
	}
	return list
}

// There is one audit log: that of gateway.yaml, or else that of the user. It has the decisions about
// calls in the lines of the calls, and is one that "patchbay audit" reads and verifies.
func TestRunAudits(t *testing.T) {
	for _, log := range []string{"patchbay/calls.jsonl", "audit.jsonl"} {
		t.Run(log, func(t *testing.T) {
			patchbay := scriptedRun(t, `
turns:
  - when: {user: tents}
    answer: [call: {name: shop_categories, arguments: {}}, call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: .}}
    answer: [text: Yes]
`)
			var flags []string
			if log == "audit.jsonl" {
				if err := os.WriteFile("gateway.yaml", []byte("audit: {file: audit.jsonl, key: audit.key}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				flags = []string{"--gateway", "gateway.yaml"}
			}
			patchbay("", append(flags, "tents?", "--allow", "shop/add-to-cart")...).expect(t, exitOK, "Yes\n")
			got := callsOf(t, log)
			slices.Sort(got)
			want := []string{
				"call.begin add-to-cart allow by rule", "call.begin categories allow by read-only",
				"call.end add-to-cart allow by rule ok", "call.end categories allow by read-only ok",
			}
			if !slices.Equal(got, want) {
				t.Errorf("the audit log has %q, want %q", got, want)
			}
			if _, err := os.Stat("patchbay/calls.jsonl"); (err == nil) != (log == "patchbay/calls.jsonl") {
				t.Errorf("the log of the user: %v", err)
			}
			if r := typed(t, "", "audit", "verify", log); r.code != exitOK || !strings.HasPrefix(r.stdout, log+" is whole") {
				t.Errorf("audit verify: %d, %s%s", r.code, r.stdout, r.stderr)
			}
			if r := typed(t, "", "audit", "query", log, "--tool", "add-to-cart", "--outcome", "ok"); r.code != exitOK || strings.Count(r.stdout, "by rule") != 1 {
				t.Errorf("audit query: %d, %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// Without an audit log no call can be made, and the error says how to have another one.
func TestRunWithoutAuditLog(t *testing.T) {
	patchbay := scriptedRun(t, "rules: [{answer: [text: So]}]")
	if err := os.MkdirAll("patchbay/calls.jsonl", 0o700); err != nil {
		t.Fatal(err)
	}
	patchbay("", "hello").expect(t, exitLocal, "", "cannot log calls, so none is made: audit log: ", "calls.jsonl is not a regular file", "hint: give --gateway FILE with audit.file")
}

// A pattern of --allow that matches no tool is a warning.
func TestRunAllowsNoTool(t *testing.T) {
	patchbay := scriptedRun(t, "rules: [{answer: [text: So]}]")
	r := patchbay("", "hello", "--allow", "shop/placeorder", "--allow", "shop/*", "--allow", "sop/*")
	r.expect(t, exitOK, "So\n", `warning: --allow shop/placeorder matches no tool; did you mean "shop/place-order"?`, "warning: --allow sop/* matches no tool")
	if strings.Contains(r.stderr, "--allow shop/*") {
		t.Errorf("stderr: %s", r.stderr)
	}
}

func TestRunEndsWithinItsSteps(t *testing.T) {
	patchbay := scriptedRun(t, `
rules:
  - when: {choice: none}
    answer: [text: So far there are tents.]
  - answer: [call: {name: shop_categories, arguments: {}}]
`)
	patchbay("", "what is there?", "--max-steps", "2").expect(t, exitBound, "So far there are tents.\n", "not done in 2 steps", "--max-steps 4")
}

func TestRunEndsWithinItsTime(t *testing.T) {
	patchbay := scriptedRun(t, "rules: [{answer: [text: So], fault: {hang: true}}]")
	patchbay("", "what is there?", "--within", "300ms").expect(t, exitBound, "", "not done in 300ms", "--within 600ms")
}

// The wait for standard input is part of --within.
func TestRunWaitsForInputWithinItsTime(t *testing.T) {
	scriptedRun(t, "rules: [{answer: [text: So]}]")
	silent, w := io.Pipe()
	defer w.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"run", "what is there?", "-m", "openai/scripted", "-s", "shop", "--within", "300ms"}, silent, &stdout, &stderr)
	ran{code, stdout.String(), stderr.String()}.expect(t, exitBound, "", "not done in 300ms", "--within 600ms")
}

// If standard input is a terminal, no task is read from it.
func TestRunWithTaskOfTerminal(t *testing.T) {
	for _, task := range [][]string{nil, {"-"}, {" "}} {
		a, _ := testApp(t)
		a.tty.in = true
		c := &runCmd{Task: task, MaxSteps: 1}
		var f *fault
		if err := c.check(a); !errors.As(err, &f) || f.Code != exitUsage || !strings.Contains(err.Error(), "missing task") {
			t.Errorf("the task %q at a terminal: %v", task, err)
		}
		if a.tty.in = false; c.check(a) != nil {
			t.Errorf("the task %q without a terminal: %v", task, c.check(a))
		}
	}
}

func TestRunFormats(t *testing.T) {
	const schema = `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`
	patchbay := scriptedRun(t, `
turns:
  - when: {user: how many}
    answer: [text: '{"n": "three"}']
  - when: {user: n}
    answer: [text: '{"n": 3}']
`)
	if err := os.WriteFile("schema.json", []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	patchbay("", "how many?", "--output-schema", "schema.json").expect(t, exitOK, "{\"n\": 3}\n")
	patchbay = scriptedRun(t, `rules: [answer: [text: three]]`)
	patchbay("", "how many?", "--output-schema", schema).expect(t, exitFormat, "", "the answer does not fit the schema")
	for _, bad := range []string{`{"type": 7}`, `{"type":`, "gone.json"} {
		if o := patchbay("", "how many?", "--output-schema", bad); o.code != exitUsage && o.code != exitLocal || !strings.Contains(o.stderr, "--output-schema") {
			t.Errorf("--output-schema %s: exit code %d, %s", bad, o.code, o.stderr)
		}
	}
}

// Standard input becomes part of the message, but does not count as written by a person.
func TestRunReadsInput(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - when: {user: '(?s)<stdin>.*@shop:shop://customers and #shop_categories.*</stdin>', choice: ""}
    answer: [text: It is a mention.]
  - when: {user: '^Say hello'}
    answer: [text: Hello.]
`)
	patchbay("see @shop:shop://customers and #shop_categories\n", "what is this?").expect(t, exitOK, "It is a mention.\n")
	patchbay("Say hello.\n", "-").expect(t, exitOK, "Hello.\n")
	patchbay("", "-").expect(t, exitUsage, "", "missing task")
	patchbay("\xff\xfe\x00", "what is this?").expect(t, exitUsage, "", "neither UTF-8 text nor a picture")
}

func TestRunTakesPictures(t *testing.T) {
	patchbay := scriptedRun(t, "turns: [{when: {user: what}, answer: [text: A dot.]}]")
	patchbay("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "what is this?").expect(t, exitOK, "A dot.\n")
}

func TestRunWithoutAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		stderr       string
	}{
		{"key", "rules: [fault: {status: 401}]", "config doctor"},
		{"model", "rules: [fault: {status: 404}]", "no such model"},
		{"long", "rules: [fault: {status: 400, code: context_length_exceeded}]", "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patchbay := scriptedRun(t, tt.script)
			o := patchbay("", "hello")
			o.expect(t, exitModel, "", tt.stderr)
			if strings.Contains(o.stderr, "key-of-the-test") {
				t.Errorf("stderr has the key: %s", o.stderr)
			}
		})
	}
}

func TestRunIsUsedWrongly(t *testing.T) {
	alone(t)
	for _, tt := range []struct {
		args string
		env  string // is set in the environment
		want string
	}{
		{"run -m openai/x", "OPENAI_API_KEY", "missing task"},
		{"run hello", "", "no model is configured"},
		{"run hello", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY is set\npatchbay: hint: patchbay run hello --model anthropic/NAME"},
		{"run hello -m openai/x", "", "OPENAI_API_KEY"},
		{"run hello -m nobody/x", "", "unknown provider"},
		{"run hello -m fast", "", `no model "fast"`},
		{"run hello --yes", "", "--yes needs --allow"},
		{"run hello --allow shop", "", "hint: patchbay run hello --allow " + shell([]string{"shop/*"})},
		{"run hello --max-steps 0", "", "--max-steps must be at least 1, not 0"},
		{"run hello --within -1s", "", "negative"},
		{"run hello -m openai/x -s shop -s shop", "OPENAI_API_KEY", "-s shop is given twice"},
		{"tools -s shop -s sqlite", "", "tools takes one server, not shop and sqlite"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			if tt.env != "" {
				t.Setenv(tt.env, "key-of-the-test")
			}
			typed(t, "", strings.Fields(tt.args)...).expect(t, exitUsage, "", tt.want)
		})
	}
}

// The program says that it waits for a silent model.
func TestRunSaysThatItWaits(t *testing.T) {
	was := silentTime
	silentTime = 50 * time.Millisecond
	t.Cleanup(func() { silentTime = was })
	patchbay := scriptedRun(t, "rules: [{answer: [text: So], fault: {hang: true}}]")
	got := patchbay("", "what is there?", "--within", "3s")
	if line := "patchbay: waiting for openai/scripted, which has sent nothing for 50ms\n"; !strings.Contains(got.stderr, line) {
		t.Errorf("stderr %q, want %q in it", got.stderr, line)
	}
}
