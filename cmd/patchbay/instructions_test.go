package main

import (
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The model of run and chat gets an AGENTS.md only after the person has agreed to it: at a terminal they
// are asked, and see all of it; elsewhere a line says that it is not used.
func TestInstructions(t *testing.T) {
	alone(t)
	model := scripted(t, modeltest.MustParse("turns:\n"+strings.Repeat("  - when: {user: hello}\n    answer: [text: One.]\n", 5)))
	if err := os.WriteFile("AGENTS.md", []byte("Always say please.\x1b[2J\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := func() string {
		t.Helper()
		requests := model.Requests()
		return string(requests[len(requests)-1].Body)
	}
	out := typed(t, "", "run", "hello", "-m", "openai/scripted", "-s", "shop")
	out.expect(t, exitOK, "One.\n", "AGENTS.md is not trusted yet, so the model does not get it; patchbay config trust ")
	if strings.Contains(got(), "please") {
		t.Error("the model gets what nobody agreed to")
	}
	ask := func(answer string, args ...string) (said string) {
		t.Helper()
		var stdout, stderr strings.Builder
		a := newApp(t.Context(), strings.NewReader(answer), &stdout, &stderr)
		a.tty.in, a.tty.err = true, true
		if code := a.run(append([]string{"run", "hello", "-m", "openai/scripted", "-s", "shop"}, args...)); code != exitOK {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
		return stderr.String()
	}
	if said := ask("n\n"); !strings.Contains(said, "It tells the model:\n  Always say please.␛[2J\n") || !strings.Contains(said, "use it from now on? [y/N]") || strings.Contains(got(), "please") {
		t.Errorf("after a no: %q; the model gets %s", said, got())
	}
	if said := ask("", "--yes", "--allow", "shop/product"); strings.Contains(said, "[y/N]") {
		t.Errorf("--yes asks: %q", said)
	}
	if said := ask("y\n"); !strings.Contains(said, "instructions for the model: AGENTS.md, ") || !strings.Contains(got(), "Always say please.") {
		t.Errorf("after a yes: %q; the model gets %s", said, got())
	}
	out = typed(t, "hello\n/context\n", "chat", "-m", "openai/scripted", "-s", "shop")
	if !strings.Contains(out.stdout, "From \"AGENTS.md\":\n  Always say please.␛[2J\n") || !strings.Contains(got(), "Always say please.") {
		t.Errorf("chat: %+v", out)
	}
	out = typed(t, "", "config", "trust", "AGENTS.md", "--forget")
	out.expect(t, exitOK, "no longer trusted: AGENTS.md\n")
	typed(t, "", "config", "trust", "AGENTS.md").expect(t, exitOK, "Always say please.␛[2J\ntrusted: AGENTS.md\n")
}
