package main

import (
	"bytes"
	"context"
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

// A terminal shows the answer while it comes, and once; the rest of one that breaks off, too.
func TestRunShowsTheAnswerAsItComes(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - answer: [text: "First.\n\nSecond."]
  - answer: [text: "First.\n\nSecond"]
    fault: {hang: true}
`))
	for _, tt := range []struct {
		flags  []string
		code   int
		stdout string
	}{
		{nil, exitOK, "First.\n\nSecond.\n"},
		{[]string{"--max-time", "2s"}, exitBound, "First.\n"},
	} {
		var out, said strings.Builder
		a := newApp(t.Context(), strings.NewReader(""), &out, &said)
		a.tty.out, a.tty.width = true, 80
		if code := a.run(append([]string{"run", "go", "-m", "openai/scripted", "-s", "shop"}, tt.flags...)); code != tt.code || !strings.HasPrefix(out.String(), tt.stdout) || strings.Count(out.String(), "First.") != 1 {
			t.Errorf("run %q exited with %d and printed %q, want %d and %q: %s", tt.flags, code, &out, tt.code, tt.stdout, &said)
		}
	}
}

// A run that is kept can be continued by another, by its id or as the last one of the folder, and by chat.
// Others are not kept.
func TestRunContinues(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - answer: [text: Not kept.]
  - answer: [text: One.]
  - when: {user: second, length: 1}
    answer: [text: Two.]
  - when: {user: third, length: 2}
    answer: [text: Three.]
  - when: {user: fourth, length: 3}
    answer: [text: Four.]
`)
	patchbay("", "zero").expect(t, exitOK, "Not kept.\n", "")
	patchbay("", "none", "-c").expect(t, exitUsage, "", "--continue: no conversation of this folder is stored")
	out := patchbay("", "first", "--keep")
	_, id, _ := strings.Cut(out.stderr, "patchbay: stored as ")
	id, _, _ = strings.Cut(id, ";")
	if out.code != exitOK || len(id) != 10 || !strings.Contains(out.stderr, "patchbay run --resume "+id) {
		t.Fatalf("exit code %d, stderr:\n%s", out.code, out.stderr)
	}
	patchbay("", "second", "-c").expect(t, exitOK, "Two.\n", "stored as "+id)
	patchbay("", "third", "--resume", id[:5]).expect(t, exitOK, "Three.\n", "stored as "+id)
	patchbay("", "x", "--resume", "none").expect(t, exitUsage, "", "no conversation has this id")
	patchbay("", "x", "--resume", id, "--continue").expect(t, exitUsage, "", "--resume and --continue exclude each other")
	if out := typed(t, "/undo\n", "chat", "fourth", "-c", "-m", "openai/scripted", "-s", "shop"); out.code != exitOK || !strings.Contains(out.stdout, "continuing "+id+", 6 messages") || !strings.Contains(out.stdout, "Four.") {
		t.Errorf("chat: exit code %d, stdout:\n%s\nstderr:\n%s", out.code, out.stdout, out.stderr)
	}
}

