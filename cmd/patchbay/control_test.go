package main

import (
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The flags of run go into each request, over the effort of mcp.json; wrong ones are usage errors that name what is right.
func TestRunParameters(t *testing.T) {
	alone(t)
	s := scripted(t, modeltest.MustParse("rules: [{answer: [text: done]}]"))
	if err := os.WriteFile("mcp.json", []byte(`{"patchbay": {"models": {"mine": {"provider": "openai", "name": "scripted", "baseUrl": "`+os.Getenv("OPENAI_BASE_URL")+`", "key": "${env:OPENAI_API_KEY}", "effort": "high"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, has string
	}{
		{"-m mine", `"reasoning_effort":"high"`},
		{"-m mine --effort low --set temperature=0.5 --set seed=9", `"temperature":0.5`},
		{"-m mine --effort low --set temperature=0.5 --set seed=9", `"reasoning_effort":"low"`},
		{"-m mine --effort low --set temperature=0.5 --set seed=9", `"seed":9`},
		{"-m openai/scripted --set effort=max --set stop=END", `"reasoning_effort":"max"`},
	} {
		typed(t, "", append([]string{"run", "go", "-s", "shop", "--config", "mcp.json"}, strings.Fields(tt.args)...)...).expect(t, exitOK, "done\n")
		all := s.Requests()
		if got := string(all[len(all)-1].Body); !strings.Contains(got, tt.has) {
			t.Errorf("run %s sent %s, want %s in it", tt.args, got, tt.has)
		}
	}
	for flags, want := range map[string]string{
		"--effort hgih":       `unknown effort "hgih" (did you mean "high"?): it is none, minimal, low, medium, high, xhigh or max`,
		"--set tempurature=1": `unknown parameter "tempurature": did you mean "temperature"?`,
		"--set temperature":   `"temperature" is not NAME=VALUE`,
		"--set messages=[]":   `"messages" is part of every request`,
		"--mode readable":     `unknown mode "readable": it is ask or read-only`,
	} {
		for _, verb := range []string{"run", "chat"} {
			typed(t, "", append([]string{verb, "go", "-m", "openai/scripted", "-s", "shop"}, strings.Fields(flags)...)...).expect(t, exitUsage, "", want)
		}
	}
}

// In read-only mode an order is refused, although --allow names it, and the run goes on with what reads.
func TestRunReadOnly(t *testing.T) {
	patchbay := scriptedRun(t, `
turns:
  - answer:
      - call: {name: shop_categories, arguments: {}}
      - call: {name: shop_place-order, arguments: {product: prd-1013}}
  - when: {results: {shop_place-order: "read-only mode", shop_categories: "kitchen"}}
    answer: [text: I would make a cart.]
`)
	patchbay("", "order a stove", "--mode", "read-only", "--allow", "shop/*").expect(t, exitOK, "I would make a cart.\n")
}

// /effort, /set and /mode show and change the settings of a conversation, which are kept: also if it is not continued with a
// message. A flag changes them, and /resume does not widen the mode.
func TestChatSettings(t *testing.T) {
	alone(t)
	s := scripted(t, modeltest.MustParse("rules: [{answer: [text: done]}]"))
	chat := func(stdin string, args ...string) string {
		t.Helper()
		out := typed(t, stdin, append([]string{"chat", "-m", "openai/scripted", "-s", "shop"}, args...)...)
		if out.code != exitOK {
			t.Fatalf("exit code %d: %s", out.code, out.stderr)
		}
		return out.stdout
	}
	last := func() string { all := s.Requests(); return string(all[len(all)-1].Body) }
	has := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("chat printed no %q:\n%s", want, out)
			}
		}
	}
	has(chat("/effort\n/set\n/mode\n/effort hihg\n/set temperature=0.5\n/effort low\nhello\n/set\n"),
		"effort: by the default of the model; /effort takes none, minimal", "/set temperature=0.2 sets one", "mode: ask; /mode takes", `did you mean "high"?`,
		"the model is asked with effort=low, temperature=0.5", "  effort=low\n  temperature=0.5\n")
	if got := last(); !strings.Contains(got, `"reasoning_effort":"low"`) || !strings.Contains(got, `"temperature":0.5`) {
		t.Errorf("sent %s", got)
	}
	has(chat("/set temperature=\n/mode read-only\n", "-c"), "2 messages, effort low", "read-only: only tools")
	has(chat("/mode\n/set\nhello\n/new\n/mode\n/resume\n", "-c"), "read-only, effort low", "mode: read-only; /mode takes", "  effort=low\n\n")
	if got := last(); strings.Contains(got, "temperature") {
		t.Errorf("after /set temperature= sent %s", got)
	}
	out := chat("/mode\n/set\n/mode ask\n", "-c", "--mode", "ask", "--effort", "max")
	has(out, "mode: ask;", "  effort=max\n")
	_, id, _ := strings.Cut(out, "continuing ")
	id, _, _ = strings.Cut(id, ",")
	has(chat("/resume "+id+"\n/mode\n", "--mode", "read-only"), "continuing "+id+", ", "mode: read-only;")
}