// --max-tokens and --max-cost bound a run. Without a price nothing can be bounded by cost.
func TestRunBudget(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - answer: [call: {name: shop_products, arguments: {category: kitchen}}]
    usage: {input: 10000, output: 20}
  - answer: [call: {name: shop_products, arguments: {category: garden}}]
    usage: {input: 10000, output: 20}
  - when: {choice: none}
    answer: [text: So far.]
    usage: {input: 10000, output: 20}
`)
	patchbay("", "list all", "--max-cost", "0.5").expect(t, exitUsage, "", "--max-cost needs the price of openai/scripted",
		`hint: in mcp.json: "patchbay": {"models": {"mine": {"provider": "openai", "name": "scripted", "price": {`)
	patchbay("", "list all", "--max-tokens", "100000x").expect(t, exitUsage, "", "a whole number")
	patchbay("", "list all", "--max-tokens", "35000").expect(t, exitBound, "So far.\n", "not done with 35000 tokens", "--max-tokens 70000")
	patchbay("", strings.Repeat("long ", 1000), "--max-tokens", "500").expect(t, exitBound, "", "not done with 500 tokens")
}

// The model of --fallback answers while the other has no credit.
func TestRunFallsBack(t *testing.T) {
	patchbay := scriptedRun(t, `
rules:
  - when: {model: "^scripted$"}
    fault: {status: 429, code: insufficient_quota, message: You exceeded your current quota}
  - when: {model: "^other$"}
    answer: [text: Here I am.]
`)
	patchbay("", "hello", "--fallback", "openai/other").expect(t, exitOK, "Here I am.\n", "no credit left", "; openai/other answers")
	patchbay("", "hello").expect(t, exitModel, "", "no credit left")
	patchbay("", "hello", "--fallback", "openai/other", "--max-cost", "1").expect(t, exitUsage, "", "--max-cost needs the price of openai/other")
	patchbay("", "hello", "--fallback", "nothing").expect(t, exitUsage, "", `no model "nothing"`)
}

func TestRunDenies(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: '^It was not called: there is nobody to ask'}}
    answer: [text: I must not.]
`)
	patchbay("", "a stove, please", "--allow", "shop/place-order", "--yes").expect(t, exitDenied, "I must not.\n",
		"not allowed, so not called: shop/add-to-cart", "hint: patchbay run "+shell([]string{"a stove, please"})+" -s shop -m openai/scripted --yes --allow shop/place-order --allow shop/add-to-cart")
	if got, want := callsOf(t, "patchbay/calls.jsonl"), []string{"denied add-to-cart deny by nobody denied"}; !slices.Equal(got, want) {
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
			list = append(list, strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Tool, " ", e.Decision.Effect, " by ", e.Decision.By, " ", e.Decision.Rule, " ", e.Outcome)), " "))
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
				"call.begin add-to-cart allow by rule shop/add-to-cart", "call.begin categories allow by read-only",
				"call.end add-to-cart allow by rule shop/add-to-cart ok", "call.end categories allow by read-only ok",
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

// A rule of --allow may have a condition on the arguments, in CEL. The audit log and the events name the rule. A call
// for which the condition fails is not made.
func TestRunAllowsByCondition(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - when: {user: stoves}
    answer:
      - call: {name: shop_add-to-cart, arguments: {product: prd-1013, quantity: 2}}
      - call: {name: shop_add-to-cart, arguments: {product: prd-1013, quantity: 5}}
      - call: {name: shop_add-to-cart, arguments: {product: prd-1013}}
  - answer: [text: Two]
`)
	const rule = "shop/add-to-cart if arguments.quantity <= 2"
	r := patchbay("", "stoves", "--allow", rule, "--yes", "--json")
	if said := `"by":"rule","rule":"` + strings.ReplaceAll(rule, "<", `\u003c`) + `"`; r.code != exitDenied || strings.Count(r.stdout, said) != 2 || !strings.Contains(r.stderr, "does not allow the call of shop/add-to-cart: no such key: quantity") {
		t.Errorf("exit code %d, stdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
	}
	got := callsOf(t, "patchbay/calls.jsonl")
	slices.Sort(got)
	want := []string{
		"call.begin add-to-cart allow by rule " + rule, "call.end add-to-cart allow by rule " + rule + " ok",
		"denied add-to-cart deny by nobody denied", "denied add-to-cart deny by nobody denied",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
	patchbay("", "stoves", "--allow", "shop/add-to-cart if args.quantity <= 2").expect(t, exitUsage, "", `the condition: there is no "args"`)
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
	// The text has to come within that time, also on a machine that does much else.
	patchbay("", "what is there?", "--max-time", "1500ms").expect(t, exitBound, "So\n", "not done in 1.5s", "--max-time 3s")
}

// onText is a writer that calls a function at a text.
type onText struct {
	bytes.Buffer
	text string
	then func()
}

func (w *onText) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.then()
	}
	return w.Buffer.Write(p)
}

// An interrupted run prints what the model has said until then.
func TestRunIsInterrupted(t *testing.T) {
	was := silentTime
	silentTime = time.Second // the text has to come within that time, also on a machine that does much else
	t.Cleanup(func() { silentTime = was })
	scriptedRun(t, "rules: [{answer: [text: So], fault: {hang: true}}]")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &onText{text: "waiting for openai/scripted", then: cancel}
	code := run(ctx, []string{"run", "what is there?", "-m", "openai/scripted", "-s", "shop"}, strings.NewReader(""), &stdout, stderr)
	ran{code, stdout.String(), stderr.String()}.expect(t, exitInterrupted, "So\n", "patchbay: interrupted")
}

// The wait for standard input is part of --max-time.
func TestRunWaitsForInputWithinItsTime(t *testing.T) {
	scriptedRun(t, "rules: [{answer: [text: So]}]")
	silent, w := io.Pipe()
	defer w.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"run", "what is there?", "-m", "openai/scripted", "-s", "shop", "--max-time", "300ms"}, silent, &stdout, &stderr)
	ran{code, stdout.String(), stderr.String()}.expect(t, exitBound, "", "not done in 300ms", "--max-time 600ms")
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

// A model that takes no PDF gets its text, or learns that there is none; either way the person is told.
func TestRunTakesPDFs(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - when: {user: '(?s)what is this.*text of the PDF "stdin".*A report\.'}
    answer: [text: It is a report.]
  - when: {user: '(?s)what is this.*its text cannot be read: it is damaged'}
    answer: [text: I cannot read it.]
`)
	report := "%PDF-1.7 1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R/Resources<</Font<</F<</Subtype/Type1>>>>>>>>endobj " +
		"4 0 obj<<>>stream\nBT /F 9 Tf (A report.) Tj ET\n\xffendstream endobj"
	patchbay(report, "what is this?").expect(t, exitOK, "It is a report.\n", "takes no PDF, so it gets the text")
	patchbay("%PDF-1.7\n\xff", "what is this?").expect(t, exitOK, "I cannot read it.\n", "the text of this one cannot be read (it is damaged)")
}

func TestRunTakesPictures(t *testing.T) {
	patchbay := scriptedRun(t, "turns: [{when: {user: what}, answer: [text: A dot.]}]")
	patchbay("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "what is this?").expect(t, exitOK, "A dot.\n")
}

// An answer that is not whole is printed, and is not a success.
func TestRunIsCutOff(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		code         int
		stdout, said string
		notes        string // on stderr
	}{
		{"text", "turns: [{answer: [text: Half of], stop: length, usage: {input: 9, output: 32}}]", exitBound, "Half of\n", "the answer was cut off", "cut off at the maximum length of an answer, 32 tokens"},
		{"call", "rules: [{answer: [call: {name: shop_products, arguments: '{\"cat'}], stop: length}]", exitBound, "", "the answer was cut off", "in the middle of a call"},
		{"empty", "rules: [{answer: [text: ' ']}]", exitModel, "", "the model gave no answer", "the answer was empty; retrying"},
		{"refused", "turns: [{answer: [text: I had rather not.], stop: refused}]", exitModel, "I had rather not.\n", "refused to answer", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patchbay := scriptedRun(t, tt.script)
			patchbay("", "go").expect(t, tt.code, tt.stdout, tt.said, tt.notes)
			if stop := map[int]string{exitBound: "length", exitModel: "refused"}[tt.code]; tt.name != "empty" {
				r := scriptedRun(t, tt.script)("", "go", "--json")
				lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
				if last := lines[len(lines)-1]; r.code != tt.code || !strings.Contains(last, `"kind":"ended"`) || !strings.Contains(last, `"stop":"`+stop+`"`) {
					t.Errorf("--json: exit code %d, last line %s", r.code, last)
				}
			}
		})
	}
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
		{"run hello --max-time -1s", "", "negative"},
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
	got := patchbay("", "what is there?", "--max-time", "3s")
	if line := "patchbay: waiting for openai/scripted, which has sent nothing for 50ms\n"; !strings.Contains(got.stderr, line) {
		t.Errorf("stderr %q, want %q in it", got.stderr, line)
	}
}
